//! Maps under many faults, random with a fixed seed: writers on two nodes, and subscribers that page, follow and recover.
//! In: the faults of `soak.rs` → out: every subscriber has the state of the server, and no acknowledged change was overwritten unseen.
//! Uses real processes. Never: sleeps; faults have a length, and everything else is waited for.
//! Changed here: what clients of maps do. Longer by hand: `SOAK_TROUBLES=500 SOAK_SEED=7 cargo test -p fanwire-redis --test it map_soak`.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};

use fanwire_broker::map::{
    ChangesQuery, MapBroker, MapPublish, MapRetention, MapSuppression, PositionLost, StateQuery,
};
use fanwire_broker::{Epoch, Position, StreamSlice};
use fanwire_protocol::Publication;
use fanwire_testing::{pause, wait_for};
use rand::rngs::StdRng;
use rand::{Rng as _, SeedableRng as _};

use crate::maps::{Map, RECOVERABLE, removal, value};
use crate::node::{Node, WAIT_MAX};
use crate::soak::{End, Setup, number};

/// A subscriber of the map, as a client of the protocol acts.
struct Subscriber {
    node: usize,
    position: Position,
    state: BTreeMap<String, String>,
    recovered: usize,
    lost: usize,
}

impl Subscriber {
    fn new(node: usize) -> Self {
        let position = Position::default();
        Self { node, position, state: BTreeMap::new(), recovered: 0, lost: 0 }
    }

    fn take(&mut self, change: Publication, epoch: Epoch, nodes: &[Node; 2]) {
        let is_next = change.offset == self.position.offset + 1;
        if epoch == self.position.epoch && change.offset <= self.position.offset {
            return;
        }
        if epoch != self.position.epoch || !is_next {
            return self.recover(nodes);
        }
        self.position.offset = change.offset;
        self.apply(change);
    }

    fn apply(&mut self, change: Publication) {
        if change.removed {
            self.state.remove(&change.key);
        } else {
            let data = String::from_utf8_lossy(&change.data).into_owned();
            self.state.insert(change.key, data);
        }
    }

    /// Continues at its position, or reads the state again if the server says that it must.
    fn recover(&mut self, nodes: &[Node; 2]) {
        let map = map_of(&nodes[self.node]);
        let slice = match follow(&map, Some(self.position)) {
            Ok(slice) => {
                self.recovered += 1;
                slice
            }
            Err(PositionLost) => {
                self.lost += 1;
                wait_for(|| self.read_state(&map).ok_or("the state"), WAIT_MAX)
            }
        };
        self.position = slice.top;
        slice.publications.into_iter().for_each(|change| self.apply(change));
    }

    /// Reads all pages. Returns what has changed since the first one; `None` when it has to begin again.
    fn read_state(&mut self, map: &Map<'_>) -> Option<StreamSlice> {
        self.state.clear();
        let mut query = StateQuery { limit: Some(5), ..StateQuery::default() };
        let mut first = None;
        loop {
            let page = map.page(&query).ok()?.ok()?;
            let first = *first.get_or_insert(page.top);
            page.entries.into_iter().for_each(|entry| self.apply(entry));
            if page.cursor.is_empty() {
                return follow(map, Some(first)).ok();
            }
            query.cursor = page.cursor;
            query.epoch = first.epoch;
        }
    }
}

/// Waits until Redis answers.
fn follow(map: &Map<'_>, since: Option<Position>) -> Result<StreamSlice, PositionLost> {
    let query = since.map(|_| ChangesQuery { since, ..ChangesQuery::default() });
    let attempt = || {
        let followed = MapBroker::follow(&map.node.redis, map.channel, query, Instant::now());
        followed.wait().map_err(|_| map.node.redis.health())
    };
    wait_for(attempt, 3 * WAIT_MAX)
}

/// Sets and removes keys. Returns how many calls were acknowledged.
fn write(node: &Node, seed: u64, is_over: &AtomicBool) -> usize {
    let map = map_of(node);
    let mut chance = StdRng::seed_from_u64(seed);
    let mut acknowledged = 0;
    while !is_over.load(Relaxed) {
        let key = format!("key {}", chance.random_range(0..40));
        let now = Instant::now();
        let is_done = if chance.random_bool(0.2) {
            node.redis.remove(map.channel, removal(&key), now).wait().is_ok()
        } else {
            map.publish_at(value(&key, &chance.random::<u32>().to_string()), now).is_ok()
        };
        acknowledged += usize::from(is_done);
        pause(BETWEEN_CALLS);
    }
    acknowledged
}

/// Sets a key with expected positions. Returns the positions on which acknowledged changes were built.
fn compare_and_set(node: &Node, is_over: &AtomicBool) -> Vec<Position> {
    let map = map_of(node);
    let mut expected = Position::default();
    let mut bases = Vec::new();
    while !is_over.load(Relaxed) {
        pause(BETWEEN_CALLS);
        let next = MapPublish { expected: Some(expected), ..value("shared", "1") };
        let Ok(outcome) = map.publish_at(next, Instant::now()) else { continue };
        match outcome.suppression {
            None => bases.push(expected),
            Some(MapSuppression::PositionMismatch(Some(_))) => {}
            // It has expired, or Redis has lost it.
            Some(_) => {
                let _ = map.publish_at(value("shared", "0"), Instant::now());
            }
        }
        expected = outcome.position;
    }
    bases
}

fn take_deliveries(nodes: &[Node; 2], subscribers: &mut [Subscriber]) {
    for (at, node) in nodes.iter().enumerate() {
        for (change, epoch) in node.publications_so_far() {
            let here = subscribers.iter_mut().filter(|one| one.node == at);
            here.for_each(|one| one.take(change.clone(), epoch, nodes));
        }
        if !node.gaps_so_far().is_empty() {
            let here = subscribers.iter_mut().filter(|one| one.node == at);
            here.for_each(|one| one.recover(nodes));
        }
        node.sweep(Instant::now());
    }
}

/// Compares the subscribers at the newest position with the server. Returns how many they are.
fn compare(subscribers: &[Subscriber], nodes: &[Node; 2]) -> usize {
    let mut server = Subscriber::new(0);
    let Some(slice) = server.read_state(&map_of(&nodes[0])) else { return 0 };
    let has_changed = !slice.publications.is_empty();
    let at_top = subscribers.iter().filter(|one| !has_changed && one.position == slice.top);
    let states = at_top.map(|one| assert_eq!(one.state, server.state, "at {:?}", slice.top));
    states.count()
}

fn soak(seed: u64, faults: usize) {
    let mut setup = Setup::new(seed);
    let nodes = &setup.start_nodes();
    for node in nodes {
        node.subscribe("a");
        node.wait_until_healthy();
    }
    let mut subscribers = [0, 1, 0, 1].map(Subscriber::new);
    subscribers.iter_mut().for_each(|one| one.recover(nodes));
    let is_over = AtomicBool::new(false);
    let mut chance = StdRng::seed_from_u64(seed + 1);
    let (written, mut bases) = std::thread::scope(|scope| {
        let (is_over, _end) = (&is_over, End(&is_over));
        let writers =
            [0, 1].map(|at| scope.spawn(move || write(&nodes[at], seed + at as u64, is_over)));
        let setters = [0, 1].map(|at| scope.spawn(move || compare_and_set(&nodes[at], is_over)));
        let injecting = scope.spawn(|| setup.inject_all(faults));
        while !injecting.is_finished() {
            take_deliveries(nodes, &mut subscribers);
            if chance.random_bool(0.1) {
                compare(&subscribers, nodes);
            }
            if chance.random_bool(0.02) {
                // A client returns to the other node with its position, or without one.
                let one = &mut subscribers[chance.random_range(0..4)];
                one.node = 1 - one.node;
                if chance.random() {
                    one.position.epoch = Epoch::random();
                }
                one.recover(nodes);
            }
            pause(BETWEEN_CALLS);
        }
        is_over.store(true, Relaxed);
        injecting.join().expect("every fault was injected");
        let written = writers.map(|one| one.join().expect("every call ended"));
        let bases = setters.map(|one| one.join().expect("every call ended"));
        (written, bases.concat())
    });
    nodes.iter().for_each(Node::wait_until_healthy);
    let map = map_of(&nodes[0]);
    let last = wait_for(|| map.publish_at(value("last", "1"), Instant::now()), WAIT_MAX).position;
    let has_settled = || {
        take_deliveries(nodes, &mut subscribers);
        let at_top = compare(&subscribers, nodes);
        at_top == subscribers.len() && subscribers[0].position.offset >= last.offset
    };
    wait_for(has_settled, 3 * WAIT_MAX);
    let count = bases.len();
    bases.sort_unstable_by_key(|base| (base.offset, base.epoch.to_string()));
    bases.dedup();
    assert_eq!(bases.len(), count, "seed {seed}: two changes were built on the same one");
    let recovered: usize = subscribers.iter().map(|one| one.recovered).sum();
    let lost: usize = subscribers.iter().map(|one| one.lost).sum();
    println!("{written:?} written, {recovered} recovered, {lost} lost positions");
    assert!(recovered > 0 && lost > 0, "faults had an effect");
}

#[test]
fn random_faults_leave_every_subscriber_with_the_state_of_the_server() {
    soak(number("SOAK_SEED").unwrap_or(1), number("SOAK_TROUBLES").unwrap_or(8) as usize);
}

/// Entries expire soon, so that sweeps take part.
fn map_of(node: &Node) -> Map<'_> {
    Map::of(node, MapRetention { key_ttl: Duration::from_millis(700), ..RECOVERABLE })
}

/// Leaves the processors to other processes.
const BETWEEN_CALLS: Duration = Duration::from_millis(2);
