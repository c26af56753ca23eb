//! The numbers of consumers: messages done, errors, skipped messages by cause, lag, and what is wrong with a queue.
//! In: events of the loop → out: counts for metrics and health.
//! Uses atomics, and a small lock for a text. Never: names of metrics.
//! Changed here: what is counted.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use fanwire_telemetry::{LogThrottle, excerpt};
use parking_lot::Mutex;

use crate::message::{QueueMessage, SkipCause};

/// One consumer.
#[derive(Debug)]
pub(crate) struct ConsumerState {
    pub(crate) name: Arc<str>,
    processed: AtomicU64,
    errors: AtomicU64,
    skipped: [AtomicU64; SkipCause::ALL.len()],
    lanes: Mutex<Vec<Weak<LaneState>>>,
    log_throttle: LogThrottle,
    skip_lines: Mutex<SkipLines>,
}

/// The log lines of skipped messages, of which nothing else is left.
#[derive(Debug, Default)]
struct SkipLines {
    /// The begin of a window, and the lines in it.
    begin: Option<Instant>,
    count: usize,
}

/// One sequence of messages: a partition of a table or a topic, a worker of a stream.
#[derive(Debug, Default)]
pub(crate) struct LaneState {
    /// Age of the oldest message that was read last, in milliseconds.
    lag_ms: AtomicU64,
    /// Messages in the queue, where it says.
    waiting: AtomicU64,
    failure: Mutex<Option<String>>,
}

/// The state of one consumer.
#[derive(Clone, Debug)]
pub struct ConsumerStats {
    pub name: Arc<str>,
    /// Messages that were acknowledged, the skipped ones included.
    pub processed: u64,
    /// Commands that are tried again, and failures of the queue.
    pub errors: u64,
    pub skipped: [(SkipCause, u64); SkipCause::ALL.len()],
    /// Age of the oldest message that was read last; zero when the queue was empty.
    pub lag: Duration,
    /// Messages in the queue; 0 for PostgreSQL, which would have to count them.
    pub waiting: u64,
    /// Why the queue cannot be used now.
    pub failure: Option<String>,
}

impl ConsumerState {
    pub(crate) fn new(name: &str) -> Self {
        Self {
            name: name.into(),
            processed: AtomicU64::new(0),
            errors: AtomicU64::new(0),
            skipped: Default::default(),
            lanes: Mutex::default(),
            log_throttle: LogThrottle::default(),
            skip_lines: Mutex::default(),
        }
    }

    pub(crate) fn add_lane(&self) -> Arc<LaneState> {
        let lane = Arc::default();
        let mut lanes = self.lanes.lock();
        lanes.retain(|lane| lane.strong_count() > 0);
        lanes.push(Arc::downgrade(&lane));
        lane
    }

    pub(crate) fn processed(&self, count: usize) {
        self.processed.fetch_add(count as u64, Relaxed);
    }

    /// Counts a message that is acknowledged without an effect, and logs what it was; `details` are for the log.
    pub(crate) fn skipped(&self, cause: SkipCause, message: &QueueMessage, details: &str) {
        self.skipped[cause as usize].fetch_add(1, Relaxed);
        if !self.skip_lines.lock().admit(Instant::now()) {
            return;
        }
        tracing::warn!(
            consumer = &*self.name,
            cause = cause.name(),
            id = excerpt(&message.id),
            method = excerpt(&message.method),
            payload = message.payload_excerpt(),
            details,
            "skipped a message"
        );
    }

    /// Counts a failure after which something is tried again; `what` failed is one of few texts.
    pub(crate) fn failed(&self, what: &'static str, why: &str) {
        self.errors.fetch_add(1, Relaxed);
        if let Some(repeats) = self.log_throttle.record(what, Instant::now()) {
            let consumer = &*self.name;
            tracing::warn!(consumer, error = why, "{what}, which is tried again{repeats}");
        }
    }

    pub(crate) fn stats(&self) -> ConsumerStats {
        let lanes: Vec<_> = self.lanes.lock().iter().filter_map(Weak::upgrade).collect();
        let lag = lanes.iter().map(|lane| lane.lag_ms.load(Relaxed)).max();
        ConsumerStats {
            name: Arc::clone(&self.name),
            processed: self.processed.load(Relaxed),
            errors: self.errors.load(Relaxed),
            skipped: SkipCause::ALL
                .map(|cause| (cause, self.skipped[cause as usize].load(Relaxed))),
            lag: Duration::from_millis(lag.unwrap_or_default()),
            waiting: lanes.iter().map(|lane| lane.waiting.load(Relaxed)).sum(),
            failure: lanes.iter().find_map(|lane| lane.failure.lock().clone()),
        }
    }
}

impl SkipLines {
    /// Whether one more line may be written now.
    fn admit(&mut self, now: Instant) -> bool {
        let is_recent = |begin| now.saturating_duration_since(begin) < SKIP_WINDOW;
        if !self.begin.is_some_and(is_recent) {
            *self = Self { begin: Some(now), count: 0 };
        }
        self.count += 1;
        self.count <= SKIP_LINES_MAX
    }
}

impl LaneState {
    /// The queue was read.
    pub(crate) fn read(&self, lag: Duration, waiting: u64) {
        self.lag_ms.store(u64::try_from(lag.as_millis()).unwrap_or(u64::MAX), Relaxed);
        self.waiting.store(waiting, Relaxed);
        *self.failure.lock() = None;
    }

    pub(crate) fn lost(&self, why: String) {
        *self.failure.lock() = Some(why);
    }
}

/// Lines of skipped messages in one [`SKIP_WINDOW`].
const SKIP_LINES_MAX: usize = 100;
const SKIP_WINDOW: Duration = Duration::from_secs(10);

#[cfg(test)]
mod tests;
