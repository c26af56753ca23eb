//! Golden tests of whole configurations: what is found, what is refused, who overrides whom.
//! In: files in three formats, variables, flags → out: configurations and the exact lines a person reads.
//! Uses `assemble`, so that no file is touched. Never: the environment of the test process.
//! A sentence of `finding` that changes is changed here too.

use std::path::Path;
use std::time::Duration;

use fanwire_policy::options::SubscriptionType;
use proptest::prelude::*;
use serde_json::{Value as Json, json};

use super::file::{Format, parse};
use super::load::assemble;
use super::{Config, ConfigError, Finding, catalog, entries};

mod precedence;
mod proxies;
mod table;

/// Loads a file's text under the name `fanwire.EXTENSION`.
fn load_text(format: Format, text: &str) -> Result<(Config, Vec<Finding>), ConfigError> {
    let name = match format {
        Format::Json => "fanwire.json",
        Format::Yaml => "fanwire.yaml",
        Format::Toml => "fanwire.toml",
    };
    match parse(format, text).expect("the test's text is well-formed") {
        Json::Object(tree) => assemble(Some((Path::new(name), tree)), std::iter::empty(), &[]),
        other => panic!("the test's text is no object: {other}"),
    }
}

/// All findings as a person reads them.
fn lines(result: Result<(Config, Vec<Finding>), ConfigError>) -> Vec<String> {
    let findings = match result {
        Ok((_, findings)) | Err(ConfigError::Findings(findings)) => findings,
        Err(other) => panic!("{other}"),
    };
    findings.iter().map(|finding| format!("{}: {finding}", finding.severity)).collect()
}

fn check(format: Format, text: &str, expected: &[&str]) {
    assert_eq!(lines(load_text(format, text)), expected, "{format}");
}

#[test]
fn a_good_file_is_read_without_findings_in_every_format() {
    let yaml = "
http_server: {port: 9000}
client:
  allowed_origins: [https://example.com]
  ping_interval: 1m30s
  token: {hmac_secret_key: 0123456789abcdef-0123456789abcdef}
channel:
  without_namespace: {allow_subscribe_for_client: true}
  namespaces:
    - name: chat
      allow_subscribe_for_client: true
      allow_publish_for_subscriber: true
      publication_data_format: json_object
";
    let json = json!({
        "http_server": {"port": 9000},
        "client": {
            "allowed_origins": ["https://example.com"],
            "ping_interval": "1m30s",
            "token": {"hmac_secret_key": "0123456789abcdef-0123456789abcdef"},
        },
        "channel": {
            "without_namespace": {"allow_subscribe_for_client": true},
            "namespaces": [{
                "name": "chat",
                "allow_subscribe_for_client": true,
                "allow_publish_for_subscriber": true,
                "publication_data_format": "json_object",
            }],
        },
    });
    let toml = r#"
[http_server]
port = 9000
[client]
allowed_origins = ["https://example.com"]
ping_interval = "1m30s"
token.hmac_secret_key = "0123456789abcdef-0123456789abcdef"
[channel.without_namespace]
allow_subscribe_for_client = true
[[channel.namespaces]]
name = "chat"
allow_subscribe_for_client = true
allow_publish_for_subscriber = true
publication_data_format = "json_object"
"#;
    let mut expected = Config::default();
    expected.http_server.port = 9000;
    expected.client.allowed_origins = vec!["https://example.com".to_owned()];
    expected.client.ping_interval = Duration::from_secs(90);
    expected.client.token.hmac_secret_key = "0123456789abcdef-0123456789abcdef".into();
    expected.channel.without_namespace.allow_subscribe_for_client = true;
    expected.channel.namespaces = vec![fanwire_policy::options::Namespace {
        name: "chat".to_owned(),
        allow_subscribe_for_client: true,
        allow_publish_for_subscriber: true,
        publication_data_format: fanwire_policy::options::DataFormat::JsonObject,
        ..Default::default()
    }];
    for (format, text) in
        [(Format::Yaml, yaml), (Format::Json, &json.to_string()), (Format::Toml, toml)]
    {
        let (config, findings) = load_text(format, text).expect("a good file");
        assert_eq!(findings, [], "{format}");
        assert_eq!(config, expected, "{format}");
    }
}

#[test]
fn wrong_values_are_errors_that_name_file_key_value_and_remedy() {
    let text = r#"
client:
  ping_interval: 25
  channel_limit: 0
  insecure: "yes"
http_server: {port: 70000}
log: {level: loud}
websocket: {handler_prefix: ws}
channel:
  namespaces:
    - name: chat
      allow_subscribe_for_client: sometimes
"#;
    check(
        Format::Yaml,
        text,
        &[
            "error: fanwire.yaml: http_server.port is 70000, expected a whole number from 0 to 65535",
            "error: fanwire.yaml: log.level is \"loud\", expected one of \"none\", \"trace\", \
             \"debug\", \"info\", \"warn\", \"error\", \"fatal\"",
            "error: fanwire.yaml: websocket.handler_prefix is \"ws\", expected a path of letters, \
             digits and -._~ that begins with /",
            "error: fanwire.yaml: client.ping_interval is 25, expected a duration such as \
             \"300ms\", \"25s\" or \"1m30s\", from 1s to 24h; a plain number has no unit",
            "error: fanwire.yaml: client.channel_limit is 0, expected a whole number from 1 to 2147483647",
            "error: fanwire.yaml: client.insecure is \"yes\", expected true or false",
            "error: fanwire.yaml: channel.namespaces[chat].allow_subscribe_for_client is \
             \"sometimes\", expected true or false",
        ],
    );
}

#[test]
fn switches_and_numbers_in_quotes_are_read_in_every_format() {
    let yaml = "
http_server: {port: '9000'}
client: {insecure: 'true', channel_limit: \"64\"}
channel: {namespaces: [{name: chat, history_size: '10', history_ttl: '5m', presence: 'true'}]}
";
    let json = r#"{"http_server": {"port": "9000"}, "client": {"insecure": "true", "channel_limit": "64"},
        "channel": {"namespaces": [{"name": "chat", "history_size": "10", "history_ttl": "5m", "presence": "true"}]}}"#;
    let toml = "http_server.port = '9000'\nclient.insecure = 'true'\nclient.channel_limit = '64'
        [[channel.namespaces]]\nname = 'chat'\nhistory_size = '10'\nhistory_ttl = '5m'\npresence = 'true'\n";
    for (format, text) in [(Format::Yaml, yaml), (Format::Json, json), (Format::Toml, toml)] {
        let (config, _) = load_text(format, text).expect("a good file");
        assert_eq!(config.http_server.port, 9000, "{format}");
        assert!(config.client.insecure, "{format}");
        assert_eq!(config.client.channel_limit, 64, "{format}");
        let chat = &config.channel.namespaces[0];
        assert!(chat.presence && chat.history_size == 10, "{format}");
        assert_eq!(chat.history_ttl.as_secs(), 300, "{format}");
    }
}

#[test]
fn what_is_refused_without_quotes_is_refused_in_them() {
    let text = "
client: {insecure: true, ping_interval: '25', channel_limit: '0'}
http_server: {port: '70000'}
websocket: {compression: 'on', compression_level: ''}
";
    check(
        Format::Yaml,
        text,
        &[
            "error: fanwire.yaml: http_server.port is \"70000\", expected a whole number from 0 to 65535",
            "error: fanwire.yaml: websocket.compression is \"on\", expected true or false",
            "error: fanwire.yaml: websocket.compression_level is \"\", expected a whole number from 1 to 9",
            "error: fanwire.yaml: client.ping_interval is \"25\", expected a duration such as \
             \"300ms\", \"25s\" or \"1m30s\", from 1s to 24h",
            "error: fanwire.yaml: client.channel_limit is \"0\", expected a whole number from 1 to 2147483647",
            "warning: fanwire.yaml: client.insecure is true, so anybody who reaches port 8000 of any address of this \
             machine may do anything; for development only",
        ],
    );
}

#[test]
fn the_same_mistake_is_found_in_every_format() {
    for (format, text, file) in [
        (Format::Json, r#"{"client": {"insecure": true, "queue_max_size": "1MB"}}"#, "json"),
        (Format::Yaml, "client: {insecure: true, queue_max_size: 1MB}", "yaml"),
        (Format::Toml, "client = {insecure = true, queue_max_size = \"1MB\"}", "toml"),
    ] {
        let found = lines(load_text(format, text));
        let expected = format!(
            "error: fanwire.{file}: client.queue_max_size is \"1MB\", \
             expected a whole number from 1 to 2147483647"
        );
        assert_eq!(found[0], expected);
    }
}

#[test]
fn unknown_keys_are_warnings_with_the_nearest_key() {
    let text = "
client:
  allow_anonymous_connect_without_token: true
  ping_intervall: 25s
  colour: blue
clinet: {insecure: true}
channel:
  namespaces:
    - name: chat
      allow_subscribe_for_client: true
      histori_size: 10
";
    check(
        Format::Yaml,
        text,
        &[
            "warning: fanwire.yaml: channel.namespaces[chat].histori_size is not a known key, did you mean history_size?",
            "warning: fanwire.yaml: client.colour is not a known key",
            "warning: fanwire.yaml: client.ping_intervall is not a known key, did you mean client.ping_interval?",
            "warning: fanwire.yaml: clinet is not a known key, did you mean client?",
        ],
    );
}

#[test]
fn what_is_not_supported_yet_is_noted_warned_about_or_refused() {
    let text = "
client: {allow_anonymous_connect_without_token: true, concurrency: 8}
broker: {enabled: true, redis: {address: 'redis://localhost:6379'}}
http_server: {tls: {server_name: example.com}}
admin: {web_proxy_address: 'http://localhost:3000'}
webtransport: {enabled: true}
";
    check(
        Format::Yaml,
        text,
        &[
            "error: fanwire.yaml: broker.enabled is not supported yet and cannot be left out. \
             Brokers apart from the engine; several servers would not hear each other.",
            "warning: fanwire.yaml: webtransport.enabled is not supported yet. WebTransport; set SDKs to use WebSocket.",
            "note: fanwire.yaml: http_server.tls.server_name is not supported yet. Name that a server's \
             certificate must have; here it is the server.",
            "note: fanwire.yaml: admin.web_proxy_address is not supported yet. Address of another admin web interface.",
        ],
    );
}

#[test]
fn a_type_of_channels_that_is_not_served_stops_the_start() {
    let text = "
client: {allow_anonymous_connect_without_token: true}
channel:
  without_namespace: {subscription_type: stream}
  namespaces:
    - {name: board, subscription_type: map, map: {mode: recoverable, key_ttl: 1h, stream_size: 7}}
";
    let (config, _) = load_text(Format::Yaml, text).expect("nothing is refused");
    let channel = config.channel;
    assert_eq!(channel.without_namespace.subscription_type, SubscriptionType::Stream);
    assert_eq!(channel.namespaces[0].subscription_type, SubscriptionType::Map);
    let retention = channel.namespaces[0].map_retention().expect("a namespace of maps");
    assert_eq!((retention.stream.size, retention.key_ttl), (7, Duration::from_secs(3600)));
}

#[test]
fn a_shared_poll_needs_a_secret_and_a_proxy() {
    let secret = "hmac_secret_key: s3cret";
    let backend = "proxies: [{name: prices, endpoint: 'http://backend/poll'}]";
    let named = "proxy_name: prices";
    for (poll, top, more, expect) in [
        (named, secret, backend, ""),
        ("proxy_name: prices, mode: versioned, publish_enabled: true", secret, backend, ""),
        (named, "", backend, "shared_poll.hmac_secret_key is \"\""),
        ("proxy_name: price", secret, backend, "did you mean \"prices\"?"),
        ("", secret, backend, "channel.proxy.shared_poll_refresh.endpoint is empty"),
        ("proxy_name: prices, mode: fast", secret, backend, "shared_poll.mode is \"fast\""),
        (
            "proxy_name: prices, publish_enabled: true",
            secret,
            backend,
            "shared_poll.mode versioned",
        ),
    ] {
        let text = format!(
            "client: {{allow_anonymous_connect_without_token: true}}\nshared_poll: {{{top}}}\n{more}\n\
             channel: {{without_namespace: {{subscription_type: shared_poll, allow_subscribe_for_client: true, shared_poll: \
             {{{poll}}}}}}}\n"
        );
        let found = lines(load_text(Format::Yaml, &text));
        let errors: Vec<_> = found.iter().filter(|line| line.starts_with("error")).collect();
        match expect {
            "" => assert!(errors.is_empty(), "{poll}: {errors:?}"),
            expect => {
                assert!(errors.len() == 1 && errors[0].contains(expect), "{poll}: {errors:?}");
            }
        }
    }
}

#[test]
fn a_map_needs_what_its_mode_has_and_is_where_the_engine_is() {
    let load = |map: &str, more: &str| {
        let text = format!(
            "client: {{allow_anonymous_connect_without_token: true}}\n\
             channel: {{namespaces: [{{name: board, subscription_type: map, map: {map}}}]}}\n{more}"
        );
        let found = lines(load_text(Format::Yaml, &text)).into_iter();
        found.filter(|line| line.starts_with("error: ")).collect::<Vec<_>>()
    };
    let good = "{mode: persistent}";
    let rows = [
        (good, "map_broker: {}", ""),
        (good, "map_broker: {type: memory}", ""),
        (good, "map_broker: {type: redis}", "engine.type is memory"),
        (good, "map_broker: {type: postgres}", "map_broker.type is postgres"),
        (good, "engine: {type: redis}", ""),
        (good, "engine: {type: redis}\nmap_broker: {type: redis}", ""),
        (
            good,
            "engine: {type: redis}\nmap_broker: {type: postgres}",
            "map_broker.type is postgres",
        ),
        ("{}", "", "ephemeral, recoverable or persistent"),
        ("{mode: recoverable}", "", "map.key_ttl"),
        ("{mode: persistent, key_ttl: 1h}", "", "map.key_ttl"),
        ("{mode: ephemeral, key_ttl: 1h, stream_size: 1}", "", "map.stream_size"),
        ("{mode: other}", "", "map.mode"),
        ("{mode: persistent, entries_max: 0}", "", "map.entries_max"),
    ];
    for (map, more, expect) in rows {
        let errors = load(map, more);
        let is_expected = if expect.is_empty() {
            errors.is_empty()
        } else {
            errors.iter().any(|error| error.contains(expect))
        };
        assert!(is_expected, "{map} {more}: {errors:?}");
    }
}

#[test]
fn an_internal_port_is_a_number_or_a_text() {
    for (text, port) in [("9000", "9000"), ("'9000'", "9000"), ("''", "")] {
        let text = format!("http_server: {{internal_port: {text}}}");
        let (config, _) = load_text(Format::Yaml, &text).expect("a port");
        assert_eq!(config.http_server.internal_port, port);
        assert_eq!(config.http_server.is_split(), !port.is_empty());
    }
    for (text, is_split) in [
        ("{internal_port: 8000}", false),
        ("{address: '::1', internal_address: '::1', port: 9000, internal_port: 9000}", false),
        ("{address: '::1', internal_address: '127.0.0.1'}", true),
        ("{port: 9000, internal_port: 9001}", true),
    ] {
        let (config, _) = load_text(Format::Yaml, &format!("http_server: {text}")).expect("fine");
        assert_eq!(config.http_server.is_split(), is_split, "{text}");
    }
    for wrong in ["0", "65536", "-1", "1.5", "'port'"] {
        let found =
            lines(load_text(Format::Yaml, &format!("http_server: {{internal_port: {wrong}}}")));
        assert!(found[0].contains("expected a port from 1 to 65535, or nothing"), "{found:?}");
    }
}

#[test]
fn what_would_be_unsafe_to_skip_is_refused_in_any_type() {
    for text in ["{broker: {enabled: 'yes'}}", "broker: {enabled: true, type: nats}"] {
        let found = lines(load_text(Format::Yaml, text));
        assert!(found[0].contains("is not supported yet and cannot be left out"), "{found:?}");
    }
    for off in [
        "{http_server: {tls_autocert: {enabled: false}}, broker: {type: redis}}",
        "{http_server: {tls_autocert: {enabled: 'f'}}}",
        // As with Centrifugo, a feature is off until its switch is on: its other keys do not matter.
        "{client: {insecure: true, proxy: {connect: {endpoint: 'http://x'}}}}",
    ] {
        assert!(load_text(Format::Yaml, off).is_ok(), "{off}");
    }
}

#[test]
fn sections_and_lists_of_another_shape_are_errors() {
    check(
        Format::Yaml,
        "client: 5\nchannel: {namespaces: {chat: {}}}\nlog: [info]\n",
        &[
            "error: fanwire.yaml: channel.namespaces is {\"chat\":{}}, expected a list of sections, each with a name",
            "error: fanwire.yaml: client is 5, expected a section of keys",
            "error: fanwire.yaml: log is [\"info\"], expected a section of keys",
        ],
    );
}

#[test]
fn secrets_are_never_shown() {
    for text in [
        r#"{"client": {"token": {"hmac_secret_key": ["hunter2"]}}, "http_api": {"key": {"hunter2": 1}}}"#,
        r#"{"engine": {"redis": {"address": ["redis://:hunter2@one", 1, "redis://ada:hunter2@two"]}}}"#,
    ] {
        let lines = lines(load_text(Format::Json, text));
        assert!(
            !lines.is_empty() && lines.iter().all(|line| !line.contains("hunter2")),
            "{lines:?}"
        );
    }
    let mut config = Config::default();
    config.http_api.key = "hunter2".into();
    config.engine.redis.tls.key_pem = "hunter2".into();
    config.engine.redis.address = vec!["redis://:hunter2@one".to_owned()];
    config.client.token.hmac_secret_key = "hunter2".into();
    assert!(!format!("{config:?}").contains("hunter2"));
}

fn any_json() -> impl Strategy<Value = Json> {
    let leaf = prop_oneof![
        Just(Json::Null),
        any::<bool>().prop_map(Json::from),
        any::<i64>().prop_map(Json::from),
        any::<f64>().prop_map(Json::from),
        "[ -~]{0,12}".prop_map(Json::from),
        Just(json!("25s")),
    ];
    leaf.prop_recursive(4, 64, 6, |inner| {
        let part = prop::sample::select(parts());
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Json::from),
            prop::collection::btree_map(part, inner, 0..6)
                .prop_map(|object| Json::Object(object.into_iter().collect())),
        ]
    })
}

/// Parts of real names, so that random trees reach real keys.
fn parts() -> Vec<String> {
    let names = entries().iter().flat_map(|entry| entry.name.split('.'));
    let mut parts: Vec<String> = names.chain(["name", "x", ""]).map(str::to_owned).collect();
    parts.sort();
    parts.dedup();
    parts
}

proptest! {
    #[test]
    fn no_tree_panics(tree in any_json()) {
        if let Json::Object(tree) = tree {
            let _ = assemble(Some((Path::new("x.json"), tree)), std::iter::empty(), &[]);
        }
    }

    #[test]
    fn no_value_of_a_real_key_panics(
        index in 0..entries().len(),
        value in any_json(),
        text in "[ -~]{0,12}",
    ) {
        let entry = &entries()[index];
        let tree = entry.name.rsplit('.').fold(value, |inner, part| json!({ part: inner }));
        let Json::Object(tree) = tree else { unreachable!("names have parts") };
        let variable = (format!("FANWIRE_{}", catalog::variable(&entry.name)), text);
        let _ = assemble(Some((Path::new("x.json"), tree)), [variable].into_iter(), &[]);
    }

    #[test]
    fn no_text_panics(text in "[ -~\\n]{0,200}") {
        for format in [Format::Json, Format::Yaml, Format::Toml] {
            let _ = parse(format, &text);
        }
    }
}
