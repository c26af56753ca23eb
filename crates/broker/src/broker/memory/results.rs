//! What repeated idempotency keys are answered with (server API §6.1), for one stripe of the memory broker.
//! In: keys with their first position, and the time → out: that position for 300 s, in bounded memory.
//! Uses: a map and a queue. Never: streams; a result says nothing about what is stored.
//! Change here: how long and how many results are remembered.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

use hashbrown::HashMap;

use crate::Position;

/// Idempotency results, oldest first.
#[derive(Default)]
pub(super) struct Results {
    positions: HashMap<Arc<Key>, Position>,
    queue: VecDeque<(Instant, Arc<Key>)>,
    pub(super) bytes: usize,
}

#[derive(PartialEq, Eq, Hash)]
pub(super) struct Key {
    channel: Box<str>,
    key: Box<str>,
}

impl Key {
    /// `None` for the empty key, which is none.
    pub(super) fn new(channel: &str, key: &str) -> Option<Self> {
        (!key.is_empty()).then(|| Self { channel: channel.into(), key: key.into() })
    }

    /// Roughly what remembering it costs.
    fn bytes(&self) -> usize {
        self.channel.len() + self.key.len() + KEY_BYTES_OVERHEAD
    }
}

impl Results {
    /// The first position under `key`.
    pub(super) fn find(&self, key: &Key) -> Option<Position> {
        self.positions.get(key).copied()
    }

    /// All live equally long, so the oldest expires first.
    pub(super) fn forget_expired(&mut self, now: Instant) {
        while (self.queue.front())
            .is_some_and(|(since, _)| now.saturating_duration_since(*since) >= TTL)
        {
            self.forget_oldest();
        }
    }

    /// Remembers `position`; beyond `bytes_max` the oldest results are forgotten before their time.
    pub(super) fn remember(
        &mut self,
        key: Key,
        position: Position,
        now: Instant,
        bytes_max: usize,
    ) {
        let key = Arc::new(key);
        self.bytes += key.bytes();
        self.queue.push_back((now, Arc::clone(&key)));
        self.positions.insert(key, position);
        while self.bytes > bytes_max {
            self.forget_oldest();
        }
    }

    /// Whether nothing is held.
    #[cfg(test)]
    pub(super) fn is_empty(&self) -> bool {
        self.positions.is_empty() && self.queue.is_empty() && self.bytes == 0
    }

    fn forget_oldest(&mut self) {
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
