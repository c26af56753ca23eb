//! Tests of the meaning of variables.
//! In: names → out: keys, namespaces, or nothing of ours.
//! Uses the real catalog. Never: the environment of the test process.
//! A spelling is a line of a table.

use super::{Target, target, variables};
use crate::catalog::{self, LISTS};

fn check(rest: &str, expected: Target) {
    let [channel, proxies, rpc, consumers, _] = LISTS.each_ref();
    let members = [
        (channel, vec!["chat", "chat-room", "n.1"]),
        (proxies, vec!["pay", "pay-http"]),
        (rpc, vec!["chat"]),
        (consumers, vec!["my_outbox"]),
    ];
    assert_eq!(target(rest, &members), expected, "{rest}");
}

#[test]
fn every_key_has_a_variable_of_its_own() {
    let mut names: Vec<String> = catalog::entries().iter().map(catalog::Entry::variable).collect();
    let count = names.len();
    names.sort();
    names.dedup();
    assert_eq!(names.len(), count);
    for entry in catalog::entries() {
        check(&entry.variable(), Target::Key(entry.name.clone()));
    }
}

#[test]
fn variables_of_namespaces_reach_the_longest_name_that_fits() {
    let member = |list, index, key: &str| Target::Member(list, index, key.to_owned());
    let namespace = |index, key| member("channel.namespaces", index, key);
    check("CHANNEL_NAMESPACES_CHAT_HISTORY_SIZE", namespace(0, "history_size"));
    check("CHANNEL_NAMESPACES_CHAT_ROOM_HISTORY_SIZE", namespace(1, "history_size"));
    check("CHANNEL_NAMESPACES_N_1_CHANNEL_REGEX", namespace(2, "channel_regex"));
    check("RPC_NAMESPACES_CHAT_PROXY_NAME", member("rpc.namespaces", 0, "proxy_name"));
    check(
        "CONSUMERS_MY_OUTBOX_KAFKA_SASL_PASSWORD_FILE",
        member("consumers", 0, "kafka.sasl_password_file"),
    );
    check("PROXIES_PAY_ENDPOINT", member("proxies", 0, "endpoint"));
    check("PROXIES_PAY_HTTP_TLS_KEY_PEM_FILE", member("proxies", 0, "http.tls.key_pem_file"));
    check("PROXIES_PAY_HTTP_TLS_ENABLED", member("proxies", 0, "http.tls.enabled"));
    check("PROXIES_PAY_HTTP_ENDPOINT", member("proxies", 1, "endpoint"));
    check("PROXIES_PAY_ENDPONT", Target::Unknown(Some("FANWIRE_PROXIES_PAY_ENDPOINT".to_owned())));
}

#[test]
fn variables_below_a_block_belong_to_it() {
    check("MAP_BROKER_POSTGRES_DSN", Target::Inside("map_broker.postgres", "dsn".into()));
    check("BROKER_NATS_URL", Target::Inside("broker.nats", "url".into()));
}

#[test]
fn what_others_put_there_is_left_alone() {
    check("VAR_SECRET", Target::Nothing);
    check("PORT_8000_TCP_ADDR", Target::Nothing);
    check("SERVICE_HOST", Target::Nothing);
    check("API_SERVICE_PORT", Target::Nothing);
}

#[test]
fn services_that_kubernetes_announces_are_no_variables_of_ours() {
    for (name, value, is_ours) in [
        ("CENTRIFUGO_PORT", "tcp://10.0.0.1:8000", false),
        ("CENTRIFUGO_INTERNAL_PORT", "tcp://10.0.0.1:9000", false),
        ("CENTRIFUGO_GRPC_API_PORT", "udp://10.0.0.1:10000", false),
        ("CENTRIFUGO_PORT", "8000", true),
        ("FANWIRE_HTTP_SERVER_PORT", "x", true),
        ("FANWIRE_ENGINE_REDIS_ADDRESS", "tcp://redis:6379", true),
    ] {
        let found = variables([(name.to_owned(), value.to_owned())].into_iter());
        assert_eq!(found.len(), usize::from(is_ours), "{name}={value}");
    }
}

#[test]
fn mistyped_variables_hear_the_nearest_one() {
    let meant = |name: &str| Target::Unknown(Some(name.to_owned()));
    check("CLIENT_INSECUR", meant("FANWIRE_CLIENT_INSECURE"));
    check("HTTP_SERVER_PORTT", meant("FANWIRE_HTTP_SERVER_PORT"));
    check("NOTHING_LIKE_IT", Target::Unknown(None));
    check("CHANNEL_NAMESPACES_OTHER_PRESENCE", Target::Unknown(None));
    check("API_KEY", meant("FANWIRE_HTTP_API_KEY"));
    check("ADMIN", meant("FANWIRE_ADMIN_ENABLED"));
    check("NAMESPACES", meant("FANWIRE_CHANNEL_NAMESPACES"));
    check("PORT", meant("FANWIRE_HTTP_SERVER_PORT"));
    check("INTERNAL_PORT", meant("FANWIRE_HTTP_SERVER_INTERNAL_PORT"));
    check("PROXY_CONNECT_ENDPOINT", meant("FANWIRE_CLIENT_PROXY_CONNECT_ENDPOINT"));
}

#[test]
fn fanwires_variables_come_after_centrifugos_and_the_list_of_namespaces_first() {
    let pairs = [
        "PATH",
        "FANWIRE_LOG_LEVEL",
        "CENTRIFUGO_LOG_LEVEL",
        "CENTRIFUGO_CHANNEL_NAMESPACES_CHAT_PRESENCE",
        "FANWIRE_CHANNEL_NAMESPACES",
    ]
    .map(|name| (name.to_owned(), "x".to_owned()));
    let names: Vec<String> =
        variables(pairs.into_iter()).into_iter().map(|variable| variable.name).collect();
    assert_eq!(
        names,
        [
            "FANWIRE_CHANNEL_NAMESPACES",
            "CENTRIFUGO_CHANNEL_NAMESPACES_CHAT_PRESENCE",
            "CENTRIFUGO_LOG_LEVEL",
            "FANWIRE_LOG_LEVEL",
        ]
    );
}
