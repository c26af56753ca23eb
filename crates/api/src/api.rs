//! The server API behind all its faces: the node, the settings and the counters.
//! In: one typed command. Out: its typed outcome or an `ApiError`, counted and timed.
//! Uses the node and the clock; knows neither HTTP nor JSON text.
//! What a method does is changed in `method/NAME.rs`; which methods exist, in `method`.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use fanwire_node::Node;

use crate::{ApiError, ApiOptions, Counters, Method};

/// The methods of the server API over one node. Cheap to call from many threads at once.
pub struct Api {
    pub(crate) node: Arc<Node>,
    pub(crate) options: ApiOptions,
    counters: Counters,
    closing: AtomicBool,
}

impl Api {
    /// An API over `node`.
    pub fn new(node: Arc<Node>, options: ApiOptions) -> Self {
        Self { node, options, counters: Counters::default(), closing: AtomicBool::new(false) }
    }

    /// How often each method was called, how often it failed and how long it took.
    pub fn counters(&self) -> &Counters {
        &self.counters
    }

    /// From now on the HTTP face answers 503: the process is going away.
    pub fn close(&self) {
        self.closing.store(true, Ordering::Relaxed);
    }

    /// Whether `close` was called.
    pub fn is_closing(&self) -> bool {
        self.closing.load(Ordering::Relaxed)
    }

    /// As [`measure`](Self::measure), for work that may have to wait for broker or presence.
    pub(crate) async fn measure_later<T>(
        &self,
        method: Method,
        work: impl AsyncFnOnce(Instant) -> Result<T, ApiError>,
    ) -> Result<T, ApiError> {
        let started_at = Instant::now();
        let outcome = work(started_at).await;
        self.counters.record(method, started_at.elapsed(), outcome.is_err());
        outcome
    }

    /// Runs `work` with the time it started at and counts it under `method`.
    pub(crate) fn measure<T>(
        &self,
        method: Method,
        work: impl FnOnce(Instant) -> Result<T, ApiError>,
    ) -> Result<T, ApiError> {
        let started_at = Instant::now();
        let outcome = work(started_at);
        self.counters.record(method, started_at.elapsed(), outcome.is_err());
        outcome
    }
}
