// What must differ between two servers is given the same name on both: clients, epochs, versions, times.
// In: what a server sent -> out: texts that are equal when both servers did the same.
// May use the standard library only; leaves out nothing else, not even a field that is empty.
// What counts as the same is decided here; deliberate differences stand in the scenarios, beside the command.

package oracle

import (
	"bytes"
	"encoding/json"
	"fmt"
	"hash/crc32"
	"maps"
	"slices"
	"strings"
	"time"
)

// names are those of one side: what it made up itself, by what the scenario calls it.
type names struct {
	called map[string]string
	// words are the newest that have a name.
	words  map[string]string
	epochs int
}

// given is a scenario's text with this side's own words in it: its id for <A>, its epoch for <epoch 1>.
func (names *names) given(text string) string {
	for name, word := range names.words {
		text = strings.ReplaceAll(text, name, word)
	}
	return text
}

// told is what `client` heard, as text; it learns the names of what is new.
func (names *names) told(client string, heard any) string {
	if ending, ok := heard.(string); ok {
		return ending
	}
	names.learnClient(client, heard)
	text := &bytes.Buffer{}
	encoder := json.NewEncoder(text)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(names.renamed("", heard)); err != nil {
		return err.Error()
	}
	return strings.TrimSpace(text.String())
}

func (names *names) learnClient(client string, heard any) {
	reply, _ := heard.(map[string]any)
	result, _ := reply["connect"].(map[string]any)
	if id, ok := result["client"].(string); ok && id != "" {
		names.call(id, "<"+client+">")
	}
}

func (names *names) call(word, name string) {
	if names.called == nil {
		names.called, names.words = map[string]string{}, map[string]string{}
	}
	names.called[word], names.words[name] = name, word
}

func (names *names) renamed(key string, value any) any {
	switch value := value.(type) {
	case map[string]any:
		same := make(map[string]any, len(value))
		for _, key := range slices.Sorted(maps.Keys(value)) {
			same[names.named(key)] = names.renamed(key, value[key])
		}
		return same
	case []any:
		same := make([]any, len(value))
		for at, one := range value {
			same[at] = names.renamed("", one)
		}
		return same
	case string:
		if _, known := names.called[value]; key == "epoch" && value != "" && !known {
			names.epochs++
			names.call(value, fmt.Sprintf("<epoch %d>", names.epochs))
		}
		if key == "version" && value != "" {
			return "<version>"
		}
		return shortened(names.named(value))
	case json.Number:
		if seconds, err := value.Int64(); key == "ttl" && err == nil {
			// A second may have begun meanwhile: 100 and 99 are both "at most 100".
			return fmt.Sprintf("<at most %d s>", (seconds+9)/10*10)
		}
		if at, err := value.Int64(); key == "time" && err == nil && time.Since(time.UnixMilli(at)).Abs() < patience {
			return "<now>"
		}
		return value
	}
	return value
}

// shortened is a long text without its middle, of which a sum is left.
func shortened(text string) string {
	const longest, edge = 1000, 20
	if len(text) < longest {
		return text
	}
	return fmt.Sprintf("%q … %q: %d bytes, sum %08x", text[:edge], text[len(text)-edge:], len(text), crc32.ChecksumIEEE([]byte(text)))
}

func (names *names) named(word string) string {
	if name, known := names.called[word]; known {
		return name
	}
	return word
}
