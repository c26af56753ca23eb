//! Which channels have changed since their stripe was last saved: what a start after a crash must not take from a snapshot.
//! In: hashes of channels that change → out: one call of the port for the first change of each bucket.
//! Uses: a bit per bucket. Never: files; the port writes what has to outlive the process.
//! Changed here: how channels are divided into buckets. What counts as a change is decided by the callers, under the lock.

use std::sync::Arc;

/// The port to the list of changed buckets, which outlives the process.
pub trait ChangeMarks: Send + Sync {
    /// Adds a bucket to the list. Called under the lock of the stripe, before the change is delivered.
    fn mark(&self, bucket: Bucket);
}

/// A part of the channels of a stripe.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Bucket {
    /// Less than 64.
    pub stripe: u8,
    /// Less than 64.
    pub number: u8,
}

impl Bucket {
    pub(super) fn of(hash: u64) -> Self {
        // Other bits than those of the counters of epochs and of the hash tables.
        Self { stripe: stripe_of(hash) as u8, number: (hash >> 50) as u8 % BUCKETS }
    }
}

/// The stripe of a channel with this hash.
pub(super) fn stripe_of(hash: u64) -> usize {
    // The middle bits: the hash tables inside a stripe use the lowest and the highest ones.
    (hash >> 32) as usize % super::STRIPES
}

/// The buckets of one stripe that have changed.
#[derive(Default)]
pub(super) struct Marks {
    /// `None` if no snapshot is made.
    port: Option<Arc<dyn ChangeMarks>>,
    /// A bit per bucket.
    changed: u64,
}

impl Marks {
    /// Starts another list, in which no bucket has changed yet.
    pub(super) fn begin(&mut self, port: Option<Arc<dyn ChangeMarks>>) {
        *self = Self { port, changed: 0 };
    }

    /// A channel with this hash changes.
    pub(super) fn change(&mut self, hash: u64) {
        let Some(port) = &self.port else { return };
        let bucket = Bucket::of(hash);
        let bit = 1 << bucket.number;
        if self.changed & bit == 0 {
            self.changed |= bit;
            port.mark(bucket);
        }
    }
}

/// One bit each.
const BUCKETS: u8 = 64;
