//! Spans of traces: who continues which trace, which are sampled, and a bounded queue until they are sent.
//! In: names, attributes, times; the header `traceparent` → out: finished spans, for an exporter.
//! Uses random ids, one lock. Never: a clock, sockets; without a tracer a span costs one atomic load.
//! Changed here: sampling and limits. How spans are sent is in crate `traces`.

use std::collections::VecDeque;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::SystemTime;

use parking_lot::Mutex;

/// A span as other services know it (W3C Trace Context).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TraceContext {
    pub trace: u128,
    pub span: u64,
    pub is_sampled: bool,
}

/// A span that has not ended.
#[derive(Clone, Debug, PartialEq)]
pub struct Span {
    pub name: String,
    pub kind: SpanKind,
    pub context: TraceContext,
    /// The span around it; 0 = none.
    pub parent: u64,
    pub start: SystemTime,
    /// The start until it ends.
    pub end: SystemTime,
    pub attributes: Vec<(&'static str, SpanValue)>,
    /// The reason why it failed.
    pub error: Option<String>,
}

/// The kind of a span, with its number in OTLP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SpanKind {
    Internal = 1,
    Server = 2,
    Client = 3,
    Producer = 4,
    Consumer = 5,
}

/// The value of an attribute.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SpanValue {
    Text(String),
    Number(i64),
}

/// A publication whose deliveries become a span of its trace, when they are known.
#[derive(Clone, Debug, PartialEq)]
pub struct TracedDelivery {
    pub receipt: u64,
    pub channel: String,
    pub parent: TraceContext,
    pub start: SystemTime,
}

/// Share of traces that are recorded.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sampler {
    /// A trace that another service began is recorded if that service records it.
    pub follows_parent: bool,
    /// 0 to 1, of the others.
    pub ratio: f64,
}

/// Finished spans of this process.
#[derive(Debug)]
pub struct Tracer {
    sampler: Sampler,
    spans: Mutex<VecDeque<Span>>,
    deliveries: Mutex<VecDeque<TracedDelivery>>,
    dropped: AtomicU64,
}

static TRACER: OnceLock<Tracer> = OnceLock::new();

/// Records spans of this process from now on. Returns false if it does so already.
pub fn record_traces(sampler: Sampler) -> bool {
    TRACER.set(Tracer::new(sampler)).is_ok()
}

/// The spans of this process, once they are recorded.
pub fn tracer() -> Option<&'static Tracer> {
    TRACER.get()
}

impl TraceContext {
    /// Parses a header `traceparent` (W3C Trace Context §3.2); `None` if it is invalid, and a new trace begins.
    pub fn parse(header: &str) -> Option<Self> {
        let mut parts = header.trim().split('-');
        let mut next = |digits: usize| {
            let is_hex = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
            parts.next().filter(|part| part.len() == digits && part.bytes().all(is_hex))
        };
        let version = next(2)?;
        let trace = next(32)?;
        let span = next(16)?;
        let flags = next(2)?;
        let has_more = parts.next().is_some();
        let trace = u128::from_str_radix(trace, 16).ok()?;
        let span = u64::from_str_radix(span, 16).ok()?;
        let is_valid = version != "ff" && (version != "00" || !has_more) && trace != 0 && span != 0;
        let is_sampled = u8::from_str_radix(flags, 16).ok()? & 1 == 1;
        is_valid.then_some(Self { trace, span, is_sampled })
    }

    /// The header `traceparent`.
    pub fn header(&self) -> String {
        let Self { trace, span, is_sampled } = self;
        format!("00-{trace:032x}-{span:016x}-{:02x}", u8::from(*is_sampled))
    }
}

impl Span {
    /// Begins a span, if traces are recorded and this one is sampled.
    pub fn begin(
        name: impl FnOnce() -> String,
        kind: SpanKind,
        parent: Option<TraceContext>,
        now: SystemTime,
    ) -> Option<Self> {
        tracer()?.begin(name, kind, parent, now)
    }

    /// Adds an attribute.
    pub fn set(&mut self, name: &'static str, value: SpanValue) {
        self.attributes.push((name, value));
    }

    /// Ends the span and queues it.
    pub fn finish(self, now: SystemTime) {
        if let Some(tracer) = tracer() {
            tracer.push(Self { end: now, ..self });
        }
    }
}

impl Tracer {
    fn new(sampler: Sampler) -> Self {
        Self {
            sampler,
            spans: Default::default(),
            deliveries: Default::default(),
            dropped: Default::default(),
        }
    }

    fn begin(
        &self,
        name: impl FnOnce() -> String,
        kind: SpanKind,
        parent: Option<TraceContext>,
        now: SystemTime,
    ) -> Option<Span> {
        let Sampler { follows_parent, ratio } = self.sampler;
        let trace = parent.map_or_else(|| rand::random_range(1..=u128::MAX), |one| one.trace);
        // The lower half of the id decides, so that all services choose the same traces.
        let is_chosen = || ((trace as u64) >> 1) as f64 / ((1_u64 << 63) as f64) < ratio;
        let is_sampled = match parent {
            Some(parent) if follows_parent => parent.is_sampled,
            _ => is_chosen(),
        };
        is_sampled.then(|| Span {
            name: name(),
            kind,
            context: TraceContext { trace, span: rand::random_range(1..=u64::MAX), is_sampled },
            parent: parent.map_or(0, |parent| parent.span),
            start: now,
            end: now,
            attributes: Vec::new(),
            error: None,
        })
    }

    /// Queues a finished span; a full queue drops it and counts that.
    pub fn push(&self, span: Span) {
        let mut spans = self.spans.lock();
        if spans.len() < SPANS_MAX {
            spans.push_back(span);
        } else {
            self.count_dropped(1);
        }
    }

    /// Takes up to `count` finished spans, the oldest first.
    pub fn take(&self, count: usize) -> Vec<Span> {
        let mut spans = self.spans.lock();
        let count = count.min(spans.len());
        spans.drain(..count).collect()
    }

    /// Whether the deliveries of one more publication can become a span.
    pub fn has_room_for_delivery(&self) -> bool {
        self.deliveries.lock().len() < DELIVERIES_MAX
    }

    /// Remembers a publication until its deliveries are known.
    pub fn await_delivery(&self, delivery: TracedDelivery) {
        let mut deliveries = self.deliveries.lock();
        if deliveries.len() < DELIVERIES_MAX {
            deliveries.push_back(delivery);
        }
    }

    /// Takes the publications from before a time.
    pub fn take_deliveries(&self, before: SystemTime) -> Vec<TracedDelivery> {
        let mut deliveries = self.deliveries.lock();
        let count = deliveries.iter().take_while(|one| one.start < before).count();
        deliveries.drain(..count).collect()
    }

    /// Counts spans that were dropped.
    pub fn count_dropped(&self, count: usize) {
        self.dropped.fetch_add(count as u64, Relaxed);
    }

    /// Spans that were dropped, because the queue was full or the collector did not take them.
    pub fn dropped(&self) -> u64 {
        self.dropped.load(Relaxed)
    }
}

/// Finished spans that wait, as many as the SDKs of OpenTelemetry keep by default.
const SPANS_MAX: usize = 2048;
/// Publications that wait for their deliveries; each has a receipt, of which a node keeps 1,000.
const DELIVERIES_MAX: usize = 100;

#[cfg(test)]
mod tests;
