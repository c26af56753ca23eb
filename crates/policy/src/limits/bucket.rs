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
        let per_token = per_token(rate);
        let full_at = self.full_at.max(now).saturating_add(per_token);
        let has_token = full_at - now <= per_token * limit;
        if has_token {
            self.full_at = full_at;
        }
        has_token
    }

    /// Takes tokens, whether they are there or not. What is missing is a debt, of at most [`DEBT_INTERVALS_MAX`].
    pub fn charge(&mut self, rate: Rate, tokens: u32, now: u64) {
        let per_token = per_token(rate);
        let debt_max = (per_token * u64::from(rate.limit)).saturating_mul(DEBT_INTERVALS_MAX);
        let tokens_time = per_token.saturating_mul(tokens.into());
        let full_at = self.full_at.max(now).saturating_add(tokens_time);
        self.full_at = full_at.min(now.saturating_add(debt_max));
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

/// Nanoseconds for one token; at least a microsecond, see `Rate::LIMIT_MAX`.
fn per_token(rate: Rate) -> u64 {
    u64::try_from(rate.interval.as_nanos()).unwrap_or(u64::MAX) / u64::from(rate.limit)
}

/// Longest time until the bucket of a debtor is full again, in intervals.
const DEBT_INTERVALS_MAX: u64 = 10;

#[cfg(test)]
mod tests;
