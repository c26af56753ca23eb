// `fanwire bench` with both servers: the load generator works with those of others.
// In: both servers, JSON and Protobuf -> out: reports without a fault.
// May use the built binary; never compares speeds.
// What counts as a fault is tested in crates/load.

package oracle

import (
	"os/exec"
	"testing"
)

func TestTheLoadGeneratorFindsNoFault(t *testing.T) {
	stage := newStage(t, common)
	for name, server := range map[string]server{"fanwire": stage.fanwire, "library": stage.library} {
		for kind, more := range map[string][]string{
			"json":     {},
			"protobuf": {"--protobuf"},
			"churn":    {"--churn=50", "--channels=5", "--subscriptions=2"},
		} {
			t.Run(name+"/"+kind, func(t *testing.T) {
				arguments := append([]string{
					"bench", "--url", server.websocket("bench"), "--publish=client",
					"--connections=50", "--rate=200", "--duration=1s", "--warm-up=0",
				}, more...)
				report, err := exec.Command(programPath(), arguments...).CombinedOutput()
				if err != nil {
					t.Fatalf("%v\n%s", err, report)
				}
			})
		}
	}
}
