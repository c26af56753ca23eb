//! The limit on calls of a proxy: so many at a time, a bounded stack of waiting ones, the newest first.
//! In: callers with a deadline → out: a permit, or why there is none.
//! Uses one small lock. Never: calls; a waiting call costs an entry and no task of its own.
//! Changed here: who waits and who is refused.

use std::collections::VecDeque;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::oneshot;
use tokio::time::{Instant, timeout_at};

/// Bounds the calls in flight. When all clients return at once, those that wait longest have given up, or soon will: the
/// newest goes first, so that each started call has most of its time left.
#[derive(Debug)]
pub(crate) struct Limiter {
    in_flight_max: usize,
    queue_max: usize,
    state: Mutex<LimiterState>,
}

#[derive(Debug, Default)]
struct LimiterState {
    in_flight: usize,
    waiting: VecDeque<oneshot::Sender<CallPermit>>,
}

/// One call in flight; dropping it starts the newest waiting one.
#[derive(Debug)]
pub(crate) struct CallPermit(Option<Arc<Limiter>>);

/// Why a call was not made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LimitExceeded {
    /// Newer calls filled the queue.
    QueueFull,
    /// No call ended in time.
    WaitedTooLong,
}

impl Limiter {
    pub(crate) fn new(in_flight_max: usize, queue_max: usize) -> Arc<Self> {
        let in_flight_max = in_flight_max.max(1);
        Arc::new(Self { in_flight_max, queue_max, state: Mutex::default() })
    }

    /// Waits until the call may be made.
    ///
    /// # Errors
    /// See [`LimitExceeded`].
    pub(crate) async fn acquire(
        self: &Arc<Self>,
        deadline: Instant,
    ) -> Result<CallPermit, LimitExceeded> {
        let waiting = {
            let mut state = self.state.lock();
            if state.in_flight < self.in_flight_max {
                state.in_flight += 1;
                return Ok(CallPermit(Some(Arc::clone(self))));
            }
            if self.queue_max == 0 {
                return Err(LimitExceeded::QueueFull);
            }
            if state.waiting.len() >= self.queue_max {
                state.waiting.retain(|one| !one.is_closed()); // their callers gave up
                if state.waiting.len() >= self.queue_max {
                    state.waiting.pop_front();
                }
            }
            let (sender, waiting) = oneshot::channel();
            state.waiting.push_back(sender);
            waiting
        };
        match timeout_at(deadline, waiting).await {
            Ok(Ok(permit)) => Ok(permit),
            Ok(Err(_)) => Err(LimitExceeded::QueueFull),
            Err(_) => Err(LimitExceeded::WaitedTooLong),
        }
    }

    /// Calls in flight, and waiting ones.
    pub(crate) fn load(&self) -> (usize, usize) {
        let state = self.state.lock();
        (state.in_flight, state.waiting.iter().filter(|one| !one.is_closed()).count())
    }
}

impl Drop for CallPermit {
    fn drop(&mut self) {
        let Some(limiter) = self.0.take() else { return };
        loop {
            let newest = {
                let mut state = limiter.state.lock(); // until the count is right: a call that comes now must see it
                let Some(newest) = state.waiting.pop_back() else {
                    state.in_flight -= 1;
                    return;
                };
                newest
            };
            match newest.send(CallPermit(Some(Arc::clone(&limiter)))) {
                Ok(()) => return,
                // Its caller gave up; the permit must not start another call by itself.
                Err(mut unused) => drop(unused.0.take()),
            }
        }
    }
}

#[cfg(test)]
mod tests;
