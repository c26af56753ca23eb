// Clients for the tests: the Go SDK in both encodings, and its events in the order in which they came.
// In: a server -> out: clients that are closed when their test ends.
// May use centrifuge-go's public interface only; never holds expectations.
// How a client connects is changed here; how a server starts is in server_test.go.

package sdk

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/centrifugal/centrifuge-go"
)

// encoding makes clients that speak JSON or Protobuf.
type encoding struct {
	name string
	make func(string, centrifuge.Config) *centrifuge.Client
}

var encodings = []encoding{
	{"JSON", centrifuge.NewJsonClient},
	{"Protobuf", centrifuge.NewProtobufClient},
}

// both runs a scenario in each encoding, with a server for both of them.
func both(t *testing.T, settings keys, scenario func(*testing.T, *server, encoding)) {
	t.Helper()
	server := start(t, settings)
	for _, encoding := range encodings {
		t.Run(encoding.name, func(t *testing.T) { scenario(t, server, encoding) })
	}
}

// events keeps every event until a test asks for it.
type events[T any] struct {
	what string
	kept chan T
}

func newEvents[T any](what string) *events[T] {
	return &events[T]{what, make(chan T, 100_000)}
}

func (events *events[T]) put(event T) { events.kept <- event }

// next is the oldest event that was not asked for yet.
func (events *events[T]) next(t *testing.T) T {
	t.Helper()
	select {
	case event := <-events.kept:
		return event
	case <-time.After(patience):
		t.Fatalf("waited %v for %s", patience, events.what)
	}
	panic("not reached")
}

// none fails when there is an event nobody asked for.
func (events *events[T]) none(t *testing.T) {
	t.Helper()
	select {
	case event := <-events.kept:
		t.Fatalf("%s: %+v", events.what, event)
	default:
	}
}

// client is an SDK client whose events are kept.
type client struct {
	*centrifuge.Client
	connected    *events[centrifuge.ConnectedEvent]
	connecting   *events[centrifuge.ConnectingEvent]
	disconnected *events[centrifuge.DisconnectedEvent]
	errors       *events[centrifuge.ErrorEvent]
	subscribed   *events[centrifuge.ServerSubscribedEvent]
	unsubscribed *events[centrifuge.ServerUnsubscribedEvent]
	publications *events[centrifuge.ServerPublicationEvent]
	joins        *events[centrifuge.ServerJoinEvent]
	leaves       *events[centrifuge.ServerLeaveEvent]
}

// newClient is not connected yet.
func newClient(t *testing.T, server *server, encoding encoding, config centrifuge.Config) *client {
	t.Helper()
	config.HandshakeTimeout = patience
	made := &client{
		Client:       encoding.make(server.websocket, config),
		connected:    newEvents[centrifuge.ConnectedEvent]("connected"),
		connecting:   newEvents[centrifuge.ConnectingEvent]("connecting"),
		disconnected: newEvents[centrifuge.DisconnectedEvent]("disconnected"),
		errors:       newEvents[centrifuge.ErrorEvent]("error"),
		subscribed:   newEvents[centrifuge.ServerSubscribedEvent]("server-side subscribed"),
		unsubscribed: newEvents[centrifuge.ServerUnsubscribedEvent]("server-side unsubscribed"),
		publications: newEvents[centrifuge.ServerPublicationEvent]("server-side publication"),
		joins:        newEvents[centrifuge.ServerJoinEvent]("server-side join"),
		leaves:       newEvents[centrifuge.ServerLeaveEvent]("server-side leave"),
	}
	made.OnConnected(made.connected.put)
	made.OnConnecting(made.connecting.put)
	made.OnDisconnected(made.disconnected.put)
	made.OnError(made.errors.put)
	made.OnSubscribed(made.subscribed.put)
	made.OnUnsubscribed(made.unsubscribed.put)
	made.OnPublication(made.publications.put)
	made.OnJoin(made.joins.put)
	made.OnLeave(made.leaves.put)
	t.Cleanup(made.Close)
	return made
}

// connect returns once it is connected.
func (client *client) connect(t *testing.T) centrifuge.ConnectedEvent {
	t.Helper()
	must(t, client.Connect())
	return client.connected.next(t)
}

// disconnect returns once it is disconnected.
func (client *client) disconnect(t *testing.T) {
	t.Helper()
	must(t, client.Disconnect())
	equal(t, "code", client.disconnected.next(t).Code, 0)
}

// someone is a connected client with a token for `user`.
func someone(t *testing.T, server *server, encoding encoding, user string) (*client, string) {
	t.Helper()
	claims := keys{"sub": user, "info": keys{"name": user}}
	client := newClient(t, server, encoding, centrifuge.Config{Token: token(claims)})
	return client, client.connect(t).ClientID
}

// subscription is one of the SDK whose events are kept.
type subscription struct {
	*centrifuge.Subscription
	subscribing  *events[centrifuge.SubscribingEvent]
	subscribed   *events[centrifuge.SubscribedEvent]
	unsubscribed *events[centrifuge.UnsubscribedEvent]
	errors       *events[centrifuge.SubscriptionErrorEvent]
	publications *events[centrifuge.PublicationEvent]
	joins        *events[centrifuge.JoinEvent]
	leaves       *events[centrifuge.LeaveEvent]
}

// newSubscription is not subscribed yet.
func (client *client) newSubscription(
	t *testing.T, channel string, config ...centrifuge.SubscriptionConfig,
) *subscription {
	t.Helper()
	of, err := client.NewSubscription(channel, config...)
	must(t, err)
	made := &subscription{
		Subscription: of,
		subscribing:  newEvents[centrifuge.SubscribingEvent](channel + ": subscribing"),
		subscribed:   newEvents[centrifuge.SubscribedEvent](channel + ": subscribed"),
		unsubscribed: newEvents[centrifuge.UnsubscribedEvent](channel + ": unsubscribed"),
		errors:       newEvents[centrifuge.SubscriptionErrorEvent](channel + ": error"),
		publications: newEvents[centrifuge.PublicationEvent](channel + ": publication"),
		joins:        newEvents[centrifuge.JoinEvent](channel + ": join"),
		leaves:       newEvents[centrifuge.LeaveEvent](channel + ": leave"),
	}
	of.OnSubscribing(made.subscribing.put)
	of.OnSubscribed(made.subscribed.put)
	of.OnUnsubscribed(made.unsubscribed.put)
	of.OnError(made.errors.put)
	of.OnPublication(made.publications.put)
	of.OnJoin(made.joins.put)
	of.OnLeave(made.leaves.put)
	return made
}

// subscribe returns once it is subscribed.
func (client *client) subscribe(
	t *testing.T, channel string, config ...centrifuge.SubscriptionConfig,
) *subscription {
	t.Helper()
	made := client.newSubscription(t, channel, config...)
	must(t, made.Subscribe())
	made.subscribed.next(t)
	return made
}

// unsubscribe returns once it is unsubscribed.
func (subscription *subscription) unsubscribe(t *testing.T) {
	t.Helper()
	must(t, subscription.Unsubscribe())
	equal(t, "code", subscription.unsubscribed.next(t).Code, 0)
}

// refused expects that a subscription ends for good with this code.
func (client *client) refused(
	t *testing.T, channel string, code uint32, config ...centrifuge.SubscriptionConfig,
) {
	t.Helper()
	made := client.newSubscription(t, channel, config...)
	must(t, made.Subscribe())
	equal(t, channel, made.unsubscribed.next(t).Code, code)
}

// fence is an rpc that is answered with 108, after everything that was sent before it.
func (client *client) fence(t *testing.T) {
	t.Helper()
	_, err := client.RPC(limited(t), "fence", []byte("{}"))
	failsWith(t, err, 108)
}

// failsWith expects an error of the protocol.
func failsWith(t *testing.T, err error, code uint32) {
	t.Helper()
	var refused *centrifuge.Error
	if !errors.As(err, &refused) || refused.Code != code {
		t.Fatalf("found %v, expected error %d", err, code)
	}
}

// limited is a context that ends when patience does.
func limited(t *testing.T) context.Context {
	limited, cancel := context.WithTimeout(context.Background(), patience)
	t.Cleanup(cancel)
	return limited
}

// numbered is the payload {"n": n}.
func numbered(n int) []byte { return []byte(fmt.Sprintf(`{"n":%d}`, n)) }

// number reads it back.
func number(t *testing.T, data []byte) int {
	t.Helper()
	var value struct{ N int }
	must(t, json.Unmarshal(data, &value))
	return value.N
}

// publish publishes {"n": n} through the API for every number from `first` to `last`, in order.
func (server *server) publish(t *testing.T, channel string, first, last int) {
	t.Helper()
	for n := first; n <= last; n++ {
		_, err := server.Publish(limited(t), channel, numbered(n))
		must(t, err)
	}
}

// hears expects the publications {"n": n} from `first` to `last`, in order and nothing between them.
func (subscription *subscription) hears(t *testing.T, first, last int) {
	t.Helper()
	for n := first; n <= last; n++ {
		equal(t, subscription.Channel, number(t, subscription.publications.next(t).Data), n)
	}
}
