// Starts Fanwire for a test and stops it by its own process id.
// In: settings with Centrifugo's keys -> out: a server on a free port of 127.0.0.1, and its HTTP API.
// May use the standard library only; never waits for a moment, always for an event and with a limit.
// How Fanwire is started is changed here; the library's node is started in library_test.go.

package oracle

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// patience is the longest a test waits for one event.
const patience = 60 * time.Second

// server is one of the two that are compared.
type server interface {
	// websocket is the address of the WebSocket endpoint for a client.
	websocket(client string) string
	// call does what the method of the server API does and answers in its form: {"result":{}} or {"error":{}}.
	call(method string, params json.RawMessage) (json.RawMessage, error)
	// stop ends it as a supervisor does; what was stopped is not stopped again when its test ends.
	stop()
}

type fanwire struct {
	host  string
	ended func()
}

func (server *fanwire) stop() { server.ended() }

func (server *fanwire) websocket(string) string {
	return "ws://" + server.host + "/connection/websocket"
}

func (server *fanwire) call(method string, params json.RawMessage) (json.RawMessage, error) {
	address := "http://" + server.host + "/api/" + method
	request, err := http.NewRequest(http.MethodPost, address, bytes.NewReader(params))
	if err != nil {
		return nil, err
	}
	request.Header.Set("X-API-Key", apiKey)
	answer, err := (&http.Client{Timeout: patience}).Do(request)
	if err != nil {
		return nil, err
	}
	defer func() { _ = answer.Body.Close() }()
	body, err := io.ReadAll(answer.Body)
	if err == nil && answer.StatusCode != http.StatusOK {
		err = fmt.Errorf("status %d: %s", answer.StatusCode, body)
	}
	return cause.ReplaceAll(body, []byte("$1")), err
}

// cause is a field of errors that only Fanwire sends.
var cause = regexp.MustCompile(`("error":\{"code":\d+,"message":"[^"]*"),"cause":"(?:[^"\\]|\\.)*"`)

var address = regexp.MustCompile(`\blistens on (127\.0\.0\.1:\d+)`)

// wrongFrame is what Fanwire logs when a compressed frame would not have been understood.
const wrongFrame = "a compressed frame was wrong"

// startFanwire runs it until the test ends.
func startFanwire(t *testing.T, configuration []byte) *fanwire {
	t.Helper()
	folder := t.TempDir()
	file := filepath.Join(folder, "config.json")
	must(t, os.WriteFile(file, configuration, 0o600))
	program := exec.Command(programPath(), "serve", "--config", file)
	program.Dir = folder
	output, input, err := os.Pipe()
	must(t, err)
	program.Stdout, program.Stderr = input, input
	must(t, program.Start())
	must(t, input.Close())
	lines := readLines(output)
	ended := sync.OnceFunc(func() { stop(t, program, lines) })
	t.Cleanup(ended)
	return &fanwire{host: lines.host(t), ended: ended}
}

func programPath() string {
	if path := os.Getenv("FANWIRE"); path != "" {
		return path
	}
	path, _ := filepath.Abs("../../../../target/debug/fanwire")
	return path
}

func stop(t *testing.T, program *exec.Cmd, lines *printed) {
	_ = program.Process.Signal(syscall.SIGTERM)
	ended := make(chan error, 1)
	go func() { ended <- program.Wait() }()
	select {
	case err := <-ended:
		if err != nil {
			t.Errorf("the server ended with %v:\n%s", err, lines.text())
		}
	case <-time.After(2 * patience):
		_ = program.Process.Kill()
		t.Errorf("the server did not end:\n%s", lines.text())
	}
	if strings.Contains(lines.text(), wrongFrame) {
		t.Errorf("websocket.compression_verify held frames back:\n%s", lines.text())
	}
}

// printed is what a server printed, and its address as soon as that is known.
type printed struct {
	mutex  sync.Mutex
	all    strings.Builder
	listen chan string
}

func readLines(from io.Reader) *printed {
	lines := &printed{listen: make(chan string, 1)}
	go func() {
		defer close(lines.listen)
		scanner := bufio.NewScanner(from)
		for scanner.Scan() {
			line := scanner.Text()
			lines.mutex.Lock()
			lines.all.WriteString(line + "\n")
			lines.mutex.Unlock()
			if found := address.FindStringSubmatch(line); found != nil {
				select {
				case lines.listen <- found[1]:
				default:
				}
			}
		}
	}()
	return lines
}

func (lines *printed) text() string {
	lines.mutex.Lock()
	defer lines.mutex.Unlock()
	return lines.all.String()
}

func (lines *printed) host(t *testing.T) string {
	t.Helper()
	select {
	case host, ok := <-lines.listen:
		if ok {
			return host
		}
		t.Fatalf("the server ended; it printed:\n%s", lines.text())
	case <-time.After(patience):
		t.Fatalf("the server did not print its address:\n%s", lines.text())
	}
	return ""
}
