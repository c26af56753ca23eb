//! Observability for every crate: counters for metrics, spans of traces, a throttle for log lines, texts from outside in them.
//! In: additions, events with the time, texts → out: numbers, whether a line is to be logged, short printable texts.
//! Uses atomics and one small lock. Never: a clock of its own, names of metrics, the log itself.
//! Change here: the list of parts. The numbers and log lines are defined where they occur.
#![forbid(unsafe_code)]

mod counter;
mod excerpt;
mod heavy_hitters;
mod log_throttle;
mod trace;

pub use counter::Counter;
pub use excerpt::excerpt;
pub use heavy_hitters::{HeavyHitters, Largest};
pub use log_throttle::{Burst, LogThrottle, RefusalEvent, Repeats};
pub use trace::{
    Sampler, Span, SpanKind, SpanValue, TraceContext, TracedDelivery, Tracer, record_traces, tracer,
};
