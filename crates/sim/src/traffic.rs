//! How much happens in a run: connects, deliveries and calls of the engine, in steps of 100 ms of its busy time.
//! In: things that happen, with their times → out: counts.
//! Pure. Never: what it was about.
//! Changed here: what is counted. `classes/exact.rs` reads it.

use std::time::Duration;

/// Counts by step.
#[derive(Clone, Debug)]
pub struct TrafficCounts {
    /// Connections that hosts accepted.
    pub connects: Vec<f64>,
    /// Publications that clients received.
    pub deliveries: Vec<f64>,
    /// Calls that the engine executed.
    pub commands: Vec<f64>,
}

impl TrafficCounts {
    pub fn new(busy: Duration) -> Self {
        let none = vec![0.0; (busy.as_secs_f64() / STEP) as usize];
        Self { connects: none.clone(), deliveries: none.clone(), commands: none }
    }
}

/// Counts something that happens now, unless the busy time is over.
pub fn count(counts: &mut [f64], now: Duration) {
    let step = now.as_micros() as usize / STEP_MICROS;
    if let Some(count) = counts.get_mut(step) {
        *count += 1.0;
    }
}

/// Seconds of a step.
pub const STEP: f64 = 0.1;
const STEP_MICROS: usize = (STEP * 1e6) as usize;
