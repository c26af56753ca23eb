// Random payloads in channels with deltas: text, bytes, and what is nearly the same as before.
// In: a seed -> out: the lines of a scenario, which a failure prints so that they can be kept as one.
// May use the protocol's encoder for bytes in Protobuf; leaves out what is known to differ, which the scenarios hold.
// Which payloads there are is changed here; deltas are applied in connection_test.go.

package oracle

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"unicode/utf8"

	"github.com/centrifugal/protocol"
)

const (
	payloadLives    = 12
	linesOfPayloads = 50
)

// TestRandomPayloads compares what arrives, and in the end whether Fanwire found about as many deltas: which payloads have one that
// is shorter than they are depends on how it is searched.
func TestRandomPayloads(t *testing.T) {
	stage := newStage(t, common)
	stage.patches = &[2]atomic.Int64{}
	t.Cleanup(func() {
		fanwire, library := stage.patches[0].Load(), stage.patches[1].Load()
		if fanwire*100 < library*95 || library == 0 {
			t.Errorf("fanwire sent %d deltas, library %d", fanwire, library)
		}
	})
	stage.playSeeds(t, "p", payloadLives, payloads)
}

// payloads has A and B, who come and go and ask for deltas, and C, who publishes.
func payloads(seed uint64, encoding encoding, tag string) []step {
	fate := &fate{Rand: rand.New(rand.NewPCG(seed, 4)), id: 1, tops: map[string]int{}}
	channels := []string{"delta:@", "newest:@", "called:@"}
	for _, channel := range channels {
		fate.line(`api publish {"channel":"%s","data":0}`, channel)
		fate.tops[channel]++
	}
	for _, name := range clientNames {
		fate.line(`%s connect {"token":"$token{"sub":"u@","info":{"n":1}}"}`, name)
	}
	subscribed, before := map[string]bool{}, map[string]string{}
	for len(fate.steps) < linesOfPayloads {
		channel := channels[fate.IntN(len(channels))]
		if !fate.in(4) {
			fate.tops[channel]++
			before[channel] = fate.payload(before[channel], encoding == inProtobuf)
			fate.publishes(channel, before[channel], tag)
			continue
		}
		name := clientNames[fate.IntN(2)]
		fate.id++
		if subscribed[name+channel] && fate.in(2) {
			fate.line(`%s {"id":%d,"unsubscribe":{"channel":"%s"}}`, name, fate.id, channel)
			subscribed[name+channel] = false
			continue
		}
		if fate.in(4) {
			fate.line(`%s {"id":%d,"history":{"channel":"%s","limit":%d}}`, name, fate.id, channel, fate.IntN(6)-1)
			continue
		}
		wishes := ""
		if !fate.in(4) {
			wishes = `,"delta":"fossil"`
		}
		if !fate.in(3) {
			wishes += fmt.Sprintf(`,"recover":true,"offset":%d`, max(fate.tops[channel]-fate.IntN(6), 0))
		}
		fate.line(`%s {"id":%d,"subscribe":{"channel":"%s"%s}}`, name, fate.id, channel, wishes)
		subscribed[name+channel] = true
	}
	return fate.steps
}

// publishes as C, or through the API when that can say it.
func (fate *fate) publishes(channel, data, tag string) {
	isJSON := utf8.ValidString(data) && json.Valid([]byte(data))
	if isJSON && fate.in(2) {
		options := ""
		if channel == "called:@" && !fate.in(3) {
			options = `,"delta":true`
		}
		fate.line(`api publish {"channel":"%s","data":%s%s}`, channel, data, options)
		return
	}
	fate.id++
	if isJSON {
		fate.line(`C {"id":%d,"publish":{"channel":"%s","data":%s}}`, fate.id, channel, data)
		return
	}
	command := protocol.Command{
		Id: uint32(fate.id), Publish: &protocol.PublishRequest{Channel: strings.ReplaceAll(channel, "@", tag), Data: []byte(data)},
	}
	message, err := command.MarshalCF()
	if err != nil {
		panic(err)
	}
	frame := append(binary.AppendUvarint(nil, uint64(len(message))), message...)
	fate.line(`C hex %x`, frame)
}

// payload is a new one, or the one before with pieces that were moved, replaced, repeated or taken away.
func (fate *fate) payload(before string, mayBeBytes bool) string {
	if before == "" || fate.in(6) {
		return fate.fresh(mayBeBytes)
	}
	pieces := []rune(before)
	if !utf8.ValidString(before) {
		return string(changedBytes(fate.Rand, before, []string{"\x00", "\xff", "\xc3", before[:len(before)/2]}))
	}
	inside := before
	isText := json.Unmarshal([]byte(before), &inside) == nil
	if isText {
		pieces = []rune(inside)
	}
	if len(pieces) == 0 {
		return fate.fresh(mayBeBytes)
	}
	for range 1 + fate.IntN(3) {
		from := fate.IntN(len(pieces))
		to := from + fate.IntN(min(len(pieces)-from, 40)+1)
		piece := slices.Clone(pieces[from:to])
		switch fate.IntN(4) {
		case 0:
			pieces = slices.Concat(pieces[:from], pieces[to:], piece)
		case 1:
			pieces = slices.Insert(pieces, fate.IntN(len(pieces)), piece...)
		case 2:
			pieces = slices.Concat(pieces[:from], []rune(fate.words()), pieces[to:])
		default:
			pieces = slices.Concat(pieces[:from], pieces[to:])
		}
		if len(pieces) == 0 {
			return `""`
		}
		if len(pieces) > 3000 {
			pieces = pieces[:1000]
		}
	}
	if isText || !mayBeBytes {
		return asText(string(pieces))
	}
	return string(pieces)
}

func (fate *fate) fresh(mayBeBytes bool) string {
	switch fate.IntN(6) {
	case 0:
		return []string{`0`, `""`, `{}`, `[]`, `true`, `-1.50`, `"\u0000"`, `"a"`}[fate.IntN(8)]
	case 1:
		return fmt.Sprintf(`{ "text" : %s,	"n":[%d , 1e3, 0.0] }`, asText(fate.words()), fate.IntN(99))
	case 2:
		if mayBeBytes {
			bytes := make([]byte, 1+fate.IntN(200))
			for at := range bytes {
				bytes[at] = byte(fate.IntN(256))
			}
			return string(bytes)
		}
	}
	return asText(strings.Repeat(fate.words(), 1+fate.IntN(6)))
}

func (fate *fate) words() (text string) {
	words := []string{"word ", "ä ö ü ", "🚀🛸", "\n\t", "<&>", "\"\\", "\u2028", "\x00", "long long words that come again ", "日本語", "0123456789abcdef"}
	for range 1 + fate.IntN(8) {
		text += words[fate.IntN(len(words))]
	}
	return text
}
