//! The epochs of channels that have no stream: derived from their names, so that nothing is stored for them.
//! In: channels, the ends of their streams → out: the epoch that the next publication of a channel gets.
//! Uses: SipHash with random keys, and counters. Never: streams.
//! Change here: how an epoch is derived. When a stream ends is decided in `streams.rs`.

use std::hash::{BuildHasher, RandomState};

use crate::Epoch;

/// Derives the epochs of one stripe. Another process has other keys, and so other epochs.
#[derive(Default)]
pub(super) struct Epochs {
    keys: RandomState,
    /// How many streams have ended, by the hash of their channel; empty before the first one. Channels that share a
    /// counter get a new epoch when a stream of any of them ends.
    ended: Box<[u32]>,
}

impl Epochs {
    /// The epoch of a channel without a stream, the same until [`end`](Self::end).
    pub(super) fn of(&self, (hash, channel): (u64, &str)) -> Epoch {
        let ended = self.ended.get(counter(hash)).copied().unwrap_or(0);
        Epoch::from_hash(self.keys.hash_one((channel, ended)))
    }

    /// The stream of a channel with this hash is forgotten: its epoch is not given to another one.
    pub(super) fn end(&mut self, hash: u64) {
        if self.ended.is_empty() {
            self.ended = vec![0; COUNTERS].into();
        }
        self.ended[counter(hash)] += 1;
    }
}

fn counter(hash: u64) -> usize {
    // Not the bits that chose the stripe.
    (hash >> 38) as usize % COUNTERS
}

/// For each of 64 stripes, 1 MiB in all: the end of a stream touches one of 262,144 channels that have none.
const COUNTERS: usize = 4096;
