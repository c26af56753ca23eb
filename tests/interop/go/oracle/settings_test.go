// What both servers are configured with: Centrifugo's keys, read by Fanwire itself and here for the library.
// In: nothing -> out: settings as JSON for Fanwire, and the same as values for the library's half.
// May use the standard library only; never says what a server does with a key.
// A namespace that scenarios need is added here; what the keys permit stands in rules_test.go.

package oracle

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"
)

const (
	apiKey      = "oracle-api-key"
	tokenSecret = "oracle-token-secret"
)

// settings are those keys of a configuration that the library's half obeys.
type settings struct {
	Client struct {
		Anonymous          bool     `json:"allow_anonymous_connect_without_token"`
		NoAnonymousTokens  bool     `json:"disallow_anonymous_connection_tokens"`
		ChannelLimit       int      `json:"channel_limit"`
		HistoryMax         int      `json:"history_max_publication_limit"`
		RecoveryMax        int      `json:"recovery_max_publication_limit"`
		PingInterval       duration `json:"ping_interval"`
		PongTimeout        duration `json:"pong_timeout"`
		StaleCloseDelay    duration `json:"stale_close_delay"`
		ExpiredCloseDelay  duration `json:"expired_close_delay"`
		ExpiredSubDelay    duration `json:"expired_sub_close_delay"`
		PresenceInterval   duration `json:"presence_update_interval"`
		IncludeServerTime  bool     `json:"connect_include_server_time"`
		UserConnectionsMax int      `json:"user_connection_limit"`
		QueueMax           int      `json:"queue_max_size"`
		PositionDelay      duration `json:"channel_position_check_delay"`
	} `json:"client"`
	Channel struct {
		MaxLength        int         `json:"max_length"`
		WithoutNamespace namespace   `json:"without_namespace"`
		Namespaces       []namespace `json:"namespaces"`
	} `json:"channel"`
}

// namespace has Centrifugo's keys of a namespace, as far as scenarios need them.
type namespace struct {
	Name                  string   `json:"name"`
	SubscribeForClient    bool     `json:"allow_subscribe_for_client"`
	SubscribeForAnonymous bool     `json:"allow_subscribe_for_anonymous"`
	PublishForClient      bool     `json:"allow_publish_for_client"`
	PublishForSubscriber  bool     `json:"allow_publish_for_subscriber"`
	PublishForAnonymous   bool     `json:"allow_publish_for_anonymous"`
	HistoryForClient      bool     `json:"allow_history_for_client"`
	HistoryForSubscriber  bool     `json:"allow_history_for_subscriber"`
	HistoryForAnonymous   bool     `json:"allow_history_for_anonymous"`
	PresenceForClient     bool     `json:"allow_presence_for_client"`
	PresenceForSubscriber bool     `json:"allow_presence_for_subscriber"`
	PresenceForAnonymous  bool     `json:"allow_presence_for_anonymous"`
	Presence              bool     `json:"presence"`
	JoinLeave             bool     `json:"join_leave"`
	ForcePushJoinLeave    bool     `json:"force_push_join_leave"`
	ForceRecovery         bool     `json:"force_recovery"`
	AllowRecovery         bool     `json:"allow_recovery"`
	RecoveryMode          string   `json:"force_recovery_mode"`
	AutoCacheRecover      bool     `json:"auto_cache_recover"`
	ForcePositioning      bool     `json:"force_positioning"`
	AllowPositioning      bool     `json:"allow_positioning"`
	DeltaTypes            []string `json:"allowed_delta_types"`
	DeltaPublish          bool     `json:"delta_publish"`
	HistorySize           int      `json:"history_size"`
	HistoryTTL            duration `json:"history_ttl"`
	HistoryMetaTTL        duration `json:"history_meta_ttl"`
	AllowTagsFilter       bool     `json:"allow_tags_filter"`
	PublicationDataFormat string   `json:"publication_data_format"`
}

// duration is written as Centrifugo writes it: 25s.
type duration time.Duration

func (d *duration) UnmarshalText(text []byte) error {
	parsed, err := time.ParseDuration(string(text))
	*d = duration(parsed)
	return err
}

type keys map[string]any

// with is these keys and `more` over them, section by section.
func (below keys) with(more keys) keys {
	merged := keys{}
	for key, value := range below {
		merged[key] = value
	}
	for key, value := range more {
		if inner, ok := value.(keys); ok {
			if under, ok := merged[key].(keys); ok {
				value = under.with(inner)
			}
		}
		merged[key] = value
	}
	return merged
}

// everyone may subscribe, publish, and read history and presence, with a user id and without.
var everyone = keys{
	"allow_subscribe_for_client": true, "allow_subscribe_for_anonymous": true,
	"allow_publish_for_client": true, "allow_publish_for_anonymous": true,
	"allow_history_for_client": true, "allow_history_for_anonymous": true,
	"allow_presence_for_client": true, "allow_presence_for_anonymous": true,
}

// stored keeps ten publications.
var stored = everyone.with(keys{"history_size": 10, "history_ttl": "300s"})

// common has small limits, so that scenarios reach them.
var common = keys{
	"http_server": keys{"address": "127.0.0.1", "port": 0},
	"http_api":    keys{"key": apiKey},
	// What is read before the inbox of a shard is answered first; with one shard both are read in the order of this test.
	"shards":    1,
	"websocket": keys{"compression_verify": true},
	"client": keys{
		"allow_anonymous_connect_without_token": true,
		"token":                                 keys{"hmac_secret_key": tokenSecret},
		"channel_limit":                         6,
		"history_max_publication_limit":         5,
		"recovery_max_publication_limit":        5,
		// Clocks are not to run out on a machine that has other things to do; those of `hurried` are waited for.
		"ping_interval":            "250s",
		"pong_timeout":             "100s",
		"stale_close_delay":        "100s",
		"expired_close_delay":      "25s",
		"expired_sub_close_delay":  "25s",
		"presence_update_interval": "27s",
	},
	"channel": keys{
		"max_length":        40,
		"without_namespace": everyone,
		"namespaces": []keys{
			named("plain", everyone),
			named("closed", keys{}),
			named("users", keys{
				"allow_subscribe_for_client": true, "allow_publish_for_client": true,
				"history_size": 10, "history_ttl": "300s", "allow_history_for_client": true,
				"presence": true, "allow_presence_for_client": true,
			}),
			named("talk", keys{
				"allow_subscribe_for_client": true, "allow_subscribe_for_anonymous": true,
				"allow_publish_for_subscriber": true, "allow_publish_for_anonymous": true,
				"history_size": 10, "history_ttl": "300s",
				"allow_history_for_subscriber": true, "allow_history_for_anonymous": true,
				"presence": true, "allow_presence_for_subscriber": true, "allow_presence_for_anonymous": true,
				"join_leave": true,
			}),
			named("stored", stored),
			named("recovered", stored.with(keys{"force_recovery": true})),
			named("positioned", stored.with(keys{"force_positioning": true})),
			named("wished", stored.with(keys{"allow_recovery": true, "allow_positioning": true})),
			named("brief", stored.with(keys{"force_recovery": true, "history_ttl": "1s"})),
			named("lost", stored.with(keys{"force_recovery": true, "history_ttl": "1s", "history_meta_ttl": "2s"})),
			named("kept", stored.with(keys{"force_recovery": true, "history_ttl": "1s", "history_meta_ttl": "5s"})),
			named("freshest", stored.with(keys{
				"force_recovery": true, "force_recovery_mode": "cache", "history_ttl": "1s",
			})),
			named("small", stored.with(keys{"force_recovery": true, "history_size": 2})),
			named("cached", stored.with(keys{"force_recovery": true, "force_recovery_mode": "cache"})),
			named("auto", stored.with(keys{
				"force_recovery": true, "force_recovery_mode": "cache", "auto_cache_recover": true,
			})),
			named("present", everyone.with(keys{"presence": true})),
			named("joined", everyone.with(keys{"presence": true, "join_leave": true})),
			named("told", everyone.with(keys{
				"presence": true, "join_leave": true, "force_push_join_leave": true,
			})),
			named("delta", stored.with(keys{
				"force_recovery": true, "allowed_delta_types": []string{"fossil"}, "delta_publish": true,
			})),
			named("called", stored.with(keys{
				"force_positioning": true, "allowed_delta_types": []string{"fossil"},
			})),
			named("loose", stored.with(keys{
				"allowed_delta_types": []string{"fossil"}, "delta_publish": true,
			})),
			named("newest", stored.with(keys{
				"force_recovery": true, "force_recovery_mode": "cache",
				"allowed_delta_types": []string{"fossil"}, "delta_publish": true,
			})),
			named("tagged", stored.with(keys{
				"force_recovery": true, "allow_tags_filter": true,
				"allowed_delta_types": []string{"fossil"}, "delta_publish": true,
			})),
			named("chosen", stored.with(keys{
				"force_recovery": true, "force_recovery_mode": "cache", "allow_tags_filter": true,
			})),
			named("json", everyone.with(keys{"publication_data_format": "json"})),
			named("object", everyone.with(keys{"publication_data_format": "json_object"})),
			named("binary", everyone.with(keys{"publication_data_format": "binary"})),
		},
	},
}

// hurried are the same with clocks that a test can wait for.
var hurried = common.with(keys{"client": keys{
	"ping_interval": "2s", "pong_timeout": "1s", "stale_close_delay": "1s",
	"expired_close_delay": "1s", "expired_sub_close_delay": "1s", "presence_update_interval": "1s",
	"user_connection_limit": 2, "channel_position_check_delay": "1s",
}})

// strict lets in who has a user id, and tells what time it is.
var strict = common.with(keys{"client": keys{
	"allow_anonymous_connect_without_token": false, "disallow_anonymous_connection_tokens": true,
	"connect_include_server_time": true,
}})

func named(name string, options keys) keys { return options.with(keys{"name": name}) }

func (below keys) parsed(t *testing.T) (text []byte, parsed settings) {
	t.Helper()
	text, err := json.Marshal(below)
	must(t, err)
	must(t, json.Unmarshal(text, &parsed))
	return text, parsed
}

// namespace is the rules for a channel, nil when there are none.
func (settings *settings) namespace(channel string) *namespace {
	name, _, found := strings.Cut(strings.TrimPrefix(channel, "$"), ":")
	if !found || name == "" {
		return &settings.Channel.WithoutNamespace
	}
	all := settings.Channel.Namespaces
	if at := slices.IndexFunc(all, func(one namespace) bool { return one.Name == name }); at >= 0 {
		return &all[at]
	}
	return nil
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
