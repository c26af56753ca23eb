// What Centrifugo adds to the library: who may do what, as its documentation has it.
// In: events of the library and the settings -> out: options, or the error or disconnect of a refusal.
// May use centrifuge for its types; never encodes anything, which is what the library is compared for.
// Which handler asks which rule stands in library_test.go.

package oracle

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/centrifugal/centrifuge"
)

// rules finds what holds for a channel: 102 without a namespace, 107 for a name that cannot be.
func (settings *settings) rules(channel string) (*namespace, error) {
	if len(channel) > settings.Channel.MaxLength {
		return nil, centrifuge.ErrorBadRequest
	}
	namespace := settings.namespace(channel)
	if namespace == nil {
		return nil, centrifuge.ErrorUnknownChannel
	}
	if slices.ContainsFunc([]byte(channel), func(one byte) bool { return one >= 0x80 }) {
		return nil, centrifuge.ErrorBadRequest
	}
	return namespace, nil
}

// granted finds what holds for a channel that the server, its API or a token gives: only its namespace is looked at.
func (settings *settings) granted(channel string) (*namespace, error) {
	if namespace := settings.namespace(channel); namespace != nil {
		return namespace, nil
	}
	return nil, centrifuge.ErrorUnknownChannel
}

// permits says whether a user may, by the keys for clients, for subscribers and for those without a user id.
func permits(user string, subscribed, forClient, forSubscriber, forAnonymous bool) bool {
	return (forClient || forSubscriber && subscribed) && (user != "" || forAnonymous)
}

func (rules *namespace) historyFor(user string, subscribed bool) bool {
	return permits(user, subscribed, rules.HistoryForClient, rules.HistoryForSubscriber, rules.HistoryForAnonymous)
}

func (rules *namespace) presenceFor(user string, subscribed bool) bool {
	return permits(user, subscribed, rules.PresenceForClient, rules.PresenceForSubscriber, rules.PresenceForAnonymous)
}

func (rules *namespace) publishFor(user string, subscribed bool) bool {
	return permits(user, subscribed, rules.PublishForClient, rules.PublishForSubscriber, rules.PublishForAnonymous)
}

func (rules *namespace) hasHistory() bool { return rules.HistorySize > 0 && rules.HistoryTTL > 0 }

// subscribeOptions are those of a subscription whose client wishes `event`.
func (rules *namespace) subscribeOptions(user string, event centrifuge.SubscribeEvent) centrifuge.SubscribeOptions {
	options := centrifuge.SubscribeOptions{
		EmitPresence:  rules.Presence,
		EmitJoinLeave: rules.JoinLeave,
		PushJoinLeave: rules.JoinLeave && (rules.ForcePushJoinLeave || event.JoinLeave && rules.presenceFor(user, true)),
		// A wish for what cannot be is not granted: without history nothing can be recovered.
		EnablePositioning: rules.hasHistory() && (rules.ForcePositioning || event.Positioned && (rules.AllowPositioning || rules.historyFor(user, true))),
		EnableRecovery:    rules.hasHistory() && (rules.ForceRecovery || event.Recoverable && (rules.AllowRecovery || rules.historyFor(user, true))),
		AutoCacheRecover:  rules.AutoCacheRecover,
		AllowTagsFilter:   rules.AllowTagsFilter,
		HistoryMetaTTL:    time.Duration(rules.HistoryMetaTTL),
	}
	if rules.RecoveryMode == "cache" {
		options.RecoveryMode = centrifuge.RecoveryModeCache
	}
	for _, kind := range rules.DeltaTypes {
		options.AllowedDeltaTypes = append(options.AllowedDeltaTypes, centrifuge.DeltaType(kind))
	}
	return options
}

// subscribe decides about a subscribe command.
func (settings *settings) subscribe(user string, event centrifuge.SubscribeEvent) (centrifuge.SubscribeReply, error) {
	refused := centrifuge.SubscribeReply{}
	rules, err := settings.rules(event.Channel)
	if err != nil {
		return refused, err
	}
	if event.Type != centrifuge.SubscriptionTypeStream {
		return refused, centrifuge.ErrorNotAvailable
	}
	if event.Token == "" {
		if event.Channel[0] == '$' || !permits(user, false, rules.SubscribeForClient, false, rules.SubscribeForAnonymous) {
			return refused, centrifuge.ErrorPermissionDenied
		}
		return centrifuge.SubscribeReply{Options: rules.subscribeOptions(user, event), ClientSideRefresh: true}, nil
	}
	claims, valid := readToken(event.Token)
	if !valid {
		return refused, centrifuge.ErrorPermissionDenied
	}
	if isOver(claims.Exp) {
		return refused, centrifuge.ErrorTokenExpired
	}
	if claims.Channel != event.Channel || claims.Sub != user {
		return refused, centrifuge.DisconnectInvalidToken
	}
	reply := centrifuge.SubscribeReply{Options: rules.subscribeOptions(user, event), ClientSideRefresh: true}
	reply.Options.ExpireAt, reply.Options.ChannelInfo = claims.Exp, claims.Info
	return reply, nil
}

// publish decides about a publish command; its order is 102, 107 for the name, 107 for the data, 103.
func (settings *settings) publish(client *centrifuge.Client, event centrifuge.PublishEvent) error {
	rules, err := settings.rules(event.Channel)
	if err != nil {
		return err
	}
	if !rules.takes(event.Data) {
		return centrifuge.ErrorBadRequest
	}
	if !rules.publishFor(client.UserID(), client.IsSubscribed(event.Channel)) {
		return centrifuge.ErrorPermissionDenied
	}
	return nil
}

func (rules *namespace) takes(data []byte) bool {
	switch rules.PublicationDataFormat {
	case "binary":
		return true
	case "json":
		return json.Valid(data)
	case "json_object":
		var object map[string]json.RawMessage
		return json.Unmarshal(data, &object) == nil && object != nil
	}
	return len(data) > 0
}

// connect decides about a connect command; the library refuses one without credentials.
func (settings *settings) connect(event centrifuge.ConnectEvent) (centrifuge.ConnectReply, error) {
	reply := centrifuge.ConnectReply{ClientSideRefresh: true, Subscriptions: map[string]centrifuge.SubscribeOptions{}}
	var granted []string
	if event.Token != "" {
		claims, valid := readToken(event.Token)
		if !valid {
			return reply, centrifuge.DisconnectInvalidToken
		}
		if isOver(claims.Exp) || claims.Nbf > time.Now().Unix() {
			return reply, centrifuge.ErrorTokenExpired
		}
		if claims.Sub == "" && settings.Client.NoAnonymousTokens {
			return reply, centrifuge.DisconnectPermissionDenied
		}
		reply.Credentials = &centrifuge.Credentials{UserID: claims.Sub, ExpireAt: claims.Exp, Info: claims.Info}
		granted = claims.Channels
		for channel := range claims.Subs {
			granted = append(granted, channel)
		}
	} else if settings.Client.Anonymous {
		reply.Credentials = &centrifuge.Credentials{}
	} else {
		return reply, nil
	}
	user := reply.Credentials.UserID
	grant := func(rules *namespace, channel string) {
		options := rules.subscribeOptions(user, centrifuge.SubscribeEvent{})
		// No SDK asks for deltas or filters of what the server subscribes it to.
		options.AllowedDeltaTypes, options.AllowTagsFilter = nil, false
		reply.Subscriptions[channel] = options
	}
	for _, channel := range granted {
		rules, err := settings.granted(channel)
		if err != nil {
			return reply, err
		}
		grant(rules, channel)
	}
	for _, channel := range event.Channels {
		if _, granted := reply.Subscriptions[channel]; granted {
			continue
		}
		rules, err := settings.rules(channel)
		if errors.Is(err, centrifuge.ErrorUnknownChannel) {
			return reply, centrifuge.DisconnectBadRequest
		}
		if err == nil && !strings.HasPrefix(channel, "$") && permits(user, false, rules.SubscribeForClient, false, rules.SubscribeForAnonymous) {
			grant(rules, channel)
		}
	}
	return reply, nil
}

// isOver says whether a Unix time has passed; 0 never does.
func isOver(expireAt int64) bool { return expireAt > 0 && expireAt <= time.Now().Unix() }
