//! Stop of a shard: its connections are closed one after the other, so that clients do not all reconnect at once.
//! In: the time to spread over, and now → out: connections to close, evenly, then the end of the shard.
//! Uses the `ConnectionWriter`; never a clock or a socket of its own.
//! Changed here: how a shutdown is spread. Its start lives in `fanwire::server`.

use std::time::{Duration, Instant};

use super::{
    connection::{Phase, SlotKey},
    connection_writer::ConnectionWriter,
    inbox::Stop,
};

pub(super) struct Stopping {
    keys: Vec<SlotKey>,
    started: Instant,
    spread: Duration,
    timeout: Duration,
    total: usize,
}

impl Stopping {
    /// A shard with few connections does not use all of the time, unless it is to be exact.
    pub(super) fn new(out: &ConnectionWriter, stop: Stop) -> Self {
        let keys: Vec<SlotKey> =
            out.connections.iter().map(|(index, c)| c.key(index as u32)).collect();
        let short = Duration::from_secs_f64(keys.len() as f64 / CLOSES_PER_SECOND);
        let spread = if stop.is_exact { stop.spread } else { stop.spread.min(short) };
        Self { total: keys.len(), keys, started: out.now, spread, timeout: stop.timeout }
    }

    /// The connections to close by now. After the last one it returns all open connections, including those that
    /// arrived during the stop.
    pub(super) fn due(&mut self, out: &ConnectionWriter) -> Vec<SlotKey> {
        let elapsed = out.now.saturating_duration_since(self.started);
        let due = match elapsed.as_secs_f64() / self.spread.as_secs_f64() {
            share if share < 1.0 => (self.total as f64 * share) as usize,
            _ => self.total,
        };
        let keys = self.keys.split_off(self.keys.len().min(self.total - due));
        if !self.keys.is_empty() {
            return keys;
        }
        let open = out.connections.iter().filter(|(_, c)| c.phase == Phase::Open);
        open.map(|(index, c)| c.key(index as u32)).collect()
    }

    /// Whether every connection is gone or the time is over. `ConnectionWriter` drops peers that do not answer a close. The
    /// server ends its tasks after the closes, and has [`TASKS_FINISH_TIME`] for it.
    pub(super) fn is_over(&self, out: &ConnectionWriter, has_tasks: bool) -> bool {
        let elapsed = out.now.saturating_duration_since(self.started);
        let waits_for_tasks = has_tasks && elapsed < self.spread + TASKS_FINISH_TIME;
        let is_done = self.keys.is_empty() && out.connections.is_empty() && !waits_for_tasks;
        elapsed >= self.timeout || is_done
    }

    pub(super) fn next_deadline(&self, now: Instant) -> Instant {
        now + TICK
    }
}

/// Another node serves this many reconnects a second per shard without delay to its other clients.
const CLOSES_PER_SECOND: f64 = 1000.0;
/// As for requests in flight on the HTTP runtime.
const TASKS_FINISH_TIME: Duration = Duration::from_secs(5);
const TICK: Duration = Duration::from_millis(20);
