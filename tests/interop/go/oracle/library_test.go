// Runs a node of the centrifuge Go library in this process: the other implementation of the protocol.
// In: settings -> out: a server on a free port of 127.0.0.1, asked through the node's own methods.
// May use centrifuge; decides nothing by itself: what is permitted it asks in rules_test.go.
// The server API of this half stands in methods_test.go; what Fanwire answers is its own affair.

package oracle

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/centrifugal/centrifuge"
)

type library struct {
	settings settings
	node     *centrifuge.Node
	address  string
	ended    func()
}

func (library *library) stop() { library.ended() }

func (library *library) websocket(string) string { return library.address }

// startLibrary runs it until the test ends.
func startLibrary(t *testing.T, settings settings) *library {
	t.Helper()
	client := settings.Client
	node, err := centrifuge.New(centrifuge.Config{
		Version:                         "0",
		ChannelMaxLength:                settings.Channel.MaxLength,
		ClientChannelLimit:              client.ChannelLimit,
		HistoryMaxPublicationLimit:      client.HistoryMax,
		RecoveryMaxPublicationLimit:     client.RecoveryMax,
		ClientStaleCloseDelay:           time.Duration(client.StaleCloseDelay),
		ClientExpiredCloseDelay:         time.Duration(client.ExpiredCloseDelay),
		ClientExpiredSubCloseDelay:      time.Duration(client.ExpiredSubDelay),
		ClientPresenceUpdateInterval:    time.Duration(client.PresenceInterval),
		ClientQueueMaxSize:              client.QueueMax,
		ClientChannelPositionCheckDelay: time.Duration(client.PositionDelay),
		UserConnectionLimit:             client.UserConnectionsMax,
		ClientConnectIncludeServerTime:  client.IncludeServerTime,
	})
	must(t, err)
	library := &library{settings: settings, node: node}
	node.OnConnecting(func(_ context.Context, event centrifuge.ConnectEvent) (centrifuge.ConnectReply, error) {
		return settings.connect(event)
	})
	node.OnConnect(library.serve)
	must(t, node.Run())
	handler := http.NewServeMux()
	handler.Handle("/connection/websocket", centrifuge.NewWebsocketHandler(node, centrifuge.WebsocketConfig{
		PingPongConfig: centrifuge.PingPongConfig{
			PingInterval: time.Duration(client.PingInterval), PongTimeout: time.Duration(client.PongTimeout),
		},
	}))
	listening := httptest.NewServer(handler)
	library.address = strings.Replace(listening.URL, "http", "ws", 1) + "/connection/websocket"
	library.ended = sync.OnceFunc(func() {
		limited, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		_ = node.Shutdown(limited)
		listening.Close()
	})
	t.Cleanup(library.ended)
	return library
}

// serve answers the events of a connection as Centrifugo does.
func (library *library) serve(client *centrifuge.Client) {
	settings, user := &library.settings, client.UserID()
	client.OnSubscribe(func(event centrifuge.SubscribeEvent, done centrifuge.SubscribeCallback) {
		done(settings.subscribe(user, event))
	})
	client.OnPublish(func(event centrifuge.PublishEvent, done centrifuge.PublishCallback) {
		if err := settings.publish(client, event); err != nil {
			done(centrifuge.PublishReply{}, err)
			return
		}
		rules := settings.namespace(event.Channel)
		options := append(rules.publishOptions(), centrifuge.WithClientInfo(event.ClientInfo))
		result, err := library.node.Publish(event.Channel, event.Data, options...)
		done(centrifuge.PublishReply{Result: &result}, err)
	})
	client.OnHistory(func(event centrifuge.HistoryEvent, done centrifuge.HistoryCallback) {
		err := library.looks(client, event.Channel, (*namespace).hasHistory, (*namespace).historyFor)
		if err != nil {
			done(centrifuge.HistoryReply{}, err)
			return
		}
		lifetime := centrifuge.WithHistoryMetaTTL(time.Duration(settings.namespace(event.Channel).HistoryMetaTTL))
		result, err := library.node.History(event.Channel, centrifuge.WithHistoryFilter(event.Filter), lifetime)
		done(centrifuge.HistoryReply{Result: &result}, err)
	})
	isPresent := func(rules *namespace) bool { return rules.Presence }
	client.OnPresence(func(event centrifuge.PresenceEvent, done centrifuge.PresenceCallback) {
		done(centrifuge.PresenceReply{}, library.looks(client, event.Channel, isPresent, (*namespace).presenceFor))
	})
	client.OnPresenceStats(func(event centrifuge.PresenceStatsEvent, done centrifuge.PresenceStatsCallback) {
		done(centrifuge.PresenceStatsReply{}, library.looks(client, event.Channel, isPresent, (*namespace).presenceFor))
	})
	client.OnRefresh(func(event centrifuge.RefreshEvent, done centrifuge.RefreshCallback) {
		claims, valid := readToken(event.Token)
		if !valid || claims.Sub != user {
			done(centrifuge.RefreshReply{}, centrifuge.DisconnectInvalidToken)
			return
		}
		done(centrifuge.RefreshReply{Expired: isOver(claims.Exp), ExpireAt: claims.Exp, Info: claims.Info}, nil)
	})
	client.OnSubRefresh(func(event centrifuge.SubRefreshEvent, done centrifuge.SubRefreshCallback) {
		claims, valid := readToken(event.Token)
		if !valid || !isOver(claims.Exp) && (claims.Sub != user || claims.Channel != event.Channel) {
			done(centrifuge.SubRefreshReply{}, centrifuge.DisconnectInvalidToken)
			return
		}
		done(centrifuge.SubRefreshReply{Expired: isOver(claims.Exp), ExpireAt: claims.Exp, Info: claims.Info}, nil)
	})
}

// looks decides about reading from a channel: 102 and 107, then 108 where the feature is off, then 103.
func (library *library) looks(
	client *centrifuge.Client, channel string,
	isOn func(*namespace) bool, may func(rules *namespace, user string, subscribed bool) bool,
) error {
	rules, err := library.settings.rules(channel)
	if err != nil {
		return err
	}
	if !isOn(rules) {
		return centrifuge.ErrorNotAvailable
	}
	if !may(rules, client.UserID(), client.IsSubscribed(channel)) {
		return centrifuge.ErrorPermissionDenied
	}
	return nil
}

func (rules *namespace) publishOptions() []centrifuge.PublishOption {
	var options []centrifuge.PublishOption
	if rules.hasHistory() {
		lifetime := time.Duration(rules.HistoryTTL)
		options = append(options, centrifuge.WithHistory(rules.HistorySize, lifetime, time.Duration(rules.HistoryMetaTTL)))
	}
	return append(options, centrifuge.WithDelta(rules.DeltaPublish))
}
