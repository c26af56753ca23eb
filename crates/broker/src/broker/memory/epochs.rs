//! The epochs of channels without a stream: derived from the channel name, so that nothing is stored for them.
//! In: channels, the ends of their streams → out: the epoch of the next stream of a channel; what a snapshot keeps of it.
//! Uses: SipHash behind a random key, and counters. Never: streams.
//! Changed here: how an epoch is derived. When a stream ends is decided in `streams.rs`.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use super::HashedChannel;
use crate::{Chance, Epoch, SystemChance};

/// Each process has its own key, so its epochs are different.
#[derive(Clone, Copy, Debug)]
pub(super) struct EpochKey([u64; 2]);

impl EpochKey {
    pub(super) fn random(chance: &dyn Chance) -> Self {
        Self([chance.bits(), chance.bits()])
    }

    /// The key of another process; `None` of no key.
    pub(super) fn restore(parts: &[u64]) -> Option<Self> {
        parts.try_into().ok().map(Self)
    }

    pub(super) fn parts(self) -> [u64; 2] {
        self.0
    }

    /// The hash of which an epoch is made.
    pub(super) fn hash(self, channel: &str, ended: u32) -> u64 {
        let mut hasher = DefaultHasher::new();
        (self.0, channel, ended).hash(&mut hasher);
        hasher.finish()
    }
}

impl Default for EpochKey {
    fn default() -> Self {
        Self::random(&SystemChance)
    }
}

/// Derives the epochs of one stripe.
#[derive(Default)]
pub(super) struct Epochs {
    key: EpochKey,
    /// Number of streams that have ended, by the hash of their channel's name; empty until the first one ends. Channels
    /// that share a counter all get a new epoch when a stream of one of them ends.
    ended: Box<[u32]>,
}

impl Epochs {
    pub(super) fn new(key: EpochKey) -> Self {
        Self { key, ended: Box::default() }
    }

    /// The epoch of a channel without a stream, the same until [`end`](Self::end).
    pub(super) fn of(&self, channel: HashedChannel<'_>) -> Epoch {
        let ended = self.ended.get(counter(channel.hash)).copied().unwrap_or(0);
        Epoch::from_hash(self.key.hash(channel.name, ended))
    }

    /// The counters, for the next process.
    pub(super) fn save(&self) -> Vec<u32> {
        self.ended.to_vec()
    }

    /// Takes over the counters of a process with the same key. Returns whether they can be counters.
    pub(super) fn restore(&mut self, ended: Vec<u32>) -> bool {
        let is_valid = ended.is_empty() || ended.len() == COUNTERS;
        self.ended = ended.into();
        is_valid
    }

    /// Must be called when the stream of a channel with this hash is removed, so that its epoch is not used again.
    pub(super) fn end(&mut self, hash: u64) {
        if self.ended.is_empty() {
            self.ended = vec![0; COUNTERS].into();
        }
        let ended = &mut self.ended[counter(hash)];
        *ended = ended.wrapping_add(1);
    }
}

fn counter(hash: u64) -> usize {
    // Other bits than those that select the stripe.
    (hash >> 38) as usize % COUNTERS
}

/// Per stripe; 1 MiB in all 64 stripes. When a stream ends, one in 262,144 channels without a stream changes its epoch too.
const COUNTERS: usize = 4096;
