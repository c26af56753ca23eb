//! Stopping a shard: its connections are closed one after the other, so that their clients do not come back as one wave.
//! In: the time to spread over, and now → out: closes, evenly, then the end of the shard.
//! Uses the `Outlet`; never a clock or a socket of its own.
//! Changed here: how a shutdown is spread. What starts it lives in `server`.

use std::time::{Duration, Instant};

use super::{application::Key, connection::Phase, inbox::Stop, outlet::Outlet};

pub(super) struct Stopping {
    keys: Vec<Key>,
    started: Instant,
    spread: Duration,
    timeout: Duration,
    total: usize,
}

impl Stopping {
    /// A shard with few connections does not use all of the time.
    pub(super) fn new(out: &Outlet, stop: Stop) -> Self {
        let keys: Vec<Key> = out.connections.iter().map(|(index, c)| c.key(index as u32)).collect();
        let spread =
            stop.spread.min(Duration::from_secs_f64(keys.len() as f64 / CLOSES_PER_SECOND));
        Self { total: keys.len(), keys, started: out.now, spread, timeout: stop.timeout }
    }

    /// Closes as many connections as are due by now, and late arrivals at once.
    pub(super) fn close_due(&mut self, out: &mut Outlet, (code, reason): (u16, &str)) {
        let elapsed = out.now.saturating_duration_since(self.started);
        let due = match elapsed.as_secs_f64() / self.spread.as_secs_f64() {
            share if share < 1.0 => (self.total as f64 * share) as usize,
            _ => self.total,
        };
        while self.total - self.keys.len() < due
            && let Some(key) = self.keys.pop()
        {
            out.close(key, code, reason);
        }
        if self.keys.is_empty() {
            let open = |(index, c): (usize, &super::connection::Connection)| {
                (c.phase == Phase::Open).then(|| c.key(index as u32))
            };
            let late: Vec<Key> = out.connections.iter().filter_map(open).collect();
            late.into_iter().for_each(|key| out.close(key, code, reason));
        }
    }

    /// Every connection is gone, or the time is over. Peers that do not answer a close are dropped by the outlet.
    pub(super) fn is_over(&self, out: &Outlet) -> bool {
        let is_late = out.now.saturating_duration_since(self.started) >= self.timeout;
        is_late || self.keys.is_empty() && out.connections.is_empty()
    }

    pub(super) fn next_deadline(&self, now: Instant) -> Instant {
        now + TICK
    }
}

/// A thousand reconnects a second per shard is what a neighbour takes without noticing.
const CLOSES_PER_SECOND: f64 = 1000.0;
const TICK: Duration = Duration::from_millis(20);
