//! Connections that the server closes one after the other, so that clients do not all reconnect at once: all, or some.
//! In: keys, the time to spread over, and now → out: connections to close, evenly; after a stop the end of the shard.
//! Uses the `ConnectionWriter`; never a clock or a socket of its own.
//! Changed here: how closes are spread. A shutdown begins in `fanwire::server`, departures of some in `fanwire::server::tasks`.

use std::time::{Duration, Instant};

use super::{
    connection::{Phase, SlotKey},
    connection_writer::ConnectionWriter,
    inbox::Stop,
};

/// Connections that are closed evenly over a time.
pub(super) struct PacedCloses {
    keys: Vec<SlotKey>,
    total: usize,
    started: Instant,
    spread: Duration,
}

impl PacedCloses {
    pub(super) fn new(keys: Vec<SlotKey>, spread: Duration, now: Instant) -> Self {
        Self { total: keys.len(), keys, started: now, spread }
    }

    /// The connections to close by now.
    pub(super) fn due(&mut self, now: Instant) -> Vec<SlotKey> {
        let elapsed = now.saturating_duration_since(self.started);
        let due = match elapsed.as_secs_f64() / self.spread.as_secs_f64() {
            share if share < 1.0 => (self.total as f64 * share) as usize,
            _ => self.total,
        };
        self.keys.split_off(self.keys.len().min(self.total - due))
    }

    /// Whether all were returned.
    pub(super) fn are_done(&self) -> bool {
        self.keys.is_empty()
    }

    /// The connections that are left.
    pub(super) fn into_keys(self) -> Vec<SlotKey> {
        self.keys
    }

    /// The next time to call [`due`](Self::due).
    pub(super) fn next_deadline(now: Instant) -> Instant {
        now + TICK
    }
}

/// The stop of a shard.
pub(super) struct Stopping {
    closes: PacedCloses,
    timeout: Duration,
}

impl Stopping {
    /// A shard with few connections does not use all of the time, unless it is to be exact.
    pub(super) fn new(out: &ConnectionWriter, stop: Stop) -> Self {
        let keys: Vec<SlotKey> =
            out.connections.iter().map(|(index, c)| c.key(index as u32)).collect();
        let short = Duration::from_secs_f64(keys.len() as f64 / CLOSES_PER_SECOND);
        let spread = if stop.is_exact { stop.spread } else { stop.spread.min(short) };
        Self { closes: PacedCloses::new(keys, spread, out.now), timeout: stop.timeout }
    }

    /// The connections to close by now. After the last one it returns all open connections, including those that
    /// arrived during the stop.
    pub(super) fn due(&mut self, out: &ConnectionWriter) -> Vec<SlotKey> {
        let keys = self.closes.due(out.now);
        if !self.closes.are_done() {
            return keys;
        }
        let open = out.connections.iter().filter(|(_, c)| c.phase == Phase::Open);
        open.map(|(index, c)| c.key(index as u32)).collect()
    }

    /// Whether every connection is gone or the time is over. `ConnectionWriter` drops peers that do not answer a close. The
    /// server ends its tasks after the closes, and has [`TASKS_FINISH_TIME`] for it.
    pub(super) fn is_over(&self, out: &ConnectionWriter, has_tasks: bool) -> bool {
        let elapsed = out.now.saturating_duration_since(self.closes.started);
        let waits_for_tasks = has_tasks && elapsed < self.closes.spread + TASKS_FINISH_TIME;
        let is_done = self.closes.are_done() && out.connections.is_empty() && !waits_for_tasks;
        elapsed >= self.timeout || is_done
    }
}

/// Another node serves this many reconnects a second per shard without delay to its other clients.
const CLOSES_PER_SECOND: f64 = 1000.0;
/// As for requests in flight on the HTTP runtime.
const TASKS_FINISH_TIME: Duration = Duration::from_secs(5);
const TICK: Duration = Duration::from_millis(20);

#[cfg(test)]
mod tests;
