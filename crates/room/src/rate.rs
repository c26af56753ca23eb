//! A token bucket for the inputs of one player and kind.
//! In: a rate and the time → out: whether one more input is allowed.
//! Uses the time as a parameter. Never: a clock.
//! Changed here: how rates are measured.

use std::time::Duration;

/// How many inputs a player may send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InputRate {
    /// Average inputs per second; 0 = no limit.
    pub per_second: u32,
    /// Inputs at once.
    pub burst: u32,
}

/// The inputs that a player may send now.
#[derive(Clone, Debug, Default)]
pub(crate) struct TokenBucket {
    /// Since the start of the room, when the bucket was or will be full; zero for a new one.
    full_at: Duration,
}

impl TokenBucket {
    /// Takes a token if there is one.
    pub(crate) fn take(&mut self, rate: InputRate, now: Duration) -> bool {
        if rate.per_second == 0 {
            return true;
        }
        let each = Duration::from_secs(1) / rate.per_second;
        let full_at = self.full_at.max(now) + each;
        if full_at > now + each * rate.burst.max(1) {
            return false;
        }
        self.full_at = full_at;
        true
    }
}
