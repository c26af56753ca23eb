//! The results of idempotent publishes (server API §6.1), for one stripe of the memory broker.
//! In: keys with the position of their first publish, and the time → out: that position for 300 s, in bounded memory.
//! Uses: a map and a queue. Never: streams; a result is independent of stored publications.
//! Change here: how long and how many results are kept.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::time::{Duration, Instant};

use hashbrown::HashMap;

use crate::saved::{ResultRecord, ResultsSection, SnapshotClock};
use crate::{Epoch, Position};

/// Idempotency results, oldest first.
#[derive(Default)]
pub(super) struct Results {
    positions: HashMap<Arc<IdempotencyKey>, Position>,
    queue: VecDeque<(Instant, Arc<IdempotencyKey>)>,
    pub(super) bytes: usize,
}

/// The memory of the results of all stripes: each stripe has a share of its own, and what busy ones need beyond it is bounded
/// for all together.
#[derive(Debug, Default)]
pub(super) struct ResultsMemory {
    /// Bytes beyond the shares.
    borrowed: AtomicUsize,
    /// Results that were removed before they expired.
    dropped: AtomicU64,
}

impl ResultsMemory {
    pub(super) fn dropped(&self) -> u64 {
        self.dropped.load(Relaxed)
    }

    /// Counts what another one has counted.
    pub(super) fn replace(&self, other: &Self) {
        self.borrowed.store(other.borrowed.load(Relaxed), Relaxed);
        self.dropped.store(other.dropped.load(Relaxed), Relaxed);
    }

    /// Whether no stripe has more than its share.
    #[cfg(test)]
    pub(super) fn is_free(&self) -> bool {
        self.borrowed.load(Relaxed) == 0
    }
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
    pub(super) fn remove_expired(&mut self, now: Instant, memory: &ResultsMemory) {
        while (self.queue.front())
            .is_some_and(|(since, _)| now.saturating_duration_since(*since) >= TTL)
        {
            self.remove_oldest(memory);
        }
    }

    /// Stores `position`. Without memory it removes the oldest results of this stripe before they expire.
    pub(super) fn insert(
        &mut self,
        key: IdempotencyKey,
        position: Position,
        now: Instant,
        memory: &ResultsMemory,
    ) {
        let key = Arc::new(key);
        self.resize(self.bytes + key.bytes(), memory);
        self.queue.push_back((now, Arc::clone(&key)));
        self.positions.insert(key, position);
        while self.bytes > SHARE_BYTES && memory.borrowed.load(Relaxed) > BORROWED_BYTES_MAX {
            self.remove_oldest(memory);
            memory.dropped.fetch_add(1, Relaxed);
        }
    }

    /// Removes the results of a channel. Visits all of the stripe.
    pub(super) fn remove_channel(&mut self, channel: &str, memory: &ResultsMemory) {
        let is_kept = |key: &IdempotencyKey| *key.channel != *channel;
        self.positions.retain(|key, _| is_kept(key));
        self.queue.retain(|(_, key)| is_kept(key));
        let bytes = self.queue.iter().map(|(_, key)| key.bytes()).sum();
        self.resize(bytes, memory);
    }

    /// The results, oldest first.
    pub(super) fn save(&self, clock: &SnapshotClock) -> ResultsSection {
        let record = |(since, key): &(Instant, Arc<IdempotencyKey>)| {
            let Position { offset, epoch } = self.positions[key];
            ResultRecord {
                channel: key.channel.to_string(),
                key: key.key.to_string(),
                offset,
                epoch: epoch.as_str().to_owned(),
                since: clock.unix_ms(*since),
            }
        };
        ResultsSection { results: self.queue.iter().map(record).collect() }
    }

    /// Adds the result of a record. Returns whether its epoch can be one.
    pub(super) fn restore(
        &mut self,
        record: &ResultRecord,
        clock: &SnapshotClock,
        memory: &ResultsMemory,
    ) -> bool {
        let Some(epoch) = Epoch::parse(&record.epoch) else { return false };
        let Some(key) = IdempotencyKey::new(&record.channel, &record.key) else { return false };
        if self.find(&key).is_none() {
            let position = Position { offset: record.offset, epoch };
            self.insert(key, position, clock.instant(record.since), memory);
        }
        true
    }

    /// Whether no result is stored.
    #[cfg(test)]
    pub(super) fn is_empty(&self) -> bool {
        self.positions.is_empty() && self.queue.is_empty() && self.bytes == 0
    }

    fn remove_oldest(&mut self, memory: &ResultsMemory) {
        if let Some((_, key)) = self.queue.pop_front() {
            self.resize(self.bytes - key.bytes(), memory);
            self.positions.remove(&key);
        }
    }

    fn resize(&mut self, bytes: usize, memory: &ResultsMemory) {
        let [before, after] = [self.bytes, bytes].map(|bytes| bytes.saturating_sub(SHARE_BYTES));
        memory.borrowed.fetch_add(after.wrapping_sub(before), Relaxed); // which may be negative
        self.bytes = bytes;
    }
}

/// How long a repeated idempotency key returns the first result.
pub(super) const TTL: Duration = Duration::from_secs(300);
/// Memory of one stripe that others cannot use: 32 MiB of all 64 stripes.
pub(super) const SHARE_BYTES: usize = 512 * 1024;
/// Memory beyond that, of all stripes together: some 180,000 keys, if they are of one channel.
pub(super) const BORROWED_BYTES_MAX: usize = 32 * 1024 * 1024;
/// A map entry, a queue entry and the heap block of a key.
const KEY_BYTES_OVERHEAD: usize = 160;
