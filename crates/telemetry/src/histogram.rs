//! Durations counted in powers of two.
//! In: durations, from the thread that owns the histogram → out: counts by bucket and their sum, for any thread.
//! Uses counters with one writer. Never: locks, a clock.
//! Changed here: the bounds. The code that measures defines which histograms there are.

use std::time::Duration;

use crate::Counter;

/// Durations in powers of two: bucket `i` counts durations up to `2^i` times `FIRST_US` µs, the last one all longer ones.
#[derive(Default, Debug)]
pub struct Histogram<const FIRST_US: u64 = 50> {
    buckets: [Counter; BOUNDS + 1],
    sum_ns: Counter,
}

/// Durations of single calls, from 1 µs to 33 ms.
pub type CallHistogram = Histogram<1>;

/// The bounds of a histogram; one more bucket has none.
pub const BOUNDS: usize = 16;

impl<const FIRST_US: u64> Histogram<FIRST_US> {
    /// Counts a duration. Only the owning thread may call this, or one that holds the owner's lock.
    pub fn observe(&self, duration: Duration) {
        let ns = u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX);
        let bucket = (0..BOUNDS).find(|&i| ns <= Self::bound_us(i) * 1000).unwrap_or(BOUNDS);
        self.buckets[bucket].add(1);
        self.sum_ns.add(ns);
    }

    /// Upper bound of a bucket, in µs.
    pub fn bound_us(bucket: usize) -> u64 {
        FIRST_US << bucket
    }

    /// Counts per bucket, not cumulative, the unbounded one last; and the sum in ns.
    pub fn snapshot(&self) -> ([u64; BOUNDS + 1], u64) {
        (std::array::from_fn(|i| self.buckets[i].value()), self.sum_ns.value())
    }
}
