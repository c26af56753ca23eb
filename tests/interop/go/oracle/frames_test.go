// Random frames that are nearly right, played to both servers.
// In: a seed -> out: lines of a scenario, each with a frame of commands in which something was changed.
// May use the protocol's encoder for whole commands; leaves out what is known to differ, which the scenarios hold.
// What a frame may hold, and what is done to it, is changed here; random commands that are right stand in random_test.go.

package oracle

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/centrifugal/protocol"
	"github.com/centrifugal/protocol/cfjson"
	"google.golang.org/protobuf/encoding/protowire"
)

const (
	frameLives   = 8
	framesOfLife = 25
)

func TestRandomFrames(t *testing.T) {
	stage := newStage(t, common)
	first := firstSeed()
	for seed := first; seed < first+lives(frameLives); seed++ {
		for _, encoding := range []encoding{inJSON, inProtobuf} {
			t.Run(fmt.Sprintf("seed_%d/%s", seed, encoding), func(t *testing.T) {
				t.Parallel()
				// A bit that was changed must not make the channel of another scenario.
				tag := fmt.Sprintf("f%d%c%d", seed, encoding[0], seed)
				scenario := scenario{name: fmt.Sprint("seed ", seed), steps: frames(t, seed, encoding, tag)}
				stage.play(t, scenario, encoding, tag)
			})
		}
	}
}

// firstSeed is 1, or what ORACLE_SEED says.
func firstSeed() uint64 { return number("ORACLE_SEED") }

// lives is how many seeds are played: so many, or ORACLE_LIVES times as many.
func lives(count uint64) uint64 { return count * number("ORACLE_LIVES") }

// number is 1 when the environment has none of that name.
func number(name string) uint64 {
	if chosen, err := strconv.ParseUint(os.Getenv(name), 10, 64); err == nil {
		return chosen
	}
	return 1
}

// frames has a connection for each of them, and B that hears what becomes of publications.
func frames(t *testing.T, seed uint64, encoding encoding, tag string) (steps []step) {
	random := rand.New(rand.NewPCG(seed, 1))
	line := func(format string, values ...any) {
		steps = append(steps, step{line: fmt.Sprintf(format, values...)})
	}
	line(`B connect {}`)
	line(`B {"id":2,"subscribe":{"channel":"plain:p@"}}`)
	for range framesOfLife {
		line(`A close`)
		if random.IntN(8) == 0 {
			line(`A open`)
			line(`A bytes %q`, frame(t, random, encoding, tag, connectCommands, 1))
			continue
		}
		line(`A connect {}`)
		line(`A {"id":2,"subscribe":{"channel":"plain:s@"}}`)
		line(`A bytes %q`, frame(t, random, encoding, tag, commands, 1+random.IntN(3)))
	}
	return steps
}

var (
	connectCommands = []string{
		`{"id":1,"connect":{"token":"","data":{"x":1},"subs":{"stored:@":{"recover":true,"offset":1,"epoch":"x"}},"name":"n"}}`,
		`{"id":1,"connect":{"version":"1","headers":{"a":"b","c":"d"},"flag":1,"dict":"x"}}`,
	}
	// Where a push stands among the replies to several commands differs: what B hears comes from another connection.
	commands = []string{
		`{"id":3,"publish":{"channel":"plain:p@","data":{"a":[1,"x",null]}}}`,
		`{"id":3,"publish":{"channel":"plain:p@","data":"text","type":0,"key":"k"}}`,
		`{"id":4,"subscribe":{"channel":"recovered:@","recover":true,"offset":1,"epoch":"x","flag":1,"positioned":true}}`,
		`{"id":4,"subscribe":{"channel":"plain:t@","token":"","join_leave":true,"data":{"a":1},"delta":"fossil"}}`,
		`{"id":5,"history":{"channel":"stored:@","limit":2,"since":{"offset":1,"epoch":""},"reverse":true}}`,
		`{"id":6,"presence":{"channel":"present:@"}}`,
		`{"id":7,"presence_stats":{"channel":"present:@"}}`,
		`{"id":8,"subscribe":{"channel":"tagged:@","tf":{"op":"and","nodes":[{"key":"a","cmp":"in","vals":["b","c"]},{"key":"d","cmp":"ex"}]}}}`,
		`{"id":9,"sub_refresh":{"channel":"plain:s@","token":"x"}}`,
		`{"id":10,"rpc":{"method":"m","data":[1]}}`,
		`{"id":11,"unsubscribe":{"channel":"plain:s@"}}`,
		`{"id":12,"refresh":{"token":"x"}}`,
		`{"send":{"data":{"a":1}}}`,
		`{}`,
	}
)

// frame has so many commands, of which the last was changed.
func frame(t *testing.T, random *rand.Rand, encoding encoding, tag string, from []string, count int) (frame string) {
	for at := range count {
		text := strings.ReplaceAll(from[random.IntN(len(from))], "@", tag)
		isLast := at == count-1
		if !isLast && (strings.Contains(text, "refresh") || strings.Contains(text, "send") || text == "{}") {
			continue // which would end the connection before the frame is read to its end
		}
		switch {
		case encoding == inProtobuf && isLast:
			frame += prefixed(random, encoded(t, text))
		case encoding == inProtobuf:
			message := encoded(t, text)
			frame += string(binary.AppendUvarint(nil, uint64(len(message)))) + message
		case isLast:
			frame += changedText(random, text)
		default:
			frame += text + "\n"
		}
	}
	return frame
}

// isTwofold says whether a ping or send stands beside another request: the library takes the ping, and with send no id. That
// differs, and the scenarios have it.
func isTwofold(command *protocol.Command) bool {
	requests := []bool{
		command.Connect != nil, command.Subscribe != nil, command.Unsubscribe != nil, command.Publish != nil,
		command.Presence != nil, command.PresenceStats != nil, command.History != nil, command.Ping != nil,
		command.Send != nil, command.Rpc != nil, command.Refresh != nil, command.SubRefresh != nil,
	}
	alone := len(slices.DeleteFunc(requests, func(is bool) bool { return !is })) < 2
	return !alone && (command.Ping != nil || command.Send != nil)
}

// token is a piece of JSON: punctuation, a string or a word.
var token = regexp.MustCompile(`[{}\[\]:,]|"(?:[^"\\]|\\.)*"|[^{}\[\]:,"\s]+`)

func changedText(random *rand.Rand, text string) string {
	tokens := token.FindAllString(text, -1)
	for range 1 + random.IntN(2) {
		tokens = changedTokens(random, tokens)
	}
	changed := strings.Join(tokens, "")
	if random.IntN(6) == 0 {
		changed = changedBytes(random, changed, []string{"\x00", "\x7f", "\xff", "\\", `"`, "\n", "é", " "})
	}
	line, _, goesOn := strings.Cut(changed, "\n")
	command := protocol.Command{}
	isRead := cfjson.Unmarshal([]byte(line), &command, 0) == nil
	// Of two reasons to end a connection the library has the first one or the second.
	mayEnd := command.Send != nil || command.Refresh != nil || command.SubRefresh != nil || command.Connect != nil
	if isRead && (isTwofold(&command) || goesOn && mayEnd) {
		return changedText(random, text)
	}
	return changed
}

func changedTokens(random *rand.Rand, tokens []string) []string {
	one := func(list []string) string { return list[random.IntN(len(list))] }
	at := random.IntN(len(tokens))
	isKey := func(at int) bool { return at+1 < len(tokens) && tokens[at+1] == ":" }
	isPlace := func(wanted func(at int) bool) bool {
		for range 20 {
			if wanted(at) {
				return true
			}
			at = random.IntN(len(tokens))
		}
		return false
	}
	switch random.IntN(8) {
	case 0, 1, 2:
		if isPlace(func(at int) bool { return !isKey(at) && !strings.Contains("{}[]:,", tokens[at]) }) {
			tokens[at] = one(oddValues)
		}
	case 3:
		if isPlace(isKey) {
			tokens[at] = one(oddKeys)
		}
	case 4:
		if isPlace(func(at int) bool { return tokens[at] == "{" && at+1 < len(tokens) && tokens[at+1] != "}" }) {
			tokens = slices.Insert(tokens, at+1, one(oddKeys), ":", one(oddValues), ",")
		}
	case 5:
		tokens = slices.Insert(tokens, at+random.IntN(2), one(oddSpaces))
	case 6:
		tokens = slices.Delete(tokens, at, at+1)
	default:
		tokens = slices.Insert(tokens, at, tokens[random.IntN(len(tokens))])
	}
	if len(tokens) == 0 {
		tokens = []string{"{}"}
	}
	return tokens
}

var (
	oddValues = []string{
		`null`, `true`, `false`, `0`, `1`, `-1`, `1.0`, `1.5`, `1e2`, `1E+2`, `01`, `+1`, `.5`, `1.`, `1e`, `0x1`, `-`, `NaN`,
		`4294967295`, `4294967296`, `-2147483648`, `2147483647`, `2147483648`, `9223372036854775807`, `9223372036854775808`,
		`-9223372036854775808`, `18446744073709551615`, `18446744073709551616`, `1e400`, `123456789012345678901234567890`,
		`""`, `"a"`, `"1"`, `"\ud800"`, `"\udc00\ud800"`, `"a\ud83dz"`, `"\ud83d\ude80"`, `"\u0000"`, `"\u00"`, `"\x"`, `"\/\b\f\n\r\t"`,
		`"ä"`, `"🚀"`, "\"\xff\"", "\"\xed\xa0\x80\"", "\"a\x00b\"", "\"a\tb\"", `"` + strings.Repeat("long ", 12) + `"`, `'a'`, `tru`, `nul`,
		`{}`, `[]`, `[null]`, `[1,]`, `{"a":1,"a":2}`, `{"a":{"b":[{}]}}`, `{"ä":"\ud800"}`, `[true,false]`, `{"":null}`, `{1:2}`,
		strings.Repeat("[", 90) + strings.Repeat("]", 90), strings.Repeat("[", 300) + strings.Repeat("]", 300),
		strings.Repeat(`{"a":`, 200) + "1" + strings.Repeat("}", 200), strings.Repeat("[", 50) + strings.Repeat("]", 49),
	}
	oddKeys = []string{
		`"id"`, `"channel"`, `"data"`, `"offset"`, `"publish"`, `"rpc"`, `"what"`, `""`, `"ID"`, `"Channel"`, `"\u0069d"`, `"ch\u0061nnel"`,
		`"\ud800"`, `"ä"`, "\"\xff\"", `"a\u0000"`, `id`, `1`, `null`, `"connect"`, `"ping"`, `"limit"`, `"recover"`, `"token"`, `"flag"`,
	}
	oddSpaces = []string{
		" ", "\t", "\r", "\r\n", "\n", "\n\n", "\f", "\v", "\x00", "\ufeff", "\u00a0", "\u2028", ",", ",,", ":", "//", "/**/", "#", ";",
	}
)

// changedBytes replaces, adds or takes away a byte.
func changedBytes(random *rand.Rand, text string, odd []string) string {
	if text == "" {
		return odd[0]
	}
	at := random.IntN(len(text))
	piece := odd[random.IntN(len(odd))]
	switch random.IntN(4) {
	case 0:
		return text[:at] + text[at+1:]
	case 1:
		return text[:at] + piece + text[at:]
	case 2:
		return text[:at] + string([]byte{text[at] ^ 1<<random.IntN(8)}) + text[at+1:]
	default:
		return text[:at] + piece + text[at+1:]
	}
}

func encoded(t *testing.T, text string) string {
	command, err := protocol.NewJSONCommandDecoder([]byte(text)).Decode()
	if !errors.Is(err, io.EOF) {
		must(t, err)
	}
	message, err := command.MarshalCF()
	must(t, err)
	return string(message)
}

// prefixed is a changed message behind its length, and now and then another length.
func prefixed(random *rand.Rand, message string) string {
	changed := message
	for range 1 + random.IntN(2) {
		changed = changedMessage(random, changed)
	}
	command := protocol.Command{}
	isRead := command.UnmarshalCF([]byte(changed)) == nil
	isCut := changed == "" // behind the length, which differs, too
	if isCut || isRead && isTwofold(&command) || !isOfSchema([]byte(changed), reflect.TypeFor[protocol.Command]()) {
		return prefixed(random, message)
	}
	length := uint64(len(changed))
	if random.IntN(12) == 0 {
		length = oddLengths[random.IntN(len(oddLengths))]
	}
	return string(binary.AppendUvarint(nil, length)) + changed
}

// isOfSchema says whether every field that is known has its own wire type. One that has not is unknown to the library, and an error
// to Fanwire, which a scenario has.
func isOfSchema(message []byte, schema reflect.Type) bool {
	for len(message) > 0 {
		number, wire, length := protowire.ConsumeTag(message)
		if length < 0 {
			return true // which neither can read
		}
		message = message[length:]
		known, inner := field(schema, number)
		if known >= 0 && known != wire {
			return false
		}
		length = protowire.ConsumeFieldValue(number, wire, message)
		if length < 0 {
			return true
		}
		if inner != nil {
			value, _ := protowire.ConsumeBytes(message)
			if !isOfSchema(value, inner) {
				return false
			}
		}
		message = message[length:]
	}
	return true
}

// field is the wire type of a field, below 0 when there is none, and the message in it.
func field(schema reflect.Type, number protowire.Number) (wire protowire.Type, inner reflect.Type) {
	if schema.Kind() == reflect.Map {
		schema = reflect.StructOf([]reflect.StructField{
			{Name: "Key", Type: schema.Key(), Tag: `protobuf:"bytes,1"`},
			{Name: "Value", Type: schema.Elem(), Tag: `protobuf:"bytes,2"`},
		})
	}
	for at := range schema.NumField() {
		kind, rest, _ := strings.Cut(schema.Field(at).Tag.Get("protobuf"), ",")
		if found, _, _ := strings.Cut(rest, ","); found != fmt.Sprint(number) {
			continue
		}
		if kind != "bytes" {
			return protowire.VarintType, nil
		}
		switch inner = schema.Field(at).Type; inner.Kind() {
		case reflect.Map:
			return protowire.BytesType, inner
		case reflect.Slice:
			inner = inner.Elem()
		}
		if inner.Kind() == reflect.Pointer {
			return protowire.BytesType, inner.Elem()
		}
		return protowire.BytesType, nil
	}
	return -1, nil
}

var (
	oddLengths = []uint64{0, 1, 3, 127, 128, 70_000, 1 << 31, 1<<32 - 1, 1 << 32, 1<<63 - 1, 1 << 63, 1<<64 - 1}
	oddFields  = []string{
		"\x00\x00", "\x08\x00", "\x08\x80\x00", "\x08\xff\xff\xff\xff\x0f", "\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01",
		"\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x7f", "\x08\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x01", "\x0a\x01a", "\x0d1234", "\x0912345678",
		"\x0b", "\x0c", "\x0b\x0c", "\x13\x08\x01\x14", "\x13\x14", "\x0e", "\x0f", "\xf8\x07\x01", "\xfa\x07\x01x", "\xfb\x07\xfc\x07", "\xfd\x071234",
		"\xf9\x0712345678", "\xf8\xff\xff\xff\x0f\x01", "\xf8\xff\xff\xff\x1f\x01", "\xf8\xff\xff\xff\xff\x0f\x01", "\x88\x00\x01", "\x12\x00",
		"\x1a\x00", "\x6a\x00", "\x2a\x00", "\x5a\x00", "\x62\x00", "\x22\x00", "\x6a\x05\x12\x01a", "\x3a\xff\xff\xff\xff\x0f", "\x3a\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01",
		"\x2a\x02\x0a\xff", "\x2a\x03\x0a\x01\xff", "\x12\x01\xff", "\x52\x04\x42\x02\x08\x01", "\x2a\x0a\x38\xff\xff\xff\xff\xff\xff\xff\xff\x01",
	}
	oddBytes = []string{"\x00", "\x01", "\x7f", "\x80", "\xff", "\x08", "\x0a", "\x12"}
)

func changedMessage(random *rand.Rand, message string) string {
	at := 0
	if len(message) > 0 {
		at = random.IntN(len(message) + 1)
	}
	switch random.IntN(6) {
	case 0, 1:
		return changedBytes(random, message, oddBytes)
	case 2:
		return message + oddFields[random.IntN(len(oddFields))]
	case 3:
		return message[:at] + oddFields[random.IntN(len(oddFields))] + message[at:]
	case 4:
		return message[:at]
	default:
		return message[at:] + message
	}
}
