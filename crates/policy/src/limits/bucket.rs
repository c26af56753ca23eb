//! A token bucket in eight bytes (the generic cell rate algorithm, ITU-T I.371).
//! In: a rate, `now` → out: whether a token was available.
//! Uses: whole numbers. Never: a clock, a timer; the fill level is computed when a token is taken.
//! Changed here: the arithmetic of rates.

use crate::options::Rate;

/// Holds up to `limit` tokens and gets `limit` new ones per interval, evenly. It is full at the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TokenBucket {
    /// Time at which the bucket is full again, in nanoseconds.
    full_at: u64,
}

impl TokenBucket {
    /// Takes a token, if one is available. `now` is in nanoseconds since a fixed point and does not go backwards;
    /// `rate` has a limit and is the same in all calls.
    pub fn take(&mut self, rate: Rate, now: u64) -> bool {
        let limit = u64::from(rate.limit);
        let interval = u64::try_from(rate.interval.as_nanos()).unwrap_or(u64::MAX);
        let per_token = interval / limit; // at least a microsecond, see `Rate::LIMIT_MAX`
        let full_at = self.full_at.max(now).saturating_add(per_token);
        let has_token = full_at - now <= per_token * limit;
        if has_token {
            self.full_at = full_at;
        }
        has_token
    }

    /// Nanoseconds until the bucket is full; 0 if it is full.
    pub fn until_full(self, now: u64) -> u64 {
        self.full_at.saturating_sub(now)
    }

    /// A bucket that is full after this many nanoseconds.
    pub fn full_after(nanos: u64, now: u64) -> Self {
        Self { full_at: now.saturating_add(nanos) }
    }
}

#[cfg(test)]
mod tests;
