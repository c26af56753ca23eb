//! Redis Cluster: channels of all slots, slots that move and masters that die under load, and servers that are no Cluster.
//! In: Clusters of real processes → out: order, completeness, reported gaps, errors with a remedy.
//! Uses real processes. Never: sleeps; it waits for what must happen.
//! A new fault of a Cluster is a test here; a single Redis is tested in `faults.rs`.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};

use fanwire_broker::{Broker as _, Bus as _, Position, Presence as _, PublishOptions, Query};
use fanwire_protocol::{ClientInfo, Publication};
use fanwire_redis::{Address, Redis, RedisError, RedisOptions};
use fanwire_testing::{free_port, wait_for};

use crate::node::{Event, Node, WAIT_MAX, retention, runtime};
use crate::server::RedisServer;
use crate::slots::Slots;

fn checked(seeds: Vec<Address>) -> Result<(), RedisError> {
    let options = RedisOptions { clusters: vec![seeds], ..RedisOptions::default() };
    runtime().block_on(Redis::check(&options))
}

#[test]
fn other_servers_are_refused_by_name() {
    let single = RedisServer::start(&[]);
    let error = checked(vec![single.address()]).expect_err("it stands alone");
    assert!(error.is_permanent());
    let message = error.to_string();
    assert!(
        message
            .contains("is no node of a Cluster: name a standalone Redis in engine.redis.address")
    );
    assert!(message.contains(&single.address().to_string()), "{message}");
    let absent = Address { port: free_port(), ..Address::default() };
    assert!(!checked(vec![absent.clone()]).expect_err("it is not there").is_permanent());
    let error = checked(vec![absent, single.address()]).expect_err("both are wrong");
    assert!(matches!(error, RedisError::NotCluster { .. }), "{error}");
}

#[test]
fn channels_of_all_slots_are_served_and_one_seed_is_enough() {
    let cluster = Slots::start(0);
    let absent = Address { port: free_port(), ..Address::default() };
    let seeds = vec![absent, cluster.nodes[1].address()];
    assert_eq!(checked(seeds.clone()), Ok(()));
    let io_timeout = Duration::from_secs(20);
    let options = RedisOptions { clusters: vec![seeds], io_timeout, ..RedisOptions::default() };
    let nodes = [Node::start(&options), Node::start(&options)];
    let channels: Vec<String> = (0..3_000).map(|number| format!("channel:{number}")).collect();
    channels.iter().for_each(|channel| nodes[1].redis.subscribe(channel));
    channels.iter().for_each(|channel| nodes[1].subscribe(channel));
    let publish = |channel: &String| {
        let publication = Publication { data: "x".into(), ..Publication::default() };
        let options = PublishOptions::default();
        nodes[0].redis.publish(channel, publication, &options, retention(), Instant::now())
    };
    let answers: Vec<_> = channels.iter().map(publish).collect();
    for answer in answers {
        assert_eq!(answer.wait().map(|position| position.offset), Ok(1));
    }
    let mut arrived: Vec<String> = channels.iter().map(|_| nodes[1].event().0).collect();
    let mut expected = channels.clone();
    arrived.sort();
    expected.sort();
    assert_eq!(arrived, expected);
    for node in &cluster.nodes {
        let count: usize = node.ask("DBSIZE")[1..].trim().parse().expect("a number");
        assert!(count > 1_000, "{count} keys, of 6,000");
    }
    assert_eq!(nodes.map(|node| node.redis.health().refused_count()), [0, 0]);
}

#[test]
fn nodes_exchange_messages_and_share_members() {
    let cluster = Slots::start(0);
    let [one, other] = [(); 2].map(|()| Node::start(&cluster.options()));
    let (sender, words) = std::sync::mpsc::channel();
    let subscribing =
        other.redis.subscribe_to_nodes("two", move |word| sender.send(word.to_vec()).is_ok());
    runtime().block_on(subscribing);
    assert_eq!(one.redis.send(None, "all".into()).wait(), Ok(1), "the number of receivers");
    assert_eq!(words.recv().expect("a word"), b"all");
    assert_eq!(one.redis.send(Some("two"), "you".into()).wait(), Ok(1));
    assert_eq!(words.recv().expect("a word"), b"you");
    let member = ClientInfo { client: "c".into(), ..Default::default() };
    let now = Instant::now();
    let ttl = Duration::from_secs(60);
    for channel in ["a", "b", "c", "d", "e"] {
        one.redis.add(channel, member.clone(), ttl, now).wait().expect("it is there");
        let seen = other.redis.members(channel, now).wait().expect("it is there");
        assert_eq!(seen.len(), 1);
    }
}

/// A fault of one Cluster does not affect the other.
#[test]
fn several_clusters_share_the_channels() {
    let clusters = [Slots::start(0), Slots::start(0)];
    let seeds = clusters.iter().flat_map(|cluster| cluster.options().clusters).collect();
    let options = RedisOptions { clusters: seeds, ..RedisOptions::default() };
    assert_eq!(runtime().block_on(Redis::check(&options)), Ok(()));
    let [one, other] = [(); 2].map(|()| Node::start(&options));
    let (sender, words) = std::sync::mpsc::channel();
    let subscribing =
        other.redis.subscribe_to_nodes("two", move |word| sender.send(word.to_vec()).is_ok());
    runtime().block_on(subscribing);
    one.redis.send(Some("two"), "you".into()).wait().expect("the Cluster is there");
    assert_eq!(words.recv().expect("a word"), b"you");
    let channels: Vec<String> = (0..200).map(|number| format!("channel:{number}")).collect();
    channels.iter().for_each(|channel| other.subscribe(channel));
    for channel in &channels {
        let position = one.publish_until_done(channel, "1");
        assert_eq!(other.event(), (channel.clone(), "1".into(), position));
    }
    let mut places = [Vec::new(), Vec::new()];
    for channel in &channels {
        let has = clusters.each_ref().map(|cluster| {
            let (node, slot) = cluster.owner(channel);
            cluster.nodes[node].ask(&format!("CLUSTER COUNTKEYSINSLOT {slot}")) != ":0\r\n"
        });
        assert!(has.contains(&true), "{channel}");
        if has != [true, true] {
            places[usize::from(has[1])].push(channel); // otherwise another channel has its slot
        }
    }
    let [first, second] = places.map(|channels| channels.len());
    assert!(first > 60 && second > 60, "{first} and {second} of 200");
    let moving = &channels[0];
    let cluster = &clusters;
    let lost = other.redis.health().lost_count();
    for cluster in cluster {
        let (from, slot) = cluster.owner(moving);
        cluster.migrate(slot, from, (from + 1) % 3);
    }
    other.wait_for_gap(moving);
    let position = one.publish_until_done(moving, "2");
    assert_eq!(arrivals(&other, moving, position).len(), 1);
    let slice = other.read(moving).expect("it is there");
    assert_eq!((slice.inherited.offset, slice.top), (1, position));
    for channel in &channels[1..] {
        let position = one.publish_until_done(channel, "2");
        assert_eq!(arrivals(&other, channel, position).len(), 1);
    }
    assert_eq!(other.redis.health().lost_count(), lost);
}

/// Publishes numbers until it is stopped, each until it succeeds.
fn publish_until(node: &Node, channel: &str, is_over: &AtomicBool) -> Vec<(Position, String)> {
    let mut acknowledged = Vec::new();
    let by = Instant::now() + Duration::from_secs(60);
    while !is_over.load(Relaxed) {
        assert!(Instant::now() < by, "another thread has failed");
        let data = acknowledged.len().to_string();
        acknowledged.push((node.publish_until_done(channel, &data), data));
    }
    acknowledged
}

/// All events for `channel` up to and with `last`.
fn arrivals(node: &Node, channel: &str, last: Position) -> Vec<Event> {
    let mut arrived = Vec::new();
    while arrived.last().is_none_or(|(_, _, position)| *position != last) {
        let event = node.event();
        if event.0 == channel {
            arrived.push(event);
        }
    }
    arrived
}

fn stored(node: &Node, channel: &str) -> BTreeMap<u64, String> {
    let query = Query::default();
    let keep = fanwire_broker::Retention { size: 1_000_000, ..retention() };
    let slice = node.redis.history(channel, query, keep, Instant::now()).wait();
    let publications = slice.expect("it is there").publications;
    let text = |data: &[u8]| String::from_utf8_lossy(data).into_owned();
    publications.iter().map(|found| (found.offset, text(&found.data))).collect()
}

#[test]
fn a_slot_that_moves_under_load_loses_nothing_and_reports_gaps() {
    let cluster = Slots::start(0);
    let [publisher, follower] = [(); 2].map(|()| Node::start(&cluster.options()));
    let channel = "moving";
    let is_over = AtomicBool::new(false);
    let (from, slot) = cluster.owner(channel);
    follower.subscribe(channel);
    let acknowledged = std::thread::scope(|scope| {
        let publishing = scope.spawn(|| publish_until(&publisher, channel, &is_over));
        for _ in 0..20 {
            follower.event();
        }
        for step in 0..4 {
            cluster.migrate(slot, (from + step) % 3, (from + step + 1) % 3);
            follower.wait_for_gap(channel);
        }
        is_over.store(true, Relaxed);
        publishing.join().expect("every call ended")
    });
    let last = publisher.publish_until_done(channel, "the last");
    follower.subscribe(channel);
    let stored = stored(&publisher, channel);
    let offsets: Vec<u64> = acknowledged.iter().map(|(position, _)| position.offset).collect();
    assert!(offsets.windows(2).all(|pair| pair[0] < pair[1]), "in the order of the publisher");
    let kept = last.offset.saturating_sub(999);
    for (position, data) in acknowledged.iter().filter(|(position, _)| position.offset >= kept) {
        assert_eq!(&stored[&position.offset], data);
    }
    let last = publisher.publish_until_done(channel, "at the new master");
    let arrived = arrivals(&follower, channel, last);
    let offsets: Vec<u64> = arrived.iter().map(|(_, _, position)| position.offset).collect();
    assert!(offsets.windows(2).all(|pair| pair[0] < pair[1]), "in order, nothing twice");
    assert_eq!(publisher.redis.health().refused_count(), 0);
}

#[test]
fn calls_for_a_migrating_slot_are_redirected_or_wait() {
    let cluster = Slots::start(0);
    let io_timeout = Duration::from_secs(20);
    let node = Node::start(&RedisOptions { io_timeout, ..cluster.options() });
    let (from, slot) = cluster.owner("a");
    let to = (from + 1) % 3;
    let first = node.publish("a", "1").expect("it is there");
    cluster.begin_to_migrate(slot, from, to);
    let removed = node.redis.remove_history("a", Instant::now()).wait();
    assert_eq!(removed, Ok(()), "one key, asked for where it is now");
    let publication = Publication { data: "2".into(), ..Publication::default() };
    let options = PublishOptions::default();
    let waiting = node.redis.publish("a", publication, &options, retention(), Instant::now());
    let began = Instant::now();
    while began.elapsed() < Duration::from_secs(2) {
        node.publish_until_done("elsewhere", "1"); // a migration takes time: the topology is refreshed again and again
    }
    cluster.migrate(slot, from, to);
    let second = waiting.wait().expect("it waited for its slot");
    assert_eq!(second.offset, 2);
    let slice = node.read("a").expect("it is there");
    assert_eq!(slice.top, second);
    assert!(slice.continues(first.offset, first.epoch.as_str()), "of the master before");
    let offsets: Vec<u64> = slice.publications.iter().map(|found| found.offset).collect();
    assert_eq!(offsets, [2], "the first was removed");
}

/// An unfinished migration must not fill the memory with waiting calls.
#[test]
fn calls_that_wait_for_a_migrating_slot_are_limited_in_bytes() {
    let cluster = Slots::start(0);
    let io_timeout = Duration::from_secs(60);
    let command_connections = 1;
    let node = Node::start(&RedisOptions { io_timeout, command_connections, ..cluster.options() });
    let (from, slot) = cluster.owner("a");
    let to = (from + 1) % 3;
    let mut others = (0..).map(|number| format!("other:{number}"));
    let other = others.find(|other| cluster.owner(other).0 == from);
    let other = other.expect("one of many");
    node.publish_until_done("a", "1");
    cluster.begin_to_migrate(slot, from, to);
    let payload = vec![b'x'; 512 * 1024];
    let mut waiting = Vec::new();
    for _ in 0..12 {
        for _ in 0..32 {
            waiting.extend(node.begin_publish("a", payload.clone()).ready().err());
        }
        node.publish_until_done(&other, "behind them"); // now they wait for their slot
    }
    cluster.migrate(slot, from, to);
    let done = waiting.into_iter().filter_map(|answer| answer.wait().ok()).count();
    assert!((100..=300).contains(&done), "of 512 KiB, {done} could wait");
}

#[test]
fn a_master_that_dies_under_load_is_replaced_and_gaps_are_reported() {
    let mut cluster = Slots::start(1);
    let [publisher, follower] = [(); 2].map(|()| Node::start(&cluster.options()));
    let channel = "failing";
    let is_over = AtomicBool::new(false);
    let (master, _) = cluster.owner(channel);
    let mut others = (0..).map(|number| format!("other:{number}"));
    let other = others.find(|other| cluster.owner(other).0 != master).expect("one of many");
    follower.subscribe(channel);
    follower.subscribe(&other);
    let acknowledged = std::thread::scope(|scope| {
        let publishing = scope.spawn(|| publish_until(&publisher, channel, &is_over));
        for _ in 0..20 {
            follower.event();
        }
        let killed_at = Instant::now();
        cluster.nodes[master].kill();
        follower.wait_for_gap(channel);
        println!("delivered again {:?} after the master was killed", killed_at.elapsed());
        is_over.store(true, Relaxed);
        publishing.join().expect("every call ended")
    });
    let last = publisher.publish_until_done(channel, "the last");
    let stored = stored(&publisher, channel);
    assert!(stored.keys().copied().is_sorted());
    let is_kept =
        |(position, data): &&(Position, String)| stored.get(&position.offset) == Some(data);
    let lost = acknowledged.iter().rev().take(500).filter(|one| !is_kept(one)).count();
    println!("{lost} acknowledged publications were lost, of {}", acknowledged.len());
    arrivals(&follower, channel, last);
    let position = publisher.publish_until_done(&other, "was never away");
    arrivals(&follower, &other, position);
    follower.wait_until_healthy();
}

/// A replica that is promoted with the help of its master has all writes. The old master becomes its replica and still
/// sends publications: no subscriber may get one twice.
#[test]
fn a_master_that_hands_over_under_load_loses_nothing() {
    let cluster = Slots::start(1);
    let [publisher, follower] = [(); 2].map(|()| Node::start(&cluster.options()));
    let channel = "handed-over";
    let is_over = AtomicBool::new(false);
    let (master, _) = cluster.owner(channel);
    follower.subscribe(channel);
    let acknowledged = std::thread::scope(|scope| {
        let publishing = scope.spawn(|| publish_until(&publisher, channel, &is_over));
        for _ in 0..20 {
            follower.event();
        }
        cluster.promote(master + 3);
        follower.wait_for_gap(channel);
        is_over.store(true, Relaxed);
        publishing.join().expect("every call ended")
    });
    let last = publisher.publish_until_done(channel, "the last");
    let stored = stored(&publisher, channel);
    for (position, data) in acknowledged.iter().rev().take(900) {
        assert_eq!(&stored[&position.offset], data);
    }
    let arrived = arrivals(&follower, channel, last);
    let offsets: Vec<u64> = arrived.iter().map(|(_, _, position)| position.offset).collect();
    assert!(offsets.windows(2).all(|pair| pair[0] < pair[1]), "in order, nothing twice");
    follower.wait_until_healthy();
}

/// Connections to a master that hangs are closed after a while, as to one that is gone.
#[test]
fn a_master_that_hangs_is_replaced_and_returns_as_a_replica() {
    let cluster = Slots::start(1);
    let io_timeout = Duration::from_millis(500);
    let options = RedisOptions { io_timeout, ..cluster.options() };
    let node = Node::start(&options);
    let (master, _) = cluster.owner("a");
    node.publish_until_done("a", "0");
    node.wait_until_healthy();
    node.subscribe("a");
    node.publish_until_done("a", "1");
    cluster.nodes[master].signal("-STOP");
    node.wait_for_gap("a");
    let position = node.publish_until_done("a", "2");
    arrivals(&node, "a", position);
    cluster.nodes[master].signal("-CONT");
    let is_replica = || cluster.nodes[master].ask("INFO replication").contains("role:slave");
    wait_for(is_replica, WAIT_MAX);
    let position = node.publish_until_done("a", "3");
    arrivals(&node, "a", position);
    node.wait_until_healthy();
}
