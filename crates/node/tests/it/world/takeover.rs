//! A simulated node that gives way to another one: its memory and all its sessions move, and its peers notice nothing.
//! In: a world at rest → out: the same world around another node and other hubs, or a world in which something cannot move.
//! Uses `Hub::save` and `Hub::adopt`, the memory engine and its snapshot. Never: files, records from inside.
//! Change here: what moves besides sessions. Tests are in `tests/it/takeover.rs`.

use std::sync::{Arc, OnceLock};
use std::time::Instant;

use fanwire_broker::{
    Broker, Bucket, ChangeMarks, ChangesSince, MemoryBroker, MemoryPresence, MemoryState,
    MemoryUserStatuses, RestoreOptions, Snapshot, SnapshotClock, SnapshotHead, SystemChance,
};
use fanwire_node::{ConnectionKey, Node, NodeParts, Options};

use super::{Record, Shard, UNIX, World};

/// The memory of a node, which a test can give to another one.
pub(super) struct Memory {
    options: Options,
    broker: Arc<OnceLock<Arc<MemoryBroker>>>,
    presence: Arc<MemoryPresence>,
    user_statuses: Arc<MemoryUserStatuses>,
}

impl Memory {
    /// Nothing yet, and a node with it.
    pub(super) fn start(options: Options, now: Instant) -> (Self, Arc<Node>) {
        let presence = Arc::new(MemoryPresence::new());
        let user_statuses = Arc::new(MemoryUserStatuses::default());
        let memory = Self { options, broker: Arc::default(), presence, user_statuses };
        let node = memory.node(None, now, UNIX * 1000);
        (memory, node)
    }

    fn node(&self, state: Option<MemoryState>, now: Instant, unix_ms: u64) -> Arc<Node> {
        let broker = Arc::clone(&self.broker);
        let bytes_max = self.options.channel.history_memory_max;
        let make_broker = move |deliver| -> Arc<dyn Broker> {
            let made = Arc::new(match state {
                Some(state) => MemoryBroker::with_state(deliver, bytes_max, state),
                None => MemoryBroker::new(deliver, bytes_max),
            });
            assert!(broker.set(Arc::clone(&made)).is_ok(), "one node has one broker");
            made
        };
        let parts = NodeParts {
            presence: Some(self.presence.clone()),
            user_statuses: Some(self.user_statuses.clone()),
            ..NodeParts::with_broker(make_broker)
        };
        let node = Node::with_parts(self.options.clone(), now, unix_ms, parts);
        node.expect("the options are good")
    }

    fn state(&self, clock: SnapshotClock) -> MemoryState {
        let head = SnapshotHead { generation: 1, is_planned: true, clock, connections: 0 };
        let marks: Arc<dyn ChangeMarks> = Arc::new(NoMarks);
        let mut file = Vec::new();
        let broker = self.broker.get().expect("the node made it");
        broker.save(head, &marks, &mut file).expect("a Vec grows");
        let changes = &ChangesSince::None;
        let options = RestoreOptions { changes, clock, is_left_out: &|_| false };
        let snapshot = Snapshot::read(&mut file.as_slice()).expect("it was just written");
        snapshot.restore(&options, &SystemChance).expect("it was just written")
    }
}

/// That of a peer whose connection is closed.
const NO_KEY: ConnectionKey = ConnectionKey { index: u32::MAX >> 1, generation: 0 };

struct NoMarks;

impl ChangeMarks for NoMarks {
    fn mark(&self, _bucket: Bucket) {}
}

impl World {
    /// Another node takes over, if everything can move; else nothing changes. Returns whether it did.
    pub(crate) fn take_over(&mut self) -> bool {
        self.rest();
        let Some(saved) = self.save() else { return false };
        let Some(mut memory) = self.memory.take() else { return false };
        let unix_ms = self.unix_ms.1 + (self.now - self.unix_ms.0).as_millis() as u64;
        let state = memory.state(SnapshotClock { now: self.now, unix_ms });
        memory.broker = Arc::default();
        self.node = memory.node(Some(state), self.now, unix_ms);
        self.memory = Some(memory);
        self.peers.values_mut().for_each(|peer| peer.key = NO_KEY);
        // In another order than before, and on other shards.
        self.shards = (0..self.shards.len()).map(|_| Shard::new(&self.node)).collect();
        for (name, record) in saved.iter().rev() {
            let (shard, key) = self.next_key();
            assert!(self.shards[shard].hub.adopt(key, record, self.now), "{name} moves");
            let peer = self.peers.get_mut(name).expect("it was saved");
            peer.shard = shard;
            peer.key = key;
        }
        true
    }

    /// Everything on its way arrives, except answers that take long.
    pub(crate) fn rest(&mut self) {
        while self.shards.iter().any(|shard| !shard.mailbox.is_empty()) {
            self.settle();
        }
        for shard in 0..self.shards.len() {
            let mut record = Record::keeping_errands();
            self.shards[shard].hub.flush(self.now, &mut record);
            self.collect(shard, record);
        }
    }

    /// The records of all open connections. `None` if one of them cannot move.
    fn save(&mut self) -> Option<Vec<(String, Vec<u8>)>> {
        let open = self.peers.iter().filter(|(_, peer)| peer.is_open);
        let save = |(name, peer): (&String, &super::Peer)| {
            let record = self.shards[peer.shard].hub.save(peer.key, self.now)?;
            Some((name.clone(), record))
        };
        open.map(save).collect()
    }
}
