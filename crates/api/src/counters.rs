//! What the operator sees of the API: calls, errors and latency per method, and refusals at the door.
//! In: one record per call. Out: snapshots for the metrics endpoint.
//! Relaxed atomics only: never a lock, never an allocation.
//! Names and format of the published metrics live in the server.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use crate::Method;

/// Upper bounds of the latency histogram in microseconds; one more bucket above them is unbounded.
/// From a publish into the memory broker (tens of µs) to a broker that hangs (seconds).
pub const LATENCY_BOUNDS_US: [u64; 12] =
    [10, 25, 50, 100, 250, 500, 1_000, 2_500, 10_000, 100_000, 1_000_000, 10_000_000];

/// Totals since the start, shared by all threads.
#[derive(Debug, Default)]
pub struct Counters {
    methods: [Cells; Method::ALL.len()],
    unauthorized: AtomicU64,
    malformed: AtomicU64,
    too_large: AtomicU64,
}

/// One method's totals at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MethodCounts {
    /// Calls that reached the method, failed ones included; commands inside a batch count one each.
    pub calls: u64,
    /// Calls that ended with an application error. Failed items of a broadcast are not among them.
    pub errors: u64,
    /// Time spent inside the method, summed up.
    pub time: Duration,
    /// Calls per latency bucket, not cumulative: at most the bound of `LATENCY_BOUNDS_US`, the last above all.
    pub buckets: [u64; LATENCY_BOUNDS_US.len() + 1],
}

/// Requests that never reached a method.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RefusalCounts {
    /// No key or a wrong one: 401.
    pub unauthorized: u64,
    /// Not JSON, of wrong types, or not all there: 400.
    pub malformed: u64,
    /// Body over the limit: 413.
    pub too_large: u64,
}

/// Why a request was turned away at the door.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RefusalKind {
    Unauthorized,
    Malformed,
    TooLarge,
}

impl Counters {
    /// The totals of one method.
    pub fn of(&self, method: Method) -> MethodCounts {
        let cells = &self.methods[method.index()];
        MethodCounts {
            calls: cells.calls.load(Relaxed),
            errors: cells.errors.load(Relaxed),
            time: Duration::from_nanos(cells.nanoseconds.load(Relaxed)),
            buckets: std::array::from_fn(|index| cells.buckets[index].load(Relaxed)),
        }
    }

    /// The totals of what never reached a method.
    pub fn refusals(&self) -> RefusalCounts {
        RefusalCounts {
            unauthorized: self.unauthorized.load(Relaxed),
            malformed: self.malformed.load(Relaxed),
            too_large: self.too_large.load(Relaxed),
        }
    }

    pub(crate) fn record(&self, method: Method, took: Duration, failed: bool) {
        let cells = &self.methods[method.index()];
        cells.calls.fetch_add(1, Relaxed);
        cells.errors.fetch_add(u64::from(failed), Relaxed);
        cells.nanoseconds.fetch_add(took.as_nanos() as u64, Relaxed);
        cells.buckets[bucket_of(took)].fetch_add(1, Relaxed);
    }

    pub(crate) fn record_refusal(&self, kind: RefusalKind) {
        let cell = match kind {
            RefusalKind::Unauthorized => &self.unauthorized,
            RefusalKind::Malformed => &self.malformed,
            RefusalKind::TooLarge => &self.too_large,
        };
        cell.fetch_add(1, Relaxed);
    }
}

#[derive(Debug, Default)]
struct Cells {
    calls: AtomicU64,
    errors: AtomicU64,
    nanoseconds: AtomicU64,
    buckets: [AtomicU64; LATENCY_BOUNDS_US.len() + 1],
}

fn bucket_of(took: Duration) -> usize {
    LATENCY_BOUNDS_US.partition_point(|bound| Duration::from_micros(*bound) < took)
}

#[cfg(test)]
mod tests;
