// The server API of the library's half: what Centrifugo's documentation says, done by the node's own methods.
// In: a method and its parameters as JSON -> out: {"result":{}} or {"error":{}}, as Fanwire answers over HTTP.
// May use centrifuge; checks the channel and the options of its namespace, and leaves all else to the node.
// A method is a row of the table here; who may do what stands in rules_test.go.

package oracle

import (
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/centrifugal/centrifuge"
)

// order holds the parameters of every method of the server API that scenarios call.
type order struct {
	Channel, User, Client string
	Channels              []string
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
	Override              map[string]*struct{ Value bool }
	Disconnect            *centrifuge.Disconnect
	Whitelist             []string
	Limit                 int
	Since                 *centrifuge.StreamPosition
	Reverse               bool
	Pattern               string
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
	result, err := act(library, &order)
	answer, err := answered(result, err)
	if err != nil {
		return nil, err
	}
	return json.Marshal(answer)
}

// answered is a result, or the error of a method.
func answered(result keys, err error) (keys, error) {
	var refusal *centrifuge.Error
	if errors.As(err, &refusal) {
		return keys{"error": keys{"code": refusal.Code, "message": refusal.Message}}, nil
	}
	return keys{"result": result}, err
}

// ruled finds the rules first: 107 without a channel, 102 without its namespace.
func ruled(act func(*library, *order, *namespace) (keys, error)) func(*library, *order) (keys, error) {
	return func(library *library, order *order) (keys, error) {
		if order.Channel == "" {
			return nil, centrifuge.ErrorBadRequest
		}
		rules, err := library.settings.granted(order.Channel)
		if err != nil {
			return nil, err
		}
		return act(library, order, rules)
	}
}

var methods = map[string]func(*library, *order) (keys, error){
	"publish":   ruled((*library).publishFor),
	"broadcast": (*library).broadcast,
	"subscribe": ruled((*library).subscribeFor),
	"unsubscribe": func(library *library, order *order) (keys, error) {
		if order.Channel != "" {
			if _, err := library.settings.granted(order.Channel); err != nil {
				return nil, err
			}
		}
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
	"presence": ruled(func(library *library, order *order, rules *namespace) (keys, error) {
		if !rules.Presence {
			return nil, centrifuge.ErrorNotAvailable
		}
		found, err := library.node.Presence(order.Channel)
		present := keys{}
		for id, info := range found.Presence {
			present[id] = told(info)
		}
		return keys{"presence": present}, err
	}),
	"presence_stats": ruled(func(library *library, order *order, rules *namespace) (keys, error) {
		if !rules.Presence {
			return nil, centrifuge.ErrorNotAvailable
		}
		stats, err := library.node.PresenceStats(order.Channel)
		return keys{"num_clients": stats.NumClients, "num_users": stats.NumUsers}, err
	}),
	"history": ruled((*library).historyFor),
	"history_remove": ruled(func(library *library, order *order, rules *namespace) (keys, error) {
		if !rules.hasHistory() {
			return nil, centrifuge.ErrorNotAvailable
		}
		return keys{}, library.node.RemoveHistory(order.Channel)
	}),
	"channels": func(library *library, order *order) (keys, error) {
		found := keys{}
		for _, channel := range library.node.Hub().Channels() {
			if order.Pattern == "" || matches(order.Pattern, channel) {
				found[channel] = keys{"num_clients": library.node.Hub().NumSubscribers(channel)}
			}
		}
		return keys{"channels": found}, nil
	},
}

func (library *library) publishFor(order *order, rules *namespace) (keys, error) {
	if !rules.takes(order.Data) {
		return nil, centrifuge.ErrorBadRequest
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

// broadcast publishes to each channel; what fails for one is told in its place.
func (server *library) broadcast(order *order) (keys, error) {
	if len(order.Channels) == 0 {
		return nil, centrifuge.ErrorBadRequest
	}
	responses := []keys{}
	for _, channel := range order.Channels {
		order.Channel = channel
		response, err := answered(ruled((*library).publishFor)(server, order))
		if err != nil {
			return nil, err
		}
		responses = append(responses, response)
	}
	return keys{"responses": responses}, nil
}

func (library *library) subscribeFor(order *order, rules *namespace) (keys, error) {
	options := rules.subscribeOptions(order.User, centrifuge.SubscribeEvent{})
	override := func(name string, option *bool) {
		if order.Override[name] != nil {
			*option = order.Override[name].Value
		}
	}
	override("presence", &options.EmitPresence)
	override("join_leave", &options.EmitJoinLeave)
	override("force_push_join_leave", &options.PushJoinLeave)
	override("force_recovery", &options.EnableRecovery)
	override("force_positioning", &options.EnablePositioning)
	err := library.node.Subscribe(order.User, order.Channel,
		centrifuge.WithSubscribeClient(order.Client), centrifuge.WithSubscribeData(order.Data),
		centrifuge.WithChannelInfo(order.Info), centrifuge.WithExpireAt(order.ExpireAt),
		centrifuge.WithEmitPresence(options.EmitPresence), centrifuge.WithEmitJoinLeave(options.EmitJoinLeave),
		centrifuge.WithPushJoinLeave(options.PushJoinLeave), centrifuge.WithPositioning(options.EnablePositioning),
		centrifuge.WithRecovery(options.EnableRecovery), centrifuge.WithRecoverSince(order.RecoverSince),
		centrifuge.WithSubscribeHistoryMetaTTL(options.HistoryMetaTTL),
	)
	if errors.Is(err, centrifuge.ErrorAlreadySubscribed) {
		err = nil // as Centrifugo has it
	}
	return keys{}, err
}

func (library *library) historyFor(order *order, rules *namespace) (keys, error) {
	if !rules.hasHistory() {
		return nil, centrifuge.ErrorNotAvailable
	}
	found, err := library.node.History(order.Channel, centrifuge.WithHistoryFilter(centrifuge.HistoryFilter{
		Since: order.Since, Limit: order.Limit, Reverse: order.Reverse,
	}), centrifuge.WithHistoryMetaTTL(time.Duration(rules.HistoryMetaTTL)))
	publications := []keys{}
	for _, publication := range found.Publications {
		one := keys{"data": json.RawMessage(publication.Data), "offset": publication.Offset}
		if publication.Info != nil {
			one["info"] = told(publication.Info)
		}
		if len(publication.Tags) > 0 {
			one["tags"] = publication.Tags
		}
		publications = append(publications, one)
	}
	return keys{"publications": publications, "epoch": found.Epoch, "offset": found.Offset}, err
}

func told(info *centrifuge.ClientInfo) keys {
	told := keys{"user": info.UserID, "client": info.ClientID}
	if len(info.ConnInfo) > 0 {
		told["conn_info"] = json.RawMessage(info.ConnInfo)
	}
	if len(info.ChanInfo) > 0 {
		told["chan_info"] = json.RawMessage(info.ChanInfo)
	}
	return told
}

// matches tries each of the alternatives of a glob pattern: {a,b}.
func matches(pattern, channel string) bool {
	before, behind, found := strings.Cut(pattern, "{")
	if !found {
		matched, _ := path.Match(pattern, channel)
		return matched
	}
	inside, after, _ := strings.Cut(behind, "}")
	return slices.ContainsFunc(strings.Split(inside, ","), func(one string) bool {
		return matches(before+one+after, channel)
	})
}
