//! Observability for every crate: counters, writers of metrics, spans, a throttle for log lines, texts of operators and from outside.
//! In: additions, samples, events with the time → out: numbers, text of a scrape, whether a line is logged, short printable texts.
//! Uses atomics and one small lock. Never: a clock of its own, names of metrics, the log itself.
//! Changed here: the list of parts. The numbers and log lines are defined where they occur.
#![forbid(unsafe_code)]

mod centrifugo_names;
mod counter;
pub mod duration;
mod excerpt;
mod heavy_hitters;
mod histogram;
mod hot_channels;
mod log_throttle;
mod metrics_writer;
mod scrape_writer;
mod text_format;
pub mod time;
mod trace;

pub use centrifugo_names::{CENTRIFUGO_NAMES, centrifugo_item};
pub use counter::Counter;
pub use excerpt::excerpt;
pub use heavy_hitters::{HeavyHitters, Largest};
pub use histogram::{BOUNDS, CallHistogram, Histogram};
pub use hot_channels::{HotChannelCounts, HotChannels};
pub use log_throttle::{Burst, LogThrottle, RefusalEvent, Repeats};
pub use metrics_writer::{Labels, MetricsWriter, Reading, ReadingKind, Readings};
pub use scrape_writer::ScrapeWriter;
pub use text_format::TextFormat;
pub use trace::{
    Sampler, Span, SpanKind, SpanValue, TraceContext, TracedDelivery, Tracer, record_traces, tracer,
};
