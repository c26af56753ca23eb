//! The server API without a transport: the node, the options and the counters.
//! In: one typed command. Out: its typed outcome or an `ApiError`, counted and timed.
//! Uses the node and the clock; never HTTP or JSON text.
//! Changed here: the run of a method. Each method is in `method/NAME.rs`, their list in `names.rs`.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use fanwire_node::Node;
use parking_lot::{RwLock, RwLockReadGuard};

use crate::keys::{ApiKeys, KeyHolder};
use crate::{ApiError, ApiOptions, Counters, Method};

/// The methods of the server API over one node. Many threads may call it at the same time.
pub struct Api {
    pub(crate) node: Arc<Node>,
    pub(crate) options: ApiOptions,
    /// Keys of `options`, until other keys replace them.
    keys: RwLock<ApiKeys>,
    counters: Counters,
    closing: AtomicBool,
}

impl Api {
    /// An API that acts on `node`.
    pub fn new(node: Arc<Node>, options: ApiOptions) -> Self {
        let keys = RwLock::new(ApiKeys::of(&options, None));
        let closing = AtomicBool::new(false);
        Self { node, options, keys, counters: Counters::default(), closing }
    }

    /// Calls, errors and latencies of each method.
    pub fn counters(&self) -> &Counters {
        &self.counters
    }

    /// Replaces the keys by those of `options`; requests that come from now on need one of them.
    pub fn set_keys(&self, options: &ApiOptions) {
        let mut keys = self.keys.write();
        *keys = ApiKeys::of(options, Some(&keys));
    }

    /// The secrets of which requests must have one.
    pub(crate) fn keys(&self) -> RwLockReadGuard<'_, ApiKeys> {
        self.keys.read()
    }

    /// Counters of callers, by the names of their keys.
    pub fn callers(&self) -> Vec<Arc<KeyHolder>> {
        self.keys().callers().cloned().collect()
    }

    /// Makes `HttpApi` answer 503 from now on, because the process shuts down or hands over; or serve again.
    pub fn set_closing(&self, is_closing: bool) {
        self.closing.store(is_closing, Ordering::Relaxed);
    }

    /// Whether calls are refused.
    pub fn is_closing(&self) -> bool {
        self.closing.load(Ordering::Relaxed)
    }

    /// Like [`measure`](Self::measure), for work that may wait for broker or presence.
    pub(crate) async fn measure_async<T>(
        &self,
        method: Method,
        work: impl AsyncFnOnce(Instant) -> Result<T, ApiError>,
    ) -> Result<T, ApiError> {
        let started_at = Instant::now();
        let outcome = work(started_at).await;
        self.counters.record(method, started_at.elapsed(), outcome.is_err());
        outcome
    }

    /// Runs `work` with its start time and counts it under `method`.
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
