//! Counters of the API: calls, errors and latency per method, and refused requests.
//! In: one record per call. Out: snapshots for the metrics endpoint.
//! Relaxed atomics only: never a lock, never an allocation.
//! Names and format of the published metrics live in `fanwire_metrics`.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use crate::Method;

/// Upper bounds of the latency histogram in microseconds; one more bucket has no bound.
/// The range is from a publish into the memory broker (tens of µs) to a broker that does not answer (seconds).
pub const LATENCY_BOUNDS_US: [u64; 12] =
    [10, 25, 50, 100, 250, 500, 1_000, 2_500, 10_000, 100_000, 1_000_000, 10_000_000];

/// Totals since the start of the process, shared by all threads.
#[derive(Debug)]
pub struct Counters {
    methods: [MethodCounters; Method::ALL.len()],
    unauthorized: AtomicU64,
    malformed: AtomicU64,
    too_large: AtomicU64,
}

/// One method's totals at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MethodCounts {
    /// Calls that reached the method, failed ones included; commands inside a batch count one each.
    pub calls: u64,
    /// Calls that ended with an application error. Failed items of a broadcast do not count.
    pub errors: u64,
    /// Total time inside the method.
    pub time: Duration,
    /// Calls per latency bucket of `LATENCY_BOUNDS_US`, not cumulative; the last one is for calls above all bounds.
    pub buckets: [u64; LATENCY_BOUNDS_US.len() + 1],
}

/// Requests that were refused before a method was called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RequestErrorCounts {
    /// No key or a wrong one: 401.
    pub unauthorized: u64,
    /// Not JSON, a wrong type, or an incomplete body: 400.
    pub malformed: u64,
    /// Body over the limit: 413.
    pub too_large: u64,
}

/// Why a request was refused before a method was called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RequestErrorKind {
    Unauthorized,
    Malformed,
    TooLarge,
}

impl Default for Counters {
    fn default() -> Self {
        Self {
            methods: std::array::from_fn(|_| MethodCounters::default()),
            unauthorized: AtomicU64::new(0),
            malformed: AtomicU64::new(0),
            too_large: AtomicU64::new(0),
        }
    }
}

impl Counters {
    /// The totals of one method.
    pub fn of(&self, method: Method) -> MethodCounts {
        let counters = &self.methods[method.index()];
        MethodCounts {
            calls: counters.calls.load(Relaxed),
            errors: counters.errors.load(Relaxed),
            time: Duration::from_nanos(counters.nanoseconds.load(Relaxed)),
            buckets: std::array::from_fn(|index| counters.buckets[index].load(Relaxed)),
        }
    }

    /// The totals of refused requests.
    pub fn refusals(&self) -> RequestErrorCounts {
        RequestErrorCounts {
            unauthorized: self.unauthorized.load(Relaxed),
            malformed: self.malformed.load(Relaxed),
            too_large: self.too_large.load(Relaxed),
        }
    }

    pub(crate) fn record(&self, method: Method, took: Duration, failed: bool) {
        let counters = &self.methods[method.index()];
        counters.calls.fetch_add(1, Relaxed);
        counters.errors.fetch_add(u64::from(failed), Relaxed);
        counters.nanoseconds.fetch_add(took.as_nanos() as u64, Relaxed);
        counters.buckets[bucket_of(took)].fetch_add(1, Relaxed);
    }

    pub(crate) fn record_refusal(&self, kind: RequestErrorKind) {
        let cell = match kind {
            RequestErrorKind::Unauthorized => &self.unauthorized,
            RequestErrorKind::Malformed => &self.malformed,
            RequestErrorKind::TooLarge => &self.too_large,
        };
        cell.fetch_add(1, Relaxed);
    }
}

#[derive(Debug, Default)]
struct MethodCounters {
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
