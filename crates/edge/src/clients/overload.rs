//! Whether this node has too much load for new clients (`shed.*`), or is evacuated.
//! In: a value of the load and the time → out: whether it is above its limit; flags that handshakes read.
//! Pure but for the flags. Never: measures, refuses or logs.
//! Changed here: when a limit counts as exceeded. `admission` refuses, and `fanwire::shedding` measures.

use std::{
    sync::atomic::{AtomicBool, Ordering::Relaxed},
    time::{Duration, Instant},
};

use super::refusals::Cause;

/// The limits that are exceeded now.
#[derive(Debug, Default)]
pub struct Overload {
    memory: AtomicBool,
    turns: AtomicBool,
    evacuation: AtomicBool,
}

impl Overload {
    /// Says whether the limit on resident memory is exceeded. Returns whether that is new.
    pub fn set_memory(&self, is_exceeded: bool) -> bool {
        self.memory.swap(is_exceeded, Relaxed) != is_exceeded
    }

    /// Says whether the limit on the time of turns is exceeded. Returns whether that is new.
    pub fn set_turns(&self, is_exceeded: bool) -> bool {
        self.turns.swap(is_exceeded, Relaxed) != is_exceeded
    }

    /// Says whether clients are sent away from this node, so that they must not come back.
    pub fn set_evacuation(&self, is_running: bool) {
        self.evacuation.store(is_running, Relaxed);
    }

    /// Each reason, and whether new clients are refused for it.
    pub fn reasons(&self) -> [(Cause, bool); 3] {
        [
            (Cause::Memory, self.memory.load(Relaxed)),
            (Cause::Turns, self.turns.load(Relaxed)),
            (Cause::Evacuation, self.evacuation.load(Relaxed)),
        ]
    }

    /// The first reason to refuse a new client.
    pub(super) fn cause(&self) -> Option<Cause> {
        let reasons = self.reasons().into_iter();
        reasons.filter(|(_, is_exceeded)| *is_exceeded).map(|(cause, _)| cause).next()
    }
}

/// A limit on one value, with hysteresis: it is exceeded once the value was above it for a time, until the value is at most
/// nine tenths of it.
#[derive(Debug)]
pub struct LoadLimit {
    max: u64,
    patience: Duration,
    above_since: Option<Instant>,
    is_exceeded: bool,
}

impl LoadLimit {
    /// The limit `max` (0 = none), which a value has to exceed for the time `patience`.
    pub fn new(max: u64, patience: Duration) -> Self {
        Self { max, patience, above_since: None, is_exceeded: false }
    }

    /// Takes the value of now. Returns whether the limit is exceeded.
    pub fn observe(&mut self, value: u64, now: Instant) -> bool {
        if self.max == 0 {
            return false;
        }
        if value > self.max {
            let since = *self.above_since.get_or_insert(now);
            self.is_exceeded |= now.saturating_duration_since(since) >= self.patience;
            return self.is_exceeded;
        }
        self.above_since = None;
        self.is_exceeded &= value > self.max - self.max / 10;
        self.is_exceeded
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Observes one value a second; returns whether the limit was exceeded after each.
    fn observed(limit: &mut LoadLimit, values: &[u64]) -> Vec<bool> {
        let start = Instant::now();
        let seconds = (0..).map(|second| start + Duration::from_secs(second));
        values.iter().zip(seconds).map(|(value, now)| limit.observe(*value, now)).collect()
    }

    #[test]
    fn a_limit_without_patience_is_exceeded_at_once_and_ends_at_nine_tenths() {
        let mut limit = LoadLimit::new(1000, Duration::ZERO);
        let values = [1000, 1001, 1000, 901, 900, 950, 1000];
        let expected = [false, true, true, true, false, false, false];
        assert_eq!(observed(&mut limit, &values), expected);
    }

    #[test]
    fn a_limit_with_patience_is_exceeded_by_values_that_stay_above_it() {
        let mut limit = LoadLimit::new(100, Duration::from_secs(5));
        let interrupted = [101, 101, 101, 101, 101, 100, 101, 101, 101, 101, 101];
        assert_eq!(observed(&mut limit, &interrupted), [false; 11]);
        let mut limit = LoadLimit::new(100, Duration::from_secs(5));
        let steady = [101, 101, 101, 101, 101, 101, 95, 101, 90];
        let expected = [false, false, false, false, false, true, true, true, false];
        assert_eq!(observed(&mut limit, &steady), expected);
    }

    #[test]
    fn values_that_swing_around_the_limit_change_nothing_after_the_first_excess() {
        let mut limit = LoadLimit::new(1000, Duration::ZERO);
        let swinging: Vec<u64> = (0..100).map(|step| 1001 - step % 2 * 100).collect();
        assert_eq!(observed(&mut limit, &swinging), [true; 100]);
    }

    #[test]
    fn zero_is_no_limit() {
        let mut limit = LoadLimit::new(0, Duration::ZERO);
        assert_eq!(observed(&mut limit, &[0, 1, u64::MAX]), [false; 3]);
    }
}
