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
	"strings"
	"testing"
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

func newStage(t *testing.T, configuration keys) *stage {
	text, settings := configuration.parsed(t)
	return &stage{fanwire: startFanwire(t, text), library: startLibrary(t, settings)}
}

func (stage *stage) playFile(t *testing.T, file string) {
	part := strings.TrimSuffix(filepath.Base(file), ".txt")
	for at, scenario := range readScenarios(t, file) {
		for _, encoding := range []encoding{inJSON, inProtobuf} {
			if scenario.only != "" && scenario.only != encoding {
				continue
			}
			name := fmt.Sprintf("%s/%s/%s", part, strings.ReplaceAll(scenario.name, " ", "_"), encoding)
			t.Run(name, func(t *testing.T) {
				stage.play(t, scenario, encoding, fmt.Sprintf("%s%d%c", part[:2], at, encoding[0]))
			})
		}
	}
}

// heading is `== what is played`, with the encoding behind it when it is for one.
var heading = regexp.MustCompile(`^== (.*?)(?: \((json|protobuf)\))?$`)

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
