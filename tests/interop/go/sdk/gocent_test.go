// gocent, as published: every method of the server API that the library knows and the server has.
// In: one server with Centrifugo's keys for history and presence -> out: results and errors as the library reads them.
// May use gocent and, to have somebody there, centrifuge-go; never looks at bytes.
// The API by hand is tested in ../../js/api.test.js.

package sdk

import (
	"encoding/json"
	"errors"
	"net/http"
	"testing"

	"github.com/centrifugal/gocent/v3"
)

var api = keys{"channel": keys{
	"without_namespace": history.with(keys{"presence": true}),
	"namespaces":        []keys{open.with(keys{"name": "plain"})},
}}

func TestGocentPublishesAndBroadcasts(t *testing.T) {
	server := start(t, api)
	client, _ := someone(t, server, encodings[0], "42")
	news, sport := client.subscribe(t, "news"), client.subscribe(t, "sport")
	first, err := server.Publish(limited(t), "news", numbered(1))
	must(t, err)
	second, err := server.Publish(limited(t), "news", numbered(2))
	must(t, err)
	equal(t, "offsets", [2]uint64{first.Offset, second.Offset}, [2]uint64{1, 2})
	equal(t, "epoch", first.Epoch, second.Epoch)
	skipped, err := server.Publish(limited(t), "news", numbered(3), gocent.WithSkipHistory(true))
	must(t, err)
	equal(t, "offset of what is not kept", skipped.Offset, 0)
	both, err := server.Broadcast(limited(t), []string{"sport", "plain:x", "nowhere:x"}, numbered(4))
	must(t, err)
	equal(t, "responses", len(both.Responses), 3)
	equal(t, "offset", both.Responses[0].Result.Offset, 1)
	equal(t, "offset without history", both.Responses[1].Result.Offset, 0)
	equal(t, "error", both.Responses[2].Error.Code, 102)
	news.hears(t, 1, 3)
	sport.hears(t, 4, 4)
	_, err = server.Publish(limited(t), "nowhere:x", numbered(1))
	apiFails(t, err, 102)
	_, err = server.Publish(limited(t), "", numbered(1))
	apiFails(t, err, 107)
}

func TestGocentReadsAndRemovesHistory(t *testing.T) {
	server := start(t, api)
	server.publish(t, "kept", 1, 5)
	top, err := server.History(limited(t), "kept")
	must(t, err)
	equal(t, "publications", len(top.Publications), 0)
	equal(t, "offset", top.Offset, 5)
	since := gocent.WithSince(&gocent.StreamPosition{Offset: 2, Epoch: top.Epoch})
	page, err := server.History(limited(t), "kept", gocent.WithLimit(2), since)
	must(t, err)
	equal(t, "publications", len(page.Publications), 2)
	equal(t, "number", number(t, page.Publications[0].Data), 3)
	equal(t, "offset", page.Publications[1].Offset, 4)
	last, err := server.History(limited(t), "kept", gocent.WithLimit(gocent.NoLimit), gocent.WithReverse(true))
	must(t, err)
	equal(t, "publications", len(last.Publications), 5)
	equal(t, "number", number(t, last.Publications[0].Data), 5)
	must(t, server.HistoryRemove(limited(t), "kept"))
	gone, err := server.History(limited(t), "kept", gocent.WithLimit(gocent.NoLimit))
	must(t, err)
	equal(t, "publications", len(gone.Publications), 0)
	equal(t, "offset", gone.Offset, 5)
	_, err = server.History(limited(t), "plain:none")
	apiFails(t, err, 108)
	apiFails(t, server.HistoryRemove(limited(t), "plain:none"), 108)
}

func TestGocentSeesWhoIsThere(t *testing.T) {
	server := start(t, api)
	ada, adaId := someone(t, server, encodings[0], "ada")
	bob, bobId := someone(t, server, encodings[1], "bob")
	ada.subscribe(t, "room")
	bob.subscribe(t, "room")
	bob.subscribe(t, "plain:room")
	found, err := server.Presence(limited(t), "room")
	must(t, err)
	equal(t, "clients", len(found.Presence), 2)
	equal(t, "user", found.Presence[adaId].User, "ada")
	equal(t, "client", found.Presence[bobId].Client, bobId)
	equal(t, "info", string(found.Presence[bobId].ConnInfo), `{"name":"bob"}`)
	stats, err := server.PresenceStats(limited(t), "room")
	must(t, err)
	equal(t, "stats", stats, gocent.PresenceStatsResult{NumClients: 2, NumUsers: 2})
	_, err = server.Presence(limited(t), "plain:room")
	apiFails(t, err, 108)
	channels, err := server.Channels(limited(t))
	must(t, err)
	equal(t, "channels", len(channels.Channels), 2)
	equal(t, "subscribers", channels.Channels["room"].NumUsers+channels.Channels["plain:room"].NumUsers, 0)
	plain, err := server.Channels(limited(t), gocent.WithPattern("plain:*"))
	must(t, err)
	equal(t, "channels of a pattern", len(plain.Channels), 1)
	info, err := server.Info(limited(t))
	must(t, err)
	equal(t, "nodes", len(info.Nodes), 1)
	node := info.Nodes[0]
	equal(t, "counts", [3]int{node.NumClients, node.NumUsers, node.NumChannels}, [3]int{2, 2, 2})
	if node.UID == "" || node.Name == "" || node.Version == "" {
		t.Fatalf("%+v", node)
	}
}

func TestGocentUnsubscribesAndDisconnects(t *testing.T) {
	server := start(t, api)
	one, oneId := someone(t, server, encodings[0], "42")
	other, _ := someone(t, server, encodings[1], "42")
	left, kept := one.subscribe(t, "room"), other.subscribe(t, "room")
	must(t, server.Unsubscribe(limited(t), "room", "42", gocent.WithUnsubscribeClient(oneId)))
	equal(t, "code", left.unsubscribed.next(t).Code, 2000)
	must(t, server.Unsubscribe(limited(t), "room", "42"))
	equal(t, "code", kept.unsubscribed.next(t).Code, 2000)
	must(t, server.Disconnect(limited(t), "42", gocent.WithDisconnectClient(oneId)))
	equal(t, "code", one.disconnected.next(t).Code, 3503)
	other.fence(t)
	third, thirdId := someone(t, server, encodings[0], "42")
	must(t, server.Disconnect(limited(t), "42", gocent.WithDisconnectClientWhitelist([]string{thirdId})))
	equal(t, "code", other.disconnected.next(t).Code, 3503)
	third.fence(t)
	must(t, server.Disconnect(limited(t), "nobody"))
}

func TestGocentSendsManyCommandsAtOnce(t *testing.T) {
	server := start(t, api)
	pipe := server.Pipe()
	must(t, pipe.AddPublish("piped", numbered(1)))
	must(t, pipe.AddPublish("nowhere:x", numbered(2)))
	must(t, pipe.AddBroadcast([]string{"piped", "other"}, numbered(3)))
	must(t, pipe.AddHistory("piped", gocent.WithLimit(10)))
	must(t, pipe.AddPresenceStats("piped"))
	must(t, pipe.AddPresence("piped"))
	must(t, pipe.AddChannels())
	must(t, pipe.AddInfo())
	must(t, pipe.AddHistoryRemove("piped"))
	must(t, pipe.AddUnsubscribe("piped", "nobody"))
	must(t, pipe.AddDisconnect("nobody"))
	replies, err := server.SendPipe(limited(t), pipe)
	must(t, err)
	equal(t, "replies", len(replies), 11)
	for n, reply := range replies {
		if failed := reply.Error != nil; failed != (n == 1) {
			t.Fatalf("reply %d: %+v", n, reply)
		}
	}
	equal(t, "error", replies[1].Error.Code, 102)
	var page gocent.HistoryResult
	must(t, json.Unmarshal(replies[3].Result, &page))
	equal(t, "publications before the history was removed", len(page.Publications), 2)
}

func TestGocentWithAWrongKeyIsUnauthorized(t *testing.T) {
	server := start(t, api)
	stranger := gocent.New(gocent.Config{Addr: server.http + "/api", Key: "another"})
	_, err := stranger.Info(limited(t))
	var refused gocent.ErrStatusCode
	if !errors.As(err, &refused) || refused.Code != http.StatusUnauthorized {
		t.Fatalf("found %v", err)
	}
}

// apiFails expects an error of the API.
func apiFails(t *testing.T, err error, code int) {
	t.Helper()
	var refused *gocent.Error
	if errors.As(err, &refused) && refused.Code == code {
		return
	}
	var value gocent.Error
	if errors.As(err, &value) && value.Code == code {
		return
	}
	t.Fatalf("found %v, expected error %d", err, code)
}
