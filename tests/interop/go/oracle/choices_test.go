// Random filters over random tags, and what is left of a stream for who comes back with one.
// In: a seed -> out: the lines of a scenario, which a failure prints so that they can be kept as one.
// May use what random_test.go has; leaves out what is known to differ, which the scenarios hold.
// Which filters and tags there are is changed here; what is compared is decided in sameness_test.go.

package oracle

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
)

const (
	choiceLives  = 10
	linesOfAWish = 50
)

func TestRandomFilters(t *testing.T) {
	newStage(t, common).playSeeds(t, "t", choiceLives, func(seed uint64, _ encoding, _ string) []step { return choices(seed) })
}

// choices has three clients, who change their filters of one stream and one cache.
func choices(seed uint64) []step {
	fate := &fate{Rand: rand.New(rand.NewPCG(seed, 3)), id: 1, tops: map[string]int{}}
	for _, channel := range []string{"tagged:@", "chosen:@"} {
		fate.line(`api publish {"channel":"%s","data":0}`, channel)
		fate.tops[channel]++
	}
	subscribed := map[string]bool{}
	for _, name := range clientNames {
		fate.line(`%s connect {}`, name)
	}
	for len(fate.steps) < linesOfAWish {
		channel := []string{"tagged:@", "chosen:@"}[fate.IntN(2)]
		if !fate.in(3) {
			fate.tops[channel]++
			fate.line(`api publish {"channel":"%s","data":%d,"tags":%s}`, channel, fate.tops[channel], fate.tags())
			continue
		}
		name := clientNames[fate.IntN(len(clientNames))]
		var commands []string
		if subscribed[name+channel] {
			fate.id++
			commands = append(commands, fmt.Sprintf(`{"id":%d,"unsubscribe":{"channel":"%s"}}`, fate.id, channel))
		}
		filter, isValid := fate.filter(3)
		fate.id++
		commands = append(commands, fmt.Sprintf(`{"id":%d,"subscribe":{"channel":"%s","tf":%s%s}}`,
			fate.id, channel, asText(filter), fate.missed(channel)))
		subscribed[name+channel] = isValid
		fate.line(`%s %s`, name, strings.Join(commands, " && "))
	}
	return fate.steps
}

// missed is where a client was. A cache is asked without a place: what it has of one differs.
func (fate *fate) missed(channel string) string {
	switch {
	case fate.in(3):
		return ""
	case channel == "chosen:@":
		return `,"recover":true`
	}
	return fmt.Sprintf(`,"recover":true,"offset":%d`, max(fate.tops[channel]-fate.IntN(7), 0))
}

// Numbers with more than 19 digits behind the point are none to the library, which a scenario has.
var (
	tagKeys   = []string{"a", "b", "ä", "a b", "_"}
	tagValues = []string{
		"a", "ab", "b", "ba", "ä", "äb", "🚀", " ", "A", "0", "-0", "1", "1.0", "01", "+1", "-1", "1.5", "-1.5", "10", "9", "9.99", "1e1", "1E1",
		".5", "5.", ".", "-", "--1", "1_0", "0x1", "NaN", "Inf", " 1", "1 ", "٣", "12345678901234567890", "1234567890123456789.1234567890123456789",
		"0.0000000000000000001", "1.0000000000000000000", "-12345678901234567890123456789", "340282366920938463463374607431768211456",
		"00000000000000000000000000000000000000001",
	}
)

func (fate *fate) tagValue() string {
	if fate.in(12) {
		return ""
	}
	return tagValues[fate.IntN(len(tagValues))]
}

func (fate *fate) tags() string {
	tags := map[string]string{}
	for range fate.IntN(4) {
		tags[tagKeys[fate.IntN(len(tagKeys))]] = fate.tagValue()
	}
	return asText(tags)
}

// filter is a tree that is at most so deep, and whether it says something.
func (fate *fate) filter(depth int) (filter keys, isValid bool) {
	if depth == 0 || fate.in(3) {
		return fate.leaf()
	}
	operator := []string{"and", "or", "not"}[fate.IntN(3)]
	count := 1
	if operator != "not" {
		count += fate.IntN(3)
	}
	isValid = true
	if fate.in(40) {
		operator, isValid = []string{"xor", "AND", "leaf"}[fate.IntN(3)], false
	}
	nodes := []keys{}
	for range count {
		node, isNodeValid := fate.filter(depth - 1)
		nodes, isValid = append(nodes, node), isValid && isNodeValid
	}
	return keys{"op": operator, "nodes": nodes}, isValid
}

func (fate *fate) leaf() (leaf keys, isValid bool) {
	leaf = keys{"key": tagKeys[fate.IntN(len(tagKeys))]}
	comparison := []string{"eq", "neq", "in", "nin", "ex", "nex", "sw", "ew", "ct", "gt", "gte", "lt", "lte"}[fate.IntN(13)]
	leaf["cmp"], isValid = comparison, true
	switch comparison {
	case "ex", "nex":
	case "in", "nin":
		values := []string{fate.tagValue()}
		for range fate.IntN(3) {
			values = append(values, fate.tagValue())
		}
		leaf["vals"] = values
	default:
		value := fate.tagValue()
		leaf["val"], isValid = value, value != ""
	}
	if !fate.in(60) {
		return leaf, isValid
	}
	wrong := []keys{{"key": ""}, {"cmp": "what"}, {"cmp": ""}, {"cmp": "eq", "val": "a", "vals": []string{"b"}}, {"cmp": "ex", "val": "a"}, {"cmp": "in", "vals": []string{}}}
	leaf = leaf.with(wrong[fate.IntN(len(wrong))])
	// Without a key it may be asked whether the key exists.
	return leaf, isValid && leaf["key"] == "" && (comparison == "ex" || comparison == "nex")
}

func asText(value any) string {
	text, err := json.Marshal(value)
	if err != nil {
		panic(err)
	}
	return string(text)
}
