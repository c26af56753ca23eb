//go:build next

// A newer centrifuge-go than go.mod names, in JSON and in Protobuf: publications as Fossil deltas.
// In: one server with allowed_delta_types, with and without history -> out: data the SDK makes of deltas.
// May use the SDK's public interface, the server API and its metrics only; never applies a delta itself.
// Built with next.mod, which needs a newer Go; the same in JavaScript is in ../../js/delta.test.js.

package sdk

import (
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/centrifugal/centrifuge-go"
)

var withDeltas = open.with(keys{"allowed_delta_types": []string{"fossil"}, "delta_publish": true})
var deltas = keys{
	"prometheus": keys{"enabled": true},
	"channel": keys{"namespaces": []keys{
		history.with(withDeltas).with(keys{"name": "delta"}),
		withDeltas.with(keys{"name": "latest", "keep_latest_publication": true}),
		history.with(keys{"name": "plain"}),
	}},
}
var fossil = centrifuge.SubscriptionConfig{Delta: centrifuge.DeltaTypeFossil}

// match is a payload of some hundred bytes that differs little from that of another number.
func match(n int) string {
	players := strings.Repeat(`{"player":"Đorđe 🚀","goals":0},`, 12)
	return fmt.Sprintf(`{"n":%d,"home":"Malmö","players":[%s{}],"minute":%d}`, n, players, n%90)
}

// states publishes the states from `first` to `last` and expects them, in order.
func (subscription *subscription) states(t *testing.T, server *server, first, last int) {
	t.Helper()
	server.publishStates(t, subscription.Channel, first, last)
	subscription.hearsStates(t, first, last)
}

func (server *server) publishStates(t *testing.T, channel string, first, last int) {
	t.Helper()
	for n := first; n <= last; n++ {
		_, err := server.Publish(limited(t), channel, []byte(match(n)))
		must(t, err)
	}
}

func (subscription *subscription) hearsStates(t *testing.T, first, last int) {
	t.Helper()
	for n := first; n <= last; n++ {
		equal(t, subscription.Channel, string(subscription.publications.next(t).Data), match(n))
	}
}

// deltasSent is how many deltas the server has sent.
func (server *server) deltasSent(t *testing.T) int {
	t.Helper()
	answer, err := http.Get(server.http + "/metrics")
	must(t, err)
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	must(t, err)
	found := regexp.MustCompile(`(?m)^fanwire_client_deltas_total (\d+)`).FindSubmatch(text)
	if found == nil {
		t.Fatalf("no count of deltas in %s", text)
	}
	count, err := strconv.Atoi(string(found[1]))
	must(t, err)
	return count
}

func TestDeltasBringWhatWasPublished(t *testing.T) {
	both(t, deltas, func(t *testing.T, server *server, encoding encoding) {
		for _, namespace := range []string{"delta", "latest"} {
			client, _ := someone(t, server, encoding, "42")
			subscription := client.subscribe(t, namespace+":live-"+encoding.name, fossil)
			before := server.deltasSent(t)
			subscription.states(t, server, 1, 10)
			// A shard counts after it has written.
			sent := func() int { return server.deltasSent(t) - before }
			eventually(t, "a count of 9 deltas", func() bool { return sent() >= 9 })
			equal(t, "deltas", sent(), 9)
		}
	})
}

func TestDeltasOfEqualLongShortAndForeignPayloads(t *testing.T) {
	both(t, deltas, func(t *testing.T, server *server, encoding encoding) {
		client, _ := someone(t, server, encoding, "42")
		subscription := client.subscribe(t, "delta:payloads-"+encoding.name, fossil)
		long := fmt.Sprintf(`{"text":"%s"}`, strings.Repeat("über Straßen 🚀 ", 200))
		for _, text := range []string{`{"n":1}`, `{"n":1}`, long, strings.ReplaceAll(long, "🚀", "🛸"), `[]`, long} {
			_, err := server.Publish(limited(t), subscription.Channel, []byte(text))
			must(t, err)
			equal(t, "data", string(subscription.publications.next(t).Data), text)
		}
	})
}

func TestDeltasAfterRecovery(t *testing.T) {
	both(t, deltas, func(t *testing.T, server *server, encoding encoding) {
		client, _ := someone(t, server, encoding, "42")
		subscription := client.newSubscription(t, "delta:away-"+encoding.name, fossil)
		must(t, subscription.Subscribe())
		subscription.recovers(t, false, false)
		subscription.states(t, server, 1, 2)
		count := 2
		ways := []struct{ leave, comeBack func() }{
			{func() { client.disconnect(t) }, func() { client.connect(t) }},
			{func() { subscription.unsubscribe(t) }, func() { must(t, subscription.Subscribe()) }},
		}
		for _, missed := range []int{3, 0, 1} {
			for _, way := range ways {
				way.leave()
				server.publishStates(t, subscription.Channel, count+1, count+missed)
				way.comeBack()
				subscription.recovers(t, true, true)
				subscription.hearsStates(t, count+1, count+missed)
				subscription.states(t, server, count+missed+1, count+missed+3)
				count += missed + 3
			}
		}
		subscription.publications.none(t)
	})
}

func TestWhereNoDeltasAreAllowedNoneAreSent(t *testing.T) {
	both(t, deltas, func(t *testing.T, server *server, encoding encoding) {
		client, _ := someone(t, server, encoding, "42")
		subscription := client.subscribe(t, "plain:live-"+encoding.name, fossil)
		before := server.deltasSent(t)
		subscription.states(t, server, 1, 5)
		equal(t, "deltas", server.deltasSent(t), before)
	})
}
