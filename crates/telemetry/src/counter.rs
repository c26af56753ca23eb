//! A number that one thread changes and any thread may read.
//! In: additions of the thread that owns it → out: relaxed reads, by the metrics endpoint for example.
//! Uses one atomic integer. Never: locks, read-modify-write instructions.
//! Changed here: how a number is counted. The code that counts defines which numbers there are.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// A number with one writer: a relaxed load and store, no locked instruction.
#[derive(Debug, Default)]
pub struct Counter(AtomicU64);

impl Counter {
    /// The present value.
    pub fn value(&self) -> u64 {
        self.0.load(Relaxed)
    }

    /// Adds `n`. Only the owning thread may call this: a load and a store are no atomic addition.
    pub fn add(&self, n: u64) {
        self.0.store(self.0.load(Relaxed).wrapping_add(n), Relaxed);
    }

    /// Replaces the value, for a level; only for the owning thread.
    pub fn set(&self, n: u64) {
        self.0.store(n, Relaxed);
    }

    /// Subtracts `n`, for a gauge; only for the owning thread.
    pub fn subtract(&self, n: u64) {
        self.0.store(self.0.load(Relaxed).wrapping_sub(n), Relaxed);
    }
}
