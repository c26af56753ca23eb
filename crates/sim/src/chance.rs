//! The only source of chance of a simulation: numbers that follow from its seed.
//! In: a seed, names of who draws → out: numbers, parts of times, choices.
//! Pure: SplitMix64. Never: the random numbers of the system.
//! Changed here: how numbers are drawn. What is drawn stands in `plan.rs` and with those who draw.

use std::time::Duration;

use fanwire_broker::Chance;
use parking_lot::Mutex;

/// A stream of random numbers.
#[derive(Clone, Debug)]
pub struct SeededRandom(u64);

impl SeededRandom {
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// A stream of its own for one part of the simulation, so that a part that is left out changes no other.
    pub fn fork(&self, name: &str, number: u64) -> Self {
        let mut state = self.0 ^ number.wrapping_mul(0xd6e8_feb8_6659_fd93);
        for byte in name.bytes() {
            state = (state ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
        }
        let mut fork = Self(state);
        fork.bits();
        fork
    }

    /// The next 64 bits (SplitMix64).
    pub fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below `end`, which is at least 1.
    pub fn below(&mut self, end: u64) -> u64 {
        self.bits() % end
    }

    /// An index of a list with `length` entries.
    pub fn index(&mut self, length: usize) -> usize {
        self.below(length as u64) as usize
    }

    /// True in this many of a hundred draws.
    pub fn percent(&mut self, chance: u64) -> bool {
        self.below(100) < chance
    }

    /// A duration between two numbers of milliseconds, to the microsecond.
    pub fn between_ms(&mut self, least: u64, most: u64) -> Duration {
        Duration::from_micros(least * 1000 + self.below((most - least) * 1000 + 1))
    }

    pub fn pick<'a, T>(&mut self, choices: &'a [T]) -> &'a T {
        let index = self.index(choices.len());
        &choices[index]
    }
}

/// The chance that a simulated node is given.
pub struct SeededChance(Mutex<SeededRandom>);

impl SeededChance {
    pub fn new(random: SeededRandom) -> Self {
        Self(Mutex::new(random))
    }
}

impl Chance for SeededChance {
    fn bits(&self) -> u64 {
        self.0.lock().bits()
    }
}
