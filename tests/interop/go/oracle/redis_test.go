// Fanwire with Redis beside the library in memory: clients must not see where publications and presence are kept.
// In: the scenarios that an engine matters to, and random lives -> out: a test for each, in JSON and in Protobuf.
// May use the standard library only; starts a redis-server of its own and stops it by its process id.
// How a Redis is started is changed here; what is compared is decided in sameness_test.go.

package oracle

import (
	"bufio"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// engineFiles are the scenarios in which an engine is asked.
var engineFiles = []string{
	"api", "batches", "connecting", "deltas", "filters", "granted", "history", "orders", "presence", "publishing", "recovery", "subscribing",
}

func TestScenariosWithRedis(t *testing.T) {
	stage := newRedisStage(t)
	for _, file := range engineFiles {
		stage.playFile(t, "scenarios/"+file+".txt")
	}
}

func TestHeavyLivesWithRedis(t *testing.T) {
	newRedisStage(t).playLives(t, "w", heavyLives, 40_000)
}

func TestRandomLivesWithRedis(t *testing.T) {
	newRedisStage(t).playLives(t, "x", randomLives, 0)
}

// pair is two nodes with one Redis: clients are on one of them by their names, and calls of the API by what they say.
type pair [2]*fanwire

func (pair pair) websocket(client string) string { return pair.one(client).websocket(client) }

func (pair pair) call(method string, params json.RawMessage) (json.RawMessage, error) {
	return pair.one(string(params)).call(method, params)
}

func (pair pair) stop() {
	for _, node := range pair {
		node.stop()
	}
}

func (pair pair) one(text string) *fanwire {
	sum := 0
	for _, character := range text {
		sum += int(character)
	}
	return pair[sum%2]
}

func newPairStage(t *testing.T) *stage {
	engine := keys{"type": "redis", "redis": keys{"address": startRedis(t)}}
	text, settings := common.with(keys{"engine": engine}).parsed(t)
	nodes := pair{startFanwire(t, text), startFanwire(t, text)}
	return &stage{fanwire: nodes, library: startLibrary(t, settings), isSpread: true, nodes: nodes[:]}
}

func newRedisStage(t *testing.T) *stage {
	engine := keys{"type": "redis", "redis": keys{"address": startRedis(t)}}
	stage := newStage(t, common.with(keys{"engine": engine}))
	stage.nodes = []*fanwire{stage.fanwire.(*fanwire)}
	return stage
}

// witness hears on one node that what came through Redis before has come: a node's own order is that of its PUB/SUB.
type witness struct {
	*connection
	node    *fanwire
	channel string
	heard   int
}

// witnesses counts them: each has a channel of its own, which no scenario names.
var witnesses atomic.Int64

func newWitness(t *testing.T, node *fanwire) *witness {
	t.Helper()
	channel := fmt.Sprint("plain:witness", witnesses.Add(1))
	witness := &witness{connection: open(t, node.websocket(""), inJSON, ""), node: node, channel: channel, heard: 2}
	must(t, witness.send([]string{`{"id":1,"connect":{}}`, `{"id":2,"subscribe":{"channel":"` + channel + `"}}`}))
	witness.hears(t, witness.heard)
	return witness
}

// awaits returns when a publication by another node, behind all that it did before, has arrived.
func (witness *witness) awaits(t *testing.T, by *fanwire) {
	t.Helper()
	_, err := by.call("publish", json.RawMessage(`{"channel":"`+witness.channel+`","data":0}`))
	must(t, err)
	witness.hears(t, witness.heard+1)
	witness.heard++
}

// startRedis runs a Redis until the test ends and answers with its address. It is the program that FANWIRE_REDIS_SERVER names, or
// the one of Debian's package redis-tools, which has it under another name.
func startRedis(t *testing.T) string {
	t.Helper()
	programs := []string{"redis-server", "redis-check-rdb"}
	if chosen := os.Getenv("FANWIRE_REDIS_SERVER"); chosen != "" {
		programs = []string{chosen}
	}
	for _, name := range programs {
		path, err := exec.LookPath(name)
		if err != nil {
			continue
		}
		port := freePort(t)
		program := exec.Command(path, "--port", port, "--bind", "127.0.0.1", "--dir", t.TempDir(), "--save", "", "--logfile", "")
		program.Args[0] = "redis-server"
		if isReady(t, program) {
			// What nothing was asked of would compare nothing.
			t.Cleanup(func() { hasKeys(t, "127.0.0.1:"+port) })
			return "redis://127.0.0.1:" + port
		}
	}
	t.Fatal("no redis-server starts: install the Debian package redis-tools, or look at FANWIRE_REDIS_SERVER")
	return ""
}

// isReady starts a Redis and waits until it takes connections; false when it ends before.
func isReady(t *testing.T, program *exec.Cmd) bool {
	t.Helper()
	output, err := program.StdoutPipe()
	must(t, err)
	must(t, program.Start())
	t.Cleanup(func() {
		_ = program.Process.Kill()
		_ = program.Wait()
	})
	ready := make(chan bool, 2)
	go func() {
		scanner := bufio.NewScanner(output)
		for scanner.Scan() {
			if strings.Contains(scanner.Text(), "Ready to accept connections") {
				ready <- true
			}
		}
		ready <- false
	}()
	select {
	case is := <-ready:
		return is
	case <-time.After(patience):
		return false
	}
}

func hasKeys(t *testing.T, host string) {
	line, err := net.DialTimeout("tcp", host, patience)
	must(t, err)
	defer func() { _ = line.Close() }()
	must(t, line.SetDeadline(time.Now().Add(patience)))
	_, err = line.Write([]byte("DBSIZE\r\n"))
	must(t, err)
	size, err := bufio.NewReader(line).ReadString('\n')
	must(t, err)
	if size == ":0\r\n" {
		t.Error("the Redis was not used")
	}
}

// freePort returns the first port of a block of crates/testing/src/ports.rs; the test that has its UDP socket has the block.
func freePort(t *testing.T) string {
	t.Helper()
	for block := range blocks {
		port := 10_000 + 32*((os.Getpid()+block)%blocks)
		lock, err := net.ListenUDP("udp", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1), Port: port})
		if err != nil {
			continue
		}
		t.Cleanup(func() { _ = lock.Close() })
		listener, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port))
		if err == nil {
			must(t, listener.Close())
			return fmt.Sprint(port)
		}
	}
	t.Fatal("all blocks of ports are in use")
	return ""
}

const blocks = 711
