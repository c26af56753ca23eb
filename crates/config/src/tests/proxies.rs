//! Tests of event proxies in files and in the environment: defaults, names, variables in texts, misspelt keys.
//! In: files and variables → out: options, and the exact lines a person reads.
//! Uses `assemble`. Never: relations between keys, which `rules/event_proxies/tests.rs` has.
//! A row of `keys/proxy.rs` whose default changes is changed here, too.

use std::path::Path;
use std::time::Duration;

use fanwire_policy::options::ProxyChoice;
use fanwire_proxy::{ProxyOptions, StatusMeaning, StatusTransform};
use serde_json::{Value as Json, json};

use super::super::load::assemble;
use super::super::{Config, ConfigError, Finding};
use super::lines;

type Loaded = Result<(Config, Vec<Finding>), ConfigError>;

fn load(mut tree: Json, environment: &[(&str, &str)]) -> Loaded {
    tree["client"]["allow_anonymous_connect_without_token"] = true.into();
    let Json::Object(tree) = tree else { panic!("a file is an object") };
    let pairs = environment.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
    assemble(Some((Path::new("fanwire.json"), tree)), pairs, &[])
}

fn config(tree: Json, environment: &[(&str, &str)]) -> Config {
    let (config, findings) = load(tree, environment).expect("a good configuration");
    assert_eq!(findings, []);
    config
}

#[test]
fn defaults_are_those_of_centrifugo() {
    let proxies =
        config(json!({"proxies": [{"name": "pay", "endpoint": "pay:1"}]}), &[]).event_proxies();
    let default = ProxyOptions {
        timeout: Duration::from_secs(1),
        in_flight_max: 256,
        queue_max: 4096,
        ..ProxyOptions::default()
    };
    assert_eq!((proxies.connect, proxies.refresh), (None, None));
    for proxy in [proxies.subscribe, proxies.publish, proxies.sub_refresh, proxies.rpc] {
        assert_eq!(proxy, default);
    }
    assert_eq!(proxies.subscribe_stream, default);
    assert_eq!(proxies.named["pay"], ProxyOptions { endpoint: "pay:1".to_owned(), ..default });
}

#[test]
fn every_option_of_a_file_arrives() {
    let proxy = json!({
        "name": "pay", "endpoint": "https://pay/events", "timeout": "300ms", "http_headers": ["Cookie"],
        "grpc_metadata": ["x-a"], "emulated_headers": ["Authorization"], "binary_encoding": true,
        "include_connection_meta": true, "in_flight_max": 8, "queue_max": 0,
        "http": {
            "tls": {"enabled": true, "server_name": "pay", "client_ca_pem": null},
            "static_headers": {"X-Key": "a", "X-Count": 5},
            "status_to_code_transforms": [{"status_code": 401, "to_disconnect": {"code": 4501, "reason": "go"}}],
        },
        "GRPC": {"static_metadata": null, "credentials_key": "k", "credentials_value": "v", "compression": true},
    });
    let options = &config(json!({"proxies": [proxy]}), &[]).proxies["pay"];
    assert_eq!(options.endpoint, "https://pay/events");
    assert_eq!(options.timeout, Duration::from_millis(300));
    assert_eq!(
        [&options.http_headers[..], &options.grpc_metadata, &options.emulated_headers].concat(),
        ["Cookie", "x-a", "Authorization"]
    );
    assert!(options.binary_encoding && options.include_connection_meta && options.grpc.compression);
    assert_eq!((options.in_flight_max, options.queue_max), (8, 0));
    assert!(options.http.tls.enabled && options.http.tls.server_name == "pay");
    let headers: Vec<_> = options.http.static_headers.iter().collect();
    assert_eq!(
        headers.iter().map(|(name, value)| format!("{name}={value}")).collect::<Vec<_>>(),
        ["X-Count=5", "X-Key=a"]
    );
    let to = StatusMeaning::Disconnect { code: 4501, reason: "go".to_owned() };
    assert_eq!(options.http.status_to_code_transforms, [StatusTransform { status_code: 401, to }]);
    assert_eq!((&*options.grpc.credentials_key, &*options.grpc.credentials_value), ("k", "v"));
}

#[test]
fn proxies_of_connections_are_there_when_they_are_enabled() {
    let proxy = json!({"enabled": true, "endpoint": "http://a", "timeout": "2s"});
    let tree =
        json!({"client": {"proxy": {"connect": proxy, "refresh": {"endpoint": "http://b"}}}});
    let proxies = config(tree, &[]).event_proxies();
    let connect = proxies.connect.expect("it is enabled");
    assert_eq!((&*connect.endpoint, connect.timeout.as_secs()), ("http://a", 2));
    assert_eq!(proxies.refresh, None);
}

#[test]
fn variables_and_json_in_the_environment_set_proxies() {
    let variables = &[
        ("CENTRIFUGO_PROXIES", "pay game"),
        ("CENTRIFUGO_PROXIES_PAY_ENDPOINT", "http://pay"),
        ("FANWIRE_PROXIES_GAME_ENDPOINT", "game:1"),
        ("FANWIRE_PROXIES_GAME_HTTP_STATIC_HEADERS", r#"{"X-Key": "a"}"#),
        ("FANWIRE_RPC_PROXY_ENDPOINT", "grpc://rpc:1"),
        ("FANWIRE_RPC_PROXY_GRPC_TLS_ENABLED", "true"),
        ("CENTRIFUGO_RPC_NAMESPACES", r#"[{"name": "math", "proxy_enabled": true}]"#),
        ("CENTRIFUGO_RPC_NAMESPACES_MATH_PROXY_NAME", "game"),
        ("CENTRIFUGO_RPC_WITHOUT_NAMESPACE_PROXY_ENABLED", "true"),
        ("CENTRIFUGO_RPC_NAMESPACE_BOUNDARY", "/"),
    ];
    let config = config(json!({}), variables);
    let proxies = config.event_proxies();
    assert_eq!(proxies.named["pay"].endpoint, "http://pay");
    assert_eq!(proxies.named["game"].endpoint, "game:1");
    assert_eq!(proxies.named["game"].http.static_headers["X-Key"], "a");
    assert!(proxies.rpc.endpoint == "grpc://rpc:1" && proxies.rpc.grpc.tls.enabled);
    let choice = |name: &str| ProxyChoice { enabled: true, name: name.into() };
    assert_eq!(config.rpc.namespaces["math"], choice("game"));
    assert_eq!(config.rpc.without_namespace, choice("default"));
    assert_eq!(config.rpc.namespace_boundary, "/");
}

#[test]
fn namespaces_choose_proxies() {
    let namespace = json!({
        "name": "chat", "allow_subscribe_for_client": true, "publish_proxy_enabled": true, "publish_proxy_name": "pay",
        "subscribe_stream_proxy_name": "other",
    });
    let tree = json!({
        "channel": {"namespaces": [namespace], "without_namespace": {"sub_refresh_proxy_enabled": true},
            "proxy": {"sub_refresh": {"endpoint": "http://a"}}},
        "proxies": [{"name": "pay", "endpoint": "http://pay"}],
    });
    let channel = config(tree, &[]).channel;
    let chat = &channel.namespaces[0];
    let chosen = |choice: &ProxyChoice| choice.get().map(|name| name.to_string());
    assert_eq!(chosen(&chat.publish_proxy).as_deref(), Some("pay"));
    assert_eq!(chosen(&chat.subscribe_stream_proxy), None);
    assert_eq!(chosen(&channel.without_namespace.sub_refresh_proxy).as_deref(), Some("default"));
}

#[test]
fn texts_have_variables_and_one_that_is_not_set_is_named() {
    let tree =
        |value: &str| json!({"rpc": {"proxy": {"http": {"static_headers": {"X-Key": value}}}}});
    let environment = &[("FANWIRE_VAR_KEY", "a"), ("CENTRIFUGO_VAR_KEY", "b")];
    for (text, expected) in [
        ("Bearer ${FANWIRE_VAR_KEY}, ${CENTRIFUGO_VAR_KEY}${FANWIRE_VAR_KEY}", "Bearer a, ba"),
        (
            "$FANWIRE_VAR_KEY ${OTHER} ${FANWIRE_VAR_KEY ${",
            "$FANWIRE_VAR_KEY ${OTHER} ${FANWIRE_VAR_KEY ${",
        ),
    ] {
        let proxies = config(tree(text), environment).event_proxies();
        assert_eq!(proxies.rpc.http.static_headers["X-Key"], expected);
    }
    assert_eq!(
        lines(load(tree("secret ${FANWIRE_VAR_OTHER}"), environment)),
        [
            "error: fanwire.json: rpc.proxy.http.static_headers has FANWIRE_VAR_OTHER in the value of \"X-Key\", which is not set \
          in the environment; set it, or write the value itself"
        ]
    );
}

#[test]
fn values_of_a_wrong_kind_name_the_proxy_and_secrets_are_not_shown() {
    let tree = json!({"proxies": [{
        "name": "pay", "endpoint": "http://pay", "timeout": "0s", "in_flight_max": 0,
        "http": {"static_headers": {"X-Key": ["hunter2"]}, "tls": {"key_pem": ["hunter2"]}},
    }]});
    assert_eq!(
        lines(load(tree, &[])),
        [
            "error: fanwire.json: proxies[pay].timeout is \"0s\", expected a duration such as \"300ms\", \"25s\" or \
             \"1m30s\", from 1ms to 24h",
            "error: fanwire.json: proxies[pay].in_flight_max is 0, expected a whole number from 1 to 100000",
            "error: fanwire.json: proxies[pay].http.tls.key_pem expected a text",
            "error: fanwire.json: proxies[pay].http.static_headers expected texts by name",
        ]
    );
}

#[test]
fn misspelt_keys_of_proxies_are_warnings_with_the_nearest_key() {
    let tree = json!({
        "proxies": [{"name": "pay", "endpoint": "http://pay", "endpont": "x", "http": {"tls": {"serve_name": "x"}}}],
        "rpc": {"proxy": {"timout": "1s"}, "namespaces": [{"name": "math", "proxy_enable": true}]},
    });
    assert_eq!(
        lines(load(tree, &[("FANWIRE_PROXIES_PAY_TIMEOUTS", "1s")])),
        [
            "warning: fanwire.json: proxies[pay].endpont is not a known key, did you mean endpoint?",
            "warning: fanwire.json: proxies[pay].http.tls.serve_name is not a known key, did you mean http.tls.server_name?",
            "warning: fanwire.json: rpc.namespaces[math].proxy_enable is not a known key, did you mean proxy_enabled?",
            "warning: fanwire.json: rpc.proxy.timout is not a known key, did you mean rpc.proxy.timeout?",
            "warning: environment FANWIRE_PROXIES_PAY_TIMEOUTS is not a known key, did you mean \
             FANWIRE_PROXIES_PAY_TIMEOUT?",
        ]
    );
}

#[test]
fn members_have_names_of_their_own() {
    let proxy = |name: &str| json!({"name": name, "endpoint": "http://pay"});
    let tree = json!({
        "proxies": [proxy("pay"), proxy("pay"), proxy("default"), proxy("a b"), {"endpoint": "http://pay"}],
        "rpc": {"namespaces": [{"name": "default"}, {"name": "x"}]},
    });
    let right = "expected at least two letters, digits, `-`, `_` or `.`";
    assert_eq!(
        lines(load(tree, &[])),
        [
            &*format!("error: fanwire.json: rpc.namespaces[x].name is \"x\", {right}"),
            "error: fanwire.json: proxies[pay].name is \"pay\", expected a name that no other member of the list has",
            "error: fanwire.json: proxies[default].name is \"default\", expected another name, because this one stands for \
             the proxies of channel.proxy and rpc.proxy",
            &*format!("error: fanwire.json: proxies[a b].name is \"a b\", {right}"),
            &*format!("error: fanwire.json: proxies[4].name is \"\", {right}"),
        ]
    );
}

#[test]
fn the_address_of_a_grpc_service_has_no_scheme_resolver_or_path() {
    for endpoint in
        ["a:1", "grpc://a:1", "grpc://a:1/", "grpc://a:1/x", "dns:///a:1", "passthrough:///a:1"]
    {
        let options = ProxyOptions { endpoint: endpoint.to_owned(), ..Default::default() };
        assert_eq!(options.grpc_authority(), "a:1", "{endpoint}");
    }
}
