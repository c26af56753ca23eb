// Fanwire beside the centrifuge Go library: the same commands to both, and both say the same.
// In: the scenarios of the folder scenarios, and random ones -> out: a test for each, in JSON and in Protobuf.
// May use everything of this package; knows of no difference: those stand in the scenarios.
// What is compared is decided in sameness_test.go; new scenarios are lines in the files.

package oracle

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/gorilla/websocket"
)

func TestScenarios(t *testing.T) {
	stage := newStage(t, common)
	files, err := filepath.Glob("scenarios/*.txt")
	must(t, err)
	if len(files) == 0 {
		t.Fatal("there are no scenarios")
	}
	for _, file := range files {
		stage.playFile(t, file)
	}
}

// TestHurriedScenarios has clocks that a test can wait for, and hears of every ping.
func TestHurriedScenarios(t *testing.T) {
	stage := newStage(t, hurried)
	stage.hearsPings = true
	stage.playFile(t, "scenarios/hurried/clocks.txt")
	stage.playFile(t, "scenarios/hurried/lifetimes.txt")
}

func TestStrictScenarios(t *testing.T) {
	newStage(t, strict).playFile(t, "scenarios/strict/admission.txt")
}

// TestHandshakes offers subprotocols; which one is chosen, and whether the answer names it, is the same.
func TestHandshakes(t *testing.T) {
	stage := newStage(t, common)
	const asJSON, asProtobuf = "centrifuge-json", "centrifuge-protobuf"
	offers := [][]string{
		nil, {asJSON}, {asProtobuf}, {"other"}, {"other", asProtobuf}, {asProtobuf, asJSON}, {asJSON, asProtobuf},
		{"Centrifuge-JSON"},
	}
	for _, offer := range offers {
		for _, query := range []string{"", "?format=protobuf", "?format=json", "?cf_protocol=protobuf"} {
			chosen := [2]string{}
			for at, server := range []server{stage.fanwire, stage.library} {
				dialer := websocket.Dialer{Subprotocols: offer, HandshakeTimeout: patience}
				socket, answer, err := dialer.Dial(server.websocket("")+query, nil)
				must(t, err)
				chosen[at] = fmt.Sprint(answer.StatusCode, answer.Header.Values("Sec-WebSocket-Protocol"))
				must(t, socket.Close())
			}
			if chosen[0] != chosen[1] {
				t.Errorf("%v%s: fanwire %s, library %s", offer, query, chosen[0], chosen[1])
			}
		}
	}
}

func newStage(t *testing.T, configuration keys) *stage {
	text, settings := configuration.parsed(t)
	return &stage{fanwire: startFanwire(t, text), library: startLibrary(t, settings)}
}

func (stage *stage) playFile(t *testing.T, file string) {
	stage.playAll(t, strings.TrimSuffix(filepath.Base(file), ".txt"), readScenarios(t, file))
}

func (stage *stage) playAll(t *testing.T, part string, scenarios []scenario) {
	for at, scenario := range scenarios {
		for _, encoding := range []encoding{inJSON, inProtobuf} {
			if scenario.only != "" && scenario.only != encoding {
				continue
			}
			name := fmt.Sprintf("%s/%s/%s", part, strings.ReplaceAll(scenario.name, " ", "_"), encoding)
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				stage.play(t, scenario, encoding, fmt.Sprintf("%s%d%c", part[:3], at, encoding[0]))
			})
		}
	}
}

// heading is `== what is played`, with the encoding behind it when it is for one.
var heading = regexp.MustCompile(`^== (.*?)(?: \((json|protobuf)\))?$`)

// hearing is what the line before it is to lead to.
var hearing = regexp.MustCompile(`^(\w+) hears (\d+)$`)

func readScenarios(t *testing.T, file string) (scenarios []scenario) {
	t.Helper()
	text, err := os.ReadFile(file)
	must(t, err)
	for number, line := range strings.Split(string(text), "\n") {
		wrong := func(why string) { t.Fatalf("%s:%d: %s: %s", file, number+1, why, line) }
		if found := heading.FindStringSubmatch(line); found != nil {
			scenarios = append(scenarios, scenario{name: found[1], only: encoding(found[2])})
			continue
		}
		if line == "" || line[0] == '#' {
			continue
		}
		if len(scenarios) == 0 {
			wrong("a line before the first heading")
		}
		current := &scenarios[len(scenarios)-1]
		if found := hearing.FindStringSubmatch(line); found != nil && len(current.steps) > 0 {
			step := &current.steps[len(current.steps)-1]
			count, err := strconv.Atoi(found[2])
			must(t, err)
			step.hears = append(step.hears, hears{found[1], count})
			continue
		}
		if line[0] != '!' {
			current.steps = append(current.steps, step{line: line})
			continue
		}
		if len(current.steps) == 0 {
			wrong("a difference before the first line")
		}
		step := &current.steps[len(current.steps)-1]
		step.differs = true
		who, what, _ := strings.Cut(strings.TrimPrefix(line, "! "), " ")
		switch who {
		case "fanwire":
			step.fanwire = append(step.fanwire, what)
		case "library":
			step.library = append(step.library, what)
		case "because":
			step.because += what
		default:
			wrong("who is that")
		}
	}
	for _, scenario := range scenarios {
		for _, step := range scenario.steps {
			if step.differs && step.because == "" {
				t.Fatalf("%s: %s: a difference without a reason: %s", file, scenario.name, step.line)
			}
		}
	}
	return scenarios
}
