//! The numbers of proxies: calls with their durations, failures by cause, load, circuits.
//! In: outcomes of calls → out: counts for metrics and health.
//! Uses atomics. Never: names of metrics.
//! Changed here: what is counted.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use crate::circuit::CircuitState;
use crate::event::EventKind;

/// Upper bounds of the buckets of durations, in microseconds.
pub const DURATION_BOUNDS_US: [u64; 12] = [
    500, 1_000, 2_500, 5_000, 10_000, 25_000, 50_000, 100_000, 250_000, 500_000, 1_000_000,
    5_000_000,
];

/// Why a client got no decision of a backend.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FailureCause {
    Timeout,
    Transport,
    Status,
    Answer,
    Payload,
    QueueFull,
    Waited,
    CircuitOpen,
}

impl FailureCause {
    const COUNT: usize = 8;

    const NAMES: [&str; Self::COUNT] = [
        "timeout",
        "transport",
        "status",
        "answer",
        "payload",
        "queue_full",
        "waited",
        "circuit_open",
    ];

    /// The label `cause` of metrics.
    pub(crate) fn name(self) -> &'static str {
        Self::NAMES[self as usize]
    }
}

/// The state of one proxy.
#[derive(Clone, Debug)]
pub struct ProxyStats {
    /// Its section in the configuration.
    pub key: Arc<str>,
    /// `default`, or the name in `proxies`.
    pub name: Arc<str>,
    /// `http` or `grpc`.
    pub protocol: &'static str,
    pub in_flight: usize,
    /// Calls that wait for one in flight to end.
    pub waiting: usize,
    pub circuit: CircuitState,
    /// Kinds of events for which it was called.
    pub calls: Vec<CallStats>,
}

/// The calls for one kind of event.
#[derive(Clone, Debug)]
pub struct CallStats {
    pub kind: EventKind,
    pub in_flight: u64,
    /// Calls that were sent, per bucket; the last one is above all bounds.
    pub durations: Vec<u64>,
    pub seconds: f64,
    /// Failures by cause, those of calls that were not sent included.
    pub failures: Vec<(&'static str, u64)>,
}

/// Counters of one proxy.
#[derive(Debug, Default)]
pub(crate) struct Counters([KindCounters; EventKind::ALL.len()]);

#[derive(Debug, Default)]
struct KindCounters {
    in_flight: AtomicU64,
    durations: [AtomicU64; DURATION_BOUNDS_US.len() + 1],
    microseconds: AtomicU64,
    failures: [AtomicU64; FailureCause::COUNT],
}

impl Counters {
    pub(crate) fn begin(&self, kind: EventKind) {
        self.0[kind as usize].in_flight.fetch_add(1, Relaxed);
    }

    pub(crate) fn end(&self, kind: EventKind, duration: Duration) {
        let counters = &self.0[kind as usize];
        counters.in_flight.fetch_sub(1, Relaxed);
        let us = u64::try_from(duration.as_micros()).unwrap_or(u64::MAX);
        let bucket = DURATION_BOUNDS_US.partition_point(|bound| *bound < us);
        counters.durations[bucket].fetch_add(1, Relaxed);
        counters.microseconds.fetch_add(us, Relaxed);
    }

    pub(crate) fn failed(&self, kind: EventKind, cause: FailureCause) {
        self.0[kind as usize].failures[cause as usize].fetch_add(1, Relaxed);
    }

    /// Numbers of the kinds that were called or failed.
    pub(crate) fn read(&self) -> Vec<CallStats> {
        let one = |kind: EventKind| {
            let counters = &self.0[kind as usize];
            let read = |counter: &AtomicU64| counter.load(Relaxed);
            let failures = FailureCause::NAMES.into_iter().zip(counters.failures.iter().map(read));
            CallStats {
                kind,
                in_flight: read(&counters.in_flight),
                durations: counters.durations.iter().map(read).collect(),
                seconds: read(&counters.microseconds) as f64 / 1e6,
                failures: failures.filter(|(_, count)| *count > 0).collect(),
            }
        };
        let is_used = |calls: &CallStats| {
            calls.in_flight > 0
                || !calls.failures.is_empty()
                || calls.durations.iter().any(|count| *count > 0)
        };
        EventKind::ALL.into_iter().map(one).filter(is_used).collect()
    }
}
