//! A host: the process of one node with its hubs, inboxes and connections, as a server has them, but without sockets.
//! In: frames of clients, answers of the engine, the time → out: frames for clients, requests to the engine, reports of calls.
//! Uses the node as `fanwire-shard` and `fanwire` do. Never: decides what is late or lost, which the world does.
//! Changed here: what surrounds a node in a process. Its PUB/SUB connection is `host/feed.rs`, what it sends `host/outbox.rs`.

pub mod feed;
mod outbox;

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use fanwire_broker::Chance;
use fanwire_events::{Events, Watch};
use fanwire_node::hooks::Hooks;
use fanwire_node::{
    CommandSource, ConnectionInfo, ConnectionKey, Hub, Inbox, Node, NodeParts, Notice, Options,
};
use fanwire_protocol::Encoding;
use parking_lot::Mutex;

use crate::engine::ports::{EnginePort, GiveUp};
use feed::Feed;
pub use outbox::Effect;
use outbox::EffectRecorder;

/// A machine. It stays when its process ends.
#[derive(Default)]
pub struct Host {
    /// Counts the processes.
    pub incarnation: u64,
    pub process: Option<Process>,
    /// The process stands still.
    pub is_frozen: bool,
    /// The wall clock is ahead of the time of the simulation.
    pub clock_offset_ms: i64,
    /// Start of the process.
    pub started_at: Duration,
    /// Last time that the wall clock was set.
    pub stepped_at: Duration,
    /// Added to the time between a notice and its turn.
    pub turn_delay: Duration,
    /// The PUB/SUB connection cannot be opened before.
    pub feed_may_open_at: Duration,
    /// Until then what happens here may be late without anybody being able to notice.
    pub silent_faults_until: Duration,
    /// Until then its shards may be late themselves.
    pub stalls_until: Duration,
    /// Until then PUB/SUB messages may be lost, or later than a node waits for them.
    pub losses_until: Duration,
}

/// A process.
pub struct Process {
    pub node: Arc<Node>,
    /// `None` with the memory engine.
    pub port: Option<Arc<EnginePort>>,
    pub shards: Vec<Shard>,
    pub connections: BTreeMap<u64, HostConnection>,
    /// Calls of the engine that are not answered.
    pub outstanding: BTreeMap<u64, Outstanding>,
    pub last_call: u64,
    /// Counts the connections to the engine for calls.
    pub generation: u64,
    pub feed: Feed,
    /// It serves its clients and does nothing else.
    pub is_leaving: bool,
    pub reporter: Option<Reporter>,
}

/// What tells a backend which channels are occupied.
pub struct Reporter {
    pub events: Events,
    pub watch: Watch,
    /// A batch is on its way.
    pub is_sending: bool,
}

/// A call that is not answered.
pub struct Outstanding {
    pub give_up: GiveUp,
    /// Its answer counts only if the feed is not lost before.
    pub is_behind_feed: bool,
}

/// A shard with its inbox.
pub struct Shard {
    hub: Hub,
    mailbox: Arc<Mailbox>,
    /// Connections by their index.
    by_index: BTreeMap<u32, u64>,
    generations: u32,
    /// A turn is scheduled for this time.
    pub turn_at: Option<Duration>,
}

/// A connection of a client.
pub struct HostConnection {
    pub client: usize,
    shard: usize,
    key: ConnectionKey,
    is_held: bool,
    /// Frames that the shard has not read.
    unread: VecDeque<Bytes>,
}

/// What a host sends to a connection.
pub struct SentEffect {
    pub connection: u64,
    pub client: usize,
    pub effect: Effect,
}

/// The parts of a new process.
pub struct ProcessStart {
    pub options: Options,
    pub shards: usize,
    pub parts: NodeParts,
    pub port: Option<Arc<EnginePort>>,
    pub events: Option<Events>,
    pub now: Instant,
    pub unix_ms: u64,
}

#[derive(Default)]
struct Mailbox(Mutex<Vec<Notice>>);

impl Inbox for Mailbox {
    fn push(&self, notice: Notice) {
        self.0.lock().push(notice);
    }
}

impl Host {
    /// Ends a connection whose queue is full. Returns whether it was there.
    pub fn end_slow(&mut self, connection: u64, now: Instant) -> bool {
        let Some(process) = &mut self.process else { return false };
        let is_there = process.connections.contains_key(&connection);
        process.close(connection, now);
        is_there
    }
}

impl Process {
    /// Starts a node with its shards.
    pub fn start(start: ProcessStart) -> Self {
        let ProcessStart { options, shards, parts, port, events, now, unix_ms } = start;
        let node = Node::with_parts(options, now, unix_ms, parts).expect("the options are good");
        let shards = (0..shards).map(|_| Shard::new(&node)).collect();
        if let Some(port) = &port {
            node.cluster().join(Arc::clone(port) as _);
        }
        let reporter = events.map(|events| {
            let watch = events.watch(node.uid(), unix_ms);
            Reporter { events, watch, is_sending: false }
        });
        Self {
            reporter,
            node,
            port,
            shards,
            connections: BTreeMap::new(),
            outstanding: BTreeMap::new(),
            last_call: 0,
            generation: 1,
            feed: Feed::default(),
            is_leaving: false,
        }
    }

    /// A client connected.
    pub fn open(&mut self, connection: u64, client: usize, now: Instant) {
        let shard = connection as usize % self.shards.len();
        let of_shard = &mut self.shards[shard];
        let is_free = |index: &u32| !of_shard.by_index.contains_key(index);
        let index = (0..).find(is_free).expect("a connection is few");
        of_shard.generations += 1;
        let key = ConnectionKey { index, generation: of_shard.generations };
        of_shard.by_index.insert(index, connection);
        let info = ConnectionInfo {
            encoding: Encoding::Protobuf,
            frame_ping: false,
            transport: "websocket",
            command_source: CommandSource::Connection,
            user: None,
            last_event_id: None,
            headers: Vec::new(),
        };
        of_shard.hub.open(key, info, now);
        let unread = VecDeque::new();
        let opened = HostConnection { client, shard, key, is_held: false, unread };
        self.connections.insert(connection, opened);
    }

    /// A frame of a client arrived. It is read at once, unless the shard does not read the connection.
    pub fn receive(&mut self, connection: u64, frame: Bytes, now: Instant) -> Vec<SentEffect> {
        let Some(known) = self.connections.get_mut(&connection) else { return Vec::new() };
        known.unread.push_back(frame);
        self.read(connection, now)
    }

    fn read(&mut self, connection: u64, now: Instant) -> Vec<SentEffect> {
        let mut sent = Vec::new();
        while let Some(known) = self.connections.get_mut(&connection).filter(|it| !it.is_held)
            && let Some(frame) = known.unread.pop_front()
        {
            let shard = known.shard;
            let key = known.key;
            let mut out = EffectRecorder::default();
            self.shards[shard].hub.receive(key, &frame, now, &mut out);
            sent.extend(self.collect(shard, out, now));
        }
        sent
    }

    /// The client closed its connection, or the network did.
    pub fn close(&mut self, connection: u64, now: Instant) {
        if let Some(known) = self.connections.remove(&connection) {
            let shard = &mut self.shards[known.shard];
            shard.by_index.remove(&known.key.index);
            shard.hub.close(known.key, now);
        }
    }

    /// One turn of a shard: its notices, then what is due.
    pub fn turn(&mut self, shard: usize, now: Instant) -> Vec<SentEffect> {
        let notices = std::mem::take(&mut *self.shards[shard].mailbox.0.lock());
        let mut sent = Vec::new();
        for notice in notices {
            let mut out = EffectRecorder::default();
            self.shards[shard].hub.notice(notice, now, &mut out);
            sent.extend(self.collect(shard, out, now));
        }
        let mut out = EffectRecorder::default();
        self.shards[shard].hub.advance(now, &mut out);
        sent.extend(self.collect(shard, out, now));
        sent
    }

    /// What happened to which connection, in order. Connections that the shard reads again are read.
    fn collect(&mut self, shard: usize, out: EffectRecorder, now: Instant) -> Vec<SentEffect> {
        let mut sent = Vec::new();
        let mut released = Vec::new();
        for (index, effect) in out.effects {
            let Some(connection) = self.shards[shard].by_index.get(&index).copied() else {
                continue;
            };
            let known = self.connections.get_mut(&connection).expect("it has an index");
            let client = known.client;
            match effect {
                Effect::Hold => known.is_held = true,
                Effect::Release => {
                    known.is_held = false;
                    released.push(connection);
                }
                Effect::Message(_) => sent.push(SentEffect { connection, client, effect }),
                Effect::Disconnect(_) => {
                    sent.push(SentEffect { connection, client, effect });
                    self.connections.remove(&connection);
                    self.shards[shard].by_index.remove(&index);
                }
            }
        }
        for connection in released {
            sent.extend(self.read(connection, now));
        }
        sent
    }

    /// When a shard needs its next turn, if it has notices or timers.
    pub fn needs_turn_at(&self, shard: usize, now: Instant) -> Option<Instant> {
        let shard = &self.shards[shard];
        if !shard.mailbox.0.lock().is_empty() {
            return Some(now);
        }
        Some(shard.hub.next_deadline()?.max(now))
    }
}

impl Shard {
    fn new(node: &Arc<Node>) -> Self {
        let mailbox = Arc::<Mailbox>::default();
        let id = node.attach(Arc::clone(&mailbox) as _);
        let hub = Hub::new(Arc::clone(node), id);
        Self { hub, mailbox, by_index: BTreeMap::new(), generations: 0, turn_at: None }
    }
}

/// The parts of a node behind the model engine.
pub fn parts_with_engine(
    port: &Arc<EnginePort>,
    hooks: Hooks,
    chance: Arc<dyn Chance>,
) -> NodeParts {
    let of_broker = Arc::clone(port);
    NodeParts {
        make_broker: Some(Box::new(move |deliver| {
            of_broker.deliver_to(deliver);
            of_broker
        })),
        presence: Some(Arc::clone(port) as _),
        revocations: Some(Arc::clone(port) as _),
        hooks,
        chance: Some(chance),
        ..NodeParts::default()
    }
}
