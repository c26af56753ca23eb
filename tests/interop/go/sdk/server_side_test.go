// centrifuge-go, as published, in JSON and in Protobuf: subscriptions the server makes and ends, and lifetimes it gives.
// In: servers with personal channels and a short grace -> out: the events the SDK reports.
// May use the SDK's public interface and the server API only; never looks at bytes.
// The rules by themselves are tested in the crate `node`; the same in JavaScript in ../../js/server_side.test.js.

package sdk

import (
	"bytes"
	"encoding/json"
	"net/http"
	"testing"

	"github.com/centrifugal/gocent/v3"
)

var personal = keys{
	"client": keys{
		"expired_close_delay":                "0s",
		"expired_sub_close_delay":            "0s",
		"subscribe_to_user_personal_channel": keys{"enabled": true},
	},
	"channel": keys{"namespaces": []keys{
		{"name": "closed"},
		{"name": "kept", "history_size": 100, "history_ttl": "300s", "force_recovery": true},
		{"name": "room", "presence": true, "join_leave": true, "force_push_join_leave": true},
	}},
}

func TestAUserHearsItsPersonalChannelAndNobodyElses(t *testing.T) {
	both(t, personal, func(t *testing.T, server *server, encoding encoding) {
		adaName, eveName := "ada-"+encoding.name, "eve-"+encoding.name
		ada, _ := someone(t, server, encoding, adaName)
		eve, _ := someone(t, server, encoding, eveName)
		equal(t, "channel", ada.subscribed.next(t).Channel, "#"+adaName)
		equal(t, "channel", eve.subscribed.next(t).Channel, "#"+eveName)
		server.publish(t, "#"+eveName, 1, 1)
		server.publish(t, "#"+adaName, 2, 3)
		ada.hears(t, "#"+adaName, 2, 3)
		eve.hears(t, "#"+eveName, 1, 1)
		ada.publications.none(t)
		eve.publications.none(t)
		ada.disconnect(t)
		ada.connect(t)
		equal(t, "channel", ada.subscribed.next(t).Channel, "#"+adaName)
	})
}

func TestWithASingleConnectionTheNewestOfAUserStays(t *testing.T) {
	single := keys{
		"client": keys{"subscribe_to_user_personal_channel": keys{
			"enabled": true, "personal_channel_namespace": "own", "single_connection": true,
		}},
		"channel": keys{"namespaces": []keys{{"name": "own"}}},
	}
	both(t, single, func(t *testing.T, server *server, encoding encoding) {
		user := "single-" + encoding.name
		first, _ := someone(t, server, encoding, user)
		other, _ := someone(t, server, encoding, "other-"+encoding.name)
		second, _ := someone(t, server, encoding, user)
		equal(t, "code", first.disconnected.next(t).Code, 3504)
		server.publish(t, "own:#"+user, 1, 1)
		second.hears(t, "own:#"+user, 1, 1)
		other.fence(t)
	})
}

func TestTheApiSubscribesAConnectionAndUnsubscribesIt(t *testing.T) {
	both(t, personal, func(t *testing.T, server *server, encoding encoding) {
		user := "order-" + encoding.name
		channel, own := "closed:"+user, "#"+user
		client, _ := someone(t, server, encoding, user)
		equal(t, "channel", client.subscribed.next(t).Channel, own)
		for _, why := range []string{`{"why":"api"}`, `"again"`} {
			data := gocent.WithSubscribeData(json.RawMessage(why))
			must(t, server.Subscribe(limited(t), channel, user, data))
		}
		subscribed := client.subscribed.next(t)
		equal(t, "channel", subscribed.Channel, channel)
		equal(t, "data", string(subscribed.Data), `{"why":"api"}`)
		equal(t, "recoverable", subscribed.Recoverable, false)
		server.publish(t, channel, 1, 1)
		client.hears(t, channel, 1, 1)
		must(t, server.Unsubscribe(limited(t), channel, user))
		equal(t, "channel", client.unsubscribed.next(t).Channel, channel)
		server.publish(t, channel, 2, 2)
		server.publish(t, own, 3, 3)
		client.hears(t, own, 3, 3)
		client.subscribed.none(t)
	})
}

func TestTheApiSubscribesOneClientOfSeveral(t *testing.T) {
	both(t, personal, func(t *testing.T, server *server, encoding encoding) {
		user := "several-" + encoding.name
		first, _ := someone(t, server, encoding, user)
		second, id := someone(t, server, encoding, user)
		first.subscribed.next(t)
		second.subscribed.next(t)
		must(t, server.Subscribe(limited(t), "closed:one", user, gocent.WithSubscribeClient(id)))
		equal(t, "channel", second.subscribed.next(t).Channel, "closed:one")
		server.publish(t, "#"+user, 1, 1)
		first.hears(t, "#"+user, 1, 1)
		first.subscribed.none(t)
	})
}

func TestASubscriptionOfTheApiRecoversSinceAPosition(t *testing.T) {
	both(t, personal, func(t *testing.T, server *server, encoding encoding) {
		user := "since-" + encoding.name
		channel := "kept:" + user
		server.publish(t, channel, 1, 3)
		top, err := server.History(limited(t), channel)
		must(t, err)
		client, _ := someone(t, server, encoding, user)
		client.subscribed.next(t)
		since := gocent.WithRecoverSince(&gocent.StreamPosition{Offset: 1, Epoch: top.Epoch})
		must(t, server.Subscribe(limited(t), channel, user, since))
		subscribed := client.subscribed.next(t)
		equal(t, "channel", subscribed.Channel, channel)
		equal(t, "recoverable", subscribed.Recoverable, true)
		equal(t, "epoch", subscribed.StreamPosition.Epoch, top.Epoch)
		server.publish(t, channel, 4, 4)
		client.hears(t, channel, 2, 4)
		client.publications.none(t)
	})
}

func TestASubscriptionOfTheApiIsPresentWithItsInfoAndAnnounced(t *testing.T) {
	both(t, personal, func(t *testing.T, server *server, encoding encoding) {
		channel := "room:" + encoding.name
		adaName, bobName := "watcher-"+encoding.name, "guest-"+encoding.name
		ada, adaId := someone(t, server, encoding, adaName)
		_, bobId := someone(t, server, encoding, bobName)
		must(t, server.Subscribe(limited(t), channel, adaName))
		equal(t, "own join", ada.joins.next(t).Client, adaId)
		seat := gocent.WithSubscribeInfo(json.RawMessage(`{"seat":7}`))
		must(t, server.Subscribe(limited(t), channel, bobName, seat))
		joined := ada.joins.next(t)
		equal(t, "join", joined.Client, bobId)
		equal(t, "info", string(joined.ChanInfo), `{"seat":7}`)
		found, err := server.Presence(limited(t), channel)
		must(t, err)
		equal(t, "info", string(found.Presence[bobId].ChanInfo), `{"seat":7}`)
		must(t, server.Unsubscribe(limited(t), channel, bobName))
		equal(t, "leave", ada.leaves.next(t).Client, bobId)
	})
}

func TestASubscriptionOfTheApiThatExpiresClosesTheConnectionWith3006(t *testing.T) {
	both(t, personal, func(t *testing.T, server *server, encoding encoding) {
		user := "expiring-" + encoding.name
		client, before := someone(t, server, encoding, user)
		client.connecting.next(t)
		order := keys{"user": user, "channel": "closed:short", "expire_at": from(2)}
		server.call(t, "subscribe", order)
		equal(t, "code", client.connecting.next(t).Code, 3006)
		if client.connected.next(t).ClientID == before {
			t.Fatal("the client id stayed")
		}
	})
}

func TestTheApiRefreshesAConnectionAndEndsOneAsExpired(t *testing.T) {
	both(t, personal, func(t *testing.T, server *server, encoding encoding) {
		user := "refreshed-" + encoding.name
		channel := "room:" + user
		client, id := someone(t, server, encoding, user)
		client.connecting.next(t)
		server.call(t, "refresh", keys{
			"user": user, "expire_at": from(3600), "info": keys{"name": "Ada"},
		})
		must(t, server.Subscribe(limited(t), channel, user))
		client.joins.next(t)
		found, err := server.Presence(limited(t), channel)
		must(t, err)
		equal(t, "info", string(found.Presence[id].ConnInfo), `{"name":"Ada"}`)
		client.connecting.none(t)
		server.call(t, "refresh", keys{"user": user, "expired": true})
		equal(t, "code", client.connecting.next(t).Code, 3005)
		client.connected.next(t)
	})
}

func TestARefreshOfTheApiMovesTheEndOfAConnection(t *testing.T) {
	both(t, personal, func(t *testing.T, server *server, encoding encoding) {
		user := "moved-" + encoding.name
		first, id := someone(t, server, encoding, user)
		second, _ := someone(t, server, encoding, user)
		first.connecting.next(t)
		second.connecting.next(t)
		server.call(t, "refresh", keys{"user": user, "expire_at": from(2)})
		server.call(t, "refresh", keys{"user": user, "client": id, "expire_at": from(3600)})
		equal(t, "code", second.connecting.next(t).Code, 3005)
		first.fence(t)
		first.connecting.none(t)
	})
}

// hears expects the publications {"n": n} in a channel the server subscribed it to.
func (client *client) hears(t *testing.T, channel string, first, last int) {
	t.Helper()
	for n := first; n <= last; n++ {
		publication := client.publications.next(t)
		equal(t, "channel", publication.Channel, channel)
		equal(t, channel, number(t, publication.Data), n)
	}
}

// call calls a method of the server API with fields that gocent does not know, and reads its result.
func (server *server) call(t *testing.T, method string, fields keys, result ...any) {
	t.Helper()
	body, err := json.Marshal(fields)
	must(t, err)
	address := server.http + "/api/" + method
	request, err := http.NewRequestWithContext(limited(t), http.MethodPost, address, bytes.NewReader(body))
	must(t, err)
	request.Header.Set("X-API-Key", apiKey)
	response, err := http.DefaultClient.Do(request)
	must(t, err)
	defer response.Body.Close()
	var reply struct {
		Result json.RawMessage
		Error  *gocent.Error
	}
	must(t, json.NewDecoder(response.Body).Decode(&reply))
	if reply.Error != nil || reply.Result == nil {
		t.Fatalf("%s: status %d, %+v", method, response.StatusCode, reply.Error)
	}
	for _, into := range result {
		must(t, json.Unmarshal(reply.Result, into))
	}
}
