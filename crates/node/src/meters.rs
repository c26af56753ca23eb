//! Metrics of a node for `info` (server API §3): increases of counters in an interval, values of gauges at its end.
//! In: readings of all metrics, the time → out: one summary at the start, and one per interval.
//! Uses: maps behind a short lock. Never: a list of metrics; the reader supplies it.
//! Changed here: how readings become a summary. Names and values live in the server's metrics.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use hashbrown::HashMap;
use parking_lot::Mutex;

use fanwire_cluster::Metrics;
use fanwire_telemetry::{Reading, ReadingKind};

/// Reads the metrics of the server around a node.
pub trait Meters: Send + Sync {
    /// All metrics, each name once. Called once per interval, on the thread that ticks the node.
    fn read(&self) -> Vec<Reading>;
}

/// The last summary, and the readings that the next one is compared with.
#[derive(Default)]
pub(crate) struct Summaries {
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    meters: Option<Arc<dyn Meters>>,
    /// Time at which the counters were read, and their values.
    since: Option<(Instant, HashMap<String, f64>)>,
    last: Option<Metrics>,
}

impl Summaries {
    pub(crate) fn read_from(&self, meters: Arc<dyn Meters>) {
        self.state.lock().meters = Some(meters);
    }

    /// Makes a summary when the last one is `interval` old.
    pub(crate) fn tick(&self, now: Instant, interval: Duration) {
        let Some(meters) = self.due_meters(now, interval) else { return };
        let readings = meters.read(); // without the lock: a meter may ask the node for its states
        self.state.lock().take(readings, now, interval);
    }

    /// The meters, unless the last summary is younger than `interval`.
    fn due_meters(&self, now: Instant, interval: Duration) -> Option<Arc<dyn Meters>> {
        let state = self.state.lock();
        let age = state.since.as_ref().map(|(at, _)| now.saturating_duration_since(*at));
        if age.is_some_and(|age| age < interval) {
            return None;
        }
        state.meters.clone()
    }

    /// All gauges of now by name.
    pub(crate) fn levels(&self) -> BTreeMap<String, f64> {
        let meters = self.state.lock().meters.clone();
        let readings = meters.map(|meters| meters.read()).unwrap_or_default();
        let levels = readings.into_iter().filter(|reading| reading.kind == ReadingKind::Level);
        levels.map(|Reading { name, value, .. }| (name, value)).collect()
    }

    /// `None` before the first reading.
    pub(crate) fn last(&self) -> Option<Metrics> {
        self.state.lock().last.clone()
    }
}

impl State {
    /// The first summary is that of the time before: counters began at 0.
    fn take(&mut self, readings: Vec<Reading>, now: Instant, interval: Duration) {
        let totals = (readings.iter())
            .filter(|reading| reading.kind == ReadingKind::Total)
            .map(|reading| (reading.name.clone(), reading.value))
            .collect();
        let before = self.since.replace((now, totals));
        let passed = before.as_ref().map(|(at, _)| now.saturating_duration_since(*at));
        let grown = |Reading { name, kind, value }| match (kind, &before) {
            (ReadingKind::Total, Some((_, before))) => {
                let before = before.get(&name).copied().unwrap_or_default();
                (name, value - before)
            }
            (ReadingKind::Total, None) | (ReadingKind::Level, _) => (name, value),
        };
        self.last = Some(Metrics {
            interval_seconds: passed.unwrap_or(interval).as_secs_f64(),
            // Zeros are left out: most of some hundred metrics are 0, and every state message carries the summary.
            items: readings.into_iter().map(grown).filter(|(_, value)| *value != 0.0).collect(),
        });
    }
}

#[cfg(test)]
mod tests;
