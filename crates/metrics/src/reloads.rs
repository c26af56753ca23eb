//! The metrics of the last reload of the configuration.
//! In: results of reloads → out: rows for the writer; none before the first reload.
//! Uses atomics; never the configuration.
//! Changed here: what is known of a reload. Its log lines are written by the program.

use std::{
    sync::atomic::{AtomicU64, Ordering::Relaxed},
    time::{SystemTime, UNIX_EPOCH},
};

use fanwire_telemetry::MetricsWriter;

/// The last reload. Times are Unix seconds; 0 = never.
#[derive(Debug, Default)]
pub struct Reloads {
    last: AtomicU64,
    last_success: AtomicU64,
}

impl Reloads {
    /// Notes the end of a reload.
    pub fn record(&self, is_success: bool) {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        self.last.store(since.as_secs(), Relaxed);
        if is_success {
            self.last_success.store(since.as_secs(), Relaxed);
        }
    }

    pub(super) fn write(&self, writer: &mut impl MetricsWriter) {
        let last = self.last.load(Relaxed);
        let success = self.last_success.load(Relaxed);
        if last == 0 {
            return;
        }
        let help = "Whether the last reload of the configuration succeeded";
        writer.gauge("config_last_reload_successful", help, u64::from(last == success));
        let help = "Unix second of the last reload that succeeded; 0 = none";
        writer.gauge("config_last_reload_success_timestamp_seconds", help, success);
    }
}
