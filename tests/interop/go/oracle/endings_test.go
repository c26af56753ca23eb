// How connections end that no scenario can tell: of a server that is stopped, and of a client that reads nothing.
// In: both servers -> out: the close frames that clients get, which are the same.
// May use the connections and both servers' API; waits for events only.
// Endings that a command or a clock causes are scenarios.

package oracle

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// TestShutdown stops both servers with clients of several kinds. One that has not connected yet is not compared: the library
// forgets it until its own clock ends it, and Fanwire closes it as the others.
func TestShutdown(t *testing.T) {
	stage := newStage(t, common.with(keys{"shutdown": keys{"timeout": "1s"}}))
	const connect, subscribe = `{"id":1,"connect":{}}`, `{"id":2,"subscribe":{"channel":"recovered:s"}}`
	clients := []struct {
		name     string
		encoding encoding
		query    string
		frames   []string
	}{
		{"a client with JSON", inJSON, "", []string{connect}},
		{"a client with Protobuf", inProtobuf, "", []string{connect}},
		{"a client with pings of the WebSocket", inJSON, "?cf_ws_frame_ping_pong=true", []string{connect}},
		{"a subscriber", inJSON, "", []string{connect, subscribe}},
	}
	found := [2][]string{}
	for at, server := range []server{stage.fanwire, stage.library} {
		var opened []*connection
		for _, client := range clients {
			connection := open(t, server.websocket(""), client.encoding, client.query)
			for count, frame := range client.frames {
				must(t, connection.send([]string{frame}))
				connection.hears(t, count+1)
			}
			opened = append(opened, connection)
		}
		server.stop()
		for _, connection := range opened {
			found[at] = append(found[at], connection.ending(t))
		}
	}
	for at, client := range clients {
		if found[0][at] != found[1][at] {
			t.Errorf("%s: fanwire %s, library %s", client.name, found[0][at], found[1][at])
		}
	}
}

// TestSlowClients publishes to one that reads nothing until it is no longer there; then it reads on and finds why.
func TestSlowClients(t *testing.T) {
	stage := newStage(t, common.with(keys{"client": keys{"queue_max_size": 100_000}}))
	for _, encoding := range []encoding{inJSON, inProtobuf} {
		t.Run(string(encoding), func(t *testing.T) {
			t.Parallel()
			fanwire := slowEnding(t, stage.fanwire, encoding, isPublishedTo)
			library := slowEnding(t, stage.library, encoding, isPublishedTo)
			compareSlowEndings(t, fanwire, library)
		})
	}
}

// TestSlowAskers has clients that ask for more than they read.
func TestSlowAskers(t *testing.T) {
	stage := newStage(t, common.with(keys{"client": keys{"queue_max_size": 100_000}}))
	for _, encoding := range []encoding{inJSON, inProtobuf} {
		t.Run(string(encoding), func(t *testing.T) {
			t.Parallel()
			fanwire := slowEnding(t, stage.fanwire, encoding, asksAgain)
			library := slowEnding(t, stage.library, encoding, asksAgain)
			compareSlowEndings(t, fanwire, library)
		})
	}
}

// compareSlowEndings allows the library to end without a close frame. It gives up when the socket stays full for a second,
// and a reset of a socket with unread commands may overtake the frame.
func compareSlowEndings(t *testing.T, fanwire, library string) {
	t.Helper()
	if fanwire != library && (fanwire != "close 3008 slow" || library != "close "+noCloseFrame) {
		t.Errorf("fanwire %s, library %s", fanwire, library)
	}
}

// slowEnding is how a connection ends that reads nothing while something is done again and again.
func slowEnding(t *testing.T, server server, encoding encoding, act func(*testing.T, server, *connection, string)) string {
	t.Helper()
	channel := "users:" + string(encoding)
	connection := openDeaf(t, server.websocket(""), encoding, "")
	must(t, connection.send([]string{`{"id":1,"connect":{"token":"` + makeToken(`{"sub":"42"}`) + `"}}`, `{"id":2,"subscribe":{"channel":"` + channel + `"}}`}))
	isThere := func() bool {
		stats, err := server.call("presence_stats", []byte(`{"channel":"`+channel+`"}`))
		must(t, err)
		return !strings.Contains(string(stats), `"num_clients":0`)
	}
	started := time.Now()
	for ; !isThere(); connection.wait(10 * time.Millisecond) {
		if time.Since(started) > patience {
			t.Fatal("the client did not subscribe")
		}
	}
	for started = time.Now(); isThere(); connection.wait(10 * time.Millisecond) {
		if time.Since(started) > patience {
			t.Fatal("the client was not disconnected")
		}
		act(t, server, connection, channel)
	}
	go connection.listen()
	return connection.ending(t)
}

// isPublishedTo is faster than it can be written.
func isPublishedTo(t *testing.T, server server, _ *connection, channel string) {
	t.Helper()
	for range 100 {
		_, err := server.call("publish", []byte(`{"channel":"`+channel+`","data":"`+strings.Repeat("a", 50_000)+`"}`))
		must(t, err)
	}
}

func asksAgain(t *testing.T, server server, connection *connection, channel string) {
	t.Helper()
	_, err := server.call("publish", []byte(`{"channel":"`+channel+`","data":"`+strings.Repeat("a", 50_000)+`"}`))
	must(t, err)
	for id := range 100 {
		// The last ones meet a connection that has ended.
		_ = connection.send([]string{fmt.Sprintf(`{"id":%d,"history":{"channel":"%s","limit":-1}}`, id+3, channel)})
	}
}

// hears waits until so many things were heard in all.
func (connection *connection) hears(t *testing.T, count int) {
	t.Helper()
	for started := time.Now(); time.Since(started) < patience; connection.wait(time.Second) {
		if heard, ended := connection.sofar(0); len(heard) >= count || ended {
			return
		}
	}
	t.Fatalf("less than %d things were heard", count)
}

// ending waits for the end of a connection and tells how it was.
func (connection *connection) ending(t *testing.T) string {
	t.Helper()
	for started := time.Now(); time.Since(started) < patience; connection.wait(time.Second) {
		if heard, ended := connection.sofar(0); ended {
			return fmt.Sprint(heard[len(heard)-1])
		}
	}
	t.Fatal("the connection did not end")
	return ""
}
