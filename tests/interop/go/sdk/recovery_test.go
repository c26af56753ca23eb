// centrifuge-go, as published, in JSON and in Protobuf: what was published while a client was away.
// In: one server with Centrifugo's keys for history -> out: the events the SDK reports.
// May use the SDK's public interface and the server API only; never looks at bytes.
// The rules by themselves are tested in the crate `node`; the same in JavaScript in ../../js/recovery.test.js.

package sdk

import (
	"testing"

	"github.com/centrifugal/centrifuge-go"
	"github.com/centrifugal/gocent/v3"
)

var history = open.with(keys{"history_size": 100, "history_ttl": "300s", "force_recovery": true})
var recovering = keys{"channel": keys{
	"without_namespace": history,
	"namespaces": []keys{
		history.with(keys{"name": "smallhistory", "history_size": 2}),
		history.with(keys{"name": "wished", "force_recovery": false}),
		history.with(keys{"name": "positioned", "force_recovery": false, "force_positioning": true}),
	},
}}

func (subscription *subscription) recovers(t *testing.T, wasRecovering, recovered bool) {
	t.Helper()
	event := subscription.subscribed.next(t)
	equal(t, "recoverable", event.Recoverable, true)
	equal(t, "was recovering", event.WasRecovering, wasRecovering)
	equal(t, "recovered", event.Recovered, recovered)
	if event.StreamPosition == nil || event.StreamPosition.Epoch == "" {
		t.Fatalf("the position is %v", event.StreamPosition)
	}
}

func TestRecoversWhatWasPublishedWhileItWasAway(t *testing.T) {
	both(t, recovering, func(t *testing.T, server *server, encoding encoding) {
		channel := "away-" + encoding.name
		client, _ := someone(t, server, encoding, "42")
		subscription := client.newSubscription(t, channel)
		must(t, subscription.Subscribe())
		subscription.recovers(t, false, false)
		for round := 0; round < 5; round++ {
			server.publish(t, channel, round*10+1, round*10+3)
			subscription.hears(t, round*10+1, round*10+3)
			client.disconnect(t)
			server.publish(t, channel, round*10+4, round*10+10)
			client.connect(t)
			subscription.recovers(t, true, true)
			subscription.hears(t, round*10+4, round*10+10)
		}
		subscription.publications.none(t)
	})
}

func TestRecoversWhatAnotherClientPublishedBetweenUnsubscribeAndSubscribe(t *testing.T) {
	both(t, recovering, func(t *testing.T, server *server, encoding encoding) {
		channel := "between-" + encoding.name
		client, _ := someone(t, server, encoding, "42")
		other, _ := someone(t, server, encoding, "43")
		subscription := client.subscribe(t, channel)
		publisher := other.subscribe(t, channel)
		subscription.unsubscribe(t)
		for n := 1; n <= 3; n++ {
			_, err := publisher.Publish(limited(t), numbered(n))
			must(t, err)
		}
		must(t, subscription.Subscribe())
		subscription.recovers(t, true, true)
		subscription.hears(t, 1, 3)
		server.publish(t, channel, 4, 4)
		subscription.hears(t, 4, 4)
	})
}

func TestDoesNotRecoverMoreThanIsKept(t *testing.T) {
	both(t, recovering, func(t *testing.T, server *server, encoding encoding) {
		channel := "smallhistory:" + encoding.name
		client, _ := someone(t, server, encoding, "42")
		subscription := client.subscribe(t, channel)
		server.publish(t, channel, 1, 1)
		subscription.hears(t, 1, 1)
		client.disconnect(t)
		server.publish(t, channel, 2, 6)
		client.connect(t)
		subscription.recovers(t, true, false)
		server.publish(t, channel, 7, 7)
		subscription.hears(t, 7, 7)
	})
}

func TestRecoveryIsTheClientsWishWhereItMayReadHistory(t *testing.T) {
	both(t, recovering, func(t *testing.T, server *server, encoding encoding) {
		client, _ := someone(t, server, encoding, "42")
		for _, namespace := range []string{"wished", "positioned"} {
			channel := namespace + ":channel-" + encoding.name
			wish := centrifuge.SubscriptionConfig{Recoverable: true, Positioned: true}
			subscription := client.newSubscription(t, channel, wish)
			must(t, subscription.Subscribe())
			subscription.recovers(t, false, false)
			subscription.unsubscribe(t)
			server.publish(t, channel, 1, 3)
			must(t, subscription.Subscribe())
			subscription.recovers(t, true, true)
			subscription.hears(t, 1, 3)
		}
	})
}

func TestRecoveryIsTheClientsWishInInsecureModeToo(t *testing.T) {
	development := recovering.with(keys{"client": keys{"insecure": true}})
	both(t, development, func(t *testing.T, server *server, encoding encoding) {
		client := newClient(t, server, encoding, centrifuge.Config{})
		client.connect(t)
		channel := "positioned:insecure-" + encoding.name
		wish := centrifuge.SubscriptionConfig{Recoverable: true, Positioned: true}
		subscription := client.subscribe(t, channel, wish)
		client.disconnect(t)
		server.publish(t, channel, 1, 3)
		client.connect(t)
		subscription.recovers(t, true, true)
		subscription.hears(t, 1, 3)
	})
}

func TestAPositionedSubscriptionKnowsItsPositionAndDoesNotRecover(t *testing.T) {
	both(t, recovering, func(t *testing.T, server *server, encoding encoding) {
		channel := "positioned:only-" + encoding.name
		client, _ := someone(t, server, encoding, "42")
		subscription := client.subscribe(t, channel)
		subscription.unsubscribe(t)
		server.publish(t, channel, 1, 3)
		must(t, subscription.Subscribe())
		event := subscription.subscribed.next(t)
		equal(t, "positioned", event.Positioned, true)
		equal(t, "recoverable", event.Recoverable, false)
		equal(t, "was recovering", event.WasRecovering, false)
		equal(t, "offset", event.StreamPosition.Offset, 3)
		server.publish(t, channel, 4, 4)
		subscription.hears(t, 4, 4)
	})
}

func TestComesBackFrom3014WithoutAHole(t *testing.T) {
	both(t, recovering, func(t *testing.T, server *server, encoding encoding) {
		user := "invalid-" + encoding.name
		client, _ := someone(t, server, encoding, user)
		subscription := client.subscribe(t, user)
		server.publish(t, user, 1, 2)
		subscription.hears(t, 1, 2)
		invalid := gocent.WithDisconnect(&gocent.Disconnect{Code: 3014, Reason: "state invalidated"})
		must(t, server.Disconnect(limited(t), user, invalid))
		equal(t, "was recovering", subscription.subscribed.next(t).WasRecovering, true)
		server.publish(t, user, 3, 3)
		subscription.hears(t, 3, 3)
	})
}

func TestASubscriptionOfTheTokenRecoversAfterAReconnect(t *testing.T) {
	both(t, recovering, func(t *testing.T, server *server, encoding encoding) {
		channel := "server-" + encoding.name
		claims := keys{"sub": "42", "channels": []string{channel}}
		client := newClient(t, server, encoding, centrifuge.Config{Token: token(claims)})
		client.connect(t)
		first := client.subscribed.next(t)
		equal(t, "channel", first.Channel, channel)
		equal(t, "recoverable", first.Recoverable, true)
		server.publish(t, channel, 1, 1)
		client.hears(t, channel, 1, 1)
		client.disconnect(t)
		server.publish(t, channel, 2, 4)
		client.connect(t)
		again := client.subscribed.next(t)
		equal(t, "was recovering", again.WasRecovering, true)
		equal(t, "recovered", again.Recovered, true)
		client.hears(t, channel, 2, 4)
		server.publish(t, channel, 5, 5)
		client.hears(t, channel, 5, 5)
	})
}
