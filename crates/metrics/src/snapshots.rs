//! Metrics of the snapshots of the memory engine.
//! In: readings → out: gauges and a counter.
//! Uses values only. Never: files.
//! Changed here: what is known of a snapshot.

use std::time::Duration;

use fanwire_telemetry::MetricsWriter;

/// The newest snapshot of this process; zeros before the first one.
#[derive(Clone, Copy, Debug, Default)]
pub struct SnapshotReadings {
    /// Snapshots that could not be written.
    pub failures: u64,
    pub bytes: u64,
    /// How long it took.
    pub took: Duration,
    /// Time since it was made.
    pub age: Duration,
}

impl SnapshotReadings {
    pub(crate) fn write(&self, writer: &mut impl MetricsWriter) {
        let Self { failures, bytes, took, age } = *self;
        let help = "Snapshots of the memory engine that could not be written";
        writer.counter("engine_snapshot_failures", help, failures);
        writer.gauge("engine_snapshot_bytes", "Bytes of the newest snapshot", bytes);
        let help = "Milliseconds that the newest snapshot took";
        writer.gauge("engine_snapshot_duration_ms", help, took.as_millis() as u64);
        let help = "Seconds since the newest snapshot, which is made only if something changed";
        writer.gauge("engine_snapshot_age_seconds", help, age.as_secs());
    }
}
