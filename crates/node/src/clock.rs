//! Time as sessions keep it: milliseconds since the node began, and the distance to Unix time.
//! In: `Instant`s from the shells, Unix time once in a while → out: `Moment`s of 8 bytes, Unix seconds.
//! Uses: one atomic. Never: reads a clock; who calls says what time it is.
//! Change here: how times are stored. What is due when lives in `hub/timers.rs`.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

/// Milliseconds since the node began. Earlier instants count as its beginning.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Moment(pub(crate) u64);

impl Moment {
    /// Later than everything.
    pub(crate) const NEVER: Self = Self(u64::MAX);

    /// This moment plus a duration, rounded up to a millisecond.
    pub(crate) fn after(self, duration: Duration) -> Self {
        let millis = duration.as_nanos().div_ceil(1_000_000).try_into().unwrap_or(u64::MAX);
        Self(self.0.saturating_add(millis))
    }
}

/// Turns instants into moments and Unix time.
#[derive(Debug)]
pub(crate) struct Clock {
    base: Instant,
    unix_ms_at_base: AtomicU64,
}

impl Clock {
    /// At instant `now` it is `unix_ms`; the node begins here.
    pub(crate) fn new(now: Instant, unix_ms: u64) -> Self {
        Self { base: now, unix_ms_at_base: AtomicU64::new(unix_ms) }
    }

    /// Unix time was set or drifted: at `now` it is `unix_ms`. Moments stay what they are.
    pub(crate) fn synchronise(&self, now: Instant, unix_ms: u64) {
        self.unix_ms_at_base.store(unix_ms.saturating_sub(self.moment(now).0), Relaxed);
    }

    pub(crate) fn moment(&self, now: Instant) -> Moment {
        let elapsed = now.saturating_duration_since(self.base).as_millis();
        Moment(elapsed.try_into().unwrap_or(u64::MAX))
    }

    /// Nanoseconds since the node began, for rates; 584 years at most.
    pub(crate) fn nanos(&self, now: Instant) -> u64 {
        let elapsed = now.saturating_duration_since(self.base).as_nanos();
        elapsed.try_into().unwrap_or(u64::MAX)
    }

    /// The instant of a moment; `None` for one too far away to exist.
    pub(crate) fn instant(&self, moment: Moment) -> Option<Instant> {
        self.base.checked_add(Duration::from_millis(moment.0))
    }

    /// Unix time in milliseconds.
    pub(crate) fn unix_ms(&self, now: Instant) -> u64 {
        self.unix_ms_at_base.load(Relaxed).saturating_add(self.moment(now).0)
    }

    /// Unix time in whole seconds.
    pub(crate) fn unix(&self, now: Instant) -> u64 {
        self.unix_ms(now) / 1000
    }

    /// The moment at which a Unix second begins; the past becomes the beginning.
    pub(crate) fn moment_of_unix(&self, seconds: u64) -> Moment {
        let unix_ms = seconds.saturating_mul(1000);
        Moment(unix_ms.saturating_sub(self.unix_ms_at_base.load(Relaxed)))
    }
}

#[cfg(test)]
mod tests;
