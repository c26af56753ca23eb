//! The time of one Redis, so that all nodes agree about the end of a member.
//! In: instants of this node, and from time to time the time of the Redis → out: Unix milliseconds.
//! Uses: the system's clock until the Redis has answered. Never: waits.
//! Changed here: how the two clocks are matched.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

/// Converts instants to milliseconds. Differences between instants are exact, except when the clock steps.
#[derive(Debug)]
pub(crate) struct RedisClock {
    base: Instant,
    base_ms: AtomicU64,
}

impl RedisClock {
    pub(crate) fn new() -> Self {
        let unix = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Self { base: Instant::now(), base_ms: AtomicU64::new(unix.as_millis() as u64) }
    }

    /// Another clock that starts with the same time.
    pub(crate) fn fork(&self) -> Self {
        Self { base: self.base, base_ms: AtomicU64::new(self.base_ms.load(Relaxed)) }
    }

    /// Unix milliseconds at `now`, by the clock of the Redis.
    pub(crate) fn ms(&self, now: Instant) -> u64 {
        self.base_ms.load(Relaxed) + self.since_base(now)
    }

    /// Sets the clock: at `now` it was `unix_ms` in the Redis. Differences up to [`STEP_MS`] are ignored, because the
    /// reply took time.
    pub(crate) fn set(&self, now: Instant, unix_ms: u64) {
        if self.ms(now).abs_diff(unix_ms) > STEP_MS {
            self.base_ms.store(unix_ms.saturating_sub(self.since_base(now)), Relaxed);
        }
    }

    fn since_base(&self, now: Instant) -> u64 {
        now.saturating_duration_since(self.base).as_millis() as u64
    }
}

/// Smaller differences are ignored.
const STEP_MS: u64 = 1000;

#[cfg(test)]
mod tests;
