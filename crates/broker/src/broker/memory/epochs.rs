//! The epochs of channels without a stream: derived from the channel name, so that nothing is stored for them.
//! In: channels, the ends of their streams → out: the epoch of the next stream of a channel.
//! Uses: SipHash with random keys, and counters. Never: streams.
//! Change here: how an epoch is derived. When a stream ends is decided in `streams.rs`.

use std::hash::{BuildHasher, RandomState};

use super::HashedChannel;
use crate::Epoch;

/// Derives the epochs of one stripe. Each process has its own keys, so its epochs are different.
#[derive(Default)]
pub(super) struct Epochs {
    keys: RandomState,
    /// Number of streams that have ended, by the hash of their channel; empty until the first one ends. Channels that
    /// share a counter all get a new epoch when a stream of one of them ends.
    ended: Box<[u32]>,
}

impl Epochs {
    /// The epoch of a channel without a stream, the same until [`end`](Self::end).
    pub(super) fn of(&self, channel: HashedChannel<'_>) -> Epoch {
        let ended = self.ended.get(counter(channel.hash)).copied().unwrap_or(0);
        Epoch::from_hash(self.keys.hash_one((channel.name, ended)))
    }

    /// Must be called when the stream of a channel with this hash is removed, so that its epoch is not used again.
    pub(super) fn end(&mut self, hash: u64) {
        if self.ended.is_empty() {
            self.ended = vec![0; COUNTERS].into();
        }
        self.ended[counter(hash)] += 1;
    }
}

fn counter(hash: u64) -> usize {
    // Other bits than those that select the stripe.
    (hash >> 38) as usize % COUNTERS
}

/// Per stripe; 1 MiB in all 64 stripes. When a stream ends, one in 262,144 channels without a stream changes its epoch too.
const COUNTERS: usize = 4096;
