// One client's raw connection to one server: frames in and out, nothing known of what they mean.
// In: commands as JSON, or raw bytes -> out: what came, each reply as JSON of the protocol, and how the connection ended.
// May use gorilla/websocket and the protocol's own types to read Protobuf; answers no ping and sends nothing by itself.
// How bytes become replies is changed here; what of them is compared is decided in sameness_test.go.

package oracle

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/centrifugal/fdelta"
	"github.com/centrifugal/protocol"
	"github.com/gorilla/websocket"
)

type encoding string

const (
	inJSON     encoding = "json"
	inProtobuf encoding = "protobuf"
)

// connection collects what a server sends.
type connection struct {
	encoding encoding
	socket   *websocket.Conn
	// bases are what the next delta of a channel is applied to.
	bases map[string][]byte
	// patches counts deltas where nobody else is to see which publications are some.
	patches *atomic.Int64

	mutex   sync.Mutex
	arrived chan struct{}
	heard   []any
	ended   bool
	// asked are the channels of subscribe commands by their ids, as replies do not name them.
	asked map[string]string
}

func open(t *testing.T, address string, encoding encoding, query string) *connection {
	t.Helper()
	opened := openDeaf(t, address, encoding, query)
	go opened.listen()
	return opened
}

// openDeaf opens a connection from which nothing is read.
func openDeaf(t *testing.T, address string, encoding encoding, query string) *connection {
	t.Helper()
	dialer := websocket.Dialer{HandshakeTimeout: patience}
	if query == "" {
		dialer.Subprotocols = []string{"centrifuge-" + string(encoding)}
	}
	socket, _, err := dialer.Dial(address+query, nil)
	must(t, err)
	opened := &connection{
		encoding: encoding, socket: socket, bases: map[string][]byte{}, arrived: make(chan struct{}, 1),
		asked: map[string]string{},
	}
	t.Cleanup(func() { _ = socket.Close() })
	return opened
}

// send puts several commands into one frame.
func (connection *connection) send(commands []string) error {
	connection.note(commands)
	if connection.encoding == inJSON {
		return connection.socket.WriteMessage(websocket.TextMessage, []byte(strings.Join(commands, "\n")))
	}
	var frame []byte
	for _, text := range commands {
		command, err := protocol.NewJSONCommandDecoder([]byte(text)).Decode()
		if err != nil && !errors.Is(err, io.EOF) {
			return fmt.Errorf("%s is no command: %w", text, err)
		}
		message, err := command.MarshalCF()
		if err != nil {
			return err
		}
		frame = append(binary.AppendUvarint(frame, uint64(len(message))), message...)
	}
	return connection.sendRaw(frame)
}

func (connection *connection) note(commands []string) {
	connection.mutex.Lock()
	defer connection.mutex.Unlock()
	for _, text := range commands {
		var command struct {
			ID        json.Number
			Subscribe struct{ Channel string }
		}
		if json.Unmarshal([]byte(text), &command) == nil {
			connection.asked[command.ID.String()] = command.Subscribe.Channel
		}
	}
}

func (connection *connection) sendRaw(frame []byte) error {
	if connection.encoding == inJSON {
		return connection.socket.WriteMessage(websocket.TextMessage, frame)
	}
	return connection.socket.WriteMessage(websocket.BinaryMessage, frame)
}

func (connection *connection) listen() {
	for {
		kind, frame, err := connection.socket.ReadMessage()
		if err != nil {
			connection.hear(true, "close "+ending(err))
			return
		}
		replies, err := connection.replies(kind, frame)
		connection.hear(false, replies...)
		if err != nil {
			connection.hear(true, fmt.Sprintf("a frame that cannot be read: %v: %q", err, frame))
			_ = connection.socket.Close()
			return
		}
	}
}

const noCloseFrame = "without a close frame"

// ending is the code and reason of a close frame, or that there was none.
func ending(err error) string {
	var closed *websocket.CloseError
	if errors.As(err, &closed) && closed.Code != websocket.CloseAbnormalClosure {
		return strings.TrimSpace(fmt.Sprintf("%d %s", closed.Code, closed.Text))
	}
	return noCloseFrame
}

func (connection *connection) hear(ended bool, replies ...any) {
	connection.mutex.Lock()
	defer connection.mutex.Unlock()
	if connection.ended {
		return
	}
	connection.heard, connection.ended = append(connection.heard, replies...), ended
	select {
	case connection.arrived <- struct{}{}:
	default:
	}
}

// sofar is what was heard from `since` on, and whether that is all there will ever be.
func (connection *connection) sofar(since int) (heard []any, ended bool) {
	connection.mutex.Lock()
	defer connection.mutex.Unlock()
	return connection.heard[since:], connection.ended
}

// wait returns when something was heard since it was last called, or after a while.
func (connection *connection) wait(limit time.Duration) {
	select {
	case <-connection.arrived:
	case <-time.After(limit):
	}
}

// replies takes a frame apart; JSON of a reply is exactly what came, that of Protobuf is made by the protocol's encoder.
func (connection *connection) replies(kind int, frame []byte) (replies []any, err error) {
	if (kind == websocket.TextMessage) != (connection.encoding == inJSON) {
		return nil, errors.New("the wrong kind of frame")
	}
	if connection.encoding == inProtobuf {
		return connection.protobufReplies(frame)
	}
	for _, line := range bytes.Split(frame, []byte("\n")) {
		reply, err := parsed(line)
		if err != nil {
			return replies, err
		}
		connection.eachPublication(reply, func(channel string, publication map[string]any) {
			text, _ := publication["data"].(string)
			publication["data"] = connection.whole(channel, publication, []byte(text), publication["data"])
		})
		replies = append(replies, reply)
	}
	return replies, nil
}

func (connection *connection) protobufReplies(frame []byte) (replies []any, err error) {
	decoder, length, optional := protocol.NewProtobufReplyDecoder(frame), 0, 0
	for {
		reply, err := decoder.Decode()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return replies, err
		}
		again, err := reply.MarshalCF()
		if err != nil {
			return replies, err
		}
		// The library writes the key and the value of a map's entry when they are empty, too; readers of Protobuf take either. Each
		// is two bytes, and may be what makes the length of its publication, result and reply take one more.
		if empty := emptyTags(reply); empty > 0 {
			optional += 2*empty + 3
		}
		length += len(binary.AppendUvarint(nil, uint64(len(again)))) + len(again)
		tree, err := connection.tree(reply)
		if err != nil {
			return replies, err
		}
		replies = append(replies, tree)
	}
	if len(frame) < length-optional || len(frame) > length {
		return replies, fmt.Errorf("%d bytes where the library has %d", len(frame), length)
	}
	return replies, nil
}

func emptyTags(reply *protocol.Reply) (count int) {
	for _, publication := range publicationsOf(reply) {
		for key, value := range publication.Tags {
			for _, text := range []string{key, value} {
				if text == "" {
					count++
				}
			}
		}
	}
	return count
}

// publicationsOf are those of a reply in the order of its JSON.
func publicationsOf(reply *protocol.Reply) (publications []*protocol.Publication) {
	if publication := reply.GetPush().GetPub(); publication != nil {
		publications = append(publications, publication)
	}
	subs := reply.GetConnect().GetSubs()
	for _, channel := range slices.Sorted(maps.Keys(subs)) {
		publications = append(publications, subs[channel].Publications...)
	}
	publications = append(publications, reply.GetSubscribe().GetPublications()...)
	return append(publications, reply.GetHistory().GetPublications()...)
}

// tree is the JSON of a reply whose deltas were applied; data that is not JSON becomes a string.
func (connection *connection) tree(reply *protocol.Reply) (any, error) {
	var payloads [][]byte
	for _, publication := range publicationsOf(reply) {
		if len(publication.Data) > 0 {
			payloads = append(payloads, publication.Data)
			publication.Data = []byte("0")
		}
	}
	if reply.History != nil && reply.History.Publications == nil {
		reply.History.Publications = []*protocol.Publication{} // which are one in Protobuf
	}
	text, err := protocol.NewJSONReplyEncoder().Encode(reply)
	if err != nil {
		return nil, err
	}
	tree, err := parsed(text)
	if err != nil {
		return nil, err
	}
	connection.eachPublication(tree, func(channel string, publication map[string]any) {
		data := payloads[0]
		payloads = payloads[1:]
		publication["data"] = connection.whole(channel, publication, data, nil)
	})
	return tree, nil
}

// whole is the data of a publication after its delta was applied, and remembers it for the next one.
func (connection *connection) whole(channel string, publication map[string]any, data []byte, plain any) any {
	if publication["delta"] == true {
		applied, err := fdelta.Apply(connection.bases[channel], data)
		if err != nil {
			return fmt.Sprintf("a wrong delta: %v", err)
		}
		data = applied
		if connection.encoding == inJSON {
			plain = string(data)
		}
		if connection.patches != nil {
			connection.patches.Add(1)
			delete(publication, "delta")
		}
	}
	connection.bases[channel] = data
	if connection.encoding == inJSON {
		return plain
	}
	if tree, err := parsed(data); err == nil {
		return tree
	}
	return fmt.Sprintf("bytes %x", data)
}

// eachPublication calls `act` for every publication with data, in their order.
func (connection *connection) eachPublication(reply any, act func(channel string, publication map[string]any)) {
	each := func(channel string, list any) {
		publications, _ := list.([]any)
		for _, one := range publications {
			if publication, ok := one.(map[string]any); ok && publication["data"] != nil {
				act(channel, publication)
			}
		}
	}
	root, _ := reply.(map[string]any)
	inside := func(key string) map[string]any {
		inner, _ := root[key].(map[string]any)
		return inner
	}
	channel, _ := inside("push")["channel"].(string)
	each(channel, []any{inside("push")["pub"]})
	subs, _ := inside("connect")["subs"].(map[string]any)
	for _, channel := range slices.Sorted(maps.Keys(subs)) {
		if result, ok := subs[channel].(map[string]any); ok {
			each(channel, result["publications"])
		}
	}
	connection.mutex.Lock()
	asked := connection.asked[fmt.Sprint(root["id"])]
	connection.mutex.Unlock()
	each(asked, inside("subscribe")["publications"])
	// Those are never deltas, and none refers to them.
	each("", inside("history")["publications"])
}

// parsed is a JSON text with its numbers as they are written.
func parsed(text []byte) (tree any, err error) {
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	if err := decoder.Decode(&tree); err != nil {
		return nil, err
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("more than one value")
	}
	return tree, nil
}
