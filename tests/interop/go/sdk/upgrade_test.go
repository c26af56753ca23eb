// centrifuge-go, as published, in JSON and in Protobuf, while `fanwire upgrade` replaces the server.
// In: clients of a channel, publications without a break -> out: no client reconnects; each one gets each publication once, in order.
// May use the SDK's public interface and the server API only; never looks at bytes.
// Other kinds of connections, faults and times are in crates/cli/tests/it/takeover.rs.

package sdk

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"
)

func TestClientsNoticeNothingOfAnUpgrade(t *testing.T) {
	for _, encoding := range encodings {
		t.Run(encoding.name, func(t *testing.T) {
			server := start(t, keys{"pid_file": "pid", "channel": keys{"without_namespace": open}})
			clients := make([]*client, 20)
			subscriptions := make([]*subscription, len(clients))
			for n := range clients {
				clients[n], _ = someone(t, server, encoding, fmt.Sprintf("user-%d", n))
				clients[n].connecting.next(t)
				subscriptions[n] = clients[n].newSubscription(t, "news")
				must(t, subscriptions[n].Subscribe())
				subscriptions[n].subscribed.next(t)
			}
			stop := make(chan struct{})
			published := make(chan int)
			go func() { published <- server.publishUntil(t, stop) }()
			server.upgrade(t)
			close(stop)
			last := <-published
			for n, subscription := range subscriptions {
				subscription.hears(t, 1, last)
				subscription.publications.none(t)
				subscription.subscribed.none(t)
				clients[n].connecting.none(t)
				clients[n].disconnected.none(t)
			}
		})
	}
}

// publishUntil publishes one number after the other, each until it is accepted. It returns the last one.
func (server *server) publishUntil(t *testing.T, stop <-chan struct{}) int {
	for n := 1; ; n++ {
		start := time.Now()
		// A request that comes on a kept connection when the server closes it fails, and is sent again.
		for err := server.publishOnce(n); err != nil; err = server.publishOnce(n) {
			if time.Since(start) > patience {
				t.Errorf("publication %d: %v", n, err)
				return n - 1
			}
		}
		select {
		case <-stop:
			return n
		default:
		}
	}
}

// publishOnce publishes a number, however often it is called.
func (server *server) publishOnce(n int) error {
	body := fmt.Sprintf(`{"channel":"news","data":%s,"idempotency_key":"%d"}`, numbered(n), n)
	request, err := http.NewRequest("POST", server.http+"/api/publish", strings.NewReader(body))
	if err != nil {
		return err
	}
	request.Header.Set("X-API-Key", apiKey)
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err == nil && answer.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s", answer.Status, text)
	}
	return err
}
