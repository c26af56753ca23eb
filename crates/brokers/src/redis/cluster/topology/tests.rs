//! Tests of reading what nodes of a Cluster say.
//! In: values as Redis sends them → out: topologies, or nothing.
//! Uses replies recorded from Redis 7.0. Never: connections.
//! A new form of reply is a row here.

use super::*;

fn text_of(text: &str) -> Value {
    Value::BulkString(text.as_bytes().to_vec())
}

fn node(host: Value, port: i64) -> Value {
    Value::Array(vec![host, Value::Int(port), text_of("id"), Value::Array(vec![])])
}

fn range(first: i64, last: i64, nodes: Vec<Value>) -> Value {
    Value::Array([vec![Value::Int(first), Value::Int(last)], nodes].concat())
}

fn asked() -> Address {
    Address { host: "seed".into(), port: 1, user: "ada".into(), ..Address::default() }
}

const INFO: &str = "cluster_state:ok\r\ncluster_slots_assigned:16384\r\ncluster_current_epoch:7\r\ncluster_my_epoch:2\r\n";

#[test]
fn masters_have_ranges_and_the_credentials_of_who_was_asked() {
    let slots = Value::Array(vec![
        range(0, 99, vec![node(text_of("10.0.0.1"), 7000), node(text_of("10.0.0.2"), 7001)]),
        range(100, 16_383, vec![node(text_of("::1"), 7002)]),
    ]);
    let topology = Topology::read(&asked(), [slots, text_of(INFO)]).expect("it is one");
    let at = |host: &str, port| Address { host: host.into(), port, ..asked() };
    assert_eq!(topology.ranges, [(0, 99, at("10.0.0.1", 7000)), (100, 16_383, at("::1", 7002))]);
    assert_eq!((topology.weight(), topology.covered()), ((true, 7), SLOTS));
}

#[test]
fn a_host_that_is_not_named_is_the_one_that_was_asked() {
    for host in [Value::Nil, text_of(""), text_of("?")] {
        let slots = Value::Array(vec![range(5, 5, vec![node(host, 7000)])]);
        let topology = Topology::read(&asked(), [slots, text_of(INFO)]).expect("it is one");
        assert_eq!(topology.ranges[0].2, Address { port: 7000, ..asked() });
    }
}

#[test]
fn what_no_cluster_says_is_not_read() {
    let good = || Value::Array(vec![range(0, 1, vec![node(text_of("h"), 1)])]);
    for (slots, info) in [
        (Value::Nil, text_of(INFO)),
        (Value::Array(vec![range(0, 16_384, vec![node(text_of("h"), 1)])]), text_of(INFO)),
        (Value::Array(vec![range(2, 1, vec![node(text_of("h"), 1)])]), text_of(INFO)),
        (Value::Array(vec![range(0, 1, vec![])]), text_of(INFO)),
        (Value::Array(vec![range(0, 1, vec![node(text_of("h"), 70_000)])]), text_of(INFO)),
        (good(), text_of("cluster_state:ok\r\n")),
        (good(), Value::Int(1)),
    ] {
        assert_eq!(Topology::read(&asked(), [slots, info]), None);
    }
}

#[test]
fn a_refusal_points_to_an_address() {
    let at = |host: &str, port| Some(Address { host: host.into(), port, ..asked() });
    assert_eq!(target(&asked(), "3999 127.0.0.1:6381"), at("127.0.0.1", 6381));
    assert_eq!(target(&asked(), "3999 ::1:6381"), at("::1", 6381));
    assert_eq!(target(&asked(), "3999 :6381"), at("seed", 6381));
    for wrong in ["", "3999", "3999 host", "3999 host:port"] {
        assert_eq!(target(&asked(), wrong), None, "{wrong}");
    }
}
