//! Observability for every crate: counters for metrics, and a throttle for log lines.
//! In: additions, events with the time → out: numbers, and whether a line is to be logged.
//! Uses atomics and one small lock. Never: a clock of its own, names of metrics, the log itself.
//! Change here: the list of parts. The numbers and log lines are defined where they occur.
#![forbid(unsafe_code)]

mod counter;
mod log_throttle;

pub use counter::Counter;
pub use log_throttle::{LogThrottle, Repeats};
