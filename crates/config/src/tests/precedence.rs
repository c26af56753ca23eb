//! Tests of who overrides whom, of namespaces in the environment, and of development mode.
//! In: file, variables and flags about the same keys → out: the value that wins.
//! Uses `assemble`. Never: the environment of the test process.
//! A rule of precedence is a test here.

use std::path::Path;

use fanwire_testing::Folder;
use serde_json::{Value as Json, json};

use super::super::load::assemble;
use super::super::{Config, ConfigError, Finding, LoadedConfig};
use super::lines;

type Pairs<'a> = &'a [(&'a str, &'a str)];

fn run(
    file: Option<Json>,
    environment: Pairs<'_>,
    flags: Pairs<'_>,
) -> Result<(Config, Vec<Finding>), ConfigError> {
    let pair = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
    let flags: Vec<(String, String)> = flags.iter().map(pair).collect();
    let file = file.map(|file| match file {
        Json::Object(tree) => (Path::new("fanwire.json"), tree),
        other => panic!("the test's file is no object: {other}"),
    });
    assemble(file, environment.iter().map(pair), &flags)
}

fn config(file: Option<Json>, environment: Pairs<'_>, flags: Pairs<'_>) -> Config {
    run(file, environment, flags).expect("a good configuration").0
}

fn namespaces(config: &Config) -> Vec<(&str, bool)> {
    let namespaces = config.channel.namespaces.iter();
    namespaces.map(|one| (one.name.as_str(), one.allow_subscribe_for_client)).collect()
}

#[test]
fn flags_win_over_environment_over_file_over_defaults() {
    let file = || Some(json!({"http_server": {"port": 1}}));
    let port = |config: Config| config.http_server.port;
    let both = &[("FANWIRE_HTTP_SERVER_PORT", "3"), ("CENTRIFUGO_HTTP_SERVER_PORT", "2")];
    assert_eq!(port(config(Some(json!({})), &[], &[])), 8000);
    assert_eq!(port(config(file(), &[], &[])), 1);
    assert_eq!(port(config(file(), &both[1..], &[])), 2);
    assert_eq!(port(config(file(), both, &[])), 3);
    assert_eq!(port(config(file(), both, &[("http_server.port", "4")])), 4);
}

#[test]
fn an_empty_flag_is_a_text_and_otherwise_not_set() {
    let file = json!({"http_server": {"port": 1}, "channel": {"private_prefix": "!"}});
    let empty = &[("http_server.port", ""), ("channel.private_prefix", "")];
    let config = config(Some(file), &[], empty);
    assert_eq!(config.http_server.port, 1);
    assert_eq!(config.channel.private_prefix, "");
}

#[test]
fn transforms_of_codes_are_lists_in_files_and_json_in_variables() {
    let list = r#"[{"code": 109, "to": {"code": 4109, "reason": "old"}}]"#;
    let file = json!({"client": {"connect_code_to_unidirectional_disconnect":
        {"enabled": true, "transforms": [{"code": 109, "to": {"code": 4109, "reason": "old"}}]}}});
    let section = "FANWIRE_CLIENT_CONNECT_CODE_TO_UNIDIRECTIONAL_DISCONNECT";
    let (enabled, transforms) = (format!("{section}_ENABLED"), format!("{section}_TRANSFORMS"));
    let codes = |config: Config| {
        let transforms = config.node_options().client.connect_code_to_unidirectional_disconnect;
        transforms.iter().map(|one| (one.code, one.to.code)).collect::<Vec<_>>()
    };
    assert_eq!(codes(config(Some(file.clone()), &[], &[])), [(109, 4109)]);
    let on = &[(transforms.as_str(), list), (enabled.as_str(), "true")];
    assert_eq!(codes(config(None, on, &[])), [(109, 4109)]);
    assert_eq!(codes(config(Some(file), &[(&enabled, "false")], &[])), []);
}

#[test]
fn lists_in_variables_are_separated_by_spaces() {
    let list = &[("FANWIRE_CLIENT_ALLOWED_ORIGINS", "https://a.example  https://b.example")];
    let config = config(Some(json!({})), list, &[]);
    assert_eq!(config.client.allowed_origins, ["https://a.example", "https://b.example"]);
}

#[test]
fn variables_change_namespaces_of_the_file() {
    let file = json!({"channel": {"namespaces": [{"name": "chat"}, {"name": "chat-2"}]}});
    let variable = &[("CENTRIFUGO_CHANNEL_NAMESPACES_CHAT_2_ALLOW_SUBSCRIBE_FOR_CLIENT", "true")];
    assert_eq!(namespaces(&config(Some(file), variable, &[])), [("chat", false), ("chat-2", true)]);
}

#[test]
fn names_in_a_variable_are_the_list_of_namespaces_and_keep_what_the_file_says() {
    let file = json!({"channel": {"namespaces": [
        {"name": "old"}, {"name": "chat", "allow_subscribe_for_client": true},
    ]}});
    let variables = &[
        ("FANWIRE_CHANNEL_NAMESPACES", "news chat"),
        ("FANWIRE_CHANNEL_NAMESPACES_NEWS_ALLOW_SUBSCRIBE_FOR_CLIENT", "1"),
    ];
    assert_eq!(namespaces(&config(Some(file), variables, &[])), [("news", true), ("chat", true)]);
}

#[test]
fn json_in_a_variable_replaces_the_list_of_namespaces() {
    let file = json!({"channel": {"namespaces": [{"name": "old"}]}});
    let text = r#"[{"name": "chat", "allow_subscribe_for_client": true}]"#;
    let config = config(Some(file), &[("CENTRIFUGO_CHANNEL_NAMESPACES", text)], &[]);
    assert_eq!(namespaces(&config), [("chat", true)]);
}

#[test]
fn parts_of_sections_in_variables_are_what_is_not_there() {
    let environment = &[("CENTRIFUGO_BROKER_NATS_ENDPOINT", "nats://pay")];
    let found = lines(run(Some(json!({"client": {"insecure": true}})), environment, &[]));
    assert_eq!(
        found[0],
        "warning: environment CENTRIFUGO_BROKER_NATS_ENDPOINT: broker.nats is not supported yet. \
         Settings of the NATS broker."
    );
}

#[test]
fn variables_set_the_whole_list_and_options_by_the_name_of_a_consumer() {
    let list = r#"[{"name":"my_outbox","type":"postgresql","enabled":true}]"#;
    let environment = [
        ("CENTRIFUGO_CONSUMERS", list),
        ("CENTRIFUGO_CONSUMERS_MY_OUTBOX_POSTGRESQL_DSN", "postgres://one"),
        ("FANWIRE_CONSUMERS_MY_OUTBOX_POSTGRESQL_OUTBOX_TABLE_NAME", "app.outbox"),
        ("FANWIRE_CONSUMERS_MY_OUTBOX_POSTGRESQL_TLS_SERVER_NAME", "db"),
        ("CENTRIFUGO_CONSUMERS_MY_OUTBOX_KAFKA_BROKERS", "a:1 b:2"),
        ("CENTRIFUGO_CONSUMERS_MY_OUTBOX_REDIS_STREAM_VISIBILITY_TIMEOUT", "7s"),
    ];
    let config = config(Some(json!({"client": {"insecure": true}})), &environment, &[]);
    let consumer = &config.consumers["my_outbox"];
    assert!(consumer.enabled);
    assert_eq!(consumer.kind, Some(fanwire_consumers::ConsumerKind::Postgresql));
    assert_eq!(&*consumer.postgresql.dsn, "postgres://one");
    assert_eq!(consumer.postgresql.outbox_table_name, "app.outbox");
    assert_eq!(consumer.postgresql.tls.server_name, "db");
    assert_eq!(consumer.kafka.brokers, ["a:1", "b:2"]);
    assert_eq!(consumer.redis_stream.visibility_timeout, std::time::Duration::from_secs(7));
    assert_eq!(consumer.redis_stream.redis.address, ["redis://127.0.0.1:6379"]);
    assert_eq!(consumer.nats_jetstream.publication_data_mode.tags_prefix, "centrifugo-tag-");
}

#[test]
fn findings_name_the_variable_and_the_flag() {
    let environment =
        &[("CENTRIFUGO_CLIENT_PING_INTERVAL", "25"), ("FANWIRE_CLIENT_INSECUR", "true")];
    let found =
        lines(run(Some(json!({"client": {"insecure": true}})), environment, &[("shards", "x")]));
    assert_eq!(
        found,
        [
            "error: flag --shards: shards is \"x\", expected a whole number from 0 to 1024",
            "error: environment CENTRIFUGO_CLIENT_PING_INTERVAL: client.ping_interval is \"25\", \
             expected a duration such as \"300ms\", \"25s\" or \"1m30s\", from 1s to 24h",
            "warning: environment FANWIRE_CLIENT_INSECUR is not a known key, did you mean \
             FANWIRE_CLIENT_INSECURE?",
            "warning: fanwire.json: client.insecure is true, so anybody who reaches port 8000 of \
             any address of this machine may do anything; for development only",
        ]
    );
}

#[test]
fn what_says_nothing_about_others_leaves_development_mode_on() {
    let variables = [
        ("FANWIRE_LOG_LEVEL", "debug"),
        ("FANWIRE_SHARDS", "2"),
        ("FANWIRE_PID_FILE", "/tmp/pid"),
        ("FANWIRE_HEALTH_ENABLED", "true"),
        ("FANWIRE_HTTP_SERVER_INTERNAL_PORT", "9000"),
        // Kubernetes writes them for a service of this name.
        ("CENTRIFUGO_SERVICE_HOST", "10.0.0.1"),
        ("CENTRIFUGO_PORT", "tcp://10.0.0.1:8000"),
        ("CENTRIFUGO_HTTP_API_KEY", ""),
    ];
    let config = config(None, &variables, &[("http_server.port", "0")]);
    assert!(config.development && config.client.insecure && config.demo.enabled);
    assert_eq!(config.http_server.address, "127.0.0.1");
    assert_eq!(config.client.allowed_origins.len(), 3);
}

#[test]
fn any_word_about_access_ends_development_mode() {
    for (name, value) in [
        ("http_api.key", "k"),
        ("http_api.insecure", "true"),
        ("http_api.keys", r#"[{"name": "shop", "key": "k"}]"#),
        ("admin.enabled", "true"),
        ("admin.password", "p"),
        ("client.channel_limit", "10"),
        ("engine.redis.address", "redis:6379"),
        ("rpc.ping.enabled", "true"),
        ("proxies", r#"[{"name": "pay", "endpoint": "http://pay"}]"#),
        ("consumers", r#"[{"name": "outbox", "type": "kafka"}]"#),
        ("grpc_api.enabled", "true"),
        ("uni_grpc.enabled", "true"),
        ("http_server.internal_address", "0.0.0.0"),
        ("client.token.hmac_secret_key", "secret"),
        ("channel.without_namespace.allow_subscribe_for_client", "true"),
        ("channel.namespaces", "chat"),
        ("http_server.address", "0.0.0.0"),
        ("http_server.address", ""),
    ] {
        let config = config(None, &[], &[(name, value)]);
        assert!(!config.development && !config.client.insecure, "{name}");
        assert!(!config.demo.enabled && config.http_server.address != "127.0.0.1", "{name}");
    }
    assert!(!config(Some(json!({})), &[], &[]).development);
    for (name, value) in [
        ("CENTRIFUGO_LOG_LEVEL", "debug"),
        ("CENTRIFUGO_OF_SOMEBODY_ELSE", "1"),
        ("CENTRIFUGO_VAR_X", "1"),
    ] {
        assert!(!config(None, &[(name, value)], &[]).development, "{name}");
    }
}

#[test]
fn a_start_without_development_mode_has_none_after_a_reload_either() {
    let load = |is_closed: bool| match is_closed {
        true => LoadedConfig::load_closed(None, std::iter::empty(), &[]),
        false => LoadedConfig::load(None, std::iter::empty(), &[]),
    };
    for is_closed in [true, false] {
        let (loaded, findings) = load(is_closed).expect("nothing is wrong");
        assert_eq!(loaded.config.development, !is_closed);
        assert_eq!(findings.iter().any(|found| found.key.starts_with("client.token")), is_closed);
        let again = loaded.reload(None, std::iter::empty(), &[]).expect("nothing is wrong");
        assert_eq!(again.changed, [""; 0]);
        assert_eq!(again.written, loaded.config);
    }
}

#[test]
fn development_mode_keeps_what_was_set() {
    let config = config(None, &[], &[("health.enabled", "false"), ("http_server.address", "::1")]);
    assert!(config.development && !config.health.enabled);
    assert_eq!(config.http_server.address, "::1");
}

#[test]
fn a_mistyped_variable_is_no_reason_to_open_every_channel() {
    let environment = &[("FANWIRE_CLIENT_TOKEN_HMAC_SECRET_KEE", "secret")];
    let closed = config(None, environment, &[]);
    assert!(!closed.development && !closed.client.insecure && !closed.demo.enabled);
    let found = lines(run(None, environment, &[]));
    let expected = "environment FANWIRE_CLIENT_TOKEN_HMAC_SECRET_KEE is not a known key, did you mean \
                    FANWIRE_CLIENT_TOKEN_HMAC_SECRET_KEY?";
    assert!(found[0].ends_with(expected), "{found:?}");
    assert!(config(None, &[("FANWIRE_OF_SOMEBODY_ELSE", "1")], &[]).development);
}

#[test]
fn an_empty_variable_is_not_set() {
    let Json::Object(tree) = json!({
        "client": {"token": {"hmac_secret_key": "0123456789abcdef0123456789abcdef"}, "allowed_origins": ["https://a.example"]},
        "channel": {"namespaces": [{"name": "chat", "history_size": 10, "history_ttl": "1m"}]},
    }) else {
        unreachable!()
    };
    for prefix in ["FANWIRE", "CENTRIFUGO"] {
        let empty = [
            "CLIENT_TOKEN_HMAC_SECRET_KEY",
            "CLIENT_ALLOWED_ORIGINS",
            "CHANNEL_NAMESPACES",
            "CHANNEL_NAMESPACES_CHAT_HISTORY_SIZE",
            "HTTP_API_KEY",
        ]
        .map(|name| (format!("{prefix}_{name}"), String::new()));
        let file = Some((Path::new("fanwire.json"), tree.clone()));
        let (config, _) = assemble(file, empty.into_iter(), &[]).expect("a good file");
        assert_eq!(config.client.allowed_origins, ["https://a.example"]);
        assert_eq!(&*config.client.token.hmac_secret_key, "0123456789abcdef0123456789abcdef");
        assert_eq!(config.channel.namespaces[0].history_size, 10);
    }
    let both = [("FANWIRE_HTTP_API_KEY", ""), ("CENTRIFUGO_HTTP_API_KEY", "k")];
    let both = both.map(|(name, value)| (name.to_owned(), value.to_owned()));
    let (config, _) = assemble(None, both.into_iter(), &[]).expect("good variables");
    assert_eq!(&*config.http_api.key, "k");
}

#[test]
fn a_secret_may_be_in_a_file() {
    let folder = Folder::new("secret");
    let name = &*folder.write("key", "from the file\n");
    let flag = |name: &str, value: &str| (name.to_owned(), value.to_owned());
    let flags = [flag("http_api.key_file", name)];
    let (config, _) = assemble(None, std::iter::empty(), &flags).expect("a good flag");
    assert_eq!(&*config.http_api.key, "from the file");
    let variable = [("FANWIRE_HTTP_API_KEY_FILE".to_owned(), name.to_owned())];
    let (config, _) = assemble(None, variable.into_iter(), &[]).expect("a good variable");
    assert_eq!(&*config.http_api.key, "from the file");
    let twice = [flag("http_api.key_file", name), flag("http_api.key", "k")];
    let found = lines(assemble(None, std::iter::empty(), &twice));
    assert!(found[0].contains("http_api.key_file and http_api.key are both set"), "{found:?}");
    let missing = [flag("http_api.key_file", "/nowhere")];
    let found = lines(assemble(None, std::iter::empty(), &missing));
    assert!(
        found[0].contains("http_api.key_file is \"/nowhere\", which cannot be read"),
        "{found:?}"
    );
    let unknown = [flag("log.level_file", name)];
    let found = lines(assemble(None, std::iter::empty(), &unknown));
    assert!(found[0].contains("log.level_file is not a known key"), "{found:?}");
}

#[test]
fn letter_case_of_keys_in_a_file_does_not_count() {
    let Json::Object(tree) = json!({"CLIENT": {"Channel_Limit": 5}, "Channel": {"Namespaces": [{"Name": "chat", "PRESENCE": true}]}})
    else {
        unreachable!()
    };
    let file = Some((Path::new("fanwire.json"), tree));
    let (config, findings) = assemble(file, std::iter::empty(), &[]).expect("a good file");
    assert_eq!(config.client.channel_limit, 5);
    assert!(config.channel.namespaces[0].presence, "{findings:?}");
    assert_eq!(config.channel.namespaces[0].name, "chat");
}

#[test]
fn a_key_of_the_version_before_is_obeyed_and_its_new_name_wins() {
    let (old, new) =
        (("engine.redis.feed_connections", "3"), ("engine.redis.pubsub_connections", "4"));
    let (one, findings) = run(None, &[], &[old]).expect("it starts");
    assert_eq!(one.engine.redis.pubsub_connections, 3);
    let line = "flag --engine.redis.feed_connections: engine.redis.feed_connections was renamed to \
                engine.redis.pubsub_connections";
    assert!(findings.iter().any(|found| found.to_string() == line), "{findings:?}");
    assert_eq!(config(None, &[], &[new, old]).engine.redis.pubsub_connections, 4);
}
