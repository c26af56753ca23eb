// centrifuge-go, as published, in JSON and in Protobuf: tokens that expire while they are in use, subscriptions that end.
// In: servers with tokens and a short grace, and one with little memory -> out: the events the SDK reports.
// May use the SDK's public interface and the server API only; never looks at bytes.
// Lifetimes that the server API gives are in server_side_test.go, tokens that expired before in connect_test.go.

package sdk

import (
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/centrifugal/centrifuge-go"
)

var hurried = strict.with(keys{"client": keys{"expired_close_delay": "0s", "expired_sub_close_delay": "0s"}})

// lives is the lifetimes of the tokens in these tests, in seconds: a token that is asked for the second time was asked
// for because the server has accepted the first.
var lives = []int64{2, 3600}

func TestRefreshesShortLivedTokensAndStaysConnected(t *testing.T) {
	both(t, strict, func(t *testing.T, server *server, encoding encoding) {
		asked := newEvents[int]("a token to be asked for")
		var count atomic.Int32
		client := newClient(t, server, encoding, centrifuge.Config{
			Token: token(keys{"sub": "42", "exp": from(2)}),
			GetToken: func(centrifuge.ConnectionTokenEvent) (string, error) {
				n := int(count.Add(1))
				asked.put(n)
				return token(keys{"sub": "42", "exp": from(lives[n-1])}), nil
			},
		})
		client.connect(t)
		client.connecting.next(t)
		equal(t, "token", asked.next(t), 1)
		equal(t, "token", asked.next(t), 2)
		client.fence(t)
		client.connecting.none(t)
		client.errors.none(t)
	})
}

func TestRefreshesShortLivedSubscriptionTokensAndStaysSubscribed(t *testing.T) {
	both(t, strict, func(t *testing.T, server *server, encoding encoding) {
		channel := "$short-" + encoding.name
		client, _ := someone(t, server, encoding, "42")
		asked := newEvents[int]("a token to be asked for")
		var count atomic.Int32
		subscription := client.subscribe(t, channel, centrifuge.SubscriptionConfig{
			Token: token(keys{"sub": "42", "channel": channel, "exp": from(2)}),
			GetToken: func(event centrifuge.SubscriptionTokenEvent) (string, error) {
				n := int(count.Add(1))
				asked.put(n)
				return token(keys{"sub": "42", "channel": event.Channel, "exp": from(lives[n-1])}), nil
			},
		})
		equal(t, "code", subscription.subscribing.next(t).Code, 0)
		equal(t, "token", asked.next(t), 1)
		equal(t, "token", asked.next(t), 2)
		server.publish(t, channel, 1, 1)
		subscription.hears(t, 1, 1)
		subscription.subscribing.none(t)
	})
}

func TestASubscriptionThatIsNotRefreshedInTimeEndsWith2501AndIsMadeAnew(t *testing.T) {
	both(t, hurried, func(t *testing.T, server *server, encoding encoding) {
		channel := "$late-" + encoding.name
		client, _ := someone(t, server, encoding, "42")
		ended := make(chan struct{})
		var asked atomic.Int32
		subscription := client.subscribe(t, channel, centrifuge.SubscriptionConfig{
			Token: token(keys{"sub": "42", "channel": channel, "exp": from(2)}),
			GetToken: func(event centrifuge.SubscriptionTokenEvent) (string, error) {
				if asked.Add(1) == 1 {
					<-ended
					return "", errors.New("too late, on purpose")
				}
				return token(keys{"sub": "42", "channel": event.Channel, "exp": from(3600)}), nil
			},
		})
		equal(t, "code", subscription.subscribing.next(t).Code, 0)
		equal(t, "code", subscription.subscribing.next(t).Code, 2501)
		close(ended)
		subscription.subscribed.next(t)
		server.publish(t, channel, 1, 1)
		subscription.hears(t, 1, 1)
	})
}

// TestASubscriberWhoseStreamWasLostIsTold2500 publishes elsewhere until there is no room for a stream it subscribed to.
func TestASubscriberWhoseStreamWasLostIsTold2500(t *testing.T) {
	little := keys{"channel": keys{
		"history_memory_max": 1_048_576,
		"without_namespace":  history.with(keys{"history_size": 10}),
	}}
	both(t, little, func(t *testing.T, server *server, encoding encoding) {
		channel := "lost-" + encoding.name
		client, _ := someone(t, server, encoding, "42")
		subscription := client.subscribe(t, channel)
		server.publish(t, channel, 1, 1)
		subscription.hears(t, 1, 1)
		equal(t, "code", subscription.subscribing.next(t).Code, 0)
		server.crowdOut(t, channel)
		server.publish(t, channel, 2, 2)
		equal(t, "code", subscription.subscribing.next(t).Code, 2500)
		subscription.recovers(t, true, false)
		server.publish(t, channel, 3, 3)
		subscription.hears(t, 3, 3)
	})
}

// crowdOut fills the memory of histories with other channels until the stream of this one begins anew.
func (server *server) crowdOut(t *testing.T, channel string) {
	t.Helper()
	before, err := server.History(limited(t), channel)
	must(t, err)
	filler := []byte(`"` + strings.Repeat("x", 1000) + `"`)
	round := 0
	eventually(t, "loss of the stream", func() bool {
		round++
		channels := make([]string, 500)
		for n := range channels {
			channels[n] = fmt.Sprintf("other-%d-%d", round, n)
		}
		_, err := server.Broadcast(limited(t), channels, filler)
		must(t, err)
		now, err := server.History(limited(t), channel)
		must(t, err)
		return now.Epoch != before.Epoch
	})
}
