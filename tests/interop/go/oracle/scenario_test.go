// Plays one scenario to both servers and compares after every line.
// In: lines such as `A {"id":1,"connect":{}}` -> out: nothing, or a failure that shows what each side said.
// May use the connections and both servers' API; waits for replies to commands of its own behind those of the line.
// What lines there are is decided here, and explained in scenarios/README.md; what is played stands in scenarios/.

package oracle

import (
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gorilla/websocket"
)

// scenario is a name and lines, read from a file or made at random.
type scenario struct {
	name  string
	only  encoding
	steps []step
}

// step is one line and, where a difference is meant, what each side says.
type step struct {
	line             string
	hears            []hears
	differs          bool
	fanwire, library []string
	because          string
}

// hears is how much a client hears of a line at least, for what comes by itself.
type hears struct {
	client string
	count  int
}

// stage has both servers.
type stage struct {
	fanwire server
	library *library
	// hearsPings is for scenarios that are about them.
	hearsPings bool
	// isSpread is where a publication and a reply come from different threads or nodes, and neither waits for the other.
	isSpread bool
	// patches are counted of each side where what the one sends as a delta may be longer than the whole as the other makes it.
	patches *[2]atomic.Int64
	// nodes are those with Redis, through which what one does reaches others, and itself, in a while.
	nodes []*fanwire
}

// side is one server with the connections that a scenario opened to it.
type side struct {
	name    string
	server  server
	names   names
	clients map[string]*client
	called  []string
	// commands is how many there were in the frame of this line.
	commands             int
	hearsPings, isSpread bool
	// hasEngine is where channels come one by one, each in its order.
	hasEngine bool
	patches   *atomic.Int64
	witnesses []*witness
}

type client struct {
	*connection
	// seen counts what lines before this one have taken note of.
	seen      int
	connected bool
	fences    int
	touched   bool
}

// play gives every scenario channels and users of its own: @ stands for a text that no other has.
func (stage *stage) play(t *testing.T, scenario scenario, encoding encoding, tag string) {
	sides := [2]*side{
		{name: "fanwire", server: stage.fanwire, hearsPings: stage.hearsPings, isSpread: stage.isSpread},
		{name: "library", server: stage.library, hearsPings: stage.hearsPings, isSpread: stage.isSpread},
	}
	for at, side := range sides {
		side.clients = map[string]*client{}
		side.hasEngine = len(stage.nodes) > 0
		if stage.patches != nil {
			side.patches = &stage.patches[at]
		}
	}
	for _, node := range stage.nodes {
		sides[0].witnesses = append(sides[0].witnesses, newWitness(t, node))
	}
	for at, step := range scenario.steps {
		line := strings.ReplaceAll(step.line, "@", tag)
		expected := [2][]string{tagged(step.fanwire, tag), tagged(step.library, tag)}
		for _, side := range sides {
			if err := side.act(t, line, encoding); err != nil {
				t.Fatalf("%s, %s: line %d, %s: %v", scenario.name, side.name, at+1, line, err)
			}
		}
		for _, side := range sides {
			for _, wanted := range step.hears {
				if err := side.clients[wanted.client].hears(wanted.count); err != nil {
					t.Fatalf("%s, %s: line %d, %s: %v", scenario.name, side.name, at+1, line, err)
				}
			}
		}
		said, same := settle(t, sides, step.differs, expected)
		if !same {
			t.Fatalf("%s: line %d\n  %s\n%s", scenario.name, at+1, strings.Join(lines(scenario.steps[:at+1]), "\n  "),
				shown(sides, said, step.differs, expected))
		}
		for _, side := range sides {
			side.note()
		}
	}
}

func tagged(lines []string, tag string) []string {
	replaced := make([]string, len(lines))
	for at, line := range lines {
		replaced[at] = strings.ReplaceAll(line, "@", tag)
	}
	return replaced
}

func lines(steps []step) (lines []string) {
	for _, step := range steps {
		lines = append(lines, step.line)
	}
	return lines
}

func shown(sides [2]*side, said [2][]string, differs bool, expected [2][]string) string {
	text := &strings.Builder{}
	for at, side := range sides {
		fmt.Fprintf(text, "%s:\n  %s\n", side.name, strings.Join(said[at], "\n  "))
		if differs {
			fmt.Fprintf(text, "expected of %s:\n  %s\n", side.name, strings.Join(expected[at], "\n  "))
		}
	}
	return text.String()
}

// settle asks both sides what they said until that is as it should be, or for as long as a test waits.
func settle(t *testing.T, sides [2]*side, differs bool, expected [2][]string) (said [2][]string, same bool) {
	for started := time.Now(); ; {
		for at, side := range sides {
			side.fence(t)
			said[at] = side.said()
		}
		if differs {
			same = slices.Equal(said[0], expected[0]) && slices.Equal(said[1], expected[1])
		} else {
			same = slices.Equal(said[0], said[1])
		}
		if same || time.Since(started) > settling {
			return said, same
		}
		for _, side := range sides {
			for _, client := range side.clients {
				client.wait(10 * time.Millisecond)
			}
		}
	}
}

// settling is how long what one side says may take longer than what the other says.
const settling = 3 * time.Second

// act does what a line says at one server.
func (side *side) act(t *testing.T, line string, encoding encoding) error {
	side.called, side.commands = nil, 1+strings.Count(line, " && ")
	name, rest, _ := strings.Cut(side.names.given(line), " ")
	rest, err := withTokens(withTexts(rest))
	if err != nil {
		return err
	}
	if name == "api" {
		method, params, _ := strings.Cut(rest, " ")
		answer, err := side.server.call(method, json.RawMessage(params))
		if err != nil {
			return err
		}
		tree, err := parsed(answer)
		side.called = append(side.called, "api "+side.names.told("api", tree))
		return err
	}
	verb, text, _ := strings.Cut(rest, " ")
	if one := side.clients[name]; one == nil || verb == "open" || verb == "connect" && one.hasEnded() {
		query := ""
		if verb == "open" {
			query = text
		}
		opened := openDeaf(t, side.server.websocket(name), spoken(name, encoding), query)
		opened.patches = side.patches
		go opened.listen()
		side.clients[name] = &client{connection: opened}
	}
	client := side.clients[name]
	client.touched = verb != "open"
	switch verb {
	case "open":
		return nil
	case "connect":
		return client.send([]string{`{"id":1,"connect":` + text + `}`})
	case "close":
		return client.socket.Close()
	case "text":
		bytes, err := strconv.Unquote(text)
		if err != nil {
			return err
		}
		return client.sendRaw([]byte(bytes))
	case "bytes":
		bytes, err := strconv.Unquote(text)
		if err != nil {
			return err
		}
		return client.socket.WriteMessage(websocket.BinaryMessage, []byte(bytes))
	case "hex":
		return client.sendRaw(unhexed(t, text))
	case "text-frame":
		return client.socket.WriteMessage(websocket.TextMessage, unhexed(t, text))
	case "binary-frame":
		return client.socket.WriteMessage(websocket.BinaryMessage, []byte(text))
	case "times":
		count, command, _ := strings.Cut(text, " ")
		many, err := strconv.Atoi(count)
		if err != nil {
			return err
		}
		side.commands = many
		commands := make([]string, many)
		for at := range commands {
			commands[at] = strings.ReplaceAll(command, "#", strconv.Itoa(at+2))
		}
		return client.send(commands)
	case "padded":
		length, command, _ := strings.Cut(text, " ")
		size, err := strconv.Atoi(length)
		if err != nil {
			return err
		}
		return client.sendRaw([]byte(command + strings.Repeat(" ", size-len(command))))
	default:
		return client.send(strings.Split(rest, " && "))
	}
}

// spoken is what a client speaks: J JSON, P Protobuf, and all others what the scenario is played in.
func spoken(name string, played encoding) encoding {
	switch name {
	case "J":
		return inJSON
	case "P":
		return inProtobuf
	}
	return played
}

func unhexed(t *testing.T, text string) []byte {
	t.Helper()
	bytes, err := hex.DecodeString(strings.ReplaceAll(text, " ", ""))
	must(t, err)
	return bytes
}

func (client *client) hasEnded() bool {
	_, ended := client.sofar(client.seen)
	return ended
}

// hears waits until so many things were heard since the line before.
func (client *client) hears(count int) error {
	for started := time.Now(); ; {
		heard, ended := client.sofar(client.seen)
		if len(heard) >= count || ended {
			return nil
		}
		if time.Since(started) > patience {
			return fmt.Errorf("only %d were heard: %v", len(heard), heard)
		}
		client.wait(time.Second)
	}
}

// fence waits until what the line caused has been heard.
func (side *side) fence(t *testing.T) {
	side.answered()
	for _, one := range side.witnesses {
		for _, other := range side.witnesses {
			other.awaits(t, one.node)
		}
	}
	if len(side.witnesses) > 0 {
		side.answered()
	}
}

// answered waits for the replies to commands behind the line: what was on its way to a client has come before them.
func (side *side) answered() {
	for _, name := range slices.Sorted(maps.Keys(side.clients)) {
		client := side.clients[name]
		heard, ended := client.sofar(client.seen)
		if ended {
			continue
		}
		client.connected = client.connected || slices.ContainsFunc(heard, isConnected)
		if !client.connected {
			if client.touched {
				_ = client.hears(1)
			}
			heard, ended = client.sofar(client.seen)
			client.connected = slices.ContainsFunc(heard, isConnected)
			if ended || !client.connected {
				continue
			}
		}
		client.fences++
		id := fenceIDs + client.fences
		if client.send([]string{fmt.Sprintf(`{"id":%d,"rpc":{"method":"fence"}}`, id)}) != nil {
			// It is being closed: what is left is how.
			for started := time.Now(); !client.hasEnded() && time.Since(started) < patience; {
				client.wait(time.Second)
			}
			continue
		}
		for started := time.Now(); !client.hasEnded() && time.Since(started) < patience; {
			if heard, _ := client.sofar(client.seen); slices.ContainsFunc(heard, func(one any) bool { return idOf(one) == id }) {
				break
			}
			client.wait(time.Second)
		}
	}
}

// fenceIDs are greater than those of any scenario.
const fenceIDs = 1_000_000_000

func idOf(heard any) int {
	reply, _ := heard.(map[string]any)
	number, _ := reply["id"].(json.Number)
	id, _ := strconv.Atoi(string(number))
	return id
}

func isConnected(heard any) bool {
	reply, _ := heard.(map[string]any)
	return reply["connect"] != nil
}

// said is what was heard since the line before, by client and in its order, but for two things. Pings come when they like
// (the scenarios with clocks of their own hear them). And what a command causes is pushed by the library before the command
// is answered or the next one of its frame is, and by Fanwire when the frame is done; with several nodes neither knows. So
// replies to publish commands stand behind all else here, and pushes behind the replies to several commands, with Redis those of
// each channel together. Where the server is spread over threads or nodes, pushes of each channel stand behind all replies.
func (side *side) said() []string {
	said := slices.Clone(side.called)
	for _, name := range slices.Sorted(maps.Keys(side.clients)) {
		var replies, published, ending []any
		pushes := map[string][]any{}
		client := side.clients[name]
		heard, _ := client.sofar(client.seen)
		for _, one := range heard {
			if idOf(one) > fenceIDs || isPing(one) && !side.hearsPings {
				continue
			}
			reply, isReply := one.(map[string]any)
			push, isPush := reply["push"].(map[string]any)
			switch {
			case !isReply:
				ending = append(ending, one)
			case reply["publish"] != nil:
				published = append(published, one)
			case isPush && (side.isSpread || side.commands > 1 && side.hasEngine):
				channel := fmt.Sprint(push["channel"])
				pushes[channel] = append(pushes[channel], one)
			case isPush && side.commands > 1:
				pushes[""] = append(pushes[""], one)
			default:
				replies = append(replies, one)
			}
		}
		for _, channel := range slices.Sorted(maps.Keys(pushes)) {
			replies = append(replies, pushes[channel]...)
		}
		for _, one := range slices.Concat(replies, published, ending) {
			said = append(said, name+" "+side.names.told(name, one))
		}
	}
	return said
}

func isPing(heard any) bool {
	reply, is := heard.(map[string]any)
	return is && len(reply) == 0
}

// note makes what was heard belong to this line and not to the next one.
func (side *side) note() {
	for _, client := range side.clients {
		heard, _ := client.sofar(client.seen)
		client.seen += len(heard)
		client.touched = false
	}
}

// longText is `$text{5000}`, a text of so many characters.
var longText = regexp.MustCompile(`\$text\{(\d+)\}`)

// later is `$at{+2}`, the Unix time in so many seconds.
var later = regexp.MustCompile(`\$at\{([+-]\d+)\}`)

func withTexts(line string) string {
	line = later.ReplaceAllStringFunc(line, func(mark string) string {
		seconds, _ := strconv.ParseInt(later.FindStringSubmatch(mark)[1], 10, 64)
		return strconv.FormatInt(time.Now().Unix()+seconds, 10)
	})
	return longText.ReplaceAllStringFunc(line, func(mark string) string {
		length, _ := strconv.Atoi(longText.FindStringSubmatch(mark)[1])
		text := &strings.Builder{}
		for number := 0; text.Len() < length; number++ {
			fmt.Fprintf(text, "word %d of a text, ", number*number*7919)
		}
		return text.String()[:length]
	})
}

// withTokens makes tokens of claims: $token{"sub":"42","exp":"+100"} with exp in seconds from now, and $payload{…} as it stands.
func withTokens(text string) (string, error) {
	const mark, plain = "$token", "$payload"
	for {
		before, after, found := strings.Cut(text, mark)
		made := timed
		if !found {
			before, after, found = strings.Cut(text, plain)
			made = func(claims string) (string, error) { return claims, nil }
		}
		if !found {
			return text, nil
		}
		end := closing(after)
		if end < 0 {
			return "", fmt.Errorf("no claims stand behind a mark: %s", after)
		}
		payload, err := made(after[:end])
		if err != nil {
			return "", err
		}
		text = before + makeToken(payload) + after[end:]
	}
}

// timed are claims whose exp is a time from now.
func timed(text string) (string, error) {
	claims := keys{}
	if err := json.Unmarshal([]byte(text), &claims); err != nil {
		return "", err
	}
	if exp, ok := claims["exp"].(string); ok {
		seconds, err := strconv.Atoi(exp)
		if err != nil {
			return "", err
		}
		claims["exp"] = time.Now().Unix() + int64(seconds)
	}
	payload, err := json.Marshal(claims)
	return string(payload), err
}

// closing is the index behind the brace that closes the first one.
func closing(text string) int {
	depth := 0
	for at, character := range text {
		switch character {
		case '{':
			depth++
		case '}':
			depth--
		}
		if depth == 0 {
			return at + 1
		}
	}
	return -1
}
