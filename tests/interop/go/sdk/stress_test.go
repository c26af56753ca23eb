// centrifuge-go, as published, in JSON and in Protobuf: many connections, forced reconnects, slow handlers.
// In: one server with Centrifugo's keys for history -> out: every client heard everything once and in order.
// May use the SDK's public interface and the server API only; never looks at bytes.
// A thousand clients at a time are played by `fanwire-bench churn`.

package sdk

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/centrifugal/centrifuge-go"
	"github.com/centrifugal/gocent/v3"
)

// TestForcedReconnectsLoseAndRepeatNothing disconnects ten clients of a channel again and again while it is
// published to; a third of them by the end of the transport, and half of them handle slowly.
func TestForcedReconnectsLoseAndRepeatNothing(t *testing.T) {
	both(t, recovering, func(t *testing.T, server *server, encoding encoding) {
		channel := "stress-" + encoding.name
		const rounds, each, clients = 10, 30, 10
		subscriptions := make([]*subscription, clients)
		for n := range subscriptions {
			client, _ := someone(t, server, encoding, fmt.Sprintf("%s-%d", channel, n))
			subscriptions[n] = client.newSubscription(t, channel)
			if n%2 == 0 {
				subscriptions[n].handleSlowly()
			}
			must(t, subscriptions[n].Subscribe())
			subscriptions[n].subscribed.next(t)
		}
		for round := 0; round < rounds; round++ {
			for n := range subscriptions {
				code := uint32(4001)
				if n%3 == 0 {
					code = 3000
				}
				away := gocent.WithDisconnect(&gocent.Disconnect{Code: code, Reason: "again"})
				must(t, server.Disconnect(limited(t), fmt.Sprintf("%s-%d", channel, n), away))
				server.publish(t, channel, round*each+n*3+1, round*each+n*3+3)
			}
			for _, subscription := range subscriptions {
				subscription.hears(t, round*each+1, round*each+each)
				equal(t, "recovered", subscription.subscribed.next(t).Recovered, true)
			}
		}
		for _, subscription := range subscriptions {
			subscription.publications.none(t)
		}
	})
}

// handleSlowly spends a while with every publication.
func (subscription *subscription) handleSlowly() {
	subscription.OnPublication(func(event centrifuge.PublicationEvent) {
		<-time.After(2 * time.Millisecond)
		subscription.publications.put(event)
	})
}

func TestOneHundredClientsConnectAndCloseAtOnce(t *testing.T) {
	both(t, insecure, func(t *testing.T, server *server, encoding encoding) {
		var rounds sync.WaitGroup
		failures := newEvents[error]("failure")
		for n := 0; n < 100; n++ {
			rounds.Add(1)
			go func(n int) {
				defer rounds.Done()
				if err := connectAndClose(server, encoding, n); err != nil {
					failures.put(err)
				}
			}(n)
		}
		rounds.Wait()
		failures.none(t)
		eventually(t, "no connection left", func() bool {
			info, err := server.Info(limited(t))
			must(t, err)
			return info.Nodes[0].NumClients == 0
		})
	})
}

// connectAndClose waits for the connection in two of three rounds, and closes at once in the third.
func connectAndClose(server *server, encoding encoding, n int) error {
	client := encoding.make(server.websocket, centrifuge.Config{HandshakeTimeout: patience})
	defer client.Close()
	connected := newEvents[centrifuge.ConnectedEvent]("connected")
	client.OnConnected(connected.put)
	if err := client.Connect(); err != nil {
		return err
	}
	if n%3 == 0 {
		return nil
	}
	select {
	case <-connected.kept:
		return nil
	case <-time.After(patience):
		return fmt.Errorf("client %d did not connect", n)
	}
}

// eventually asks again and again until the answer is yes.
func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for end := time.Now().Add(patience); time.Now().Before(end); {
		if holds() {
			return
		}
	}
	t.Fatalf("waited %v for %s", patience, what)
}
