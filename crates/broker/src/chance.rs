//! The port of chance: where ids, epochs and the spread of timers come from.
//! In: nothing → out: numbers that cannot be guessed outside of the process, or those of a seed.
//! Uses: rand. Never: anything else; who asks decides what a number means.
//! Changed here: how a number becomes an id or a part of a time.

use std::time::Duration;

use uuid::{Builder, Uuid};

/// A source of random numbers, given to a node at its start. A simulation gives one that repeats itself.
pub trait Chance: Send + Sync {
    /// The next 64 random bits.
    fn bits(&self) -> u64;
}

/// The random numbers of the operating system, which cannot be guessed.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemChance;

impl Chance for SystemChance {
    fn bits(&self) -> u64 {
        rand::random()
    }
}

impl dyn Chance + '_ {
    /// A random id (RFC 9562, version 4).
    pub fn id(&self) -> Uuid {
        let halves = (u128::from(self.bits()) << 64) | u128::from(self.bits());
        Builder::from_random_bytes(halves.to_be_bytes()).into_uuid()
    }

    /// A random part of a duration.
    pub fn part_of(&self, duration: Duration) -> Duration {
        duration.mul_f64(self.bits() as f64 / 2_f64.powi(64))
    }

    /// A random time in the second half of an interval, so that what begins together does not repeat together.
    pub fn second_half_of(&self, interval: Duration) -> Duration {
        interval / 2 + self.part_of(interval / 2)
    }
}

#[cfg(test)]
mod tests;
