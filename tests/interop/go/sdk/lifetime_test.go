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

// tokens is an application that makes a second token that lives for three seconds, and refuses a third: it is asked for
// that one because the server has accepted the second. It waits with the refusal until the test has seen enough. (Nothing is
// under way then: centrifuge-go 0.10.4 fails when it is closed while it waits for the reply to a refresh.)
type tokens struct {
	claims keys
	asked  *events[int]
	count  atomic.Int32
	enough chan struct{}
}

func newTokens(claims keys) *tokens {
	return &tokens{claims: claims, asked: newEvents[int]("a token to be asked for"), enough: make(chan struct{})}
}

func (tokens *tokens) make() string { return token(tokens.claims.with(keys{"exp": from(3)})) }

func (tokens *tokens) renew() (string, error) {
	count := int(tokens.count.Add(1))
	tokens.asked.put(count)
	if count == 1 {
		return tokens.make(), nil
	}
	<-tokens.enough
	return "", centrifuge.ErrUnauthorized
}

func TestRefreshesShortLivedTokensAndStaysConnectedUntilTheApplicationRefuses(t *testing.T) {
	both(t, strict, func(t *testing.T, server *server, encoding encoding) {
		tokens := newTokens(keys{"sub": "42"})
		client := newClient(t, server, encoding, centrifuge.Config{
			Token:    tokens.make(),
			GetToken: func(centrifuge.ConnectionTokenEvent) (string, error) { return tokens.renew() },
		})
		client.connect(t)
		client.connecting.next(t)
		equal(t, "token", tokens.asked.next(t), 1)
		equal(t, "token", tokens.asked.next(t), 2)
		client.fence(t)
		client.connecting.none(t)
		client.errors.none(t)
		close(tokens.enough)
		equal(t, "code", client.disconnected.next(t).Code, 1)
	})
}

func TestRefreshesShortLivedSubscriptionTokensUntilTheApplicationRefuses(t *testing.T) {
	both(t, strict, func(t *testing.T, server *server, encoding encoding) {
		channel := "$short-" + encoding.name
		client, _ := someone(t, server, encoding, "42")
		tokens := newTokens(keys{"sub": "42", "channel": channel})
		subscription := client.subscribe(t, channel, centrifuge.SubscriptionConfig{
			Token:    tokens.make(),
			GetToken: func(centrifuge.SubscriptionTokenEvent) (string, error) { return tokens.renew() },
		})
		equal(t, "code", subscription.subscribing.next(t).Code, 0)
		equal(t, "token", tokens.asked.next(t), 1)
		equal(t, "token", tokens.asked.next(t), 2)
		server.publish(t, channel, 1, 1)
		subscription.hears(t, 1, 1)
		subscription.subscribing.none(t)
		close(tokens.enough)
		equal(t, "code", subscription.unsubscribed.next(t).Code, 1)
		client.fence(t)
		equal(t, "subscribers", server.subscribers(t, channel), 0)
	})
}

func TestASubscriptionThatIsNotRefreshedInTimeEndsWith2501AndIsMadeAnew(t *testing.T) {
	both(t, hurried, func(t *testing.T, server *server, encoding encoding) {
		channel := "$late-" + encoding.name
		client, _ := someone(t, server, encoding, "42")
		ended, tooLate := make(chan struct{}), errors.New("too late, on purpose")
		var asked atomic.Int32
		subscription := client.subscribe(t, channel, centrifuge.SubscriptionConfig{
			Token: token(keys{"sub": "42", "channel": channel, "exp": from(3)}),
			GetToken: func(event centrifuge.SubscriptionTokenEvent) (string, error) {
				if asked.Add(1) == 1 {
					<-ended
					return "", tooLate
				}
				return token(keys{"sub": "42", "channel": event.Channel, "exp": from(3600)}), nil
			},
		})
		equal(t, "code", subscription.subscribing.next(t).Code, 0)
		equal(t, "code", subscription.subscribing.next(t).Code, 2501)
		close(ended)
		for !errors.Is(subscription.errors.next(t).Error, tooLate) {
		}
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
	for _, encoding := range encodings {
		t.Run(encoding.name, func(t *testing.T) {
			server := start(t, little) // its memory is full at the end, and the next stream would be lost by chance
			client, _ := someone(t, server, encoding, "42")
			subscription := client.subscribe(t, "lost")
			server.publish(t, "lost", 1, 1)
			subscription.hears(t, 1, 1)
			equal(t, "code", subscription.subscribing.next(t).Code, 0)
			server.crowdOut(t, "lost")
			server.publish(t, "lost", 2, 2)
			equal(t, "code", subscription.subscribing.next(t).Code, 2500)
			subscription.recovers(t, true, false)
			server.publish(t, "lost", 3, 3)
			subscription.hears(t, 3, 3)
		})
	}
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
		// Many between two looks: a stream that is looked at is in use, and outlives some that are not.
		channels := make([]string, 3000)
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
