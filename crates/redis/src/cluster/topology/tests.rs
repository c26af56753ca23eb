//! Tests of decoding topologies.
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

const NODES: &str = "id 127.0.0.1:7000@17000 myself,master - 0 0 7 connected 0-16383\n\
    other 127.0.0.1:7001@17001 master,fail - 0 0 9 connected\n";

fn topology_of(first: i64, last: i64, host: &str, epoch: u64) -> Topology {
    let slots = Value::Array(vec![range(first, last, vec![node(text_of(host), 7000)])]);
    let nodes = NODES.replace(" 7 ", &format!(" {epoch} "));
    Topology::read(&asked(), [slots, text_of(&nodes)]).expect("it is one")
}

#[test]
fn masters_have_ranges_and_the_credentials_of_who_was_asked() {
    let slots = Value::Array(vec![
        range(0, 99, vec![node(text_of("10.0.0.1"), 7000), node(text_of("10.0.0.2"), 7001)]),
        range(200, 16_383, vec![node(text_of("::1"), 7002)]),
    ]);
    let topology = Topology::read(&asked(), [slots, text_of(NODES)]).expect("it is one");
    let at = |host: &str, port| Address { host: host.into(), port, ..asked() };
    let one = at("10.0.0.1", 7000);
    let other = at("::1", 7002);
    let owners = topology.owners();
    assert_eq!([owners[0], owners[99]], [Some((&one, 7)); 2]);
    assert_eq!([owners[100], owners[199]], [None; 2]);
    assert_eq!([owners[200], owners[16_383]], [Some((&other, 7)); 2]);
}

#[test]
fn a_host_that_is_not_named_is_the_one_that_was_asked() {
    for host in [Value::Nil, text_of(""), text_of("?")] {
        let slots = Value::Array(vec![range(5, 5, vec![node(host, 7000)])]);
        let topology = Topology::read(&asked(), [slots, text_of(NODES)]).expect("it is one");
        assert_eq!(topology.owners()[5], Some((&Address { port: 7000, ..asked() }, 7)));
    }
}

#[test]
fn of_two_claims_the_newer_one_counts_whoever_is_heard_first() {
    for [first, second] in [["old", "new"], ["new", "old"]] {
        let epoch = |host| if host == "new" { 8 } else { 3 };
        let mut topology = topology_of(0, 100, first, epoch(first));
        topology.join(topology_of(50, 200, second, epoch(second)));
        let owner = |slot: usize| topology.owners()[slot].map(|(master, _)| master.host.clone());
        assert_eq!(owner(75).as_deref(), Some("new"));
        assert_eq!([owner(0), owner(200)].map(Option::unwrap_or_default), [first, second]);
    }
}

#[test]
fn what_no_cluster_says_is_not_read() {
    let good = || Value::Array(vec![range(0, 1, vec![node(text_of("h"), 1)])]);
    for (slots, nodes) in [
        (Value::Nil, text_of(NODES)),
        (Value::Array(vec![range(0, 16_384, vec![node(text_of("h"), 1)])]), text_of(NODES)),
        (Value::Array(vec![range(2, 1, vec![node(text_of("h"), 1)])]), text_of(NODES)),
        (Value::Array(vec![range(0, 1, vec![])]), text_of(NODES)),
        (Value::Array(vec![range(0, 1, vec![node(text_of("h"), 70_000)])]), text_of(NODES)),
        (good(), text_of("somebody else\n")),
        (good(), text_of("id without fields\n")),
        (good(), Value::Int(1)),
    ] {
        assert_eq!(Topology::read(&asked(), [slots, nodes]), None);
    }
}
