//! The time as one Redis has it, so that all nodes mean the same by the end of a member.
//! In: instants of this node, now and then the time of the Redis → out: Unix milliseconds.
//! Uses: the system's clock until a Redis was heard. Never: waits.
//! Change here: how two clocks are held together.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

/// Turns instants into milliseconds. Differences between instants are kept exactly, but for steps of the clock.
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

    /// Another, which begins with what this one says.
    pub(crate) fn fork(&self) -> Self {
        Self { base: self.base, base_ms: AtomicU64::new(self.base_ms.load(Relaxed)) }
    }

    /// Unix milliseconds at `now`, by the clock of the Redis.
    pub(crate) fn ms(&self, now: Instant) -> u64 {
        self.base_ms.load(Relaxed) + self.since_base(now)
    }

    /// At `now` it was `unix_ms` in the Redis. A small difference is the way there and back.
    pub(crate) fn set(&self, now: Instant, unix_ms: u64) {
        if self.ms(now).abs_diff(unix_ms) > STEP_MS {
            self.base_ms.store(unix_ms.saturating_sub(self.since_base(now)), Relaxed);
        }
    }

    fn since_base(&self, now: Instant) -> u64 {
        now.saturating_duration_since(self.base).as_millis() as u64
    }
}

/// Below it two clocks are taken for equal.
const STEP_MS: u64 = 1000;

#[cfg(test)]
mod tests;
