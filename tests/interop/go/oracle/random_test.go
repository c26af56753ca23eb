// Random lives of three clients and a few channels, played to both servers.
// In: a seed -> out: the lines of a scenario, which a failure prints so that they can be kept as one.
// May use the standard library only; leaves out what is known to differ, which the scenarios hold.
// What clients do at random, and how often, is changed here; what is compared is decided elsewhere.

package oracle

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

const (
	randomLives  = 40
	heavyLives   = 8
	linesOfALife = 30
)

func TestRandomLives(t *testing.T) { newStage(t, common).playLives(t, "r", randomLives, 0) }

// TestHeavyLives has answers that are too large for a turn of a shard.
func TestHeavyLives(t *testing.T) { newStage(t, common).playLives(t, "h", heavyLives, 40_000) }

func (stage *stage) playLives(t *testing.T, tag string, count uint64, weight int) {
	stage.playSeeds(t, tag, count, func(seed uint64, _ encoding, _ string) []step { return life(seed, weight) })
}

// playSeeds plays what is made of each seed, in both encodings.
func (stage *stage) playSeeds(t *testing.T, tag string, count uint64, made func(uint64, encoding, string) []step) {
	first := firstSeed()
	for seed := first; seed < first+lives(count); seed++ {
		for _, encoding := range []encoding{inJSON, inProtobuf} {
			t.Run(fmt.Sprintf("seed_%d/%s", seed, encoding), func(t *testing.T) {
				t.Parallel()
				own := fmt.Sprintf("%s%d%c", tag, seed, encoding[0])
				stage.play(t, scenario{name: fmt.Sprint("seed ", seed), steps: made(seed, encoding, own)}, encoding, own)
			})
		}
	}
}

// fate makes lines, and knows as much as it needs to leave out what differs.
type fate struct {
	*rand.Rand
	steps   []step
	clients map[string]*doings
	// tops are the offsets of the newest publications.
	tops map[string]int
	id   int
	// weight is how long data may be.
	weight int
	// touched are the channels that a command of this frame subscribed or published to.
	touched map[string]bool
}

type doings struct {
	connected bool
	channels  []string
}

var (
	clientNames  = []string{"A", "B", "C"}
	channelNames = []string{"plain:@", "wished:@", "recovered:@", "small:@", "cached:@", "auto:@", "told:@", "delta:@", "newest:@", "tagged:@"}
	connects     = map[string]string{
		"A": ``,
		"B": `"token":"$token{"sub":"u@","info":{"name":"b"}}",`,
		"C": `"token":"$token{"sub":"u@"}",`,
	}
)

func life(seed uint64, weight int) []step {
	fate := &fate{
		Rand: rand.New(rand.NewPCG(seed, 0)), clients: map[string]*doings{}, tops: map[string]int{}, id: 1, weight: weight,
	}
	for _, name := range clientNames {
		fate.clients[name] = &doings{}
	}
	// The first publication of a stream differs where deltas are.
	for _, channel := range []string{"delta:@", "newest:@", "tagged:@"} {
		fate.line(`api publish {"channel":"%s","data":0}`, channel)
		fate.tops[channel]++
	}
	for len(fate.steps) < linesOfALife {
		fate.step()
	}
	return fate.steps
}

func (fate *fate) line(format string, values ...any) {
	fate.steps = append(fate.steps, step{line: fmt.Sprintf(format, values...)})
}

func (fate *fate) in(count int) bool { return fate.IntN(count) == 0 }

func (fate *fate) step() {
	name := clientNames[fate.IntN(len(clientNames))]
	client := fate.clients[name]
	switch {
	case fate.in(4):
		fate.publishByAPI(fate.channel())
	case !client.connected:
		fate.connect(name, client)
	case fate.in(25):
		fate.leaveAll(name)
		fate.line("%s close", name)
		client.connected = false
	case fate.in(12):
		fate.order()
	case fate.in(40):
		fate.line(`api history_remove {"channel":"recovered:@"}`)
	default:
		fate.touched = map[string]bool{}
		commands := []string{fate.command(client, 8)}
		weight := fate.weight
		for fate.weight = 0; fate.in(4); { // beyond 64 KiB a frame is too long
			commands = append(commands, fate.command(client, 8))
		}
		fate.weight = weight
		fate.line("%s %s", name, strings.Join(commands, " && "))
	}
}

// order is one of the server API for one client: the library serves several at once, in any order.
func (fate *fate) order() {
	name, channel := []string{"B", "C"}[fate.IntN(2)], fate.channel()
	client := fate.clients[name]
	switch fate.IntN(4) {
	case 0:
		fate.leaveAll(name)
		fate.line(`api disconnect {"user":"u@","client":"<%s>"}`, name)
		client.connected = false
	case 1:
		fate.line(`api unsubscribe {"user":"u@","client":"<%s>","channel":"%s"}`, name, channel)
		client.left(channel)
	default:
		if len(client.channels) > 5 {
			return // one more than a client may have would end its connection
		}
		fate.line(`api subscribe {"user":"u@","client":"<%s>","channel":"%s"}`, name, channel)
		client.entered(channel)
	}
}

// connect asks for a channel now and then, which becomes a subscription of the server.
func (fate *fate) connect(name string, client *doings) {
	client.connected = true
	wish := ""
	if fate.in(3) {
		channel := fate.channel()
		client.entered(channel)
		if fate.in(2) {
			wish = `"recover":true,` + fate.position(channel)
		}
		wish = fmt.Sprintf(`"%s":{%s}`, channel, wish)
	}
	fate.line(`%s connect {%s"subs":{%s}}`, name, connects[name], wish)
}

func (client *doings) entered(channel string) {
	client.left(channel)
	if client.connected {
		client.channels = append(client.channels, channel)
	}
}

func (client *doings) left(channel string) {
	client.channels = slices.DeleteFunc(client.channels, func(one string) bool { return one == channel })
}

// leaveAll comes before a client goes: when others see that is not the same on both sides.
func (fate *fate) leaveAll(name string) {
	client := fate.clients[name]
	if !client.connected {
		return
	}
	for _, channel := range client.channels {
		fate.id++
		fate.line(`%s {"id":%d,"unsubscribe":{"channel":"%s"}}`, name, fate.id, channel)
	}
	client.channels = nil
}

func (fate *fate) channel() string { return channelNames[fate.IntN(len(channelNames))] }

func (fate *fate) data() string {
	if fate.weight > 0 && fate.in(2) {
		return fmt.Sprintf(`{"text":"$text{%d}","n":%d}`, fate.IntN(fate.weight), fate.IntN(100))
	}
	return fmt.Sprintf(`{"text":"%s","n":%d}`, strings.Repeat("long enough for a delta ", 4), fate.IntN(100))
}

func (fate *fate) publishByAPI(channel string) {
	options := ""
	if fate.in(2) {
		options = fmt.Sprintf(`,"tags":{"kind":"%c"}`, 'a'+fate.IntN(3))
	}
	if fate.in(8) && !slices.Contains([]string{"delta:@", "newest:@", "tagged:@"}, channel) {
		options += `,"skip_history":true`
	} else {
		fate.tops[channel]++
	}
	fate.line(`api publish {"channel":"%s","data":%s%s}`, channel, fate.data(), options)
}

// command is one of the first so many kinds, of which three read. None leaves a channel again that its frame entered or published
// to, nor enters it: what a frame causes is pushed while it lasts or behind it, which differs.
func (fate *fate) command(client *doings, kinds int) string {
	fate.id++
	channel := fate.channel()
	what := ""
	if fate.touched[channel] && kinds > 3 {
		kinds = []int{3, 8}[fate.IntN(2)]
	}
	kind := fate.IntN(kinds)
	if fate.touched[channel] && kind >= 3 {
		kind = 6
	}
	fate.touched[channel] = fate.touched[channel] || kind >= 3
	switch kind {
	case 0:
		what = fmt.Sprintf(`"history":{"channel":"%s"%s}`, channel, fate.page(channel))
	case 1:
		what = fmt.Sprintf(`"presence":{"channel":"%s"}`, channel)
	case 2:
		what = fmt.Sprintf(`"presence_stats":{"channel":"%s"}`, channel)
	case 3, 4, 5:
		if slices.Contains(client.channels, channel) && !fate.in(6) {
			client.left(channel)
			what = fmt.Sprintf(`"unsubscribe":{"channel":"%s"}`, channel)
			break
		}
		client.entered(channel)
		what = fmt.Sprintf(`"subscribe":{"channel":"%s"%s}`, channel, fate.wishes(channel))
	default:
		fate.tops[channel]++
		what = fmt.Sprintf(`"publish":{"channel":"%s","data":%s}`, channel, fate.data())
	}
	return fmt.Sprintf(`{"id":%d,%s}`, fate.id, what)
}

func (fate *fate) wishes(channel string) (wishes string) {
	for _, wish := range []string{`"positioned":true`, `"recoverable":true`, `"join_leave":true`, `"delta":"fossil"`, `"flag":2`} {
		if fate.in(3) {
			wishes += "," + wish
		}
	}
	if fate.in(2) {
		wishes += fmt.Sprintf(`,"recover":true,%s`, fate.position(channel))
	}
	if channel == "tagged:@" && fate.in(2) || fate.in(40) {
		wishes += fmt.Sprintf(`,"tf":{"key":"kind","cmp":"eq","val":"%c"}`, 'a'+fate.IntN(3))
	}
	return wishes
}

func (fate *fate) position(channel string) string {
	offset := fate.tops[channel] - fate.IntN(7)
	if fate.in(8) {
		offset = fate.tops[channel] + 1
	}
	epochs := []string{"", "", fmt.Sprintf("<epoch %d>", fate.IntN(4)+1), "other"}
	return fmt.Sprintf(`"offset":%d,"epoch":"%s"`, max(offset, 0), epochs[fate.IntN(len(epochs))])
}

func (fate *fate) page(channel string) (page string) {
	if !fate.in(4) {
		page = fmt.Sprintf(`,"limit":%d`, fate.IntN(8)-1)
	}
	reverse := fate.in(2)
	if reverse {
		page += `,"reverse":true`
	}
	if fate.in(2) {
		page += fmt.Sprintf(`,"since":{%s}`, fate.position(channel))
	}
	return page
}
