//! The worth of a history's memory, and of the memory that a channel requested and did not get.
//! In: counts between two sweeps → out: bytes saved per byte of memory, held or requested; memory given back.
//! Uses the history's own counts and trials; never looks at another channel.
//! Changed here: how worth is estimated, and when a history ends. `compression::sweep` decides which history is shortened.

use std::sync::atomic::Ordering::Relaxed;

use fanwire_deflate::gap::History;

use super::{BYTES_MIN, EncodingHistory, HistoryState, Tracking, bytes_min_for};
use fanwire_shard::Reservation;

/// The use of one channel's history in texts of one kind between two sweeps.
pub(crate) struct HistoryUse {
    pub(crate) held: Option<Share>,
    pub(crate) requested: Option<Share>,
}

/// Memory in bytes, and the bytes that it saved, or would have saved, between two sweeps.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Share {
    pub(crate) memory: usize,
    saved_bytes: u64,
}

/// A request of memory for a history, or for a longer one.
pub(super) struct MemoryRequest {
    memory: usize,
    /// Bytes saved per delivery.
    saved_bytes: u64,
}

impl Share {
    /// Bytes saved per byte of memory.
    pub(crate) fn worth(&self) -> f64 {
        self.saved_bytes as f64 / self.memory.max(1) as f64
    }
}

impl MemoryRequest {
    /// Requests the shortest history for messages of this size. `known`: bytes per delivery that an earlier history
    /// saved.
    pub(super) fn for_message(message_bytes: usize, known: Option<u64>) -> Self {
        let memory = History::memory_for(bytes_min_for(message_bytes));
        Self { memory, saved_bytes: known.unwrap_or(guess(message_bytes)) }
    }
}

impl Tracking {
    /// Requests twice the present length.
    pub(super) fn request_for_more(&self) -> MemoryRequest {
        let longer = History::memory_for(self.history.bytes_max() * 2);
        let saved_bytes = self.trial.map_or(0, |trial| trial.saved() as u64) / MORE_SHARE;
        MemoryRequest { memory: longer.saturating_sub(self.memory.bytes()), saved_bytes }
    }
}

impl EncodingHistory {
    /// Resets the counts and returns them as worth. `None` if the channel has no subscribers, or had none in context
    /// for long; the history has then ended.
    pub(crate) fn take_use(&self, has_subscribers: bool) -> Option<HistoryUse> {
        let [deliveries, missed] =
            [&self.deliveries, &self.missed].map(|count| count.swap(0, Relaxed));
        let mut state = self.state.lock();
        let is_used = deliveries > 0;
        let was_busy = std::mem::take(&mut state.is_busy);
        if is_used {
            state.unused = 0;
        } else if was_busy && state.tracking.is_some() {
            state.unused += IDLE_SWEEPS / 2;
        } else {
            state.unused += 1;
        }
        if !has_subscribers || state.unused >= IDLE_SWEEPS {
            self.is_wanted.store(false, Relaxed);
            *state = HistoryState::default();
            return None;
        }
        state.is_displaced = false;
        state.granted = None;
        let requested = state.request.take().map(|request| Share {
            memory: request.memory,
            saved_bytes: (deliveries + missed) * request.saved_bytes,
        });
        let known = state.saved_bytes;
        let held = state.tracking.as_ref().map(|tracking| {
            let message_bytes = tracking.history.newest().map_or(0, <[u8]>::len);
            let saved_bytes = deliveries * known.unwrap_or(guess(message_bytes));
            Share { memory: tracking.memory.bytes(), saved_bytes }
        });
        Some(HistoryUse { held, requested })
    }

    /// Reserves the requested memory for this channel until the next sweep.
    pub(crate) fn grant(&self, memory: Reservation) {
        self.state.lock().granted = Some(memory);
    }

    /// Whether the history exists.
    pub(crate) fn has_history(&self) -> bool {
        self.state.lock().tracking.is_some()
    }

    /// Whether a history is wanted and does not exist.
    pub(crate) fn waits(&self) -> bool {
        self.is_wanted.load(Relaxed) && !self.has_history()
    }

    /// Whether a history is neither wanted nor exists.
    pub(crate) fn is_idle(&self) -> bool {
        !self.has_history() && !self.is_wanted.load(Relaxed)
    }

    /// Halves the history, or ends it if it is the shortest already; `share` is its worth. Returns the bytes given
    /// back, and the worth of the rest.
    pub(crate) fn shrink(&self, share: Share) -> (usize, Option<Share>) {
        let mut state = self.state.lock();
        let Some(tracking) = state.tracking.as_mut() else { return (0, None) };
        let before = tracking.memory.bytes();
        if tracking.history.bytes_max() > BYTES_MIN {
            tracking.resize(tracking.history.bytes_max() / 2);
            let memory = tracking.memory.bytes();
            return (before - memory, Some(Share { memory, ..share }));
        }
        state.tracking = None;
        state.is_displaced = true;
        (before, None)
    }
}

/// Estimate of the bytes that context saves per delivery before the first trial: most messages save a fifth to a half.
fn guess(message_bytes: usize) -> u64 {
    message_bytes as u64 / 3
}

/// Twice the memory is estimated to save this part (1/n) of the present savings. That is little, but for ten thousand
/// subscribers it is more than a new history saves for one.
const MORE_SHARE: u64 = 16;

/// Sweeps without a publication after which a history ends. A sweep with publications that had no delivery in context
/// counts for half of them.
const IDLE_SWEEPS: u32 = 60;
