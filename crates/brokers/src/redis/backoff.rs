//! How long to wait before the next try to connect: longer each time, and never all connections at once.
//! In: tries and how long connections lived → out: durations.
//! Uses: rand, for the jitter. Never: timers.
//! Change here: how hard a Redis that comes back is met.

use std::time::Duration;

/// The waiting of one connection.
#[derive(Debug, Default)]
pub(crate) struct Backoff {
    /// Tries since a connection lived.
    tries: u32,
}

impl Backoff {
    /// Between half and all of 100 ms, 200 ms, … up to 5 s.
    pub(crate) fn next(&mut self) -> Duration {
        let whole = FIRST.saturating_mul(1 << self.tries.min(10)).min(LONGEST);
        self.tries += 1;
        whole.mul_f64(rand::random_range(0.5..=1.0))
    }

    /// A connection ended after this time. Whether to wait before the next: not after one that was of use.
    pub(crate) fn ended(&mut self, lived: Duration) -> bool {
        if lived >= OF_USE {
            self.tries = 0;
        }
        self.tries > 0 || lived < OF_USE
    }
}

const FIRST: Duration = Duration::from_millis(100);
const LONGEST: Duration = Duration::from_secs(5);
/// A connection that lived as long was not a failed try.
const OF_USE: Duration = Duration::from_secs(1);

#[cfg(test)]
mod tests;
