//! The results of idempotent publishes (server API §6.1), for one stripe of the memory broker.
//! In: keys with the position of their first publish, and the time → out: that position for 300 s, in bounded memory.
//! Uses: a map and a queue. Never: streams; a result is independent of stored publications.
//! Change here: how long and how many results are kept.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

use hashbrown::HashMap;

use crate::Position;

/// Idempotency results, oldest first.
#[derive(Default)]
pub(super) struct Results {
    positions: HashMap<Arc<IdempotencyKey>, Position>,
    queue: VecDeque<(Instant, Arc<IdempotencyKey>)>,
    pub(super) bytes: usize,
}

#[derive(PartialEq, Eq, Hash)]
pub(super) struct IdempotencyKey {
    channel: Box<str>,
    key: Box<str>,
}

impl IdempotencyKey {
    /// `None` for the empty key: the publish is not idempotent.
    pub(super) fn new(channel: &str, key: &str) -> Option<Self> {
        if key.is_empty() { None } else { Some(Self { channel: channel.into(), key: key.into() }) }
    }

    /// Approximate memory of its result.
    fn bytes(&self) -> usize {
        self.channel.len() + self.key.len() + KEY_BYTES_OVERHEAD
    }
}

impl Results {
    /// The position of the first publish with `key`.
    pub(super) fn find(&self, key: &IdempotencyKey) -> Option<Position> {
        self.positions.get(key).copied()
    }

    /// All results have the same lifetime, so the oldest expires first.
    pub(super) fn remove_expired(&mut self, now: Instant) {
        while (self.queue.front())
            .is_some_and(|(since, _)| now.saturating_duration_since(*since) >= TTL)
        {
            self.remove_oldest();
        }
    }

    /// Stores `position`; beyond `bytes_max` it removes the oldest results before they expire.
    pub(super) fn insert(
        &mut self,
        key: IdempotencyKey,
        position: Position,
        now: Instant,
        bytes_max: usize,
    ) {
        let key = Arc::new(key);
        self.bytes += key.bytes();
        self.queue.push_back((now, Arc::clone(&key)));
        self.positions.insert(key, position);
        while self.bytes > bytes_max {
            self.remove_oldest();
        }
    }

    /// Whether no result is stored.
    #[cfg(test)]
    pub(super) fn is_empty(&self) -> bool {
        self.positions.is_empty() && self.queue.is_empty() && self.bytes == 0
    }

    fn remove_oldest(&mut self) {
        if let Some((_, key)) = self.queue.pop_front() {
            self.bytes -= key.bytes();
            self.positions.remove(&key);
        }
    }
}

/// How long a repeated idempotency key returns the first result.
pub(super) const TTL: Duration = Duration::from_secs(300);
/// A map entry, a queue entry and the heap block of a key.
const KEY_BYTES_OVERHEAD: usize = 160;
