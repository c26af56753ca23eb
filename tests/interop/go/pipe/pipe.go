// Package pipe obeys orders with WebSockets, for the Go stacks: the twin of ../../mixed/client/pipe.js.
// In: orders on stdin, one JSON object per line; out: reports on stdout. It ends with stdin.
// May use the standard library only; never looks into a message.
// A stack is a Dial; the driver judges what is reported.
package pipe

import (
	"bufio"
	"encoding/hex"
	"encoding/json"
	"os"
	"sync"
)

// Order asks for a connection, for a message to be sent, or for the end of a connection.
type Order struct {
	Do         string   `json:"do"`
	ID         string   `json:"id"`
	URL        string   `json:"url"`
	Protocols  []string `json:"protocols"`
	WindowBits int      `json:"windowBits"` // of the server, to be asked for; 0 for none
	Text       *string  `json:"text"`
	Hex        string   `json:"hex"`
}

// Socket is an open connection. Run calls message for each message until the connection ends.
type Socket struct {
	Send  func(isBinary bool, message []byte) error
	Close func()
	Run   func(message func(isBinary bool, message []byte)) (code int, reason string)
}

// Dial opens a connection as the order says.
type Dial func(order Order) (*Socket, error)

type report struct {
	Event  string  `json:"event"`
	ID     string  `json:"id"`
	Text   *string `json:"text,omitempty"`
	Hex    *string `json:"hex,omitempty"`
	Code   int     `json:"code,omitempty"`
	Reason string  `json:"reason,omitempty"`
}

type reporter struct {
	mutex  sync.Mutex
	stdout *json.Encoder
}

func (r *reporter) report(what report) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	if r.stdout.Encode(what) != nil {
		os.Exit(1) // the driver is gone
	}
}

// Run obeys orders until stdin ends.
func Run(dial Dial) {
	reports := &reporter{stdout: json.NewEncoder(os.Stdout)}
	reports.stdout.SetEscapeHTML(false)
	sockets := map[string]*Socket{}
	lines := bufio.NewReader(os.Stdin)
	for {
		line, err := lines.ReadBytes('\n')
		if err != nil {
			return
		}
		var order Order
		if err := json.Unmarshal(line, &order); err != nil {
			panic(err)
		}
		switch order.Do {
		case "open":
			open(dial, order, sockets, reports)
		case "send":
			send(sockets[order.ID], order, reports)
		case "close":
			sockets[order.ID].Close()
		}
	}
}

func open(dial Dial, order Order, sockets map[string]*Socket, reports *reporter) {
	socket, err := dial(order)
	if err != nil {
		reports.report(report{Event: "close", ID: order.ID, Reason: err.Error()})
		return
	}
	sockets[order.ID] = socket
	reports.report(report{Event: "open", ID: order.ID})
	go func() {
		code, reason := socket.Run(func(isBinary bool, message []byte) {
			reports.report(messageReport(order.ID, isBinary, message))
		})
		reports.report(report{Event: "close", ID: order.ID, Code: code, Reason: reason})
	}()
}

func send(socket *Socket, order Order, reports *reporter) {
	isBinary := order.Text == nil
	var message []byte
	if isBinary {
		message, _ = hex.DecodeString(order.Hex)
	} else {
		message = []byte(*order.Text)
	}
	if err := socket.Send(isBinary, message); err != nil {
		reports.report(report{Event: "close", ID: order.ID, Reason: "send: " + err.Error()})
	}
}

func messageReport(id string, isBinary bool, message []byte) report {
	if isBinary {
		digits := hex.EncodeToString(message)
		return report{Event: "message", ID: id, Hex: &digits}
	}
	text := string(message)
	return report{Event: "message", ID: id, Text: &text}
}
