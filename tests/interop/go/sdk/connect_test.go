// centrifuge-go, as published, in JSON and in Protobuf: connections, tokens, disconnects.
// In: one development server and servers with tokens -> out: the events the SDK reports.
// May use the SDK's public interface and the server API only; never looks at bytes.
// Subscriptions are in subscribe_test.go, what is published in publish_test.go.

package sdk

import (
	"context"
	"fmt"
	"net"
	"sync/atomic"
	"testing"

	"github.com/centrifugal/centrifuge-go"
	"github.com/centrifugal/gocent/v3"
)

var insecure = keys{"client": keys{"insecure": true}}
var strict = keys{"channel": keys{"without_namespace": open}}

func TestConnectsDisconnectsAndConnectsAgain(t *testing.T) {
	both(t, insecure, func(t *testing.T, server *server, encoding encoding) {
		client := newClient(t, server, encoding, centrifuge.Config{})
		ids := map[string]bool{}
		for round := 0; round < 10; round++ {
			ids[client.connect(t).ClientID] = true
			client.disconnect(t)
		}
		equal(t, "different client ids", len(ids), 10)
		if ids[""] {
			t.Fatal("an empty client id")
		}
	})
}

func TestIsRefusedWithoutATokenAndWithAForgedOne(t *testing.T) {
	both(t, strict, func(t *testing.T, server *server, encoding encoding) {
		for forged, code := range map[string]uint32{
			"":         3501,
			"no-token": 3500,
			tokenOf("another-secret", keys{"sub": "42"}): 3500,
		} {
			client := newClient(t, server, encoding, centrifuge.Config{Token: forged})
			must(t, client.Connect())
			equal(t, forged, client.disconnected.next(t).Code, code)
		}
	})
}

func TestATokenWithoutASubjectIsThatOfAnAnonymousUser(t *testing.T) {
	anonymous := open.with(keys{"allow_subscribe_for_anonymous": true, "allow_publish_for_anonymous": true})
	settings := keys{"channel": keys{"without_namespace": anonymous}}
	both(t, settings, func(t *testing.T, server *server, encoding encoding) {
		client := newClient(t, server, encoding, centrifuge.Config{Token: token(keys{"exp": from(3600)})})
		id := client.connect(t).ClientID
		subscription := client.subscribe(t, "anonymous-"+encoding.name)
		_, err := subscription.Publish(limited(t), numbered(1))
		must(t, err)
		info := subscription.publications.next(t).Info
		equal(t, "client", info.Client, id)
		equal(t, "user", info.User, "")
	})
}

func TestAWrongPortIsATransportError(t *testing.T) {
	closed := &server{websocket: "ws://127.0.0.1:1/connection/websocket"} // no program listens there
	for _, encoding := range encodings {
		client := newClient(t, closed, encoding, centrifuge.Config{})
		if client.Connect() == nil {
			t.Fatal("connected to a closed port")
		}
		if failure, ok := client.errors.next(t).Error.(centrifuge.TransportError); !ok {
			t.Fatalf("found %v", failure)
		}
	}
}

func TestRenewsAnExpiredToken(t *testing.T) {
	for name, settings := range map[string]keys{"strict": strict, "insecure": insecure} {
		t.Run(name, func(t *testing.T) {
			both(t, settings, func(t *testing.T, server *server, encoding encoding) {
				var asked atomic.Int32
				client := newClient(t, server, encoding, centrifuge.Config{
					Token: token(keys{"sub": "42", "exp": from(-10)}),
					GetToken: func(centrifuge.ConnectionTokenEvent) (string, error) {
						asked.Add(1)
						return token(keys{"sub": "42", "exp": from(3600)}), nil
					},
				})
				client.connect(t)
				equal(t, "asked for a token", asked.Load(), 1)
			})
		})
	}
}

func TestATokenThatIsRefusedByTheApplicationIsFinal(t *testing.T) {
	both(t, strict, func(t *testing.T, server *server, encoding encoding) {
		client := newClient(t, server, encoding, centrifuge.Config{
			GetToken: func(centrifuge.ConnectionTokenEvent) (string, error) {
				return "", centrifuge.ErrUnauthorized
			},
		})
		must(t, client.Connect())
		equal(t, "code", client.disconnected.next(t).Code, 1)
	})
}

func TestDisconnectCodesOfTheServer(t *testing.T) {
	both(t, strict, func(t *testing.T, server *server, encoding encoding) {
		for _, case_ := range []struct {
			code     int
			seen     uint32
			comeBack bool
		}{
			{3000, 1, true}, // an abrupt end of the transport
			{3014, 3014, true},
			{3499, 3499, true},
			{3501, 3501, false},
			{4000, 4000, true},
			{4499, 4499, true},
			{4500, 4500, false},
			{4999, 4999, false},
		} {
			user := fmt.Sprintf("%s-%d", encoding.name, case_.code)
			client, before := someone(t, server, encoding, user)
			subscription := client.subscribe(t, user)
			client.connecting.next(t)
			disconnect := gocent.WithDisconnect(&gocent.Disconnect{Code: uint32(case_.code), Reason: "told to"})
			must(t, server.Disconnect(limited(t), user, disconnect))
			if !case_.comeBack {
				event := client.disconnected.next(t)
				equal(t, user, event, centrifuge.DisconnectedEvent{Code: case_.seen, Reason: "told to"})
				continue
			}
			equal(t, user, client.connecting.next(t).Code, case_.seen)
			if after := client.connected.next(t).ClientID; after == before {
				t.Fatalf("%s: the client id stayed", user)
			}
			subscription.subscribed.next(t)
			server.publish(t, user, 1, 1)
			subscription.hears(t, 1, 1)
		}
	})
}

func TestTheApiDisconnectsAUserForGood(t *testing.T) {
	both(t, strict, func(t *testing.T, server *server, encoding encoding) {
		user := "out-" + encoding.name
		client, _ := someone(t, server, encoding, user)
		must(t, server.Disconnect(limited(t), user))
		equal(t, "code", client.disconnected.next(t).Code, 3503)
	})
}

func TestOneOfTwoConnectionsIsDisconnectedByItsId(t *testing.T) {
	both(t, strict, func(t *testing.T, server *server, encoding encoding) {
		user := "two-" + encoding.name
		one, id := someone(t, server, encoding, user)
		other, _ := someone(t, server, encoding, user)
		must(t, server.Disconnect(limited(t), user, gocent.WithDisconnectClient(id)))
		equal(t, "code", one.disconnected.next(t).Code, 3503)
		other.fence(t)
	})
}

func TestRpcWithoutABackendIsError108(t *testing.T) {
	both(t, strict, func(t *testing.T, server *server, encoding encoding) {
		client, _ := someone(t, server, encoding, "42")
		_, err := client.RPC(limited(t), "method", []byte(`{"n":1}`))
		failsWith(t, err, 108)
	})
}

func TestAServerThatIsGoneIsATransportEnd(t *testing.T) {
	both(t, insecure, func(t *testing.T, server *server, encoding encoding) {
		var line net.Conn
		client := newClient(t, server, encoding, centrifuge.Config{
			NetDialContext: func(ctx context.Context, network, host string) (net.Conn, error) {
				var err error
				line, err = (&net.Dialer{}).DialContext(ctx, network, host)
				return line, err
			},
		})
		client.connect(t)
		client.connecting.next(t)
		must(t, line.Close())
		equal(t, "code", client.connecting.next(t).Code, 1)
		client.connected.next(t)
	})
}
