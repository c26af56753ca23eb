//! Tests of the rules and keys of consumers.
//! In: lists of consumers → out: their findings.
//! Uses `load` with a flag. Never: connects.
//! A case of another option is added here.

use serde_json::{Value as Json, json};

use super::super::tests::found;

/// The findings about a list of consumers.
fn findings(consumers: &Json) -> Vec<String> {
    let mut found = found(&[("client.insecure", "true"), ("consumers", &consumers.to_string())]);
    found.retain(|line| line.contains("consumers["));
    found
}

#[test]
fn an_enabled_consumer_needs_the_options_of_its_queue() {
    let consumers = json!([
        {"name": "pg", "type": "postgresql", "enabled": true, "postgresql": {"dsn": "postgres://a"}},
        {"name": "rs", "type": "redis_stream", "enabled": true,
         "redis_stream": {"streams": ["a"], "consumer_group": "g", "address": ["a:1", "b:2"]}},
        {"name": "js", "type": "nats_jetstream", "enabled": true},
        {"name": "kf", "type": "kafka", "enabled": true,
         "kafka": {"brokers": "a:1", "topics": ["a"], "consumer_group": "g", "partition_queue_max_size": -2}},
    ]);
    assert_eq!(
        findings(&consumers),
        [
            "error: flag --consumers: consumers[js].nats_jetstream.stream_name is empty, but the consumer is enabled; set it",
            "error: flag --consumers: consumers[js].nats_jetstream.durable_consumer_name is empty, but the consumer is enabled; set it",
            "error: flag --consumers: consumers[kf].kafka.partition_queue_max_size is no whole number from -1",
            "error: flag --consumers: consumers[pg].postgresql.outbox_table_name is empty, but the consumer is enabled; set it",
            "error: flag --consumers: consumers[rs].redis_stream.address names several Redis, expected exactly one",
        ]
    );
}

#[test]
fn of_a_consumer_that_is_not_enabled_name_and_type_are_checked() {
    let consumers = json!([
        {"name": "a-b", "type": "kafka"},
        {"name": "pg", "postgresql": {"num_partitions": 0}},
        {"name": "x1", "type": "mqtt"},
        {"name": "x2", "type": "kafka", "kafka": {"brokerz": "a"}},
        {"name": "x2", "type": "aws_sqs", "aws_sqs": {"queues": ["a"]}},
    ]);
    let found = findings(&consumers).join("\n");
    for part in [
        "consumers[a-b].name is \"a-b\", expected at least two letters, digits or `_`",
        "consumers[pg].type is empty; name the queue, such as postgresql",
        "consumers[x1].type is \"mqtt\", expected one of",
        "consumers[x2].kafka.brokerz is not a known key, did you mean",
        "expected a name that no other member of the list has",
    ] {
        assert!(found.contains(part), "{part} is missing in:\n{found}");
    }
    assert!(!found.contains("num_partitions"), "{found}");
}

#[test]
fn an_enabled_consumer_of_a_queue_that_is_not_built_stops_the_start() {
    for kind in ["google_pub_sub", "aws_sqs", "azure_service_bus"] {
        let found = findings(&json!([{"name": "ab", "type": kind, "enabled": true}]));
        assert!(
            found[0].starts_with("error: ") && found[0].contains("not support yet"),
            "{found:?}"
        );
    }
}

#[test]
fn a_table_is_a_name_and_not_a_statement() {
    for (name, is_right) in [
        ("outbox", true),
        ("app.outbox", true),
        ("\"My Table\".\"a;b\"", true),
        ("o; DROP TABLE x", false),
        ("\"a", false),
    ] {
        assert_eq!(super::is_table(name), is_right, "{name}");
    }
}

#[test]
fn every_key_of_a_tls_section_of_centrifugo_is_known() {
    let tls = json!({
        "enabled": false, "cert_pem": "", "key_pem": "", "server_ca_pem": "", "client_ca_pem": "ca.pem",
        "insecure_skip_verify": false, "server_name": "",
    });
    let consumers = json!([{
        "name": "all", "type": "postgresql", "enabled": true,
        "postgresql": {"dsn": "postgres://a", "outbox_table_name": "t", "tls": tls},
        "redis_stream": {"tls": tls, "sentinel_tls": tls},
        "nats_jetstream": {"tls": tls},
        "kafka": {"tls": tls},
    }]);
    let found = findings(&consumers);
    assert_eq!(found.len(), 5, "{found:?}");
    assert!(found.iter().all(|line| line.starts_with("note: ")), "{found:?}");
}
