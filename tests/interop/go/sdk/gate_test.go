// A gate before a server: what the server sends after the upgrade waits until the test opens it.
// In: a config's NetDialContext -> out: the moment between a client's first command and its reply, as long as one likes.
// May use the standard library only; never changes a byte.
// What clients do meanwhile stands in the tests.

package sdk

import (
	"context"
	"net"
	"sync"
	"testing"
)

// gate is for one connection; those after it pass as soon as it was opened.
type gate struct {
	commanded *events[struct{}]
	opened    chan struct{}
	once      sync.Once
}

func newGate(t *testing.T) *gate {
	gate := &gate{commanded: newEvents[struct{}]("command"), opened: make(chan struct{})}
	t.Cleanup(gate.open)
	return gate
}

func (gate *gate) open() { gate.once.Do(func() { close(gate.opened) }) }

func (gate *gate) dial(ctx context.Context, network, host string) (net.Conn, error) {
	line, err := (&net.Dialer{}).DialContext(ctx, network, host)
	if err != nil {
		return nil, err
	}
	return &gated{Conn: line, gate: gate}, nil
}

// gated is a connection that reads the answer to its upgrade, and more only through the gate.
type gated struct {
	net.Conn
	gate     *gate
	upgraded bool
}

// Write tells of frames; the upgrade request is text.
func (line *gated) Write(bytes []byte) (int, error) {
	written, err := line.Conn.Write(bytes)
	if len(bytes) > 0 && bytes[0]&0x80 != 0 {
		line.gate.commanded.put(struct{}{})
	}
	return written, err
}

func (line *gated) Read(bytes []byte) (int, error) {
	if line.upgraded {
		<-line.gate.opened
	}
	line.upgraded = true
	return line.Conn.Read(bytes)
}
