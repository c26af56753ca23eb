// Unidirectional transports with net/http and gorilla/websocket, neither of which knows the protocol.
// In: one server with uni_websocket, uni_sse and uni_http_stream -> out: pushes and ends as a Go program reads them.
// May use these two and gocent; never centrifuge-go, which none of these transports needs.
// Bytes of frames and heads are tested in crates/fanwire/tests/it/uni.

package sdk

import (
	"bufio"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/centrifugal/gocent/v3"
	"github.com/gorilla/websocket"
)

var unidirectional = keys{
	"uni_websocket":   keys{"enabled": true, "compression": true, "join_push_messages": true},
	"uni_sse":         keys{"enabled": true},
	"uni_http_stream": keys{"enabled": true},
	"channel":         keys{"without_namespace": history},
}

// push is what the tests read of one.
type push struct {
	Channel string
	Connect *struct {
		Client, Session, Node string
		Subs                  map[string]struct {
			Recovered    bool
			Epoch        string
			Publications []struct{ Data json.RawMessage }
		}
	}
	Pub        *struct{ Data json.RawMessage }
	Disconnect *struct {
		Code   int
		Reason string
	}
}

// pushes reads them from a connection until its end, which is the error.
type pushes func() (push, error)

var uniTransports = []struct {
	name string
	open func(t *testing.T, server *server, request keys) pushes
}{
	{"uni_websocket", openUniWebSocket},
	{"uni_sse", openUniSSE},
	{"uni_http_stream", openUniHTTPStream},
}

func encoded(t *testing.T, request keys) string {
	t.Helper()
	text, err := json.Marshal(request)
	must(t, err)
	return string(text)
}

func openUniWebSocket(t *testing.T, server *server, request keys) pushes {
	t.Helper()
	address := strings.Replace(server.http, "http", "ws", 1) + "/connection/uni_websocket"
	dialer := websocket.Dialer{EnableCompression: true, HandshakeTimeout: patience}
	socket, _, err := dialer.Dial(address+"?cf_connect="+url.QueryEscape(encoded(t, request)), nil)
	must(t, err)
	t.Cleanup(func() { _ = socket.Close() })
	var lines []string
	return func() (push, error) {
		for len(lines) == 0 {
			must(t, socket.SetReadDeadline(time.Now().Add(patience)))
			_, message, err := socket.ReadMessage()
			if err != nil {
				return push{}, err
			}
			lines = strings.Split(string(message), "\n")
		}
		var one push
		err := json.Unmarshal([]byte(lines[0]), &one)
		lines = lines[1:]
		return one, err
	}
}

func openUniSSE(t *testing.T, server *server, request keys) pushes {
	t.Helper()
	query := "?cf_connect=" + url.QueryEscape(encoded(t, request))
	call, err := http.NewRequestWithContext(limited(t), http.MethodGet, server.http+"/connection/uni_sse"+query, nil)
	must(t, err)
	return body(t, call, "data: ")
}

func openUniHTTPStream(t *testing.T, server *server, request keys) pushes {
	t.Helper()
	text := strings.NewReader(encoded(t, request))
	call, err := http.NewRequestWithContext(limited(t), http.MethodPost, server.http+"/connection/uni_http_stream", text)
	must(t, err)
	return body(t, call, "")
}

func body(t *testing.T, call *http.Request, prefix string) pushes {
	t.Helper()
	response, err := http.DefaultClient.Do(call)
	must(t, err)
	t.Cleanup(func() { _ = response.Body.Close() })
	equal(t, "status", response.StatusCode, http.StatusOK)
	lines := bufio.NewScanner(response.Body)
	return func() (push, error) {
		for lines.Scan() {
			if line := strings.TrimSpace(lines.Text()); line != "" && !strings.HasPrefix(line, "id: ") {
				var one push
				err := json.Unmarshal([]byte(strings.TrimPrefix(line, prefix)), &one)
				return one, err
			}
		}
		if err := lines.Err(); err != nil {
			return push{}, err
		}
		return push{}, io.EOF
	}
}

// next is a push that there must be.
func (pushes pushes) next(t *testing.T) push {
	t.Helper()
	one, err := pushes()
	must(t, err)
	return one
}

func TestUnidirectionalClientsReceiveRecoverAndEnd(t *testing.T) {
	server := start(t, unidirectional.with(keys{"channel": keys{"without_namespace": history.with(keys{"force_recovery": true})}}))
	for _, transport := range uniTransports {
		t.Run(transport.name, func(t *testing.T) {
			channel, connect := transport.name, keys{"token": token(keys{"sub": "42"})}
			opened := transport.open(t, server, connect.with(keys{"subs": keys{channel: keys{}}}))
			first := opened.next(t).Connect
			sub, ok := first.Subs[channel]
			if !ok || first.Client == "" || first.Session == "" || first.Node == "" {
				t.Fatalf("not the whole connect push: %+v", first)
			}
			server.publish(t, channel, 1, 20)
			for n := 1; n <= 20; n++ {
				one := opened.next(t)
				equal(t, "channel", one.Channel, channel)
				equal(t, "number", number(t, one.Pub.Data), n)
			}
			position := keys{"recover": true, "offset": 15, "epoch": sub.Epoch}
			recovered := transport.open(t, server, connect.with(keys{"subs": keys{channel: position}}))
			missed := recovered.next(t).Connect.Subs[channel]
			equal(t, "recovered", missed.Recovered, true)
			equal(t, "publications", len(missed.Publications), 5)
			equal(t, "number", number(t, missed.Publications[4].Data), 20)
			must(t, server.Disconnect(limited(t), "42", gocent.WithDisconnect(&gocent.Disconnect{Code: 4001, Reason: "bye"})))
			for _, ended := range []pushes{opened, recovered} {
				disconnect := ended.next(t).Disconnect
				equal(t, "code", disconnect.Code, 4001)
				equal(t, "reason", disconnect.Reason, "bye")
				_, err := ended()
				var closed *websocket.CloseError
				if errors.As(err, &closed) {
					equal(t, "close code", closed.Code, 4001)
				} else if !errors.Is(err, io.EOF) {
					t.Fatalf("neither a close frame nor the end: %v", err)
				}
			}
		})
	}
}

func TestUnidirectionalClientsAreRefusedWithADisconnect(t *testing.T) {
	server := start(t, unidirectional)
	for _, transport := range uniTransports {
		for code, request := range map[int]keys{
			3005: {"token": token(keys{"sub": "42", "exp": 1})},
			3500: {"token": "x"},
			3501: {},
		} {
			refused := transport.open(t, server, request)
			equal(t, transport.name, refused.next(t).Disconnect.Code, code)
		}
	}
}
