// The server API over gRPC with stubs that protoc-gen-go makes of the server's own file.
// In: a server with grpc_api -> out: results, errors of the API, statuses of gRPC.
// May use the published Go libraries of gRPC and Protobuf; never a copy of generated code: the step writes stubs/.
// That gRPC and HTTP answer equally is tested in crates/api/src/grpc/tests.rs; Python's stubs in python/test_grpc.py.
package api

import (
	"bufio"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/encoding/gzip"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"fanwire.example/interop/api/stubs"
)

const config = `{
  "http_server": {"address": "127.0.0.1", "port": 0},
  "client": {"insecure": true},
  "channel": {"without_namespace": {"history_size": 10, "history_ttl": "60s"}},
  "grpc_api": {"enabled": true, "address": "127.0.0.1", "port": 0, "key": "interop-api-key"}
}`

var address = regexp.MustCompile(`\bgRPC API +(\S+)`)

// dial starts a server that ends with the test, and connects.
func dial(t *testing.T, options ...grpc.DialOption) stubs.CentrifugoApiClient {
	t.Helper()
	file := filepath.Join(t.TempDir(), "config.json")
	if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	server := exec.Command(os.Getenv("FANWIRE"), "serve", "--config", file)
	out, err := server.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = server.Process.Kill(); _ = server.Wait() })
	for lines := bufio.NewScanner(out); lines.Scan(); {
		if found := address.FindStringSubmatch(lines.Text()); found != nil {
			options = append(options, grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithNoProxy())
			connection, err := grpc.NewClient("passthrough:///"+found[1], options...)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = connection.Close() })
			return stubs.NewCentrifugoApiClient(connection)
		}
	}
	t.Fatal("the server has no gRPC API")
	return nil
}

func authorized(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	t.Cleanup(cancel)
	return metadata.AppendToOutgoingContext(ctx, "authorization", "apikey interop-api-key")
}

func TestPublicationsComeBackInTheHistory(t *testing.T) {
	client, ctx := dial(t), authorized(t)
	data := []byte(`{"text":"grüße"}`)
	published, err := client.Publish(ctx, &stubs.PublishRequest{Channel: "news", Data: data, Tags: map[string]string{"a": "b"}})
	if err != nil || published.GetError() != nil || published.GetResult().GetOffset() != 1 {
		t.Fatalf("%v, %v", published, err)
	}
	history, err := client.History(ctx, &stubs.HistoryRequest{Channel: "news", Limit: 5})
	if err != nil || len(history.GetResult().GetPublications()) != 1 {
		t.Fatalf("%v, %v", history, err)
	}
	if one := history.GetResult().GetPublications()[0]; string(one.GetData()) != string(data) || one.GetTags()["a"] != "b" {
		t.Fatalf("%v", one)
	}
}

func TestErrorsOfTheApiAreInTheReplyAndABatchGoesOn(t *testing.T) {
	client, ctx := dial(t, grpc.WithDefaultCallOptions(grpc.UseCompressor(gzip.Name))), authorized(t)
	refused, err := client.Publish(ctx, &stubs.PublishRequest{Channel: "none:a", Data: []byte("1")})
	if err != nil || refused.GetError().GetCode() != 102 {
		t.Fatalf("%v, %v", refused, err)
	}
	publish := func(channel string) *stubs.Command {
		return &stubs.Command{Publish: &stubs.PublishRequest{Channel: channel, Data: []byte("1")}}
	}
	batch, err := client.Batch(ctx, &stubs.BatchRequest{Commands: []*stubs.Command{publish("none:a"), publish("news")}})
	if err != nil || len(batch.GetReplies()) != 2 {
		t.Fatalf("%v, %v", batch, err)
	}
	if batch.Replies[0].GetError().GetCode() != 102 || batch.Replies[1].GetPublish().GetOffset() != 1 {
		t.Fatalf("%v", batch)
	}
}

func TestACallWithoutAKeyIsUnauthenticated(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	_, err := dial(t).Info(ctx, &stubs.InfoRequest{})
	if status.Code(err) != codes.Unauthenticated {
		t.Fatal(err)
	}
}
