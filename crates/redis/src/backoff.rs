//! The time to wait before the next try to connect: longer each time, and different for each connection.
//! In: tries and the lifetimes of connections → out: durations.
//! Uses: rand, for the jitter. Never: timers.
//! Changed here: how fast connections return to a Redis that comes back.

use std::time::Duration;

/// The backoff of one connection.
#[derive(Debug, Default)]
pub(crate) struct Backoff {
    /// Tries since the last useful connection.
    tries: u32,
}

impl Backoff {
    /// Between half and all of 100 ms, 200 ms, … up to 5 s.
    pub(crate) fn next(&mut self) -> Duration {
        let whole = FIRST.saturating_mul(1 << self.tries.min(10)).min(LONGEST);
        self.tries += 1;
        whole.mul_f64(rand::random_range(0.5..=1.0))
    }

    /// A connection ended after `lived`. Returns whether to wait before the next try, which is not needed after a
    /// useful connection.
    pub(crate) fn ended(&mut self, lived: Duration) -> bool {
        if lived >= OF_USE {
            self.tries = 0;
        }
        self.tries > 0 || lived < OF_USE
    }
}

const FIRST: Duration = Duration::from_millis(100);
const LONGEST: Duration = Duration::from_secs(5);
/// A connection that lived this long was useful.
const OF_USE: Duration = Duration::from_secs(1);

#[cfg(test)]
mod tests;
