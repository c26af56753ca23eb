//! Where a channel is in a store: its slot, and its connection to one Redis.
//! In: a channel and its hash, or a name between nodes → out: a location.
//! Uses: hashes of channels, slots of keys. Never: connections.
//! Changed here: how a connection is chosen. `redis.rs` chooses the store, `store.rs` the Redis.

use super::keys::Keys;
use super::{consistent_hash, slot};

/// Slot and connection of a channel or name within a store.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Location {
    /// A hash that chooses among the connections to one Redis.
    hash: u64,
    pub(crate) slot: u16,
}

impl Location {
    /// The location of a channel with this hash.
    pub(crate) fn of(channel: &str, hash: u64, keys: &Keys) -> Self {
        Self { hash, slot: keys.slot(channel) }
    }

    /// The location of a name that belongs to no channel: always the first connection.
    pub(crate) fn of_name(name: &str) -> Self {
        Self { hash: 0, slot: slot::of(name.as_bytes()) }
    }

    pub(crate) fn connection_index(self, count: usize) -> usize {
        consistent_hash::spread(self.hash, count)
    }
}
