//! Time and allocations of a step that needs no server.
//! In: a step, and how long it may be repeated → out: nanoseconds; allocations of one call.
//! Uses this thread's clock and the counting allocator of the program.
//! Changed here: how a step is repeated. The steps are in the modules of their claims.

use std::time::{Duration, Instant};

use crate::stats::median;

/// Nanoseconds of one call: the median over five stretches of the mean in each.
pub(super) fn nanoseconds(patience: Duration, mut step: impl FnMut()) -> f64 {
    let began = Instant::now();
    step();
    let once = began.elapsed().as_secs_f64().max(1e-9);
    let stretch = patience.as_secs_f64() / STRETCHES as f64;
    let calls = ((stretch / once) as u32).clamp(1, CALLS_MAX);
    let mean = |_| {
        let began = Instant::now();
        for _ in 0..calls {
            step();
        }
        began.elapsed().as_secs_f64() * 1e9 / f64::from(calls)
    };
    median((0..STRETCHES).map(mean).collect::<Vec<_>>())
}

/// Allocations of one call, after a first one that may fill what is kept.
pub(super) fn allocations(mut step: impl FnMut()) -> u64 {
    step();
    allocation_counter::measure(step).count_total
}

const STRETCHES: usize = 5;
const CALLS_MAX: u32 = 1_000_000;
