// Go gorilla/websocket as a client of the mixed suite; it offers no context takeover in either direction.
// In: orders on stdin; out: reports on stdout, both through pipe.
// May use gorilla/websocket only.
// What it offers the server is changed here; it cannot ask for a window of the server.
package main

import (
	"errors"
	"time"

	"github.com/gorilla/websocket"

	"fanwire.example/interop/pipe"
)

func main() {
	pipe.Run(dial)
}

func dial(order pipe.Order) (*pipe.Socket, error) {
	dialer := websocket.Dialer{EnableCompression: true, Subprotocols: order.Protocols}
	conn, _, err := dialer.Dial(order.URL, nil)
	if err != nil {
		return nil, err
	}
	return &pipe.Socket{
		Send: func(isBinary bool, message []byte) error {
			if isBinary {
				return conn.WriteMessage(websocket.BinaryMessage, message)
			}
			return conn.WriteMessage(websocket.TextMessage, message)
		},
		Close: func() {
			normal := websocket.FormatCloseMessage(websocket.CloseNormalClosure, "")
			_ = conn.WriteControl(websocket.CloseMessage, normal, time.Now().Add(time.Minute))
		},
		Run: func(message func(bool, []byte)) (int, string) {
			for {
				kind, bytes, err := conn.ReadMessage()
				if err != nil {
					return ending(err)
				}
				message(kind == websocket.BinaryMessage, bytes)
			}
		},
	}, nil
}

func ending(err error) (int, string) {
	var end *websocket.CloseError
	if errors.As(err, &end) {
		return end.Code, end.Text
	}
	return 0, err.Error()
}
