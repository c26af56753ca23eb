//! Delays between attempts: exponential, with full jitter.
//! The number of attempts and the ends of the range → a random delay.
//! Pure; chance comes from a seed, because thousands of clients must not come back in one moment.
//! Changed here: how delays grow. When an attempt is made is `core` and `subscriptions`.

use std::time::Duration;

/// A small generator of chance (splitmix64), good enough to spread delays.
#[derive(Clone, Debug)]
pub(crate) struct Jitter(u64);

impl Jitter {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// The delay after `attempts` failed ones: between `min` and `min` with a random part of an interval that begins as
    /// `min` and doubles with each attempt; at most `max`.
    pub(crate) fn delay(&mut self, attempts: u32, min: Duration, max: Duration) -> Duration {
        let doubled = min.saturating_mul(2_u32.saturating_pow(attempts.min(31)));
        let interval = doubled.min(max);
        let random = interval.mul_f64(self.fraction());
        min.saturating_add(random).min(max)
    }

    /// A number from 0 to below 1.
    fn fraction(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ mixed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^= mixed >> 31;
        (mixed >> 11) as f64 / (1_u64 << 53) as f64
    }
}

#[cfg(test)]
mod tests;
