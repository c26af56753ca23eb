//! A master with two replicas under three Sentinels: resolved, left when it fails, and followed to the next one.
//! In: real processes that are killed or stopped → out: publications that succeed again, reported losses, errors with a remedy.
//! Uses the public interface. Never: sleeps; it waits for what must happen.
//! Faults of a standalone Redis are tested in `faults.rs`.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use fanwire_broker::{BrokerError, Position};
use fanwire_redis::{Address, Redis, RedisError, RedisOptions, Sentinels};
use fanwire_testing::{free_port, wait_for};

use crate::node::{Node, WAIT_MAX, runtime};
use crate::server::RedisServer;

/// A master, its replicas and their Sentinels.
struct Group {
    /// The first is the master in the beginning.
    redis: Vec<RedisServer>,
    sentinels: Vec<RedisServer>,
}

impl Group {
    fn start(options: &[&str]) -> Self {
        let redis = replicated();
        let sentinels: Vec<_> = (0..3)
            .map(|_| RedisServer::start_sentinel(free_port(), NAME, &redis[0], options))
            .collect();
        let group = Self { redis, sentinels };
        group.wait_until_all_know_each_other();
        group
    }

    /// No failover could succeed before that.
    fn wait_until_all_know_each_other(&self) {
        for sentinel in &self.sentinels {
            let knows_all = || {
                let state = sentinel.ask("SENTINEL MASTER main");
                let facts = ["num-slaves\r\n$1\r\n2", "num-other-sentinels\r\n$1\r\n2"];
                facts.iter().all(|fact| state.contains(fact))
            };
            wait_for(knows_all, WAIT_MAX);
        }
    }

    fn options(&self) -> RedisOptions {
        under(self.sentinels.iter().map(RedisServer::address))
    }
}

/// A master and two replicas with all of its data.
fn replicated() -> Vec<RedisServer> {
    let master = RedisServer::start(&["--repl-diskless-sync-delay", "0"]);
    let port = master.address().port.to_string();
    let replica = || {
        let options = ["--replicaof", "127.0.0.1", &port, "--repl-diskless-sync-delay", "0"];
        RedisServer::start(&options)
    };
    let redis = vec![master, replica(), replica()];
    for replica in &redis[1..] {
        wait_for(|| replica.ask("INFO replication").contains("master_link_status:up"), WAIT_MAX);
    }
    redis
}

fn under(sentinels: impl Iterator<Item = Address>) -> RedisOptions {
    let addresses = sentinels.map(|address| Address { is_sentinel: true, ..address }).collect();
    let sentinels = Sentinels { master: NAME.into(), addresses, client_name: "watcher".into() };
    let address =
        Address { host: String::new(), sentinels: Some(Arc::new(sentinels)), ..Address::default() };
    RedisOptions {
        addresses: vec![address],
        io_timeout: Duration::from_secs(1),
        ..RedisOptions::default()
    }
}

fn checked_error(options: &RedisOptions) -> RedisError {
    runtime().block_on(Redis::check(options)).expect_err("something is wrong with it")
}

/// An acknowledged publication is in the stream of the new master, or the loss shows: no delivered publication has an
/// epoch that continues without it.
#[test]
fn a_master_that_is_killed_under_load_is_followed_to_the_next_one() {
    let mut group = Group::start(&[]);
    let node = Node::start(&group.options());
    node.subscribe("a");
    let publisher = &node;
    let mut delivered = Vec::new();
    let (acknowledged, away) = std::thread::scope(|scope| {
        let publishing = scope.spawn(move || {
            let mut away = Duration::ZERO;
            let mut publish = |number: u64| {
                let began = Instant::now();
                let data = number.to_string();
                let position = publisher.publish_until_done("a", &data);
                away = away.max(began.elapsed());
                (position, data)
            };
            let acknowledged: Vec<(Position, String)> = (0..600).map(&mut publish).collect();
            (acknowledged, away)
        });
        delivered.extend((0..100).map(|_| node.event()));
        group.redis[0].kill();
        publishing.join().expect("every call ended")
    });
    println!("the longest publication took {away:?}");
    node.wait_until_healthy();
    node.subscribe("a");
    let last = node.publish("a", "the last").expect("it is back");
    while delivered.last().is_none_or(|(_, _, position)| *position != last) {
        delivered.push(node.event());
    }
    node.wait_for_gap("a"); // subscribers have to compare their positions
    let slice = node.read("a").expect("it is back");
    assert_eq!(slice.top, last);
    let stored: BTreeMap<u64, String> = (slice.publications.iter())
        .map(|found| (found.offset, String::from_utf8_lossy(&found.data).into_owned()))
        .collect();
    assert!(stored.keys().copied().eq(1..=last.offset), "no hole in the stream");
    assert_ne!(acknowledged[0].0.epoch, last.epoch, "another master, another epoch");
    assert_eq!(slice.inherited.epoch, acknowledged[0].0.epoch);
    let mut lost = 0;
    let delivered_items = delivered.iter().map(|(_, data, position)| (position, data));
    for (position, data) in acknowledged.iter().map(|(at, data)| (at, data)).chain(delivered_items)
    {
        if slice.continues(position.offset, position.epoch.as_str()) {
            assert_eq!(stored.get(&position.offset), Some(data), "kept: {position:?}");
        } else {
            assert!(position.offset > slice.inherited.offset, "lost, and reported: {position:?}");
            lost += 1;
        }
    }
    println!("the next master lacked {lost} that were acknowledged or delivered");
}

/// The old master delivered publications with offsets that the new one gives to others: their subscribers must notice.
#[test]
fn offsets_that_a_promoted_replica_lacks_get_a_new_epoch() {
    let redis = replicated();
    let only = |redis: &RedisServer| {
        Node::start(&RedisOptions { addresses: vec![redis.address()], ..RedisOptions::default() })
    };
    let old = only(&redis[0]);
    let both = old.publish_until_done("a", "both have it");
    wait_for(|| redis[1].ask("XLEN fanwire.stream.{:a}") == ":1\r\n", WAIT_MAX);
    assert_eq!(redis[1].ask("REPLICAOF NO ONE"), "+OK\r\n");
    let lost = old.publish_until_done("a", "only the old one has it");
    drop(old);
    // The old master follows the new one, loses its own data, and is promoted again: the same process, with another
    // history.
    let port = redis[1].address().port;
    assert_eq!(redis[0].ask(&format!("REPLICAOF 127.0.0.1 {port}")), "+OK\r\n");
    wait_for(|| redis[0].ask("INFO replication").contains("master_link_status:up"), WAIT_MAX);
    assert_eq!(redis[0].ask("REPLICAOF NO ONE"), "+OK\r\n");
    for redis in &redis[..2] {
        let node = only(redis);
        let other = node.publish_until_done("a", "in its place");
        assert_eq!((both.offset, lost.offset, other.offset), (1, 2, 2));
        let slice = node.read("a").expect("it is there");
        assert_eq!((slice.top, slice.inherited), (other, both));
        assert!(!slice.continues(lost.offset, lost.epoch.as_str()));
        let again = node.publish("a", "and on").expect("it is there");
        assert_eq!(
            again,
            Position { offset: 3, epoch: other.epoch },
            "once per replication history"
        );
    }
}

/// A replica counts as its master does, and so does a Redis that was restored from a snapshot: after a promotion the
/// replication offset may be far lower. Idle connections have to notice that too.
#[test]
fn a_master_that_comes_back_with_the_data_of_a_snapshot_has_another_replication_history() {
    let [teacher, master, restored] = [(); 3].map(|()| RedisServer::start(&[]));
    let follow = |leader: &RedisServer| {
        let port = leader.address().port;
        assert_eq!(master.ask(&format!("REPLICAOF 127.0.0.1 {port}")), "+OK\r\n");
        wait_for(|| master.ask("INFO replication").contains("master_link_status:up"), WAIT_MAX);
        assert_eq!(master.ask("REPLICAOF NO ONE"), "+OK\r\n");
    };
    teacher.ask_with(&[b"SET", b"pad", &vec![b'x'; 50_000]]);
    follow(&teacher);
    let [early, late] = [(); 2].map(|()| Node::start(&master.options()));
    early.wait_until_healthy();
    let both = early.publish_until_done("a", "in the snapshot");
    let port = restored.address().port.to_string();
    let copy = [b"MIGRATE", &b"127.0.0.1"[..], port.as_bytes(), b"", b"0", b"5000", b"COPY"];
    let names = [&b"KEYS"[..], b"fanwire.stream.{:a}", b"fanwire.meta.{:a}"];
    assert_eq!(master.ask_with(&[&copy[..], &names].concat()), "+OK\r\n");
    let lost = early.publish("a", "only the old one has it").expect("it is there");
    let tracked = || {
        let clients = master.ask("CLIENT LIST TYPE normal");
        let tracked = clients.lines().filter(|client| client.contains(" flags=t "));
        let id = |client: &str| client.split(['=', ' ']).nth(1).and_then(|id| id.parse().ok());
        tracked.filter_map(id).collect::<Vec<u64>>()
    };
    let newest = tracked().into_iter().max().expect("both are connected");
    follow(&restored);
    wait_for(|| tracked().iter().filter(|id| **id > newest).count() >= 4, WAIT_MAX); // the command connections
    for node in [early, late] {
        let other = node.publish_until_done("a", "in its place");
        let slice = node.read("a").expect("it is there");
        assert_eq!((slice.top, slice.inherited), (other, both));
        assert!(!slice.continues(lost.offset, lost.epoch.as_str()));
    }
}

/// Replicas come and go, and the replication id changes with them; connections keep the id that they read.
#[test]
fn connections_with_different_replication_ids_of_one_process_share_an_epoch() {
    let redis = RedisServer::start(&["--enable-debug-command", "yes"]);
    let nodes: Vec<Node> = (0..5)
        .map(|_| {
            let node = Node::start(&RedisOptions { io_timeout: WAIT_MAX, ..redis.options() });
            node.wait_until_healthy();
            assert_eq!(redis.ask("DEBUG CHANGE-REPL-ID"), "+OK\r\n");
            node
        })
        .collect();
    let turn = || -> Vec<Position> {
        nodes.iter().map(|node| node.publish("a", "1").expect("it is there")).collect()
    };
    let first = turn();
    let settled = first[first.len() - 1].epoch;
    for (position, offset) in turn().into_iter().chain(turn()).zip(6..) {
        assert_eq!(position, Position { offset, epoch: settled });
    }
    let tops: Vec<_> = nodes.iter().map(|node| node.read("a").expect("it is there").top).collect();
    assert_eq!(tops, [Position { offset: 15, epoch: settled }; 5]);
}

#[test]
fn a_frozen_master_is_left_after_the_failover() {
    let group = Group::start(&[]);
    let connect_timeout = Duration::from_secs(5);
    let io_timeout = Duration::from_secs(600);
    let node = Node::start(&RedisOptions { connect_timeout, io_timeout, ..group.options() });
    node.subscribe("a");
    node.wait_until_healthy();
    group.redis[0].signal("-STOP");
    let began = Instant::now();
    node.publish_until_done("a", "1");
    println!("left after {:?}, though replies have {io_timeout:?}", began.elapsed());
    group.redis[0].signal("-CONT");
    node.wait_for_gap("a"); // PUB/SUB is at the new master, too
    let has_noticed = || {
        let state = group.redis[0].try_ask(&[b"INFO", b"replication"]);
        state.is_ok_and(|state| state.contains("role:slave"))
    };
    wait_for(has_noticed, WAIT_MAX);
    node.publish_until_done("a", "2");
}

#[test]
fn an_unusable_sentinel_is_an_error_with_a_remedy() {
    let redis = replicated();
    let sentinel =
        RedisServer::start_sentinel(free_port(), NAME, &redis[0], &["requirepass secret"]);
    let with = |change: &dyn Fn(&mut Sentinels)| {
        let mut options = under(std::iter::once(sentinel.address()));
        let mut sentinels = (**options.addresses[0].sentinels.as_ref().expect("it has")).clone();
        sentinels.addresses[0].password = "secret".into();
        change(&mut sentinels);
        options.addresses[0].sentinels = Some(Arc::new(sentinels));
        options
    };
    assert_eq!(runtime().block_on(Redis::check(&with(&|_| {}))), Ok(()));
    let plain = redis[0].address();
    let closed = free_port();
    type Change<'a> = &'a dyn Fn(&mut Sentinels);
    let rows: [(Change<'_>, bool, &str); 5] = [
        (
            &|it| it.master = "other".into(),
            true,
            "knows no master other: check engine.redis.sentinel_master_name",
        ),
        (&|it| it.addresses[0].password = "wrong".into(), true, "engine.redis.sentinel_password"),
        (&|it| it.addresses[0].password = String::new(), true, "engine.redis.sentinel_password"),
        (
            &|it| it.addresses[0] = Address { is_sentinel: true, ..plain.clone() },
            true,
            "is a Redis and no Sentinel",
        ),
        (&|it| it.addresses[0].port = closed, false, "engine.redis.sentinel_address"),
    ];
    for (change, is_permanent, expected) in rows {
        let options = with(change);
        let error = checked_error(&options);
        let message = error.to_string();
        assert!(message.contains(expected), "{message}");
        let sentinels = options.addresses[0].sentinels.as_ref().expect("it has");
        assert!(message.contains(&sentinels.addresses[0].to_string()), "{message}");
        assert!(!message.contains("secret") && !message.contains("wrong "), "{message}");
        assert_eq!(error.is_permanent(), is_permanent, "{message}");
    }
    let mistaken = Address { password: "secret".into(), ..sentinel.address() };
    let error =
        checked_error(&RedisOptions { addresses: vec![mistaken], ..RedisOptions::default() });
    assert!(error.to_string().contains("is a Sentinel, which keeps nothing"), "{error}");
}

#[test]
fn discovered_sentinels_are_asked_when_the_configured_one_is_gone() {
    let mut group = Group::start(&[]);
    let node = Node::start(&under(std::iter::once(group.sentinels[0].address())));
    node.publish_until_done("a", "1");
    for other in &group.sentinels[1..] {
        wait_for(|| other.ask("CLIENT LIST").contains("name=watcher"), WAIT_MAX);
    }
    group.sentinels[0].kill();
    group.redis[0].kill();
    // Two of three are still enough for an election.
    node.publish_until_done("a", "2");
    node.wait_until_healthy();
}

#[test]
fn a_start_waits_for_sentinels() {
    let redis = replicated();
    let ports = [free_port(), free_port()];
    let node =
        Node::start(&under(ports.iter().map(|port| Address { port: *port, ..Address::default() })));
    assert_eq!(node.publish("a", "1"), Err(BrokerError::Unavailable));
    wait_for(|| node.redis.health().current_error().is_some(), WAIT_MAX);
    let error =
        node.redis.health().current_error().expect("no Sentinel knows the master").to_string();
    assert!(error.contains("engine.redis.sentinel_address"), "{error}");
    let _sentinel = RedisServer::start_sentinel(ports[1], NAME, &redis[0], &[]);
    node.wait_until_healthy();
    assert_eq!(node.publish_until_done("a", "1").offset, 1);
}

const NAME: &str = "main";
