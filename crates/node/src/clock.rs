//! Time as sessions store it: milliseconds since the node started, and the offset to Unix time.
//! In: `Instant`s from the shells, Unix time with every turn of a shard → out: `Moment`s of 8 bytes, Unix seconds, clock steps.
//! Uses: two atomics. Never: reads a clock; time is a parameter.
//! Changed here: how times are stored. `hub/timers.rs` decides when something is due.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

/// Milliseconds since the node started. Earlier instants count as 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Moment(pub(crate) u64);

impl Moment {
    /// Later than everything.
    pub(crate) const NEVER: Self = Self(u64::MAX);

    /// This moment plus a duration, rounded up to a millisecond.
    pub(crate) fn after(self, duration: Duration) -> Self {
        Self(self.0.saturating_add(millis_rounded_up(duration)))
    }
}

/// Turns instants into moments and Unix time.
#[derive(Debug)]
pub(crate) struct Clock {
    base: Instant,
    unix_ms_at_base: AtomicU64,
    /// Unix time as of the last clock step that [`synchronise`](Self::synchronise) reported.
    unix_ms_at_step: AtomicU64,
}

impl Clock {
    /// The node starts at instant `now`, which is `unix_ms`.
    pub(crate) fn new(now: Instant, unix_ms: u64) -> Self {
        Self {
            base: now,
            unix_ms_at_base: AtomicU64::new(unix_ms),
            unix_ms_at_step: AtomicU64::new(unix_ms),
        }
    }

    /// Sets Unix time: at `now` it is `unix_ms`. Existing moments stay valid.
    ///
    /// Returns true after a step: Unix time moved by [`STEP_MS`] or more, so timers computed by
    /// [`moment_of_unix`](Self::moment_of_unix) must be set again.
    pub(crate) fn synchronise(&self, now: Instant, unix_ms: u64) -> bool {
        let at_base = unix_ms.saturating_sub(self.moment(now).0);
        // All shards read it, so it is written only when it has moved.
        if at_base.abs_diff(self.unix_ms_at_base.load(Relaxed)) > ROUNDING_MS {
            self.unix_ms_at_base.store(at_base, Relaxed);
        }
        let has_stepped = at_base.abs_diff(self.unix_ms_at_step.load(Relaxed)) >= STEP_MS;
        if has_stepped {
            self.unix_ms_at_step.store(at_base, Relaxed);
        }
        has_stepped
    }

    pub(crate) fn moment(&self, now: Instant) -> Moment {
        let elapsed = now.saturating_duration_since(self.base).as_millis();
        Moment(elapsed.try_into().unwrap_or(u64::MAX))
    }

    /// Nanoseconds since the node started, for rates; 584 years at most.
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

    /// The moment `delay` after a Unix second; moments before the start of the node become 0.
    pub(crate) fn moment_of_unix(&self, seconds: u64, delay: Duration) -> Moment {
        let unix_ms = seconds.saturating_mul(1000).saturating_add(millis_rounded_up(delay));
        Moment(unix_ms.saturating_sub(self.unix_ms_at_base.load(Relaxed)))
    }
}

fn millis_rounded_up(duration: Duration) -> u64 {
    duration.as_nanos().div_ceil(1_000_000).try_into().unwrap_or(u64::MAX)
}

/// Both times are cut to whole milliseconds, so their difference may move by one.
const ROUNDING_MS: u64 = 1;

/// Expiry times in tokens are whole seconds.
const STEP_MS: u64 = 1000;

#[cfg(test)]
mod tests;
