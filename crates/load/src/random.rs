//! Pseudo-random numbers, the same in every run.
//! In: a seed → out: numbers below a count.
//! Pure.
//! Changed here: how numbers are made up; what they decide is the scenario's business.

/// A linear congruential generator: enough to interleave.
#[derive(Clone, Debug)]
pub struct Random(pub u64);

impl Random {
    /// A number from 0 to `count` - 1; `count` must not be 0.
    pub fn below(&mut self, count: usize) -> usize {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((self.0 >> 33) as usize) % count
    }
}
