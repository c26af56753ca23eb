//! Maps of several nodes: expiry, a new master, lost and foreign data.
//! In: changes through engines on one Redis → out: what all of them deliver and read.
//! Uses `node` and `server`. Never: sleeps; a test sweeps at times that it chooses.
//! Promises of all engines are in the conformance suite; random faults are in `map_soak.rs`.

use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::{Duration, Instant};

use bytes::Bytes;
use fanwire_broker::map::{
    ChangesQuery, KeyMode, MapBroker as _, MapChannel, MapOutcome, MapPublish, MapRemoval,
    MapRetention, MapSuppression, PositionLost, StatePage, StateQuery,
};
use fanwire_broker::{BrokerError, Epoch, Position, Retention, StreamSlice};
use fanwire_node::options::{MapMode, MapOptions, Namespace, Options, SubscriptionType};
use fanwire_protocol::{ErrorCode, Publication};
use fanwire_redis::RedisOptions;
use fanwire_testing::wait_for;

use crate::control::Member;
use crate::node::{Node, WAIT_MAX};
use crate::server::RedisServer;

pub(crate) const RECOVERABLE: MapRetention = MapRetention {
    key_ttl: Duration::from_secs(60),
    stream: Retention {
        size: 1000,
        ttl: Duration::from_secs(600),
        meta_ttl: Duration::from_secs(6000),
    },
    entries_max: 10_000,
    bytes_max: 1 << 24,
};

const PERSISTENT: MapRetention = MapRetention {
    key_ttl: Duration::ZERO,
    stream: Retention { meta_ttl: Duration::ZERO, ..RECOVERABLE.stream },
    ..RECOVERABLE
};

const EPHEMERAL: MapRetention =
    MapRetention { stream: Retention { size: 0, ..RECOVERABLE.stream }, ..RECOVERABLE };

/// The map of a node.
pub(crate) struct Map<'a> {
    pub(crate) node: &'a Node,
    pub(crate) channel: MapChannel<'a>,
}

impl<'a> Map<'a> {
    pub(crate) fn of(node: &'a Node, retention: MapRetention) -> Self {
        Self { node, channel: MapChannel { name: "a", retention } }
    }

    pub(crate) fn publish_at(
        &self,
        publish: MapPublish,
        now: Instant,
    ) -> Result<MapOutcome, BrokerError> {
        let answer = self.node.redis.publish(self.channel, publish, now).wait()?;
        Ok(answer.expect("nothing to refuse"))
    }

    pub(crate) fn set(&self, key: &str, data: &str) -> Position {
        let outcome = self.publish_at(value(key, data), Instant::now());
        outcome
            .unwrap_or_else(|_| panic!("{:?}", self.node.redis.health().current_error()))
            .position
    }

    pub(crate) fn page(
        &self,
        query: &StateQuery,
    ) -> Result<Result<StatePage, PositionLost>, BrokerError> {
        self.node.redis.read_state(self.channel, query, Instant::now()).wait()
    }

    /// All entries as `key=data`, sorted.
    pub(crate) fn state(&self) -> Vec<String> {
        let page = self.page(&StateQuery::default()).expect("Redis is there").expect("any epoch");
        let mut entries: Vec<_> = page.entries.iter().map(line).collect();
        entries.sort();
        entries
    }

    fn top(&self) -> Position {
        let query = StateQuery { limit: Some(0), ..StateQuery::default() };
        self.page(&query).expect("Redis is there").expect("any epoch").top
    }

    pub(crate) fn changes_since(
        &self,
        since: Position,
    ) -> Result<Result<StreamSlice, PositionLost>, BrokerError> {
        let query = ChangesQuery { since: Some(since), ..ChangesQuery::default() };
        self.node.redis.read_stream(self.channel, query, Instant::now()).wait()
    }

    fn follow(&self) {
        self.node.subscribe(self.channel.name);
        let followed = self.node.redis.follow(self.channel, None, Instant::now());
        followed.wait().expect("Redis is there").expect("no position to lose");
    }

    /// The next delivery: `key=data` or `-key`, and its offset.
    fn next(&self) -> (String, u64) {
        let publication = self.node.publication();
        (line(&publication), publication.offset)
    }
}

pub(crate) fn value(key: &str, data: &str) -> MapPublish {
    let key = key.to_owned();
    let data = data.to_owned().into();
    let publication = Publication { key, data, ..Publication::default() };
    MapPublish { publication, ..MapPublish::default() }
}

pub(crate) fn removal(key: &str) -> MapRemoval {
    let publication = Publication { key: key.to_owned(), ..Publication::default() };
    MapRemoval { publication, ..MapRemoval::default() }
}

fn line(change: &Publication) -> String {
    if change.removed {
        return format!("-{}", change.key);
    }
    format!("{}={}", change.key, String::from_utf8_lossy(&change.data))
}

fn seconds(count: u64) -> Duration {
    Duration::from_secs(count)
}

#[test]
fn entries_expire_once_in_the_order_of_their_changes_whatever_node_removes_them() {
    let server = RedisServer::start(&[]);
    let nodes = [Node::start(&server.options()), Node::start(&server.options())];
    let maps = nodes.each_ref().map(|node| Map::of(node, RECOVERABLE));
    maps.iter().for_each(Map::follow);
    let now = Instant::now();
    let keys: Vec<String> = (0..250).rev().map(|number| format!("{number:03}")).collect();
    for key in &keys {
        let mut tagged = value(key, "1");
        tagged.publication.tags = [("t".to_owned(), key.clone())].into();
        maps[0].publish_at(tagged, now).expect("Redis is there");
    }
    nodes.iter().for_each(|node| node.sweep(now + seconds(59)));
    maps[1].publish_at(value("999", "1"), now + seconds(30)).expect("Redis is there");
    nodes.iter().for_each(|node| node.sweep(now + seconds(61)));
    for (map, node) in maps.iter().zip(&nodes) {
        let sets = keys.iter().map(|key| format!("{key}=1")).chain(["999=1".to_owned()]);
        let removals = keys.iter().map(|key| format!("-{key}"));
        for (offset, expect) in (1..).zip(sets.chain(removals)) {
            let publication = node.publication();
            assert_eq!((line(&publication), publication.offset), (expect, offset));
            if publication.removed {
                assert_eq!(publication.tags["t"], publication.key, "a removal has the tags");
                assert!(publication.time > 0);
            }
        }
        assert_eq!(map.state(), ["999=1"]);
    }
}

#[test]
fn entries_that_a_dead_node_left_are_removed_by_the_first_reader() {
    let server = RedisServer::start(&[]);
    let node = Node::start(&server.options());
    let map = Map::of(&node, RECOVERABLE);
    let first = map.set("a", "1");
    let ended = "1000000000000";
    assert_eq!(server.ask(&format!("ZADD fanwire.map.deadlines.{{:a}} {ended} a")), ":0\r\n");
    drop(node);
    let other = Node::start(&server.options());
    let map = Map::of(&other, RECOVERABLE);
    assert!(map.state().is_empty());
    let removed = map.changes_since(first).expect("Redis is there").expect("it is stored");
    assert_eq!(removed.publications.iter().map(line).collect::<Vec<_>>(), ["-a"]);
    for kind in ["entries", "deadlines"] {
        assert_eq!(server.ask(&format!("EXISTS fanwire.map.{kind}.{{:a}}")), ":0\r\n");
    }
}

#[test]
fn a_refresh_moves_the_end_of_an_entry_and_an_ended_entry_exists_until_a_sweep() {
    let server = RedisServer::start(&[]);
    let node = Node::start(&server.options());
    for retention in [RECOVERABLE, EPHEMERAL] {
        let name = if retention.has_stream() { "a" } else { "b" };
        let map = Map { node: &node, channel: MapChannel { name, retention } };
        map.follow();
        let now = Instant::now();
        let new =
            |refreshes| MapPublish { key_mode: KeyMode::IfNew { refreshes }, ..value("k", "2") };
        let exists = Ok(Some(MapSuppression::KeyExists));
        let at = |publish, second| {
            let outcome = map.publish_at(publish, now + seconds(second));
            outcome.map(|outcome| outcome.suppression)
        };
        map.publish_at(value("k", "1"), now).expect("Redis is there");
        assert_eq!(at(new(true), 50), exists);
        node.sweep(now + seconds(100));
        assert_eq!(at(new(false), 115), exists, "it has ended, and nothing has removed it");
        node.sweep(now + seconds(116));
        assert_eq!(map.next().0, "k=1");
        assert_eq!(map.next().0, "-k");
        assert_eq!(at(new(false), 117), Ok(None));
        assert_eq!(map.next().0, "k=2");
    }
}

#[test]
fn what_a_map_needs_ends_with_its_entries_and_a_persistent_one_never_ends() {
    let server = RedisServer::start(&[]);
    let node = Node::start(&server.options());
    let ttl = |kind: &str| {
        let answer = server.ask(&format!("PTTL fanwire.map.{kind}.{{:a}}"));
        answer.trim().trim_start_matches(':').parse::<i64>().expect("a number")
    };
    // 0 for a key without an end, or no key.
    let tens_of_seconds = |kind| (ttl(kind).max(0) + 9_999) / 10_000;
    let kinds = ["entries", "deadlines", "changes", "meta"];
    Map::of(&node, RECOVERABLE).set("k", "1");
    let ends = kinds.map(tens_of_seconds);
    assert_eq!(ends, [12, 12, 60, 600], "60 s behind the last deadline");
    Map::of(&node, PERSISTENT).set("k", "2");
    let ends = kinds.map(tens_of_seconds);
    assert_eq!(ends, [0, 0, 60, 0], "there are no deadlines any more");
    for kind in kinds {
        server.ask(&format!("DEL fanwire.map.{kind}.{{:a}}"));
    }
    Map::of(&node, EPHEMERAL).set("k", "1");
    let ends = kinds.map(tens_of_seconds);
    assert_eq!(ends, [12, 12, 0, 12]);
    let unpublished = Map { node: &node, channel: MapChannel { name: "b", retention: EPHEMERAL } };
    assert!(unpublished.state().is_empty());
    assert_eq!(server.ask("KEYS *b*"), "*0\r\n", "who reads an ephemeral map stores nothing");
}

#[test]
fn another_mode_begins_another_stream_and_keeps_the_entries() {
    let server = RedisServer::start(&[]);
    let node = Node::start(&server.options());
    let recoverable = Map::of(&node, RECOVERABLE);
    let ephemeral = Map::of(&node, EPHEMERAL);
    let first = recoverable.set("a", "1");
    assert_eq!(ephemeral.set("b", "2"), Position::default());
    let page = ephemeral.page(&StateQuery::default()).expect("Redis is there").expect("any");
    assert!(page.entries.iter().all(|entry| entry.offset == 0));
    assert_eq!(recoverable.state(), ["a=1", "b=2"]);
    assert_ne!(recoverable.top().epoch, first.epoch);
    assert_eq!(recoverable.changes_since(first), Ok(Err(PositionLost)));
    assert_eq!(recoverable.set("c", "3").epoch, recoverable.top().epoch);
}

#[test]
fn a_map_of_which_redis_lost_a_part_begins_again_or_says_what_is_lost() {
    let server = RedisServer::start(&[]);
    let node = Node::start(&server.options());
    let map = Map::of(&node, RECOVERABLE);
    for lost in ["entries", "meta"] {
        let before = map.set("a", "1");
        map.set("b", "2");
        assert_eq!(server.ask(&format!("DEL fanwire.map.{lost}.{{:a}}")), ":1\r\n");
        assert!(map.state().is_empty(), "{lost}");
        assert_ne!(map.top().epoch, before.epoch, "{lost}");
        assert_eq!(map.changes_since(before), Ok(Err(PositionLost)), "{lost}");
    }
    let first = map.set("a", "1");
    let last = map.set("b", "2");
    assert_eq!(server.ask("DEL fanwire.map.changes.{:a}"), ":1\r\n");
    assert_eq!(map.changes_since(first), Ok(Err(PositionLost)));
    let nothing_missed = StreamSlice { top: last, ..StreamSlice::default() };
    assert_eq!(map.changes_since(last), Ok(Ok(nothing_missed)));
    assert_eq!(server.ask("DEL fanwire.map.deadlines.{:a}"), ":1\r\n");
    let now = Instant::now();
    node.sweep(now + seconds(61));
    wait_for(|| server.ask("ZCARD fanwire.map.deadlines.{:a}") == ":2\r\n", WAIT_MAX);
    assert_eq!(map.state(), ["a=1", "b=2"]);
}

#[test]
fn a_new_master_has_another_epoch_its_own_entries_and_refuses_pages_of_the_old_one() {
    let mut master = RedisServer::start(&["--repl-diskless-sync-delay", "0"]);
    let port = master.address().port.to_string();
    let replica = RedisServer::start(&["--replicaof", "127.0.0.1", &port]);
    let node = Node::start(&master.options());
    let map = Map::of(&node, PERSISTENT);
    map.set("first", "1");
    wait_for(|| replica.ask("EXISTS fanwire.map.entries.{:a}") == ":1\r\n", WAIT_MAX);
    for number in 0..200 {
        map.set(&format!("key {number}"), &"x".repeat(100));
    }
    wait_for(|| replica.ask("HLEN fanwire.map.entries.{:a}") == ":201\r\n", WAIT_MAX);
    let first_page = StateQuery { limit: Some(10), ..StateQuery::default() };
    let page = map.page(&first_page).expect("Redis is there").expect("any epoch");
    replica.ask("REPLICAOF NO ONE");
    let lost = map.set("lost", "1");
    master.kill();
    let other = Node::start(&replica.options());
    let map = Map::of(&other, PERSISTENT);
    assert_eq!(map.state().len(), 201);
    assert_ne!(map.top().epoch, lost.epoch);
    assert_eq!(map.changes_since(lost), Ok(Err(PositionLost)));
    for epoch in [page.top.epoch, Epoch::NONE] {
        let next = StateQuery { cursor: page.cursor.clone(), limit: Some(10), epoch, key: None };
        assert_eq!(map.page(&next), Ok(Err(PositionLost)), "the page of {epoch:?}");
    }
    let reused = map.set("other", "1");
    assert_eq!(reused.offset, lost.offset);
    assert_ne!(reused.epoch, lost.epoch, "the offset of the lost change is of another epoch");
}

#[test]
fn an_acknowledged_change_survives_a_killed_redis_that_syncs_always() {
    let mut server = RedisServer::start(&["--appendonly", "yes", "--appendfsync", "always"]);
    let node = Node::start(&RedisOptions { io_timeout: seconds(1), ..server.options() });
    let map = Map::of(&node, PERSISTENT);
    let first = map.set("a", "1");
    map.set("b", "2");
    node.redis
        .remove(map.channel, removal("a"), Instant::now())
        .wait()
        .expect("it is there")
        .expect("set");
    server.kill();
    server.restart();
    node.wait_until_healthy();
    assert_eq!(map.state(), ["b=2"]);
    assert_ne!(map.top().epoch, first.epoch);
    assert_eq!(map.changes_since(first), Ok(Err(PositionLost)));
    assert_eq!(map.set("c", "3").offset, 4);
}

/// Each writer appends its numbers to one value, on the position of the value that it has read. A call without an answer may have
/// succeeded, so its writer reads the value before it tries again.
#[test]
fn a_hundred_writers_with_expected_positions_lose_no_update_when_redis_is_killed() {
    const WRITERS: usize = 100;
    let mut server = RedisServer::start(&["--appendonly", "yes", "--appendfsync", "always"]);
    let options = || RedisOptions { io_timeout: seconds(1), ..server.options() };
    let nodes = [Node::start(&options()), Node::start(&options())];
    let maps = nodes.each_ref().map(|node| Map::of(node, PERSISTENT));
    maps[0].set("list", "");
    let appended = AtomicUsize::new(0);
    let append = |writer: usize| {
        for number in [writer, WRITERS + writer] {
            wait_for(|| append_once(&maps[writer % 2], number), 3 * WAIT_MAX);
            appended.fetch_add(1, Relaxed);
        }
    };
    std::thread::scope(|scope| {
        let append = &append;
        (0..WRITERS).for_each(|writer| drop(scope.spawn(move || append(writer))));
        for part in [WRITERS / 2, WRITERS, WRITERS * 3 / 2] {
            wait_for(|| appended.load(Relaxed) >= part, 3 * WAIT_MAX);
            server.kill();
            server.restart();
        }
    });
    // The other node may have written the last one, while this one connects again.
    let last = wait_for(|| list(&maps[0]).ok_or("it is not connected"), WAIT_MAX);
    let mut numbers = numbers_of(&last.data);
    numbers.sort_unstable();
    assert_eq!(numbers, (0..2 * WRITERS).collect::<Vec<_>>(), "each number once");
}

/// Returns whether the list has the number.
fn append_once(map: &Map<'_>, number: usize) -> bool {
    let Some(found) = list(map) else { return false };
    let mut numbers = numbers_of(&found.data);
    if numbers.contains(&number) {
        return true;
    }
    numbers.push(number);
    let words: Vec<_> = numbers.iter().map(usize::to_string).collect();
    let expected = Some(Position { offset: found.offset, epoch: found.epoch });
    let publish = MapPublish { expected, ..value("list", &words.join(" ")) };
    let outcome = map.publish_at(publish, Instant::now());
    outcome.is_ok_and(|outcome| outcome.suppression.is_none())
}

/// A value of the key "list", and its position.
struct List {
    data: Bytes,
    offset: u64,
    epoch: Epoch,
}

/// Reads the list; `None` while Redis does not answer.
fn list(map: &Map<'_>) -> Option<List> {
    let query = StateQuery { key: Some("list".into()), ..StateQuery::default() };
    let page = map.page(&query).ok()?.ok()?;
    let entry = page.entries.into_iter().next().expect("it is never removed");
    Some(List { data: entry.data, offset: entry.offset, epoch: page.top.epoch })
}

fn numbers_of(data: &[u8]) -> Vec<usize> {
    let text = std::str::from_utf8(data).expect("numbers");
    text.split_whitespace().map(|word| word.parse().expect("a number")).collect()
}

#[test]
fn a_clearing_reaches_subscribers_of_all_nodes() {
    let server = RedisServer::start(&[]);
    let nodes = [Node::start(&server.options()), Node::start(&server.options())];
    for retention in [EPHEMERAL, RECOVERABLE] {
        let maps = nodes.each_ref().map(|node| Map::of(node, retention));
        maps.iter().for_each(Map::follow);
        maps[0].set("a", "1");
        nodes[1].redis.clear(maps[1].channel, Instant::now()).wait().expect("Redis is there");
        nodes.iter().for_each(|node| node.wait_for_gap("a"));
        assert!(maps[0].state().is_empty());
    }
}

#[test]
fn a_full_redis_refuses_changes_wholly_and_removes_expired_entries() {
    let server = RedisServer::start(&["--maxmemory-policy", "noeviction"]);
    let node = Node::start(&server.options());
    let map = Map::of(&node, RECOVERABLE);
    map.follow();
    let now = Instant::now();
    map.set("a", "1");
    let top = map.set("b", "2");
    server.ask("CONFIG SET maxmemory 1");
    assert_eq!(map.publish_at(value("c", "3"), now), Err(BrokerError::Unavailable));
    assert_eq!(map.publish_at(value("a", "3"), now), Err(BrokerError::Unavailable));
    assert_eq!((map.state(), map.top()), (vec!["a=1".into(), "b=2".into()], top));
    node.redis
        .remove(map.channel, removal("a"), now)
        .wait()
        .expect("it frees memory")
        .expect("set");
    node.sweep(now + seconds(70));
    let expect = [("a=1", 1), ("b=2", 2), ("-a", 3), ("-b", 4)];
    assert!((0..4).map(|_| map.next()).eq(expect.map(|(line, offset)| (line.to_owned(), offset))));
    server.ask("CONFIG SET maxmemory 0");
    assert_eq!(map.set("c", "3").offset, 5);
}

#[test]
fn keys_of_other_types_are_errors_of_their_calls_and_destroy_nothing() {
    let server = RedisServer::start(&[]);
    let node = Node::start(&server.options());
    let map = Map::of(&node, RECOVERABLE);
    for kind in ["deadlines", "changes", "entries", "meta"] {
        map.set("a", "1");
        let name = format!("fanwire.map.{kind}.{{:a}}");
        server.ask(&format!("RENAME {name} kept"));
        server.ask(&format!("SET {name} garbage"));
        let now = Instant::now();
        assert_eq!(map.publish_at(value("b", "2"), now), Err(BrokerError::Unavailable), "{kind}");
        let removed = node.redis.remove(map.channel, removal("a"), now).wait();
        assert_eq!(removed, Err(BrokerError::Unavailable), "{kind}");
        server.ask(&format!("DEL {name}"));
        server.ask(&format!("RENAME kept {name}"));
        assert_eq!(map.state(), ["a=1"], "{kind}");
    }
    let garbage = [b"1 0 99 0 ".as_slice(), b"garbage", b"1 0 0 0 \xff"];
    for bytes in garbage {
        server.ask_with(&[b"HSET", b"fanwire.map.entries.{:a}", b"a", bytes]);
        let before = node.redis.health().foreign_count();
        assert!(map.state().is_empty());
        assert_eq!(node.redis.health().foreign_count(), before + 1);
        map.set("a", "1");
    }
    let first = map.set("a", "2");
    let id = format!("{}-0", first.offset + 1);
    server.ask(&format!("XADD fanwire.map.changes.{{:a}} {id} d garbage"));
    let second = map.set("a", "3");
    assert_ne!(second.epoch, first.epoch, "the id was taken");
    assert_eq!(map.changes_since(first), Ok(Err(PositionLost)));
    assert_eq!(map.state(), ["a=3"]);
}

#[test]
fn equal_reads_share_a_script() {
    let server = RedisServer::start(&[]);
    let node = Node::start(&server.options());
    let map = Map::of(&node, RECOVERABLE);
    map.set("a", "1");
    let query = StateQuery { limit: Some(100), ..StateQuery::default() };
    let now = Instant::now();
    let answers: Vec<_> =
        (0..500).map(|_| node.redis.read_state(map.channel, &query, now)).collect();
    for answer in answers {
        let page = answer.wait().expect("Redis is there").expect("any epoch");
        assert_eq!(page.entries.len(), 1);
    }
    assert!(node.redis.health().merged_count() >= 400);
}

/// The server API calls these methods of a node.
#[test]
fn a_map_that_one_node_changes_is_read_on_the_other() {
    let server = RedisServer::start(&[]);
    let start = || {
        let map = MapOptions { mode: MapMode::Persistent, ..MapOptions::default() };
        let boards = Namespace {
            name: "board".into(),
            subscription_type: SubscriptionType::Map,
            map,
            ..Namespace::default()
        };
        let mut options = Options::default();
        options.channel.namespaces.push(boards);
        Member::with_options(server.options(), options)
    };
    let members = [start(), start()];
    let [here, there] = members.each_ref().map(|member| member.node.maps());
    let now = Instant::now();
    let keyed = || MapPublish { idempotency_key: "once".into(), ..value("a", "1") };
    let first = here.publish("board:1", keyed(), now).wait().expect("Redis is there");
    let first = first.expect("nothing to refuse").position;
    let again = there.publish("board:1", keyed(), now).wait().expect("Redis is there");
    let suppression = Some(MapSuppression::Idempotency);
    assert_eq!(again, Ok(MapOutcome { position: first, suppression }));
    let page = there.read_state("board:1", &StateQuery::default(), now).wait();
    let page = page.expect("any epoch");
    assert_eq!(
        (page.entries.iter().map(line).collect::<Vec<_>>(), page.top),
        (vec!["a=1".to_owned()], first)
    );
    assert!(page.entries[0].time > 0);
    there.remove("board:1", removal("a"), now).wait().expect("Redis is there").expect("it is set");
    let since = ChangesQuery { since: Some(first), ..ChangesQuery::default() };
    let changes = here.read_stream("board:1", since, now).wait().expect("it is stored");
    assert_eq!(changes.publications.iter().map(line).collect::<Vec<_>>(), ["-a"]);
    assert_eq!(there.stats("board:1", now).wait().map(|stats| stats.entries), Ok(0));
    here.clear("board:1", now).wait().expect("Redis is there");
    let lost = there.read_stream("board:1", since, now).wait();
    assert_eq!(lost, Err(ErrorCode::UNRECOVERABLE_POSITION));
}
