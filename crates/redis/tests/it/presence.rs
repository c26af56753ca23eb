//! Members in Redis: no keys remain after they left, and they move with their channel.
//! In: a real Redis or Cluster → out: the panic of a broken promise.
//! Uses the public interface and the commands of Redis. Never: sleeps.
//! The promises of all presence stores are tested by the conformance suite (`conformance.rs`).

use std::time::{Duration, Instant};

use fanwire_broker::{Answer, Presence as _};
use fanwire_protocol::ClientInfo;
use fanwire_redis::Redis;
use fanwire_testing::wait_for;

use crate::node::{Node, WAIT_MAX};
use crate::server::RedisServer;
use crate::slots::Slots;

fn add(redis: &Redis, client: &str, user: &str, ttl: Duration) {
    let info = ClientInfo { client: client.into(), user: user.into(), ..ClientInfo::default() };
    redis.add("a", info, ttl, Instant::now()).wait().expect("it is there");
}

fn clients(redis: &Redis) -> Vec<String> {
    let members = redis.members("a", Instant::now()).wait().expect("it is there");
    let mut clients: Vec<_> = members.iter().map(|member| member.client.clone()).collect();
    clients.sort();
    clients
}

/// (clients, users)
fn stats(redis: &Redis) -> (usize, usize) {
    let stats = redis.stats("a", Instant::now()).wait().expect("it is there");
    (stats.clients, stats.users)
}

/// Either every member is removed, or Redis drops the keys with the end of the last one.
#[test]
fn nothing_remains_of_members_that_left_or_ended() {
    let server = RedisServer::start(&[]);
    let node = Node::start(&server.options());
    let redis = &node.redis;
    for (client, user) in [("c", "1"), ("d", "1"), ("e", "2")] {
        add(redis, client, user, MINUTE);
    }
    for kind in ["ends", "members", "users"] {
        let left = server.ask(&format!("PTTL fanwire.presence.{kind}.{{:a}}"));
        let left: u64 = left[1..].trim().parse().expect("a key that ends");
        assert!((1..=60_000).contains(&left), "{kind}: {left} ms");
    }
    for client in ["c", "d", "e"] {
        redis.remove("a", client).wait().expect("it is there");
    }
    assert_eq!(server.ask("DBSIZE"), ":0\r\n");
}

#[test]
fn members_move_with_their_slot_and_to_a_new_master() {
    let cluster = Slots::start(1);
    let node = Node::start(&cluster.options());
    let redis = &node.redis;
    let (from, slot) = cluster.owner("a");
    add(redis, "c", "1", 10 * MINUTE);
    add(redis, "d", "1", 20 * MINUTE);
    let to = (from + 1) % 3;
    cluster.migrate(slot, from, to);
    assert_eq!((clients(redis), stats(redis)), (vec!["c".into(), "d".into()], (2, 1)));
    add(redis, "e", "2", 10 * MINUTE);
    cluster.promote(to + 3);
    let is_there = || redis.members("a", Instant::now()).wait().is_ok_and(|found| found.len() == 3);
    wait_for(is_there, WAIT_MAX);
    let is_done = |done: Answer<()>| done.wait().is_ok();
    wait_for(|| is_done(redis.remove("a", "d")), WAIT_MAX);
    assert_eq!((clients(redis), stats(redis)), (vec!["c".into(), "e".into()], (2, 2)));
}

const MINUTE: Duration = Duration::from_secs(60);
