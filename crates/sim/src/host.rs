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
use fanwire_broker::{MemoryBroker, MemoryEngine};
use fanwire_events::{Events, Watch};
use fanwire_node::{
    CommandSource, ConnectionInfo, ConnectionKey, Departures, Hub, Inbox, Node, NodeParts, Notice,
    can_move, choose_departures,
};
use fanwire_protocol::{Disconnect, Encoding};
use parking_lot::Mutex;

use crate::disk::Disk;
use crate::engine::ports::{EnginePort, GiveUp};
use feed::Feed;
pub use outbox::Effect;
use outbox::EffectRecorder;

/// A machine. It stays when its process ends.
#[derive(Default)]
pub struct Host {
    /// Counts the processes. A new program that goes on for the one before does not count.
    pub incarnation: u64,
    /// Counts the processes and those new programs.
    pub programs: u64,
    pub process: Option<Process>,
    pub disk: Disk,
    /// A snapshot is being made.
    pub is_saving: bool,
    /// The process stands still.
    pub is_frozen: bool,
    /// The process reads nothing, because a new program takes over.
    pub is_paused: bool,
    /// Last time that a new program took over, or was to.
    pub taken_over_at: Duration,
    /// Last time that the process closed all connections, because it stops.
    pub stopped_at: Option<Duration>,
    /// The wall clock is ahead of the time of the simulation.
    pub clock_offset_ms: i64,
    /// Start of the process.
    pub started_at: Duration,
    /// Last time that the wall clock was set.
    pub stepped_at: Duration,
    /// Added to the time between a notice and its turn.
    pub turn_delay: Duration,
    /// Confirmations of names do not come behind the messages of PUB/SUB.
    pub confirms_first: bool,
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
    /// When the call was sent whose time limit is scheduled.
    pub limited_call: Option<Duration>,
    /// Counts the connections to the engine for calls.
    pub generation: u64,
    pub feed: Feed,
    /// It serves its clients and does nothing else.
    pub is_leaving: bool,
    /// The shard that closes one connection more than others.
    first_to_close: usize,
    /// It sends its clients away, and accepts no others.
    pub refuses_clients: bool,
    pub reporter: Option<Reporter>,
    /// `None` with the model engine.
    pub memory: Option<MemoryEngine>,
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
    pub sent_at: Duration,
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
    /// A turn is scheduled for this time, because of notices.
    pub notices_at: Option<Duration>,
    /// The same because of timers.
    pub timers_at: Option<Duration>,
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
    /// A process around a node.
    pub fn new(node: Arc<Node>, shards: usize, port: Option<Arc<EnginePort>>) -> Self {
        let shards = (0..shards).map(|_| Shard::new(&node)).collect();
        if let Some(port) = &port {
            node.cluster().join(Arc::clone(port) as _);
        }
        Self {
            reporter: None,
            node,
            port,
            shards,
            connections: BTreeMap::new(),
            outstanding: BTreeMap::new(),
            last_call: 0,
            limited_call: None,
            generation: 1,
            feed: Feed::default(),
            is_leaving: false,
            first_to_close: 0,
            refuses_clients: false,
            memory: None,
        }
    }

    /// The broker in its memory, if it has one.
    pub fn broker(&self) -> Option<Arc<MemoryBroker>> {
        self.memory.as_ref().map(|memory| Arc::clone(&memory.broker))
    }

    /// A client connected.
    pub fn open(&mut self, connection: u64, client: usize, sends_commands: bool, now: Instant) {
        let info = ConnectionInfo {
            encoding: Encoding::Protobuf,
            frame_ping: false,
            transport: if sends_commands { "websocket" } else { "uni_grpc" },
            command_source: if sends_commands {
                CommandSource::Connection
            } else {
                CommandSource::None
            },
            user: None,
            last_event_id: None,
            headers: Vec::new(),
        };
        let key = self.add(connection, client, VecDeque::new());
        let shard = self.connections[&connection].shard;
        self.shards[shard].hub.open(key, info, now);
    }

    /// Adds a connection without a session.
    fn add(&mut self, connection: u64, client: usize, unread: VecDeque<Bytes>) -> ConnectionKey {
        let shard = connection as usize % self.shards.len();
        let of_shard = &mut self.shards[shard];
        let is_free = |index: &u32| !of_shard.by_index.contains_key(index);
        let index = (0..).find(is_free).expect("a connection is few");
        of_shard.generations += 1;
        let key = ConnectionKey { index, generation: of_shard.generations };
        of_shard.by_index.insert(index, connection);
        let opened = HostConnection { client, shard, key, is_held: false, unread };
        self.connections.insert(connection, opened);
        key
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

    /// The connections to close until the next second, chosen by each shard.
    pub fn departures(&mut self, wanted: Departures, now: Instant) -> Vec<u64> {
        let count = self.shards.len();
        let mut chosen = Vec::new();
        self.first_to_close += 1;
        for number in 0..count {
            let shard = &mut self.shards[(self.first_to_close + number) % count];
            let wanted_here = (wanted.clients as usize + count - 1 - number) / count;
            let keys = choose_departures(&mut shard.hub, wanted_here, wanted.min_age, now);
            chosen.extend(keys.iter().filter_map(|key| shard.by_index.get(&key.index)));
        }
        chosen
    }

    /// Closes a connection with the code of a server that stops.
    pub fn send_away(&mut self, connection: u64, now: Instant) -> Vec<SentEffect> {
        let Some(known) = self.connections.get(&connection) else { return Vec::new() };
        let shard = known.shard;
        let mut out = EffectRecorder::default();
        self.shards[shard].hub.disconnect(known.key, &Disconnect::SHUTDOWN, &mut out);
        self.collect(shard, out, now)
    }

    /// The connections that cannot move to another program: a command of theirs is not finished.
    pub fn unmovable(&mut self) -> Vec<u64> {
        let shards = &mut self.shards;
        let mut cannot_move =
            |one: &HostConnection| one.is_held || !can_move(&mut shards[one.shard].hub, one.key);
        let all = self.connections.iter();
        all.filter(|(_, one)| cannot_move(one)).map(|(connection, _)| *connection).collect()
    }

    /// Executes and sends everything that waits in shards.
    pub fn flush(&mut self, now: Instant) -> Vec<SentEffect> {
        let mut sent = Vec::new();
        while let Some(shard) = self.shards.iter().position(Shard::has_notices) {
            sent.extend(self.turn(shard, now));
        }
        for shard in 0..self.shards.len() {
            let mut out = EffectRecorder::default();
            self.shards[shard].hub.flush(now, &mut out);
            sent.extend(self.collect(shard, out, now));
        }
        sent
    }

    /// Goes on with the connections of another process, and with its connection to the engine.
    pub fn adopt(&mut self, before: &mut Self, now: Instant) {
        for (connection, known) in std::mem::take(&mut before.connections).into_iter().rev() {
            let record = before.shards[known.shard].hub.save(known.key, now);
            let saved = record.expect("those that cannot move were closed");
            let key = self.add(connection, known.client, known.unread);
            let is_adopted = self.shards[known.shard].hub.adopt(key, &saved, now);
            assert!(is_adopted, "both programs have the same options");
        }
        self.last_call = before.last_call;
        self.generation = before.generation;
        self.feed = std::mem::take(&mut before.feed);
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
}

impl Shard {
    fn new(node: &Arc<Node>) -> Self {
        let mailbox = Arc::<Mailbox>::default();
        let id = node.attach(Arc::clone(&mailbox) as _);
        let hub = Hub::new(Arc::clone(node), id);
        Self {
            hub,
            mailbox,
            by_index: BTreeMap::new(),
            generations: 0,
            notices_at: None,
            timers_at: None,
        }
    }

    /// When the first timer is due.
    pub fn next_deadline(&self) -> Option<Instant> {
        self.hub.next_deadline()
    }

    /// Whether a turn was scheduled for this time, or for an earlier one at which the process stood still.
    pub fn begin_turn(&mut self, now: Duration) -> bool {
        let mut is_due = false;
        for scheduled in [&mut self.notices_at, &mut self.timers_at] {
            is_due |= scheduled.take_if(|at| *at <= now).is_some();
        }
        is_due
    }

    /// Whether something waits for its turn.
    pub fn has_notices(&self) -> bool {
        !self.mailbox.0.lock().is_empty()
    }
}

/// The parts of a node behind the model engine.
pub fn parts_with_engine(port: &Arc<EnginePort>) -> NodeParts {
    let of_broker = Arc::clone(port);
    NodeParts {
        presence: Some(Arc::clone(port) as _),
        revocations: Some(Arc::clone(port) as _),
        ..NodeParts::with_broker(move |deliver| {
            of_broker.deliver_to(deliver);
            of_broker
        })
    }
}
