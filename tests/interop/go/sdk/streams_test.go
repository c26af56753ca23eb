// Compressed streams with net/http, which decodes gzip by itself.
// In: one insecure server -> out: each message when it was published, in an event stream and an HTTP stream.
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

// streamed is what these tests read of a message.
type streamed struct {
	ID   int `json:"id"`
	Push struct {
		Pub struct {
			Data map[string]any `json:"data"`
		} `json:"pub"`
	} `json:"push"`
}

func TestNetHTTPDecodesStreamsMessageByMessage(t *testing.T) {
	on := keys{"enabled": true}
	server := start(t, keys{"client": keys{"insecure": true}, "sse": on, "http_stream": on})
	for _, path := range []string{"sse", "http_stream"} {
		t.Run(path, func(t *testing.T) {
			lines := stream(t, server, path)
			if reply := lines.next(t); reply.ID != 1 {
				t.Fatalf("the reply to connect: %+v", reply)
			}
			if reply := lines.next(t); reply.ID != 2 {
				t.Fatalf("the reply to subscribe: %+v", reply)
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
				if got := lines.next(t).Push.Pub.Data; !reflect.DeepEqual(got, wanted) {
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
		if text := strings.TrimPrefix(strings.TrimSpace(line), "data: "); text != "" {
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
