//! A simulated node that gives way to another one: its memory and all its sessions move, and its peers notice nothing.
//! In: a world at rest → out: the same world around another node and other hubs, or a world in which something cannot move.
//! Uses `Hub::save` and `Hub::adopt`, the memory engine and its snapshot. Never: files, records from inside.
//! Changed here: what moves besides sessions. Tests are in `tests/it/takeover.rs`.

use std::sync::{Arc, OnceLock};
use std::time::Instant;

use fanwire_broker::{
    Broker, MemoryBroker, MemoryEngine, MemoryPresence, MemoryUserStatuses, SnapshotClock,
};
use fanwire_node::{ConnectionKey, Node, NodeParts, Options};

use super::{Record, Shard, World};

/// The memory of a node, which a test can give to another one.
pub(super) struct Memory {
    options: Options,
    engine: MemoryEngine,
}

impl Memory {
    /// Nothing yet, and a node with it; with the id of the node before, if there is one.
    pub(super) fn start(
        options: Options,
        uid: Option<String>,
        now: Instant,
        unix_ms: u64,
    ) -> (Self, Arc<Node>) {
        let presence = Arc::new(MemoryPresence::new());
        let user_statuses = Arc::new(MemoryUserStatuses::default());
        let made = Arc::<OnceLock<Arc<MemoryBroker>>>::default();
        let made_by_node = Arc::clone(&made);
        let bytes_max = options.channel.history_memory_max;
        let make_broker = move |deliver| -> Arc<dyn Broker> {
            made_by_node.get_or_init(|| Arc::new(MemoryBroker::new(deliver, bytes_max))).clone()
        };
        let parts = NodeParts {
            presence: Some(presence.clone()),
            user_statuses: Some(user_statuses.clone()),
            uid,
            ..NodeParts::with_broker(make_broker)
        };
        let node = Node::with_parts(options.clone(), now, unix_ms, parts);
        let broker = made.get().cloned().expect("the node makes it");
        let engine = MemoryEngine { broker, presence, user_statuses };
        (Self { options, engine }, node.expect("the options are good"))
    }
}

/// That of a peer whose connection is closed.
const NO_KEY: ConnectionKey = ConnectionKey { index: u32::MAX >> 1, generation: 0 };

impl World {
    /// Another node takes over, if everything can move; else nothing changes. Returns whether it did.
    pub(crate) fn take_over(&mut self) -> bool {
        self.rest();
        let Some(saved) = self.save() else { return false };
        let Some(memory) = self.memory.take() else { return false };
        let unix_ms = self.unix_ms.1 + (self.now - self.unix_ms.0).as_millis() as u64;
        let clock = SnapshotClock { now: self.now, unix_ms };
        let revocations = self.node.revocations().save(unix_ms / 1000);
        let mut engine = Vec::new();
        memory.engine.save(&revocations, clock, &mut engine).expect("a Vec grows");
        let uid = Some(self.node.uid().to_owned());
        let (next, node) = Memory::start(memory.options, uid, self.now, unix_ms);
        let restored = next.engine.restore(&mut engine.as_slice(), clock);
        node.revocations().take_over(&restored.expect("it was just written"), self.now);
        self.node = node;
        self.memory = Some(next);
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
