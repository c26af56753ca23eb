// Go coder/websocket as a client of the mixed suite, with context takeover.
// In: orders on stdin; out: reports on stdout, both through pipe.
// May use coder/websocket only.
// What it offers the server is changed here; it cannot ask for a window of the server.
package main

import (
	"context"
	"errors"
	"sync/atomic"

	"github.com/coder/websocket"

	"fanwire.example/interop/pipe"
)

func main() {
	pipe.Run(dial)
}

func dial(order pipe.Order) (*pipe.Socket, error) {
	background := context.Background()
	conn, _, err := websocket.Dial(background, order.URL, &websocket.DialOptions{
		Subprotocols:    order.Protocols,
		CompressionMode: websocket.CompressionContextTakeover,
	})
	if err != nil {
		return nil, err
	}
	conn.SetReadLimit(-1)
	closed := make(chan error, 1)
	var isClosing atomic.Bool
	return &pipe.Socket{
		Send: func(isBinary bool, message []byte) error {
			kind := websocket.MessageText
			if isBinary {
				kind = websocket.MessageBinary
			}
			return conn.Write(background, kind, message)
		},
		Close: func() {
			isClosing.Store(true)
			go func() { closed <- conn.Close(websocket.StatusNormalClosure, "") }()
		},
		Run: func(message func(bool, []byte)) (int, string) {
			for {
				kind, bytes, err := conn.Read(background)
				if err != nil && isClosing.Load() && <-closed == nil {
					return int(websocket.StatusNormalClosure), "" // Close read the peer's answer, this Read did not
				}
				if err != nil {
					return ending(err)
				}
				message(kind == websocket.MessageBinary, bytes)
			}
		},
	}, nil
}

func ending(err error) (int, string) {
	var end websocket.CloseError
	if errors.As(err, &end) {
		return int(end.Code), end.Reason
	}
	return 0, err.Error()
}
