//! Time as sessions keep it: milliseconds since the node began, and the distance to Unix time.
//! In: `Instant`s from the shells, Unix time with every turn of a shard → out: `Moment`s of 8 bytes, Unix seconds, steps.
//! Uses: two atomics. Never: reads a clock; who calls says what time it is.
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
        Self(self.0.saturating_add(millis_rounded_up(duration)))
    }
}

/// Turns instants into moments and Unix time.
#[derive(Debug)]
pub(crate) struct Clock {
    base: Instant,
    unix_ms_at_base: AtomicU64,
    /// The same when [`synchronise`](Self::synchronise) said last that it had stepped.
    unix_ms_at_step: AtomicU64,
}

impl Clock {
    /// At instant `now` it is `unix_ms`; the node begins here.
    pub(crate) fn new(now: Instant, unix_ms: u64) -> Self {
        Self {
            base: now,
            unix_ms_at_base: AtomicU64::new(unix_ms),
            unix_ms_at_step: AtomicU64::new(unix_ms),
        }
    }

    /// At `now` it is `unix_ms`. Moments stay what they are.
    ///
    /// Returns true after a step: Unix time has moved by [`STEP_MS`] or more, so timers that
    /// [`moment_of_unix`](Self::moment_of_unix) gave are to be set again.
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

    /// The moment that comes `delay` after the beginning of a Unix second; what was before the node began becomes its beginning.
    pub(crate) fn moment_of_unix(&self, seconds: u64, delay: Duration) -> Moment {
        let unix_ms = seconds.saturating_mul(1000).saturating_add(millis_rounded_up(delay));
        Moment(unix_ms.saturating_sub(self.unix_ms_at_base.load(Relaxed)))
    }
}

fn millis_rounded_up(duration: Duration) -> u64 {
    duration.as_nanos().div_ceil(1_000_000).try_into().unwrap_or(u64::MAX)
}

/// Both times are cut to whole milliseconds, so their difference may seem to move by one.
const ROUNDING_MS: u64 = 1;

/// Tokens say in whole seconds when they expire.
const STEP_MS: u64 = 1000;

#[cfg(test)]
mod tests;
