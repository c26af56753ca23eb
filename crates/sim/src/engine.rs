//! A model of Redis as Fanwire uses it: streams, presence, results of publishes, blocks, PUB/SUB, and the loss of what was not replicated.
//! In: one call after another, failovers → out: answers, messages for the feeds of hosts, the truth about what was published.
//! Pure: time comes with the call. Never: how late something is, which is the network's; connections, which are the host's.
//! Changed here: PUB/SUB and replication. Streams, members, blocks and the ports of nodes have files in `engine/`.

mod blocks;
mod members;
pub mod ports;
mod streams;

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use fanwire_broker::{Change, DeliverOptions, Epoch, Position, RevocationChange, RevocationEvent};
use fanwire_protocol::{ClientInfo, Publication};
use parking_lot::Mutex;

use crate::chance::SeededRandom;
use crate::truth::Truth;
use blocks::Blocks;
use members::Member;
use streams::{ModelStream, StreamBefore};

/// The name under which hosts receive messages of other nodes.
pub const NODES: &str = "\0nodes";
/// The name under which hosts receive blocks and revocations.
pub const BLOCKS: &str = "\0blocks";

/// The master, and what a replica that takes its place would not have.
pub struct Engine {
    streams: BTreeMap<String, ModelStream>,
    members: BTreeMap<String, BTreeMap<String, Member>>,
    /// Positions of publishes with an idempotency key, by channel, and owner with key; with their end.
    results: BTreeMap<(String, String), (Position, Instant)>,
    blocks: Blocks,
    feeds: BTreeMap<usize, EngineFeed>,
    outgoing: Vec<Outgoing>,
    /// Grows with each failover.
    replication_history: u64,
    /// What was there before each recent write, oldest first.
    undo: VecDeque<(Instant, Undo)>,
    random: SeededRandom,
    /// The time at which it executes calls, if it is not that of the caller.
    pub now: Option<Instant>,
    pub truth: Arc<Mutex<Truth>>,
}

/// The PUB/SUB connection of a host, as the engine knows it.
struct EngineFeed {
    generation: u64,
    uid: String,
    names: BTreeSet<String>,
}

/// A message for the feed of a host.
pub struct Outgoing {
    pub host: usize,
    pub generation: u64,
    pub message: FeedMessage,
}

/// A message of PUB/SUB.
#[derive(Clone)]
pub enum FeedMessage {
    Publication(Arc<FeedPublication>),
    JoinLeave(Arc<FeedJoinLeave>),
    /// The subscription to a name that was asked for with this number is active.
    Confirmed {
        name: String,
        number: u64,
    },
    OfNode(Bytes),
    OfBlocks(RevocationEvent),
}

/// A publication as it is delivered.
pub struct FeedPublication {
    pub channel: String,
    pub publication: Publication,
    pub options: DeliverOptions,
}

/// A join or a leave.
pub struct FeedJoinLeave {
    pub channel: String,
    pub change: Change,
    pub info: ClientInfo,
}

/// The state of one key before a write.
enum Undo {
    ModelStream(String, Option<ModelStream>),
    Publish(String, StreamBefore),
    Member(String, String, Option<Member>),
    Result((String, String), Option<(Position, Instant)>),
    Blocks(Blocks),
}

impl Engine {
    pub fn new(random: SeededRandom) -> Self {
        Self {
            streams: BTreeMap::new(),
            members: BTreeMap::new(),
            results: BTreeMap::new(),
            blocks: Blocks::default(),
            feeds: BTreeMap::new(),
            outgoing: Vec::new(),
            replication_history: 1,
            undo: VecDeque::new(),
            random,
            now: None,
            truth: Arc::default(),
        }
    }

    /// Messages that have to be sent to feeds.
    pub fn take_outgoing(&mut self) -> Vec<Outgoing> {
        std::mem::take(&mut self.outgoing)
    }

    /// A host opened a PUB/SUB connection. The one before, if the engine still knew it, ends.
    pub fn open_feed(&mut self, host: usize, generation: u64, uid: &str) {
        let names = BTreeSet::new();
        self.feeds.insert(host, EngineFeed { generation, uid: uid.to_owned(), names });
    }

    /// The PUB/SUB connection of a host ended.
    pub fn close_feed(&mut self, host: usize) {
        self.feeds.remove(&host);
    }

    /// Subscribes the feed of a host to a name, or ends that.
    pub fn follow_name(&mut self, host: usize, generation: u64, name: &str, number: Option<u64>) {
        let Some(feed) = self.feeds.get_mut(&host) else { return };
        if feed.generation != generation {
            return;
        }
        match number {
            Some(number) => {
                feed.names.insert(name.to_owned());
                let message = FeedMessage::Confirmed { name: name.to_owned(), number };
                self.outgoing.push(Outgoing { host, generation, message });
            }
            None => drop(feed.names.remove(name)),
        }
    }

    /// Publishes to all feeds that follow a name. Returns how many these are.
    fn send_to_feeds(&mut self, name: &str, message: &FeedMessage) -> usize {
        let followers = self.feeds.iter().filter(|(_, feed)| feed.names.contains(name));
        let sent: Vec<_> = followers
            .map(|(host, feed)| {
                let message = message.clone();
                Outgoing { host: *host, generation: feed.generation, message }
            })
            .collect();
        let count = sent.len();
        self.outgoing.extend(sent);
        count
    }

    /// A message of a node for all nodes, or for one.
    fn send_to_nodes(&mut self, to: Option<&str>, message: Bytes) -> usize {
        let message = FeedMessage::OfNode(message);
        let Some(uid) = to else { return self.send_to_feeds(NODES, &message) };
        let feed =
            self.feeds.iter().find(|(_, feed)| feed.uid == uid && feed.names.contains(NODES));
        let Some((host, feed)) = feed else { return 0 };
        let outgoing = Outgoing { host: *host, generation: feed.generation, message };
        self.outgoing.push(outgoing);
        1
    }

    fn send_join_leave(&mut self, channel: &str, change: Change, info: ClientInfo) {
        let sent = FeedJoinLeave { channel: channel.to_owned(), change, info };
        self.send_to_feeds(channel, &FeedMessage::JoinLeave(Arc::new(sent)));
    }

    /// Makes a change again, unless there is an entry of its subject.
    fn restore_block(&mut self, change: &RevocationChange, at: Instant) {
        if self.blocks.entry(change).is_none() {
            self.change_block(change, at);
        }
    }

    fn change_block(&mut self, change: &RevocationChange, at: Instant) {
        if self.blocks.entry(change).is_some_and(|entry| entry.covers(change)) {
            return;
        }
        self.remember(at, Undo::Blocks(self.blocks.clone()));
        let epoch = self.new_epoch();
        let position = self.blocks.change(change, epoch);
        let event = RevocationEvent::Change(position, change.clone());
        self.send_to_feeds(BLOCKS, &FeedMessage::OfBlocks(event));
    }

    /// A replica takes the place of the master: what was written within `lag` is lost, and every connection ends.
    pub fn fail_over(&mut self, lag: Duration, now: Instant) {
        while let Some((written_at, undo)) = self.undo.pop_back() {
            if written_at + lag < now {
                break;
            }
            self.undo(undo);
        }
        self.undo.clear();
        self.replication_history += 1;
        self.feeds.clear();
        self.outgoing.clear();
    }

    /// All streams lose what was published within `LAG_MAX`, and keep their epochs.
    pub fn lose_ends(&mut self) {
        let undo = std::mem::take(&mut self.undo);
        for (at, undo) in undo.into_iter().rev() {
            if let Undo::Publish(channel, before) = undo {
                self.lose_end(&channel, before);
            } else {
                self.undo.push_front((at, undo));
            }
        }
    }

    /// The engine is restarted without its data.
    pub fn lose_all(&mut self) {
        self.streams.clear();
        self.members.clear();
        self.results.clear();
        self.blocks = Blocks::default();
        self.undo.clear();
        self.replication_history += 1;
        self.feeds.clear();
        self.outgoing.clear();
    }

    fn remember(&mut self, at: Instant, undo: Undo) {
        self.undo.push_back((at, undo));
        while self.undo.front().is_some_and(|(written_at, _)| *written_at + LAG_MAX < at) {
            self.undo.pop_front();
        }
    }

    fn undo(&mut self, undo: Undo) {
        match undo {
            Undo::ModelStream(channel, stream) => put_back(&mut self.streams, channel, stream),
            Undo::Publish(channel, before) => {
                if let Some(stream) = self.streams.get_mut(&channel) {
                    stream.undo(before);
                }
            }
            Undo::Result(key, result) => put_back(&mut self.results, key, result),
            Undo::Blocks(blocks) => self.blocks = blocks,
            Undo::Member(channel, client, member) => {
                put_back(self.members.entry(channel).or_default(), client, member);
            }
        }
    }

    fn new_epoch(&mut self) -> Epoch {
        let letter = |bits: u64| char::from(b'a' + (bits % 26) as u8);
        let text: String = (0..8).map(|_| letter(self.random.bits())).collect();
        Epoch::parse(&text).expect("eight letters")
    }
}

fn put_back<K: Ord, V>(map: &mut BTreeMap<K, V>, key: K, value: Option<V>) {
    match value {
        Some(value) => drop(map.insert(key, value)),
        None => drop(map.remove(&key)),
    }
}

/// A replica is never further behind than this.
pub const LAG_MAX: Duration = Duration::from_secs(5);
