// Runs a node of the centrifuge Go library in this process: the other implementation of the protocol.
// In: settings -> out: a server on a free port of 127.0.0.1, asked through the node's own methods.
// May use centrifuge; decides nothing by itself: what is permitted it asks in rules_test.go.
// A method of the server API is a row of the table here; what Fanwire answers is its own affair.

package oracle

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/centrifugal/centrifuge"
)

type library struct {
	settings settings
	node     *centrifuge.Node
	address  string
}

func (library *library) websocket() string { return library.address }

// startLibrary runs it until the test ends.
func startLibrary(t *testing.T, settings settings) *library {
	t.Helper()
	client := settings.Client
	node, err := centrifuge.New(centrifuge.Config{
		Version:                      "0",
		ChannelMaxLength:             settings.Channel.MaxLength,
		ClientChannelLimit:           client.ChannelLimit,
		HistoryMaxPublicationLimit:   client.HistoryMax,
		RecoveryMaxPublicationLimit:  client.RecoveryMax,
		ClientStaleCloseDelay:        time.Duration(client.StaleCloseDelay),
		ClientExpiredCloseDelay:      time.Duration(client.ExpiredCloseDelay),
		ClientExpiredSubCloseDelay:   time.Duration(client.ExpiredSubDelay),
		ClientPresenceUpdateInterval: time.Duration(client.PresenceInterval),
		UserConnectionLimit:          client.UserConnectionsMax,
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
	t.Cleanup(func() {
		limited, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		_ = node.Shutdown(limited)
		listening.Close()
	})
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
		done(centrifuge.HistoryReply{}, library.looks(client, event.Channel, (*namespace).hasHistory, (*namespace).historyFor))
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
		options = append(options, centrifuge.WithHistory(rules.HistorySize, time.Duration(rules.HistoryTTL)))
	}
	return append(options, centrifuge.WithDelta(rules.DeltaPublish))
}

// order holds the parameters of every method of the server API that scenarios call.
type order struct {
	Channel, User, Client string
	Data, Info            json.RawMessage
	Tags                  map[string]string
	SkipHistory           bool   `json:"skip_history"`
	IdempotencyKey        string `json:"idempotency_key"`
	Delta                 bool
	Version               uint64
	VersionEpoch          string                     `json:"version_epoch"`
	ExpireAt              int64                      `json:"expire_at"`
	Expired               bool                       `json:"expired"`
	RecoverSince          *centrifuge.StreamPosition `json:"recover_since"`
	Disconnect            *centrifuge.Disconnect
	Whitelist             []string
}

func (library *library) call(method string, params json.RawMessage) (json.RawMessage, error) {
	var order order
	if err := json.Unmarshal(params, &order); err != nil {
		return nil, err
	}
	act, known := methods[method]
	if !known {
		return nil, fmt.Errorf("no method is called %s", method)
	}
	var refusal *centrifuge.Error
	result, err := act(library, &order)
	if errors.As(err, &refusal) {
		return json.Marshal(keys{"error": keys{"code": refusal.Code, "message": refusal.Message}})
	}
	if err != nil {
		return nil, err
	}
	return json.Marshal(keys{"result": result})
}

var methods = map[string]func(*library, *order) (keys, error){
	"publish": (*library).publishFor,
	"subscribe": func(library *library, order *order) (keys, error) {
		rules, err := library.settings.rules(order.Channel)
		if err != nil {
			return nil, err
		}
		options := rules.subscribeOptions(order.User, centrifuge.SubscribeEvent{})
		err = library.node.Subscribe(order.User, order.Channel,
			centrifuge.WithSubscribeClient(order.Client), centrifuge.WithSubscribeData(order.Data),
			centrifuge.WithChannelInfo(order.Info), centrifuge.WithExpireAt(order.ExpireAt),
			centrifuge.WithEmitPresence(options.EmitPresence), centrifuge.WithEmitJoinLeave(options.EmitJoinLeave),
			centrifuge.WithPushJoinLeave(options.PushJoinLeave), centrifuge.WithPositioning(options.EnablePositioning),
			centrifuge.WithRecovery(options.EnableRecovery), centrifuge.WithRecoverSince(order.RecoverSince),
		)
		if errors.Is(err, centrifuge.ErrorAlreadySubscribed) {
			err = nil // as Centrifugo has it
		}
		return keys{}, err
	},
	"unsubscribe": func(library *library, order *order) (keys, error) {
		return keys{}, library.node.Unsubscribe(order.User, order.Channel, centrifuge.WithUnsubscribeClient(order.Client))
	},
	"disconnect": func(library *library, order *order) (keys, error) {
		disconnect := centrifuge.DisconnectForceNoReconnect
		if order.Disconnect != nil {
			disconnect = *order.Disconnect
		}
		return keys{}, library.node.Disconnect(order.User, centrifuge.WithDisconnectClient(order.Client),
			centrifuge.WithCustomDisconnect(disconnect), centrifuge.WithDisconnectClientWhitelist(order.Whitelist))
	},
	"refresh": func(library *library, order *order) (keys, error) {
		return keys{}, library.node.Refresh(order.User, centrifuge.WithRefreshClient(order.Client),
			centrifuge.WithRefreshExpired(order.Expired), centrifuge.WithRefreshExpireAt(order.ExpireAt),
			centrifuge.WithRefreshInfo(order.Info))
	},
	"presence_stats": func(library *library, order *order) (keys, error) {
		stats, err := library.node.PresenceStats(order.Channel)
		return keys{"num_clients": stats.NumClients, "num_users": stats.NumUsers}, err
	},
	"history_remove": func(library *library, order *order) (keys, error) {
		return keys{}, library.node.RemoveHistory(order.Channel)
	},
}

func (library *library) publishFor(order *order) (keys, error) {
	rules, err := library.settings.rules(order.Channel)
	if err != nil {
		return nil, err
	}
	var options []centrifuge.PublishOption
	if !order.SkipHistory {
		options = rules.publishOptions()
	}
	options = append(options, centrifuge.WithTags(order.Tags), centrifuge.WithIdempotencyKey(order.IdempotencyKey),
		centrifuge.WithVersion(order.Version, order.VersionEpoch),
		centrifuge.WithDelta(order.Delta || rules.DeltaPublish))
	published, err := library.node.Publish(order.Channel, order.Data, options...)
	result := keys{}
	if published.Offset > 0 {
		result = keys{"offset": published.Offset, "epoch": published.Epoch}
	}
	return result, err
}
