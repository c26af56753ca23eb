// Go lxzan/gws as a client of the mixed suite, with context takeover in both directions.
// In: orders on stdin; out: reports on stdout, both through pipe.
// May use gws only.
// What it offers the server is changed here.
package main

import (
	"errors"
	"net/http"
	"strings"
	"sync/atomic"

	"github.com/lxzan/gws"

	"fanwire.example/interop/pipe"
)

func main() {
	pipe.Run(dial)
}

// client hands on what gws calls it with.
type client struct {
	gws.BuiltinEventHandler
	message   func(isBinary bool, message []byte)
	isClosing atomic.Bool
	end       error
}

func (c *client) OnMessage(_ *gws.Conn, message *gws.Message) {
	defer message.Close()
	c.message(message.Opcode == gws.OpcodeBinary, message.Bytes())
}

func (c *client) OnPing(conn *gws.Conn, payload []byte) {
	_ = conn.WritePong(payload)
}

func (c *client) OnClose(_ *gws.Conn, err error) {
	c.end = err
}

func dial(order pipe.Order) (*pipe.Socket, error) {
	windowBits := order.WindowBits
	if windowBits == 0 {
		windowBits = 15
	}
	header := http.Header{}
	if len(order.Protocols) > 0 {
		header.Set("Sec-WebSocket-Protocol", strings.Join(order.Protocols, ", "))
	}
	handler := &client{}
	conn, _, err := gws.NewClient(handler, &gws.ClientOption{
		Addr:          order.URL,
		RequestHeader: header,
		PermessageDeflate: gws.PermessageDeflate{
			Enabled:               true,
			ServerContextTakeover: true,
			ClientContextTakeover: true,
			ServerMaxWindowBits:   windowBits,
			ClientMaxWindowBits:   15,
			Threshold:             1, // otherwise it compresses messages from 512 bytes on
		},
	})
	if err != nil {
		return nil, err
	}
	return &pipe.Socket{
		Send: func(isBinary bool, message []byte) error {
			if isBinary {
				return conn.WriteMessage(gws.OpcodeBinary, message)
			}
			return conn.WriteMessage(gws.OpcodeText, message)
		},
		Close: func() {
			handler.isClosing.Store(true)
			conn.WriteClose(1000, nil)
		},
		Run: func(message func(bool, []byte)) (int, string) {
			handler.message = message
			conn.ReadLoop()
			return ending(handler)
		},
	}, nil
}

// ending says how a connection ended. Of a close from here gws tells neither the code nor the peer's answer.
func ending(handler *client) (int, string) {
	var end *gws.CloseError
	if errors.As(handler.end, &end) {
		return int(end.Code), string(end.Reason)
	}
	if handler.isClosing.Load() {
		return 1000, ""
	}
	return 0, handler.end.Error()
}
