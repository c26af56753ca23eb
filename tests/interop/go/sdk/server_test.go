// Starts the server for a test and stops it by its own process id.
// In: settings with Centrifugo's keys -> out: a server that listens on a free port of 127.0.0.1.
// May use the standard library and gocent; never waits for a moment, always for an event and with a limit.
// How a server is started is changed here; clients are made in client_test.go, expectations stand in the tests.

package sdk

import (
	"bufio"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/centrifugal/gocent/v3"
)

const (
	apiKey      = "interop-api-key"
	tokenSecret = "interop-token-secret"
	// patience is the longest a test waits for one event.
	patience = 60 * time.Second
	// wrongFrame is what the server logs when a compressed frame would not have been understood.
	wrongFrame = "a compressed frame was wrong"
)

var address = regexp.MustCompile(`\blistens on (127\.0\.0\.1:\d+)`)

type keys map[string]any

// server is a running server; *gocent.Client calls its API.
type server struct {
	*gocent.Client
	http      string
	websocket string
	folder    string
}

// open is what most tests need of a channel: everybody with a token may do everything with it.
var open = keys{
	"allow_subscribe_for_client":    true,
	"allow_publish_for_subscriber":  true,
	"allow_history_for_subscriber":  true,
	"allow_presence_for_subscriber": true,
}

// with is these keys and `more` over them.
func (below keys) with(more keys) keys {
	merged := keys{}
	for key, value := range below {
		merged[key] = value
	}
	for key, value := range more {
		if inner, ok := value.(keys); ok {
			if under, ok := merged[key].(keys); ok {
				value = under.with(inner)
			}
		}
		merged[key] = value
	}
	return merged
}

// start runs a server with `settings` over the common ones until the test ends.
func start(t *testing.T, settings keys) *server {
	t.Helper()
	folder := t.TempDir()
	file := filepath.Join(folder, "config.json")
	text, err := json.Marshal(common.with(settings))
	must(t, err)
	must(t, os.WriteFile(file, text, 0o600))
	program := exec.Command(programPath(), "serve", "--config", file)
	program.Dir = folder
	output, input, err := os.Pipe()
	must(t, err)
	program.Stdout, program.Stderr = input, input
	must(t, program.Start())
	must(t, input.Close())
	lines := readLines(output)
	t.Cleanup(func() { stop(t, program, lines) })
	host := lines.host(t)
	address := "http://" + host
	// The library's own client gives up after a second; the contexts of the calls end later.
	caller := &http.Client{Transport: gocent.DefaultHTTPClient.Transport, Timeout: patience}
	return &server{
		Client:    gocent.New(gocent.Config{Addr: address + "/api", Key: apiKey, HTTPClient: caller}),
		http:      address,
		websocket: "ws://" + host + "/connection/websocket",
		folder:    folder,
	}
}

// upgrade lets a new process go on with the connections; it ends with the test. It needs a `pid_file`.
func (server *server) upgrade(t *testing.T) {
	t.Helper()
	command := exec.Command(programPath(), "upgrade", "--config", "config.json")
	command.Dir = server.folder
	text, err := command.CombinedOutput()
	found := successor.FindSubmatch(text)
	if err != nil || found == nil {
		t.Fatalf("not upgraded: %v\n%s", err, text)
	}
	process, err := strconv.Atoi(string(found[1]))
	must(t, err)
	t.Cleanup(func() { _ = syscall.Kill(process, syscall.SIGKILL) })
}

var successor = regexp.MustCompile(`^process (\d+) serves now`)

var common = keys{
	"http_server": keys{"address": "127.0.0.1", "port": 0},
	"http_api":    keys{"key": apiKey},
	"client":      keys{"token": keys{"hmac_secret_key": tokenSecret}},
	"websocket":   keys{"compression_verify": true},
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
	case <-time.After(40 * time.Second):
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

// token is one that client.token.hmac_secret_key verifies (HS256).
func token(claims keys) string { return tokenOf(tokenSecret, claims) }

func tokenOf(secret string, claims keys) string {
	payload, _ := json.Marshal(claims)
	encode := base64.RawURLEncoding.EncodeToString
	text := encode([]byte(`{"alg":"HS256","typ":"JWT"}`)) + "." + encode(payload)
	signature := hmac.New(sha256.New, []byte(secret))
	signature.Write([]byte(text))
	return text + "." + encode(signature.Sum(nil))
}

// from is a Unix time so many seconds away from now.
func from(seconds int64) int64 { return time.Now().Unix() + seconds }

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func equal[T comparable](t *testing.T, what string, found, expected T) {
	t.Helper()
	if found != expected {
		t.Fatalf("%s: found %v, expected %v", what, found, expected)
	}
}
