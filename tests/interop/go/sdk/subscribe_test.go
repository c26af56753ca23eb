// centrifuge-go, as published, in JSON and in Protobuf: subscribing and unsubscribing, by client and server.
// In: servers with Centrifugo's keys -> out: the events the SDK reports.
// May use the SDK's public interface and the server API only; never looks at bytes.
// Connections are in connect_test.go, recovery in recovery_test.go.

package sdk

import (
	"errors"
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/centrifugal/centrifuge-go"
	"github.com/centrifugal/gocent/v3"
)

func TestSubscribesBeforeItIsConnected(t *testing.T) {
	both(t, insecure, func(t *testing.T, server *server, encoding encoding) {
		client := newClient(t, server, encoding, centrifuge.Config{})
		early := client.newSubscription(t, "early")
		gone := client.newSubscription(t, "gone")
		must(t, early.Subscribe())
		must(t, gone.Subscribe())
		must(t, client.Connect())
		must(t, gone.Unsubscribe())
		equal(t, "code", gone.unsubscribed.next(t).Code, 0)
		early.subscribed.next(t)
		server.publish(t, "early", 1, 1)
		early.hears(t, 1, 1)
		client.fence(t)
		equal(t, "subscribers", server.subscribers(t, "gone"), 0)
	})
}

func TestUnsubscribesBetweenTheConnectCommandAndItsReply(t *testing.T) {
	both(t, insecure, func(t *testing.T, server *server, encoding encoding) {
		gate := newGate(t)
		client := newClient(t, server, encoding, centrifuge.Config{NetDialContext: gate.dial})
		stays := client.newSubscription(t, "stays-"+encoding.name)
		goes := client.newSubscription(t, "goes-"+encoding.name)
		must(t, stays.Subscribe())
		must(t, goes.Subscribe())
		must(t, client.Connect())
		gate.commanded.next(t)
		client.connected.none(t)
		must(t, goes.Unsubscribe())
		gate.open()
		client.connected.next(t)
		stays.subscribed.next(t)
		equal(t, "code", goes.unsubscribed.next(t).Code, 0)
		client.fence(t)
		goes.subscribed.none(t)
		equal(t, "subscribers", server.subscribers(t, goes.Channel), 0)
		equal(t, "subscribers", server.subscribers(t, stays.Channel), 1)
	})
}

func TestWhatIsUnsubscribedBeforeItsReplyIsGone(t *testing.T) {
	both(t, insecure, func(t *testing.T, server *server, encoding encoding) {
		client := newClient(t, server, encoding, centrifuge.Config{})
		client.connect(t)
		subscription := client.newSubscription(t, "hasty-"+encoding.name)
		for round := 0; round < 20; round++ {
			must(t, subscription.Subscribe())
			must(t, subscription.Unsubscribe())
		}
		client.fence(t)
		equal(t, "subscribers", server.subscribers(t, subscription.Channel), 0)
		must(t, subscription.Subscribe())
		client.fence(t)
		equal(t, "subscribers", server.subscribers(t, subscription.Channel), 1)
		server.publish(t, subscription.Channel, 1, 2)
		subscription.hears(t, 1, 2)
	})
}

func TestAnInsecureServerTakesSubscriptionTokensAndDoesWithoutThem(t *testing.T) {
	both(t, insecure, func(t *testing.T, server *server, encoding encoding) {
		client := newClient(t, server, encoding, centrifuge.Config{})
		client.connect(t)
		claims := keys{"sub": "", "channel": "$with"}
		client.subscribe(t, "$with", centrifuge.SubscriptionConfig{Token: token(claims)})
		client.subscribe(t, "without")
		client.refused(t, "$without", 103)
	})
}

func TestAnUnknownNamespaceIsError102(t *testing.T) {
	both(t, strict, func(t *testing.T, server *server, encoding encoding) {
		client, _ := someone(t, server, encoding, "42")
		client.refused(t, "test:test", 102)
	})
}

func TestOneClientHasOneSubscriptionOfAChannel(t *testing.T) {
	both(t, insecure, func(t *testing.T, server *server, encoding encoding) {
		client := newClient(t, server, encoding, centrifuge.Config{})
		client.connect(t)
		client.subscribe(t, "once")
		if _, err := client.NewSubscription("once"); !errors.Is(err, centrifuge.ErrDuplicateSubscription) {
			t.Fatalf("found %v", err)
		}
	})
}

func TestSubscribesAndUnsubscribesManyTimes(t *testing.T) {
	both(t, insecure, func(t *testing.T, server *server, encoding encoding) {
		client := newClient(t, server, encoding, centrifuge.Config{})
		client.connect(t)
		channel := "loop-" + encoding.name
		subscription := client.newSubscription(t, channel)
		for round := 0; round < 20; round++ {
			must(t, subscription.Subscribe())
			subscription.subscribed.next(t)
			server.publish(t, channel, round*2, round*2)
			subscription.hears(t, round*2, round*2)
			subscription.unsubscribe(t)
			client.fence(t)
			server.publish(t, channel, round*2+1, round*2+1)
		}
		subscription.publications.none(t)
	})
}

func TestASubscriptionTokenIsForOneChannelAndOneUser(t *testing.T) {
	both(t, strict, func(t *testing.T, server *server, encoding encoding) {
		client, _ := someone(t, server, encoding, "42")
		with := func(secret string, claims keys) centrifuge.SubscriptionConfig {
			return centrifuge.SubscriptionConfig{Token: tokenOf(secret, claims)}
		}
		client.subscribe(t, "$good", with(tokenSecret, keys{"sub": "42", "channel": "$good"}))
		client.refused(t, "$bare", 103)
		client.refused(t, "$forged", 103, with("another-secret", keys{"sub": "42", "channel": "$forged"}))
		for channel, claims := range map[string]keys{
			"$channel": {"sub": "42", "channel": "$another"},
			"$user":    {"sub": "43", "channel": "$user"},
		} {
			client, _ := someone(t, server, encoding, "42")
			wrong := client.newSubscription(t, channel, with(tokenSecret, claims))
			must(t, wrong.Subscribe())
			equal(t, channel, client.disconnected.next(t).Code, 3500)
			wrong.errors.next(t) // the library panics when it is closed while it calls this handler
		}
	})
}

func TestRenewsAnExpiredSubscriptionToken(t *testing.T) {
	both(t, strict, func(t *testing.T, server *server, encoding encoding) {
		client, _ := someone(t, server, encoding, "42")
		var asked atomic.Int32
		client.subscribe(t, "$renewed", centrifuge.SubscriptionConfig{
			Token: token(keys{"sub": "42", "channel": "$renewed", "exp": from(-10)}),
			GetToken: func(event centrifuge.SubscriptionTokenEvent) (string, error) {
				asked.Add(1)
				return token(keys{"sub": "42", "channel": event.Channel, "exp": from(3600)}), nil
			},
		})
		equal(t, "asked for a token", asked.Load(), 1)
		client.refused(t, "$denied", 1, centrifuge.SubscriptionConfig{
			GetToken: func(centrifuge.SubscriptionTokenEvent) (string, error) {
				return "", centrifuge.ErrUnauthorized
			},
		})
	})
}

func TestFiveSubscriptionsWithTokensComeBackAfterAReconnect(t *testing.T) {
	both(t, strict, func(t *testing.T, server *server, encoding encoding) {
		user := "five-" + encoding.name
		client, _ := someone(t, server, encoding, user)
		subscriptions := make([]*subscription, 5)
		for n := range subscriptions {
			channel := fmt.Sprintf("$test%d", n+1)
			claims := keys{"sub": user, "channel": channel}
			subscriptions[n] = client.subscribe(t, channel, centrifuge.SubscriptionConfig{Token: token(claims)})
		}
		again := gocent.WithDisconnect(&gocent.Disconnect{Code: 4001, Reason: "come back"})
		must(t, server.Disconnect(limited(t), user, again))
		for n, subscription := range subscriptions {
			subscription.subscribed.next(t)
			server.publish(t, subscription.Channel, n, n)
			subscription.hears(t, n, n)
		}
	})
}

func TestTheApiUnsubscribesAClientForGood(t *testing.T) {
	both(t, strict, func(t *testing.T, server *server, encoding encoding) {
		user := "unsub-" + encoding.name
		client, _ := someone(t, server, encoding, user)
		subscription := client.subscribe(t, user)
		must(t, server.Unsubscribe(limited(t), user, user))
		equal(t, "code", subscription.unsubscribed.next(t).Code, 2000)
		must(t, subscription.Subscribe())
		subscription.subscribed.next(t)
	})
}

// subscribers is how many the server counts. It is asked by hand: gocent does not know the field.
func (server *server) subscribers(t *testing.T, channel string) int {
	t.Helper()
	var found struct {
		Channels map[string]struct {
			NumClients int `json:"num_clients"`
		}
	}
	server.call(t, "channels", keys{"pattern": channel}, &found)
	return found.Channels[channel].NumClients
}
