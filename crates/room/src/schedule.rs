//! Times of the ticks of a room, and what happens when they come late.
//! In: a rate, an overrun policy, the time → out: how many ticks to run now, how many are left out, when the next is due.
//! Uses the time as a parameter. Never: a clock.
//! Changed here: overrun policies.

use std::num::NonZeroU32;
use std::time::Duration;

/// Handling of ticks that could not run when they were due, because a tick took too long or the machine was busy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Overrun {
    /// One tick runs, the others are left out: simulated time falls behind.
    Skip,
    /// Up to this many ticks run one after the other, the others are left out.
    CatchUp { at_most: NonZeroU32 },
}

/// The ticks of a room at a fixed rate. Tick n is due n periods after the start, without drift.
#[derive(Clone, Debug)]
pub struct Schedule {
    ticks_per_second: NonZeroU32,
    overrun: Overrun,
    /// Number of the next tick that is due, from 1; ticks that are left out count.
    next: u64,
    overruns: u64,
}

/// The result of [`Schedule::due`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Due {
    /// Ticks to run now.
    pub run: u32,
    /// Ticks that are left out.
    pub skipped: u64,
    /// Time to ask again, since the start.
    pub next: Duration,
}

impl Schedule {
    pub fn new(ticks_per_second: NonZeroU32, overrun: Overrun) -> Self {
        Self { ticks_per_second, overrun, next: 1, overruns: 0 }
    }

    /// The simulated time of one tick.
    pub fn period(&self) -> Duration {
        Duration::from_secs(1) / self.ticks_per_second.get()
    }

    /// Returns the time of the next tick, since the start.
    pub fn next(&self) -> Duration {
        self.due_at(self.next)
    }

    /// The ticks that are due at `now`, the time since the start; they count as run or left out from now on.
    pub fn due(&mut self, now: Duration) -> Due {
        let due = self.last_due(now).checked_sub(self.next).map_or(0, |later| later + 1);
        let run_max = match self.overrun {
            Overrun::Skip => 1,
            Overrun::CatchUp { at_most } => at_most.get(),
        };
        let run = u32::try_from(due).unwrap_or(u32::MAX).min(run_max);
        self.next += due;
        self.overruns += due.saturating_sub(1);
        Due { run, skipped: due - u64::from(run), next: self.next() }
    }

    /// How many ticks were a period late or more.
    pub fn overruns(&self) -> u64 {
        self.overruns
    }

    fn due_at(&self, tick: u64) -> Duration {
        let ns = u128::from(tick) * NS_PER_SECOND / u128::from(self.ticks_per_second.get());
        Duration::from_nanos(ns.try_into().unwrap_or(u64::MAX))
    }

    /// Number of the last tick that is due at `now`; 0 = none.
    fn last_due(&self, now: Duration) -> u64 {
        // Tick n is due at floor(n * second / rate), so n is due as soon as n * second < (now + 1 ns) * rate.
        let rate = u128::from(self.ticks_per_second.get());
        let last = ((now.as_nanos() + 1) * rate - 1) / NS_PER_SECOND;
        last.try_into().unwrap_or(u64::MAX)
    }
}

const NS_PER_SECOND: u128 = 1_000_000_000;

#[cfg(test)]
mod tests;
