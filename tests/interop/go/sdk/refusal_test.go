// centrifuge-go and gocent, as published: what makes no sense, and what of it is done nonetheless.
// In: one server with Centrifugo's keys for history and presence -> out: the codes as the libraries read them.
// May use the public interface of both; never looks at bytes.
// Tokens that are refused are in connect_test.go and subscribe_test.go, bodies of wrong types in ../../python/test_cent.py.

package sdk

import (
	"strings"
	"testing"

	"github.com/centrifugal/centrifuge-go"
	"github.com/centrifugal/gocent/v3"
)

var refusing = state.with(keys{"channel": keys{"without_namespace": history.with(keys{"presence": true})}})

func TestAPageOfHistoryBeyondItsEnds(t *testing.T) {
	both(t, refusing, func(t *testing.T, server *server, encoding encoding) {
		client, _ := someone(t, server, encoding, "42")
		subscription := client.subscribe(t, "beyond-"+encoding.name)
		server.publish(t, subscription.Channel, 1, 3)
		top, err := subscription.History(limited(t))
		must(t, err)
		since := func(offset uint64, epoch string) centrifuge.HistoryOption {
			return centrifuge.WithHistorySince(&centrifuge.StreamPosition{Offset: offset, Epoch: epoch})
		}
		limit, reverse := centrifuge.WithHistoryLimit, centrifuge.WithHistoryReverse(true)
		for _, page := range []struct {
			options []centrifuge.HistoryOption
			count   int
		}{
			{[]centrifuge.HistoryOption{limit(-7)}, 3},
			{[]centrifuge.HistoryOption{limit(1 << 30)}, 3},
			{[]centrifuge.HistoryOption{limit(10), since(0, "")}, 3},
			{[]centrifuge.HistoryOption{limit(10), since(1<<40, top.Epoch)}, 0},
			{[]centrifuge.HistoryOption{limit(10), since(1, top.Epoch), reverse}, 0},
		} {
			found, err := subscription.History(limited(t), page.options...)
			must(t, err)
			equal(t, "publications", len(found.Publications), page.count)
			equal(t, "offset", found.Offset, 3)
		}
		_, err = subscription.History(limited(t), limit(10), since(1<<40, "foreign"))
		failsWith(t, err, 112)
		_, err = subscription.History(limited(t), limit(10), since(0, top.Epoch), reverse)
		failsWith(t, err, 107)
	})
}

func TestChannelsThatCannotBe(t *testing.T) {
	both(t, refusing, func(t *testing.T, server *server, encoding encoding) {
		client, _ := someone(t, server, encoding, "42")
		for channel, code := range map[string]uint32{
			"nowhere:x":              102,
			strings.Repeat("x", 256): 107,
			"straße":                 107,
		} {
			client.refused(t, channel, code)
			_, err := client.Publish(limited(t), channel, numbered(1))
			failsWith(t, err, code)
			_, err = client.History(limited(t), channel)
			failsWith(t, err, code)
			_, err = client.Presence(limited(t), channel)
			failsWith(t, err, code)
			_, err = client.PresenceStats(limited(t), channel)
			failsWith(t, err, code)
		}
		_, err := client.History(limited(t), "not-subscribed")
		failsWith(t, err, 103)
		_, err = client.Presence(limited(t), "not-subscribed")
		failsWith(t, err, 103)
	})
}

// calls is every method of gocent that names a channel.
func (server *server) calls(t *testing.T, channel string) map[string]error {
	t.Helper()
	_, publish := server.Publish(limited(t), channel, numbered(1))
	_, presence := server.Presence(limited(t), channel)
	_, stats := server.PresenceStats(limited(t), channel)
	_, history := server.History(limited(t), channel)
	return map[string]error{
		"publish":        publish,
		"presence":       presence,
		"presence_stats": stats,
		"history":        history,
		"history_remove": server.HistoryRemove(limited(t), channel),
		"subscribe":      server.Subscribe(limited(t), channel, "42"),
	}
}

func TestGocentNamesChannelsThatCannotBe(t *testing.T) {
	server := start(t, refusing)
	for channel, code := range map[string]int{"nowhere:x": 102, "": 107} {
		for method, err := range server.calls(t, channel) {
			t.Log(method, err)
			apiFails(t, err, code)
		}
	}
	apiFails(t, server.Unsubscribe(limited(t), "nowhere:x", "42"), 102)
	_, err := server.Broadcast(limited(t), []string{}, numbered(1))
	apiFails(t, err, 107)
}

func TestGocentReadsHistoryBeyondItsEnds(t *testing.T) {
	server := start(t, refusing)
	server.publish(t, "kept", 1, 3)
	top, err := server.History(limited(t), "kept")
	must(t, err)
	page := func(limit int, reverse bool, offset uint64, epoch string) (gocent.HistoryResult, error) {
		since := gocent.WithSince(&gocent.StreamPosition{Offset: offset, Epoch: epoch})
		return server.History(limited(t), "kept", gocent.WithLimit(limit), gocent.WithReverse(reverse), since)
	}
	for _, row := range []struct {
		limit  int
		offset uint64
		count  int
	}{{-7, 0, 3}, {10, 1, 2}, {10, 1 << 40, 0}} {
		found, err := page(row.limit, false, row.offset, top.Epoch)
		must(t, err)
		equal(t, "publications", len(found.Publications), row.count)
		equal(t, "offset", found.Offset, 3)
	}
	_, err = page(10, false, 1, "foreign")
	apiFails(t, err, 112)
	_, err = page(10, true, 0, top.Epoch)
	apiFails(t, err, 107)
}

func TestTheRestOfAPipeIsUnaffectedByWhatFails(t *testing.T) {
	server := start(t, refusing)
	client, _ := someone(t, server, encodings[0], "42")
	subscription := client.subscribe(t, "piped")
	pipe := server.Pipe()
	for n := 1; n <= 5; n++ {
		must(t, pipe.AddPublish("piped", numbered(n)))
		must(t, pipe.AddPublish([]string{"nowhere:x", ""}[n%2], numbered(n)))
		must(t, pipe.AddPresence("plain:none"))
		foreign := gocent.WithSince(&gocent.StreamPosition{Offset: 1, Epoch: "foreign"})
		must(t, pipe.AddHistory("piped", gocent.WithLimit(1), foreign))
	}
	replies, err := server.SendPipe(limited(t), pipe)
	must(t, err)
	equal(t, "replies", len(replies), 20)
	for n, reply := range replies {
		code := 0
		if reply.Error != nil {
			code = reply.Error.Code
		}
		expected := []int{0, []int{107, 102}[n/4%2], 108, 112}[n%4]
		equal(t, "code", code, expected)
	}
	subscription.hears(t, 1, 5)
	client.fence(t)
	subscription.publications.none(t)
}
