//! Tests of the map: newer claims move slots, older ones do not, and only masters with slots are connected to.
//! In: topologies → out: maps.
//! Uses servers without connections. Never: sockets.
//! Names and calls of slots that move are tested in `tests/it/cluster.rs`.

use redis::Value;
use tokio::runtime::Runtime;

use super::super::clock::RedisClock;
use super::super::health::Health;
use super::super::keys::Keys;
use super::super::message_handler::MessageHandler;
use super::*;

fn text(text: &str) -> Value {
    Value::BulkString(text.as_bytes().to_vec())
}

/// A topology with the slots 0 to `last` at `host`, claimed with `epoch`.
fn topology_of(last: i64, host: &str, epoch: u64) -> Topology {
    let master = Value::Array(vec![text(host), Value::Int(6379), text("id")]);
    let range = Value::Array(vec![Value::Int(0), Value::Int(last), master]);
    let nodes = text(&format!("id {host}:6379@16379 master - 0 0 {epoch} connected\n"));
    Topology::read(&Address::default(), [Value::Array(vec![range]), nodes]).expect("it is one")
}

fn server(address: &Address) -> Server {
    let runtime = Runtime::new().expect("a runtime");
    let health = Arc::new(Health::default());
    let factory = ConnectionFactory {
        options: Arc::default(),
        message_handler: Arc::new(MessageHandler::new(
            Keys::new("fanwire", true),
            Arc::clone(&health),
        )),
        health,
        runtime: runtime.handle().clone(),
        clock: Arc::new(RedisClock::new()),
    };
    Server { address: address.clone(), ..factory.unrouted(&ClusterRedirects::default()).0 }
}

fn hosts(map: &Map) -> Vec<&str> {
    map.servers[1..].iter().map(|server| server.address.host.as_str()).collect()
}

#[test]
fn slots_follow_the_newer_claim_and_do_not_go_back() {
    let unrouted = Arc::new(server(&Address::default()));
    let empty = Map { slots: vec![0; SLOTS], epochs: vec![0; SLOTS], servers: vec![unrouted] };
    let (first, is_older) = empty.after(&topology_of(99, "one", 5), false, server);
    assert_eq!((hosts(&first), is_older), (vec!["one"], false));
    assert_eq!([first.slots[99], first.slots[100]], [1, 0]);

    let mut both = topology_of(99, "one", 5);
    both.join(topology_of(49, "two", 6));
    let (second, _) = first.after(&both, false, server);
    assert_eq!(hosts(&second), ["two", "one"]);
    assert!(Arc::ptr_eq(second.server(99), first.server(99)), "connections stay");
    assert!(second.differs(&first, 49) && !second.differs(&first, 50));

    let (third, is_older) = second.after(&topology_of(99, "one", 5), false, server);
    assert!(is_older && !third.differs(&second, 49), "an older claim does not count");
    let (fourth, _) = second.after(&topology_of(99, "one", 5), true, server);
    assert_eq!(hosts(&fourth), ["one"]);
}

#[test]
fn a_claim_that_does_not_count_opens_no_connection() {
    let unrouted = Arc::new(server(&Address::default()));
    let empty = Map { slots: vec![0; SLOTS], epochs: vec![0; SLOTS], servers: vec![unrouted] };
    let mut both = topology_of(99, "old", 5);
    both.join(topology_of(99, "new", 6));
    let (map, _) = empty.after(&both, false, server);
    assert_eq!(hosts(&map), ["new"]);
}
