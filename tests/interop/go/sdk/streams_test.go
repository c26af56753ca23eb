// Compressed streams with net/http, which decodes gzip by itself.
// In: one insecure server -> out: each message when it was published, in event streams and HTTP streams, with commands and without.
// May use the standard library only; never an SDK.
// Bytes are tested in Rust; other programs in ../../js/streams_compressed.test.js.

package sdk

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"reflect"
	"strings"
	"testing"
)

// streamed is what these tests read of a message; clients without commands get what is in a push.
type streamed struct {
	ID int `json:"id"`
	streamedPush
	Push streamedPush `json:"push"`
}

type streamedPush struct {
	Connect map[string]any `json:"connect"`
	Pub     struct {
		Data map[string]any `json:"data"`
	} `json:"pub"`
}

func TestNetHTTPDecodesStreamsMessageByMessage(t *testing.T) {
	on := keys{"enabled": true}
	kept := history.with(keys{"force_recovery": true})
	server := start(t, keys{
		"client": keys{"insecure": true}, "channel": keys{"without_namespace": kept},
		"sse": on, "http_stream": on, "uni_sse": on, "uni_http_stream": on,
	})
	for _, path := range []string{"sse", "http_stream", "uni_sse", "uni_http_stream"} {
		t.Run(path, func(t *testing.T) {
			lines := stream(t, server, path)
			isBare := strings.HasPrefix(path, "uni_")
			if reply := lines.next(t); reply.Connect == nil || isBare == (reply.ID == 1) {
				t.Fatalf("the answer to connect: %+v", reply)
			}
			if !isBare {
				if reply := lines.next(t); reply.ID != 2 {
					t.Fatalf("the reply to subscribe: %+v", reply)
				}
			}
			// Each is published when the one before has arrived: a decoder that waits for more ends the test.
			for n := 0; n < 40; n++ {
				data := streamState(n)
				text, err := json.Marshal(data)
				must(t, err)
				_, err = server.Publish(context.Background(), path, text)
				must(t, err)
				var wanted map[string]any
				must(t, json.Unmarshal(text, &wanted))
				message := lines.next(t)
				got := message.Push.Pub.Data
				if isBare {
					got = message.Pub.Data
				}
				if !reflect.DeepEqual(got, wanted) {
					t.Fatalf("publication %d: %v", n, got)
				}
			}
		})
	}
}

// messages are those of a response that goes on.
type messages struct{ *bufio.Reader }

// stream begins a response of `path` for the channel of the same name.
func stream(t *testing.T, server *server, path string) messages {
	t.Helper()
	commands := fmt.Sprintf("{\"id\":1,\"connect\":{}}\n{\"id\":2,\"subscribe\":{\"channel\":%q}}", path)
	if strings.HasPrefix(path, "uni_") {
		commands = fmt.Sprintf("{\"subs\":{%q:{}}}", path)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 3*patience)
	t.Cleanup(cancel)
	url := server.http + "/connection/" + path
	request, err := http.NewRequestWithContext(ctx, "POST", url, strings.NewReader(commands))
	must(t, err)
	response, err := http.DefaultTransport.RoundTrip(request)
	must(t, err)
	t.Cleanup(func() { response.Body.Close() })
	if !response.Uncompressed {
		t.Fatalf("it was not compressed: %v", response.Header)
	}
	return messages{bufio.NewReader(response.Body)}
}

// next is the next message; lines around events are passed over.
func (lines messages) next(t *testing.T) (message streamed) {
	t.Helper()
	for {
		line, err := lines.ReadString('\n')
		must(t, err)
		text := strings.TrimPrefix(strings.TrimSpace(line), "data: ")
		if text != "" && !strings.HasPrefix(text, "id: ") {
			must(t, json.Unmarshal([]byte(text), &message))
			return message
		}
	}
}

// streamState is a state of which little changes.
func streamState(n int) keys {
	var rows []keys
	for at := 0; at < 3+n%5*20; at++ {
		score := at
		if at == n%7 {
			score = n
		}
		rows = append(rows, keys{"player": fmt.Sprintf("Spieler ☺ %d", at), "score": score})
	}
	return keys{"n": n, "players": rows}
}
