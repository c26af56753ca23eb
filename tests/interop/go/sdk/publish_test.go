// centrifuge-go, as published, in JSON and in Protobuf: publications, history, presence, joins and leaves.
// In: one server with Centrifugo's keys for all of them -> out: the results and events the SDK reports.
// May use the SDK's public interface and the server API only; never looks at bytes.
// What happens while a client is away is in recovery_test.go.

package sdk

import (
	"encoding/json"
	"testing"

	"github.com/centrifugal/centrifuge-go"
	"github.com/centrifugal/gocent/v3"
)

var state = keys{"channel": keys{
	"without_namespace": open.with(keys{"history_size": 100, "history_ttl": "300s"}),
	"namespaces": []keys{
		open.with(keys{"name": "plain"}),
		open.with(keys{"name": "room", "presence": true, "join_leave": true, "force_push_join_leave": true}),
	},
}}

func TestReceivesItsOwnPublicationWithItsInfo(t *testing.T) {
	both(t, state, func(t *testing.T, server *server, encoding encoding) {
		client, id := someone(t, server, encoding, "42")
		subscription := client.subscribe(t, "plain:own-"+encoding.name)
		text := "hällo <b> & \"quotes\" \u2028"
		data, err := json.Marshal(text)
		must(t, err)
		_, err = subscription.Publish(limited(t), data)
		must(t, err)
		publication := subscription.publications.next(t)
		var found string
		must(t, json.Unmarshal(publication.Data, &found))
		equal(t, "data", found, text)
		if publication.Info == nil {
			t.Fatal("no info")
		}
		equal(t, "client", publication.Info.Client, id)
		equal(t, "user", publication.Info.User, "42")
		equal(t, "info", string(publication.Info.ConnInfo), `{"name":"42"}`)
	})
}

func TestPublishingWithoutPermissionIsError103(t *testing.T) {
	both(t, state, func(t *testing.T, server *server, encoding encoding) {
		client, _ := someone(t, server, encoding, "42")
		_, err := client.Publish(limited(t), "plain:foreign", []byte("{}"))
		failsWith(t, err, 103)
	})
}

func TestProtobufClientsPublishBytesThatAreNotJson(t *testing.T) {
	server := start(t, state)
	json, protobuf := encodings[0], encodings[1]
	client, _ := someone(t, server, protobuf, "42")
	subscription := client.subscribe(t, "test")
	_, err := subscription.Publish(limited(t), []byte("boom"))
	must(t, err)
	equal(t, "data", string(subscription.publications.next(t).Data), "boom")
	strict, _ := someone(t, server, json, "43")
	if _, err := strict.Publish(limited(t), "test", []byte("boom")); err == nil {
		t.Fatal("a JSON client published what is not JSON")
	}
}

func TestOneHundredPublicationsOfTheApiArriveInOrder(t *testing.T) {
	both(t, state, func(t *testing.T, server *server, encoding encoding) {
		client, _ := someone(t, server, encoding, "42")
		subscription := client.subscribe(t, "order-"+encoding.name)
		server.publish(t, subscription.Channel, 1, 100)
		for n := 1; n <= 100; n++ {
			publication := subscription.publications.next(t)
			equal(t, "number", number(t, publication.Data), n)
			equal(t, "offset", publication.Offset, uint64(n))
		}
	})
}

func TestAPageOfHistoryIsWhatWasAskedFor(t *testing.T) {
	both(t, state, func(t *testing.T, server *server, encoding encoding) {
		client, _ := someone(t, server, encoding, "42")
		subscription := client.subscribe(t, "pages-"+encoding.name)
		server.publish(t, subscription.Channel, 1, 6)
		top, err := subscription.History(limited(t))
		must(t, err)
		equal(t, "publications", len(top.Publications), 0)
		equal(t, "offset", top.Offset, 6)
		since := func(offset uint64) centrifuge.HistoryOption {
			return centrifuge.WithHistorySince(&centrifuge.StreamPosition{Offset: offset, Epoch: top.Epoch})
		}
		limit, reverse := centrifuge.WithHistoryLimit, centrifuge.WithHistoryReverse(true)
		for _, page := range []struct {
			options  []centrifuge.HistoryOption
			expected []int
		}{
			{[]centrifuge.HistoryOption{limit(-1)}, []int{1, 2, 3, 4, 5, 6}},
			{[]centrifuge.HistoryOption{limit(2)}, []int{1, 2}},
			{[]centrifuge.HistoryOption{limit(2), reverse}, []int{6, 5}},
			{[]centrifuge.HistoryOption{limit(2), since(2)}, []int{3, 4}},
			{[]centrifuge.HistoryOption{limit(2), since(3), reverse}, []int{2, 1}},
			{[]centrifuge.HistoryOption{limit(10), since(6)}, []int{}},
		} {
			found, err := subscription.History(limited(t), page.options...)
			must(t, err)
			equal(t, "publications", len(found.Publications), len(page.expected))
			for n, publication := range found.Publications {
				equal(t, "number", number(t, publication.Data), page.expected[n])
			}
			if found.Offset != 6 || found.Epoch != top.Epoch || top.Epoch == "" {
				t.Fatalf("the top is %d of %q", found.Offset, found.Epoch)
			}
		}
		foreign := centrifuge.WithHistorySince(&centrifuge.StreamPosition{Offset: 1, Epoch: "foreign"})
		_, err = subscription.History(limited(t), limit(1), foreign)
		failsWith(t, err, 112)
	})
}

func TestWhatAChannelDoesNotHaveIsError108(t *testing.T) {
	both(t, state, func(t *testing.T, server *server, encoding encoding) {
		client, _ := someone(t, server, encoding, "42")
		subscription := client.subscribe(t, "plain:nothing")
		_, err := subscription.History(limited(t), centrifuge.WithHistoryLimit(1))
		failsWith(t, err, 108)
		_, err = subscription.Presence(limited(t))
		failsWith(t, err, 108)
		_, err = subscription.PresenceStats(limited(t))
		failsWith(t, err, 108)
	})
}

func TestPresenceCountsOneClientAndTwo(t *testing.T) {
	both(t, state, func(t *testing.T, server *server, encoding encoding) {
		channel := "room:count-" + encoding.name
		ada, adaId := someone(t, server, encoding, "ada")
		bob, bobId := someone(t, server, encoding, "bob")
		subscription := ada.subscribe(t, channel)
		stats := func(clients, users int) {
			t.Helper()
			found, err := subscription.PresenceStats(limited(t))
			must(t, err)
			equal(t, "stats", found, centrifuge.PresenceStatsResult{
				PresenceStats: centrifuge.PresenceStats{NumClients: clients, NumUsers: users},
			})
		}
		stats(1, 1)
		other := bob.subscribe(t, channel)
		found, err := subscription.Presence(limited(t))
		must(t, err)
		equal(t, "clients", len(found.Clients), 2)
		equal(t, "user", found.Clients[adaId].User, "ada")
		equal(t, "info", string(found.Clients[bobId].ConnInfo), `{"name":"bob"}`)
		stats(2, 2)
		other.unsubscribe(t)
		bob.fence(t)
		stats(1, 1)
		subscription.unsubscribe(t)
		ada.fence(t)
		empty, err := server.PresenceStats(limited(t), channel)
		must(t, err)
		equal(t, "stats", empty, gocent.PresenceStatsResult{})
	})
}

func TestHearsWhoJoinsAndLeaves(t *testing.T) {
	both(t, state, func(t *testing.T, server *server, encoding encoding) {
		channel := "room:doors-" + encoding.name
		ada, adaId := someone(t, server, encoding, "ada")
		bob, bobId := someone(t, server, encoding, "bob")
		subscription := ada.subscribe(t, channel)
		equal(t, "own join", subscription.joins.next(t).Client, adaId)
		other := bob.subscribe(t, channel)
		joined := subscription.joins.next(t)
		equal(t, "join", joined.Client, bobId)
		equal(t, "info", string(joined.ConnInfo), `{"name":"bob"}`)
		other.unsubscribe(t)
		equal(t, "leave", subscription.leaves.next(t).Client, bobId)
		must(t, other.Subscribe())
		equal(t, "join", subscription.joins.next(t).Client, bobId)
		bob.disconnect(t)
		equal(t, "leave", subscription.leaves.next(t).User, "bob")
	})
}
