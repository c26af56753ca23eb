// The scenarios against a Fanwire that asks a backend about every event which it would decide itself.
// In: the files of scenarios/, a backend that answers by rules_test.go -> out: the same tests as without proxies.
// May use everything of this package; the backend knows only what a request tells it.
// Which scenarios do not apply to proxies is decided here.

package oracle

import (
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/centrifugal/centrifuge"
)

// unasked is what a backend is not told, or not asked about: what a client wishes of its subscription, and the channels that it
// asks for beside a token. Tokens that end are not for refresh proxies, which renew connections in place of the client.
var unasked = regexp.MustCompile(`"(recoverable|recover|positioned|join_leave|refresh|sub_refresh|exp)":|\}","subs":`)

func TestProxiedScenarios(t *testing.T) {
	_, settings := common.parsed(t)
	backend := startBackend(t, settings)
	text, _ := proxied(backend.URL).parsed(t)
	stage := &stage{fanwire: startFanwire(t, text), library: startLibrary(t, settings)}
	files, err := filepath.Glob("scenarios/*.txt")
	must(t, err)
	for _, file := range files {
		if file == "scenarios/turns.txt" { // a command that waits for a backend takes more than one
			continue
		}
		all := readScenarios(t, file)
		applying := slices.DeleteFunc(all, func(scenario scenario) bool {
			return slices.ContainsFunc(scenario.steps, func(step step) bool { return unasked.MatchString(step.line) })
		})
		stage.playAll(t, strings.TrimSuffix(filepath.Base(file), ".txt"), applying)
	}
	t.Cleanup(func() {
		for event, count := range backend.asked {
			t.Logf("%d %s", count.Load(), event)
			if count.Load() == 0 && event != "refresh" {
				t.Errorf("the backend was never asked about %s", event)
			}
		}
	})
}

// proxied is `common` without the permissions that the backend has instead.
func proxied(backend string) keys {
	endpoint := func(event string) keys {
		return keys{"endpoint": backend + "/" + event, "timeout": "20s", "binary_encoding": true}
	}
	event := func(event string) keys { return keys{"enabled": true}.with(endpoint(event)) }
	ruled := func(rules keys) keys {
		rules = rules.with(keys{"subscribe_proxy_enabled": true})
		delete(rules, "allow_subscribe_for_client")
		delete(rules, "allow_subscribe_for_anonymous")
		// Whether a publisher is subscribed is not told to a backend.
		if rules["allow_publish_for_subscriber"] == nil {
			rules["publish_proxy_enabled"] = true
			delete(rules, "allow_publish_for_client")
			delete(rules, "allow_publish_for_anonymous")
		}
		return rules
	}
	channel := common["channel"].(keys)
	var namespaces []keys
	for _, namespace := range channel["namespaces"].([]keys) {
		namespaces = append(namespaces, ruled(namespace))
	}
	return common.with(keys{
		"client": keys{
			"allow_anonymous_connect_without_token": false,
			"proxy":                                 keys{"connect": event("connect"), "refresh": event("refresh")},
		},
		"channel": keys{
			"without_namespace": ruled(channel["without_namespace"].(keys)), "namespaces": namespaces,
			"proxy": keys{"subscribe": endpoint("subscribe"), "publish": endpoint("publish")},
		},
		"rpc": keys{"proxy": endpoint("rpc"), "without_namespace": keys{"proxy_enabled": true}},
	})
}

type backend struct {
	*httptest.Server
	asked map[string]*atomic.Int64
}

// startBackend runs it until the test ends.
func startBackend(t *testing.T, settings settings) *backend {
	t.Helper()
	backend := &backend{asked: map[string]*atomic.Int64{}}
	handler := http.NewServeMux()
	for event, answer := range map[string]func(*question) (keys, error){
		"connect":   settings.proxiedConnect,
		"refresh":   func(*question) (keys, error) { return keys{"expired": true}, nil },
		"subscribe": settings.proxiedSubscribe,
		"publish":   settings.proxiedPublish,
		"rpc":       func(*question) (keys, error) { return nil, centrifuge.ErrorNotAvailable },
	} {
		count := &atomic.Int64{}
		backend.asked[event] = count
		handler.HandleFunc("/"+event, func(out http.ResponseWriter, request *http.Request) {
			count.Add(1)
			var asked question
			if err := json.NewDecoder(request.Body).Decode(&asked); err != nil {
				http.Error(out, err.Error(), http.StatusBadRequest)
				return
			}
			result, err := answer(&asked)
			_ = json.NewEncoder(out).Encode(said(result, err))
		})
	}
	backend.Server = httptest.NewServer(handler)
	t.Cleanup(backend.Close)
	return backend
}

// question is what the requests of all events have.
type question struct {
	User, Channel string
	Channels      []string
	Data          json.RawMessage
}

func said(result keys, err error) keys {
	var disconnect *centrifuge.Disconnect
	var plain centrifuge.Disconnect
	switch {
	case errors.As(err, &disconnect):
		return keys{"disconnect": keys{"code": disconnect.Code, "reason": disconnect.Reason}}
	case errors.As(err, &plain):
		return keys{"disconnect": keys{"code": plain.Code, "reason": plain.Reason}}
	case err != nil:
		answer, _ := answered(nil, err)
		return answer
	}
	return keys{"result": result}
}

func (settings *settings) proxiedConnect(asked *question) (keys, error) {
	reply, err := settings.connect(centrifuge.ConnectEvent{Channels: asked.Channels})
	channels := []string{}
	for channel := range reply.Subscriptions {
		channels = append(channels, channel)
	}
	return keys{"user": reply.Credentials.UserID, "channels": channels}, err
}

func (settings *settings) proxiedSubscribe(asked *question) (keys, error) {
	_, err := settings.subscribe(asked.User, centrifuge.SubscribeEvent{Channel: asked.Channel})
	return keys{}, err
}

func (settings *settings) proxiedPublish(asked *question) (keys, error) {
	rules, err := settings.rules(asked.Channel)
	if err == nil && !rules.publishFor(asked.User, false) {
		err = centrifuge.ErrorPermissionDenied
	}
	if err != nil {
		return nil, err
	}
	return keys{"delta": rules.DeltaPublish}, nil
}
