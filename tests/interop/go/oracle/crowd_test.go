// Random lives of a crowd: users with several connections that go away and come back to where they were.
// In: a seed -> out: the lines of a scenario, which a failure prints so that they can be kept as one.
// May use what random_test.go has; leaves out what is known to differ, which the scenarios hold.
// What SDKs do when they come back, and the options of publications, are changed here.

package oracle

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

const (
	crowdLives   = 20
	linesOfCrowd = 60
)

func TestCrowds(t *testing.T) { newStage(t, common).playCrowds(t, "c") }

func TestCrowdsWithRedis(t *testing.T) { newRedisStage(t).playCrowds(t, "y") }

func TestCrowdsOnShards(t *testing.T) {
	stage := newStage(t, common.with(keys{"shards": 3}))
	stage.isSpread = true
	stage.playCrowds(t, "s")
}

func TestCrowdsOnNodes(t *testing.T) { newPairStage(t).playCrowds(t, "n") }

func (stage *stage) playCrowds(t *testing.T, tag string) {
	first := firstSeed()
	for seed := first; seed < first+lives(crowdLives); seed++ {
		for _, encoding := range []encoding{inJSON, inProtobuf} {
			t.Run(fmt.Sprintf("seed_%d/%s", seed, encoding), func(t *testing.T) {
				t.Parallel()
				scenario := scenario{name: fmt.Sprint("seed ", seed), steps: crowdOf(seed)}
				stage.play(t, scenario, encoding, fmt.Sprintf("%s%d%c", tag, seed, encoding[0]))
			})
		}
	}
}

// crowd knows where each stream is, and where each member was when it went.
type crowd struct {
	fate
	members map[string]*member
	epochs  map[string]string
	keys    map[string]bool
}

type member struct {
	token     string
	connected bool
	// subscriptions are the wishes of each channel but for recovery.
	subscriptions map[string]string
	// left are the offsets of streams that it has seen.
	left map[string]int
}

var (
	streams = []string{
		"recovered:@", "small:@", "cached:@", "auto:@", "chosen:@", "delta:@", "called:@", "newest:@", "tagged:@", "wished:@",
	}
	// watched channels tell others who goes: members leave them before they do.
	watched = []string{"told:@", "joined:@"}
	// owned is a channel of tokens.
	owned = "positioned:@"
)

func crowdOf(seed uint64) []step {
	crowd := &crowd{
		fate:   fate{Rand: rand.New(rand.NewPCG(seed, 2)), tops: map[string]int{}, id: 1},
		epochs: map[string]string{},
		keys:   map[string]bool{},
		// A token with info has an end: without one the library takes no info of a refresh.
		members: map[string]*member{"A": {}, "B": {token: `"sub":"u@","exp":"+1000","info":{"n":"b"}`}, "C": {token: `"sub":"u@"`}},
	}
	crowd.members["J"] = &member{token: `"sub":"v@","exp":"+1000","channels":["` + owned + `"]`}
	crowd.members["P"] = &member{token: `"sub":"v@","channels":["` + owned + `"]`}
	for at, channel := range append(slices.Clone(streams), owned) {
		crowd.line(`api publish {"channel":"%s","data":0}`, channel)
		crowd.tops[channel]++
		crowd.epochs[channel] = fmt.Sprintf("<epoch %d>", at+1)
	}
	names := slices.Sorted(maps.Keys(crowd.members))
	for _, name := range names {
		crowd.members[name].subscriptions, crowd.members[name].left = map[string]string{}, map[string]int{}
	}
	for len(crowd.steps) < linesOfCrowd {
		name := names[crowd.IntN(len(names))]
		crowd.step(name, crowd.members[name])
	}
	return crowd.steps
}

func (crowd *crowd) step(name string, member *member) {
	switch {
	case crowd.in(3):
		crowd.publish(name, member)
	case !member.connected:
		crowd.comesBack(name, member)
	case crowd.in(12):
		crowd.goes(name, member)
	case crowd.in(12):
		crowd.isOrdered(name, member)
	case crowd.in(12) && member.token != "":
		crowd.id++
		crowd.line(`%s {"id":%d,"refresh":{"token":"$token{%s}"}}`, name, crowd.id, strings.ReplaceAll(member.token, "1000", "500"))
	case crowd.in(5):
		crowd.reads(name)
	default:
		crowd.changes(name, member)
	}
}

func (crowd *crowd) stream() string { return streams[crowd.IntN(len(streams))] }

func (crowd *crowd) channel() string {
	if crowd.in(5) {
		return watched[crowd.IntN(len(watched))]
	}
	return crowd.stream()
}

// publish does so through the API, or as a member that is there.
func (crowd *crowd) publish(name string, member *member) {
	channel := crowd.channel()
	texts := []string{"long enough for a delta ", "ä ö 🚀 in many bytes ", "x", `\"\n\u0000<>& `}
	data := fmt.Sprintf(`{"text":"%s","n":%d}`, strings.Repeat(texts[crowd.IntN(len(texts))], 1+crowd.IntN(5)), crowd.IntN(9))
	if member.connected && crowd.in(3) {
		crowd.id++
		crowd.tops[channel]++
		crowd.line(`%s {"id":%d,"publish":{"channel":"%s","data":%s}}`, name, crowd.id, channel, data)
		return
	}
	options := ""
	if crowd.in(2) {
		options = fmt.Sprintf(`,"tags":{"kind":"%c","n":"%d"}`, 'a'+crowd.IntN(3), crowd.IntN(4))
	}
	if channel == "called:@" && crowd.in(2) {
		options += `,"delta":true`
	}
	isNew := true
	if crowd.in(6) {
		key := fmt.Sprintf("%c@", 'k'+crowd.IntN(3))
		isNew = !crowd.keys[channel+key]
		crowd.keys[channel+key] = true
		options += fmt.Sprintf(`,"idempotency_key":"%s"`, key)
	} else if crowd.in(8) && slices.Contains([]string{"recovered:@", "small:@", "tagged:@", "wished:@"}, channel) {
		options, isNew = options+`,"skip_history":true`, false
	}
	if isNew {
		crowd.tops[channel]++
	}
	crowd.line(`api publish {"channel":"%s","data":%s%s}`, channel, data, options)
}

// goes without a word, or is sent away; what it has seen of each stream it remembers.
func (crowd *crowd) goes(name string, member *member) {
	for _, channel := range slices.Sorted(maps.Keys(member.subscriptions)) {
		if slices.Contains(watched, channel) {
			crowd.id++
			crowd.line(`%s {"id":%d,"unsubscribe":{"channel":"%s"}}`, name, crowd.id, channel)
			delete(member.subscriptions, channel)
		}
	}
	for _, channel := range append(slices.Clone(streams), owned) {
		member.left[channel] = crowd.tops[channel]
	}
	member.connected = false
	if crowd.in(2) {
		crowd.line(`%s close`, name)
		return
	}
	user, _, _ := strings.Cut(strings.TrimPrefix(member.token, `"sub":"`), `"`)
	codes := []string{"", `,"disconnect":{"code":3011,"reason":"force reconnect"}`, `,"disconnect":{"code":4000,"reason":"again"}`}
	crowd.line(`api disconnect {"user":"%s","client":"<%s>"%s}`, user, name, codes[crowd.IntN(len(codes))])
}

// comesBack as SDKs do: connect with the positions of the server's subscriptions, then the own ones in one frame.
func (crowd *crowd) comesBack(name string, member *member) {
	member.connected = true
	token, subs := "", ""
	if member.token != "" {
		token = fmt.Sprintf(`"token":"$token{%s}",`, member.token)
	}
	if strings.Contains(member.token, owned) && member.left[owned] > 0 {
		subs = fmt.Sprintf(`"%s":{"recover":true,"offset":%d,"epoch":"%s"}`, owned, member.left[owned], crowd.epochs[owned])
	}
	crowd.line(`%s connect {%s"subs":{%s}}`, name, token, subs)
	var commands []string
	for _, channel := range slices.Sorted(maps.Keys(member.subscriptions)) {
		crowd.id++
		wishes := member.subscriptions[channel]
		commands = append(commands, fmt.Sprintf(`{"id":%d,"subscribe":{"channel":"%s"%s%s}}`,
			crowd.id, channel, wishes, crowd.position(channel, wishes, member)))
	}
	if len(commands) > 0 {
		crowd.line("%s %s", name, strings.Join(commands, " && "))
	}
}

// position is where a member was. A cache with a filter is asked without one: what it has of that place differs.
func (crowd *crowd) position(channel, wishes string, member *member) string {
	if channel == "chosen:@" && strings.Contains(wishes, `"tf"`) {
		return `,"recover":true`
	}
	return fmt.Sprintf(`,"recover":true,"offset":%d,"epoch":"%s"`, member.left[channel], crowd.epochs[channel])
}

// isOrdered through the API, alone: the library does what many are told in any order.
func (crowd *crowd) isOrdered(name string, member *member) {
	user, _, _ := strings.Cut(strings.TrimPrefix(member.token, `"sub":"`), `"`)
	channel := crowd.channel()
	_, isSubscribed := member.subscriptions[channel]
	target := fmt.Sprintf(`"user":"%s","client":"<%s>"`, user, name)
	switch {
	case crowd.in(4):
		crowd.line(`api refresh {%s,"expire_at":4102444800,"info":{"n":%d}}`, target, crowd.IntN(9))
	case isSubscribed:
		crowd.line(`api unsubscribe {%s,"channel":"%s"}`, target, channel)
		delete(member.subscriptions, channel)
		member.left[channel] = crowd.tops[channel]
	case len(member.subscriptions) < 3:
		since := ""
		if epoch := crowd.epochs[channel]; epoch != "" && crowd.in(2) {
			since = fmt.Sprintf(`,"recover_since":{"offset":%d,"epoch":"%s"}`, max(crowd.tops[channel]-crowd.IntN(4), 0), epoch)
		}
		crowd.line(`api subscribe {%s,"channel":"%s","info":[%d]%s}`, target, channel, crowd.IntN(9), since)
		// Which is the server's: it is not made again by who comes back.
		crowd.id++
		crowd.line(`%s {"id":%d,"unsubscribe":{"channel":"%s"}}`, name, crowd.id, channel)
		member.left[channel] = crowd.tops[channel]
	}
}

func (crowd *crowd) reads(name string) {
	crowd.id++
	stream, watched := crowd.stream(), watched[crowd.IntN(len(watched))]
	limit := crowd.IntN(8) - 1
	switch crowd.IntN(6) {
	case 0:
		crowd.line(`api history {"channel":"%s","limit":%d,"reverse":%t}`, stream, limit, crowd.in(2))
	case 1:
		offset := max(crowd.tops[stream]-crowd.IntN(12), 0)
		crowd.line(`api history {"channel":"%s","limit":%d,"since":{"offset":%d,"epoch":"%s"}}`, stream, limit, offset, crowd.epochs[stream])
	case 2:
		crowd.line(`api presence {"channel":"%s"}`, watched)
	case 3:
		crowd.line(`%s {"id":%d,"presence":{"channel":"%s"}}`, name, crowd.id, watched)
	case 4:
		crowd.line(`%s {"id":%d,"presence_stats":{"channel":"%s"}}`, name, crowd.id, watched)
	default:
		crowd.line(`%s {"id":%d,"history":{"channel":"%s","limit":%d,"reverse":%t}}`, name, crowd.id, stream, limit, crowd.in(2))
	}
}

// changes what a member is subscribed to, and now and then comes back at once to where it was.
func (crowd *crowd) changes(name string, member *member) {
	channel := crowd.channel()
	crowd.id++
	if wishes, is := member.subscriptions[channel]; is {
		crowd.line(`%s {"id":%d,"unsubscribe":{"channel":"%s"}}`, name, crowd.id, channel)
		delete(member.subscriptions, channel)
		member.left[channel] = crowd.tops[channel]
		if !crowd.in(3) {
			return
		}
		for range crowd.IntN(3) {
			crowd.publish(name, member)
		}
		crowd.id++
		member.subscriptions[channel] = wishes
		crowd.line(`%s {"id":%d,"subscribe":{"channel":"%s"%s%s}}`, name, crowd.id, channel, wishes, crowd.position(channel, wishes, member))
		return
	}
	if len(member.subscriptions) > 3 { // with that of a token and one of the server there is no more room
		return
	}
	wishes, recovery := crowd.wish(channel), ""
	if crowd.in(2) {
		recovery = crowd.position(channel, wishes, member)
	}
	member.subscriptions[channel] = wishes
	crowd.line(`%s {"id":%d,"subscribe":{"channel":"%s"%s%s}}`, name, crowd.id, channel, wishes, recovery)
}

func (crowd *crowd) wish(channel string) (wishes string) {
	for _, wish := range []string{`"positioned":true`, `"recoverable":true`, `"join_leave":true`, `"delta":"fossil"`} {
		if crowd.in(2) {
			wishes += "," + wish
		}
	}
	if (channel == "tagged:@" || channel == "chosen:@") && crowd.in(2) {
		filters := []string{
			`{"key":"kind","cmp":"eq","val":"a"}`, `{"key":"kind","cmp":"in","vals":["a","b"]}`, `{"key":"kind","cmp":"nex"}`,
			`{"key":"n","cmp":"gte","val":"2"}`, `{"op":"not","nodes":[{"key":"kind","cmp":"sw","val":"b"}]}`,
			`{"op":"or","nodes":[{"key":"kind","cmp":"neq","val":"c"},{"op":"and","nodes":[{"key":"n","cmp":"lt","val":"3"},{"key":"n","cmp":"ex"}]}]}`,
		}
		wishes += `,"tf":` + filters[crowd.IntN(len(filters))]
	}
	return wishes
}
