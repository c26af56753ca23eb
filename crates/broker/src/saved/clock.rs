//! Times of a snapshot: instants of a process become Unix milliseconds, and those instants of another process.
//! In: a moment on both clocks, times on one → out: the same times on the other.
//! Uses: arithmetic. Never: reads a clock.
//! Changed here: how times survive a stop. Time that passes between two processes counts.

use std::time::{Duration, Instant};

/// A moment on both clocks.
#[derive(Clone, Copy, Debug)]
pub struct SnapshotClock {
    /// The time of the process's clock.
    pub now: Instant,
    /// The time of the machine's clock.
    pub unix_ms: u64,
}

impl SnapshotClock {
    pub(crate) fn unix_ms(&self, time: Instant) -> u64 {
        let later = time.saturating_duration_since(self.now).as_millis();
        let earlier = self.now.saturating_duration_since(time).as_millis();
        let [later, earlier] = [later, earlier].map(|ms| u64::try_from(ms).unwrap_or(u64::MAX));
        self.unix_ms.saturating_add(later).saturating_sub(earlier)
    }

    /// The instant of a time. What the process cannot express is now.
    pub(crate) fn instant(&self, unix_ms: u64) -> Instant {
        let later = Duration::from_millis(unix_ms.saturating_sub(self.unix_ms));
        let earlier = Duration::from_millis(self.unix_ms.saturating_sub(unix_ms));
        let instant = self.now.checked_add(later).and_then(|time| time.checked_sub(earlier));
        instant.unwrap_or(self.now)
    }

    /// The clock of a start that loads a file of the time `saved_ms`. A clock that went back in the meantime lengthens nothing.
    pub(crate) fn not_before(self, saved_ms: u64) -> Self {
        Self { unix_ms: self.unix_ms.max(saved_ms), ..self }
    }
}
