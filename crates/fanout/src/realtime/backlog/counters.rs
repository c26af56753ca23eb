//! Counters of the publications of one namespace that wait for connections of one shard.
//! In: increments on the shard's thread → out: relaxed reads by the metrics endpoint.
//! Uses the counters of `telemetry`; never a lock, never a channel's name.
//! Changed here: which numbers there are. Their names in Prometheus live in `fanwire_metrics`.

use fanwire_telemetry::{Counter, Histogram};

/// One namespace's numbers on one shard.
#[derive(Debug, Default)]
pub struct BacklogCounters {
    /// Waiting publications whose place a newer one took.
    pub conflated: Counter,
    /// Waiting publications that were dropped because too many values of `delivery_key_tag` waited.
    pub keys_dropped: Counter,
    /// Gauge: subscriptions for which publications wait.
    pub subscriptions: Counter,
    /// Time from a publication's acceptance to the moment when its connection took bytes again.
    pub age: Histogram,
}
