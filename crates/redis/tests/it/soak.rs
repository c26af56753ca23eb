//! Many faults one after another, random with a fixed seed, under subscribers that recover and publishers that repeat.
//! In: a master, its replica, two nodes behind proxies → out: every subscriber has exactly the stream, unless it was told otherwise.
//! Uses real processes. Never: sleeps; faults have a length, and everything else is waited for.
//! A new fault is a variant of `Fault` here. Longer by hand: `SOAK_TROUBLES=500 SOAK_SEED=7 cargo test -p fanwire-redis --test it soak`.

use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};

use fanwire_broker::{Broker as _, Epoch, Position, Query, Retention, StreamSlice};
use fanwire_redis::RedisOptions;
use fanwire_testing::{pause, wait_for};
use rand::rngs::StdRng;
use rand::seq::SliceRandom as _;
use rand::{Rng as _, SeedableRng as _};

use crate::node::{Node, WAIT_MAX, retention};
use crate::proxy::{Network, Proxy};
use crate::server::RedisServer;

#[derive(Clone, Copy, Debug)]
enum Fault {
    /// The Redis is killed, and starts again with its last snapshot.
    Crash,
    Freeze,
    /// One node does not reach it.
    Cut,
    Flush,
    /// The replica is promoted without the last publications, and the master becomes its replica.
    Failover,
    Save,
    /// The Redis closes connections, and drops scripts.
    Refuse,
}

/// Each in turn, in random order.
const FAULTS: [Fault; 8] = [
    Fault::Crash,
    Fault::Freeze,
    Fault::Cut,
    Fault::Flush,
    Fault::Failover,
    Fault::Failover,
    Fault::Save,
    Fault::Refuse,
];

/// A master and its replica, and the proxy of each node, which leads to the current master.
pub(crate) struct Setup {
    redis: [RedisServer; 2],
    master: usize,
    pub(crate) proxies: [Proxy; 2],
    chance: StdRng,
}

impl Setup {
    pub(crate) fn new(seed: u64) -> Self {
        let redis = [(); 2].map(|()| RedisServer::start(&["--repl-diskless-sync-delay", "0"]));
        let proxies = [(); 2].map(|()| Proxy::to(&redis[0].address()));
        let setup = Self { redis, master: 0, proxies, chance: StdRng::seed_from_u64(seed) };
        setup.follow(1, 0);
        setup
    }

    /// Starts a node behind each proxy.
    pub(crate) fn start_nodes(&self) -> [Node; 2] {
        self.proxies.each_ref().map(|proxy| {
            let io_timeout = Duration::from_millis(300);
            let addresses = vec![proxy.address()];
            let connect_timeout = io_timeout;
            let options =
                RedisOptions { addresses, connect_timeout, io_timeout, ..Default::default() };
            Node::start(&options)
        })
    }

    /// Waits for at most this number of milliseconds.
    fn pause(&mut self, most_ms: u64) {
        pause(Duration::from_millis(self.chance.random_range(0..most_ms)));
    }

    fn follow(&self, replica: usize, master: usize) {
        let port = self.redis[master].address().port;
        let command = format!("REPLICAOF 127.0.0.1 {port}");
        assert_eq!(self.redis[replica].ask(&command), "+OK\r\n");
        let is_linked =
            || self.redis[replica].ask("INFO replication").contains("master_link_status:up");
        wait_for(is_linked, WAIT_MAX);
    }

    /// Injects this number of faults, each after a random pause.
    pub(crate) fn inject_all(&mut self, faults: usize) {
        let mut order = FAULTS;
        for number in 0..faults {
            if number % FAULTS.len() == 0 {
                order.shuffle(&mut self.chance);
            }
            self.pause(500);
            let fault = order[number % FAULTS.len()];
            println!("{number}: {fault:?}");
            self.inject(fault);
        }
    }

    fn inject(&mut self, fault: Fault) {
        let master = self.master;
        let other = 1 - self.master;
        match fault {
            Fault::Crash => {
                self.redis[master].kill();
                self.pause(300);
                self.redis[master].restart();
            }
            Fault::Freeze => {
                self.redis[master].signal("-STOP");
                self.pause(800);
                self.redis[master].signal("-CONT");
            }
            Fault::Cut => {
                let node = self.chance.random_range(0..2);
                let is_refused = self.chance.random();
                let [loses_commands, loses_replies] = self.chance.random();
                let bad = Network { loses_commands, loses_replies, ..Network::default() };
                self.proxies[node].set_network(Network { refuses: is_refused, ..bad });
                if is_refused {
                    self.proxies[node].reset_connections();
                }
                self.pause(800);
                self.proxies[node].repair();
                self.proxies[node].reset_connections();
            }
            Fault::Flush => drop(self.redis[master].ask("FLUSHALL")),
            Fault::Failover => {
                assert_eq!(self.redis[other].ask("REPLICAOF NO ONE"), "+OK\r\n");
                for node in 0..2 {
                    self.pause(200);
                    self.proxies[node].retarget(&self.redis[other].address());
                    self.proxies[node].reset_connections();
                }
                self.master = other;
                self.follow(master, other);
            }
            Fault::Save => drop(self.redis[master].ask("SAVE")),
            Fault::Refuse => {
                for command in
                    ["SCRIPT FLUSH", "CLIENT KILL TYPE pubsub", "CLIENT KILL TYPE normal"]
                {
                    if self.chance.random() {
                        self.redis[master].ask(command);
                    }
                }
            }
        }
    }
}

/// The publications by position: no subscriber may see another one at the same position.
#[derive(Default)]
struct Truth(HashMap<(Epoch, u64), String>);

impl Truth {
    fn holds(&mut self, Position { offset, epoch }: Position, data: &str) {
        let known = self.0.entry((epoch, offset)).or_insert_with(|| data.to_owned());
        assert_eq!(known, data, "at {offset} of {epoch}");
    }
}

/// Ends the other threads, even after a panic.
pub(crate) struct End<'a>(pub(crate) &'a AtomicBool);

impl Drop for End<'_> {
    fn drop(&mut self) {
        self.0.store(true, Relaxed);
    }
}

/// Recovers by positions, as clients and nodes do (protocol §10).
struct Subscriber {
    node: usize,
    channel: &'static str,
    position: Position,
    /// Publications since it was last told that it could not recover.
    seen: BTreeMap<u64, String>,
    recovered: usize,
    unrecovered: usize,
}

impl Subscriber {
    fn new(node: usize, channel: &'static str) -> Self {
        let position = Position::default();
        let seen = BTreeMap::new();
        Self { node, channel, position, seen, recovered: 0, unrecovered: 0 }
    }

    fn take(&mut self, data: String, to: Position, nodes: &[Node; 2]) {
        let from = self.position;
        let is_stream = from.epoch == to.epoch || from.epoch == Epoch::NONE;
        if is_stream && to.offset <= from.offset {
            return;
        }
        if !is_stream || to.offset > from.offset + 1 {
            return self.resubscribe(nodes);
        }
        assert_eq!(self.seen.insert(to.offset, data), None);
        self.position = to;
    }

    /// Subscribes with the last position until it succeeds.
    fn resubscribe(&mut self, nodes: &[Node; 2]) {
        let read = follow(&nodes[self.node], self.channel, Query::default());
        let Position { offset, epoch } = self.position;
        let is_same = read.continues(offset, epoch.as_str());
        let missed = read.publications.iter().filter(|found| found.offset > offset);
        let count = missed.clone().count() as u64;
        if is_same && offset + count == read.top.offset {
            let missed = missed.map(|found| (found.offset, text(&found.data)));
            self.seen.extend(missed);
            self.recovered += 1;
        } else {
            self.seen.clear();
            self.unrecovered += 1;
        }
        self.position = read.top;
        self.check_against(&read);
    }

    /// Checks its publications against the stream.
    fn check_against(&self, read: &StreamSlice) {
        let offsets = self.seen.keys().copied();
        let last = self.position.offset;
        assert!(
            offsets.eq(last + 1 - self.seen.len() as u64..=last),
            "{} has a hole",
            self.channel
        );
        let stored: HashMap<u64, String> =
            (read.publications.iter()).map(|found| (found.offset, text(&found.data))).collect();
        for (offset, data) in &self.seen {
            assert_eq!(
                stored.get(offset),
                Some(data),
                "{}: {offset} was silently replaced",
                self.channel
            );
        }
    }
}

fn text(data: &[u8]) -> String {
    String::from_utf8_lossy(data).into_owned()
}

fn follow(node: &Node, channel: &str, query: Query) -> StreamSlice {
    let attempt = || {
        let read = node.redis.follow(channel, Some(query), keeping_all(), Instant::now());
        read.wait().map_err(|_| node.redis.health())
    };
    wait_for(attempt, 3 * WAIT_MAX)
}

fn keeping_all() -> Retention {
    Retention { size: 10_000_000, ..retention() }
}

/// Publishes a new payload each time; returns the position of an acknowledged one.
fn publish(
    node: &Node,
    name: usize,
    is_over: &AtomicBool,
) -> Vec<(&'static str, String, Position)> {
    let mut acknowledged = Vec::new();
    for number in 0.. {
        if is_over.load(Relaxed) {
            break;
        }
        let channel = CHANNELS[number % CHANNELS.len()];
        let data = format!("{name}:{number}");
        if let Ok(position) = node.publish_in(channel, data.clone(), keeping_all()).wait() {
            acknowledged.push((channel, data, position));
        }
        pause(BETWEEN_CALLS);
    }
    acknowledged
}

/// Subscribes and unsubscribes other channels on both nodes.
fn churn_subscriptions(nodes: &[Node; 2], seed: u64, is_over: &AtomicBool) {
    let mut chance = StdRng::seed_from_u64(seed);
    let name = |number: u32| format!("passing:{number}");
    while !is_over.load(Relaxed) {
        let node = &nodes[chance.random_range(0..2)];
        let number = chance.random_range(0..40);
        if chance.random() {
            node.redis.subscribe(&name(number));
        } else {
            node.redis.unsubscribe(&name(number));
        }
        pause(BETWEEN_CALLS);
    }
    for number in 0..40 {
        nodes.iter().for_each(|node| node.redis.unsubscribe(&name(number)));
    }
}

/// Takes the deliveries of the nodes.
fn take_deliveries(nodes: &[Node; 2], subscribers: &mut [Subscriber], truth: &mut Truth) {
    for (at, node) in nodes.iter().enumerate() {
        for (channel, data, position) in node.events_so_far() {
            truth.holds(position, &data);
            let here = |one: &&mut Subscriber| one.node == at && one.channel == channel;
            let here = subscribers.iter_mut().filter(here);
            here.for_each(|one| one.take(data.clone(), position, nodes));
        }
        for channel in node.gaps_so_far() {
            let here = |one: &&mut Subscriber| one.node == at && one.channel == channel;
            for one in subscribers.iter_mut().filter(here) {
                if follow(node, one.channel, Query::TOP).top != one.position {
                    one.resubscribe(nodes);
                }
            }
        }
    }
}

fn soak(seed: u64, faults: usize) {
    let mut setup = Setup::new(seed);
    let nodes = setup.start_nodes();
    for node in &nodes {
        CHANNELS.iter().for_each(|channel| node.redis.subscribe(channel));
        node.wait_until_healthy();
    }
    let mut subscribers: Vec<_> =
        (0..2).flat_map(|node| CHANNELS.map(|channel| Subscriber::new(node, channel))).collect();
    subscribers.iter_mut().for_each(|one| one.resubscribe(&nodes));
    let mut truth = Truth::default();
    let is_over = AtomicBool::new(false);
    let nodes = &nodes;
    let mut chance = StdRng::seed_from_u64(seed + 1);
    let acknowledged: Vec<_> = std::thread::scope(|scope| {
        let (is_over, _end) = (&is_over, End(&is_over));
        let publishers =
            [0, 1].map(|name| scope.spawn(move || publish(&nodes[name], name, is_over)));
        scope.spawn(move || churn_subscriptions(nodes, seed, is_over));
        let setup = &mut setup;
        let injecting = scope.spawn(move || setup.inject_all(faults));
        while !injecting.is_finished() {
            take_deliveries(nodes, &mut subscribers, &mut truth);
            if chance.random_bool(0.01) {
                // A client returns to the other node with its position.
                let one = chance.random_range(0..subscribers.len());
                subscribers[one].node = 1 - subscribers[one].node;
                subscribers[one].resubscribe(nodes);
            }
            pause(BETWEEN_CALLS);
        }
        is_over.store(true, Relaxed);
        injecting.join().expect("every fault was injected");
        publishers.into_iter().flat_map(|one| one.join().expect("every call ended")).collect()
    });
    settle(&setup, nodes, &mut subscribers, &mut truth);
    for (_, data, position) in &acknowledged {
        truth.holds(*position, data);
    }
    for channel in CHANNELS {
        let read = follow(&nodes[0], channel, Query::default());
        let at = |offset| read.publications.iter().find(|found| found.offset == offset);
        for (_, data, position) in acknowledged.iter().filter(|(one, ..)| *one == channel) {
            if read.continues(position.offset, position.epoch.as_str()) {
                let found = at(position.offset).map(|found| text(&found.data));
                assert_eq!(found.as_ref(), Some(data), "{channel}: {position:?} was acknowledged");
            }
        }
        subscribers
            .iter()
            .filter(|one| one.channel == channel)
            .for_each(|one| one.check_against(&read));
    }
    let [recovered, unrecovered] =
        [|one: &Subscriber| one.recovered, |one: &Subscriber| one.unrecovered]
            .map(|count| subscribers.iter().map(count).sum::<usize>());
    println!(
        "{} acknowledged, {recovered} recovered, {unrecovered} unrecovered",
        acknowledged.len()
    );
    assert!(recovered > 0 && unrecovered > 0, "faults had an effect");
}

/// After the last fault: a last publication reaches every subscriber, and Redis has no subscription that no node
/// needs.
fn settle(setup: &Setup, nodes: &[Node; 2], subscribers: &mut [Subscriber], truth: &mut Truth) {
    nodes.iter().for_each(Node::wait_until_healthy);
    for channel in CHANNELS {
        for node in nodes {
            follow(node, channel, Query::TOP);
        }
        let publish_last = || nodes[0].publish_in(channel, "the last", keeping_all()).wait();
        let last = wait_for(publish_last, WAIT_MAX);
        let has_reached_all = || {
            take_deliveries(nodes, subscribers, truth);
            subscribers.iter().all(|one| one.channel != channel || one.position == last)
        };
        wait_for(has_reached_all, WAIT_MAX);
    }
    let subscribed = || setup.redis[setup.master].ask("PUBSUB CHANNELS fanwire.feed.*");
    wait_for(|| !subscribed().contains("passing"), WAIT_MAX);
}

#[test]
fn random_faults_leave_no_unreported_gap() {
    soak(number("SOAK_SEED").unwrap_or(1), number("SOAK_TROUBLES").unwrap_or(8) as usize);
}

/// The number in a variable of the environment.
pub(crate) fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

const CHANNELS: [&str; 3] = ["a", "b", "c"];
/// Leaves the processors to other processes.
const BETWEEN_CALLS: Duration = Duration::from_millis(2);
