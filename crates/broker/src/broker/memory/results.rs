//! The results of idempotent publishes (server API §6.1), for one stripe of the memory broker.
//! In: keys with the position of their first publish, and the time → out: that position until its end, in bounded memory.
//! Uses: a map and a queue. Never: streams; a result is independent of stored publications.
//! Changed here: how long and how many results are kept.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::time::{Duration, Instant};

use hashbrown::HashMap;

use crate::saved::{ResultRecord, ResultsSection, SnapshotClock};
use crate::{Epoch, KeyOwner, Position};

/// Idempotency results, oldest first. Those of clients and of backends have a value each, so that neither takes the memory of the
/// others.
#[derive(Default)]
pub(super) struct Results {
    positions: HashMap<Arc<IdempotencyKey>, StoredResult>,
    /// The ends of results.
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

/// The position of the first publish, and when that is forgotten.
#[derive(Clone, Copy)]
struct StoredResult {
    position: Position,
    until: Instant,
}

#[derive(PartialEq, Eq, Hash)]
pub(super) struct IdempotencyKey {
    channel: Box<str>,
    /// The client that chose it; "" = a backend.
    owner: Box<str>,
    key: Box<str>,
}

impl IdempotencyKey {
    /// `None` for the empty key: the publish is not idempotent.
    pub(super) fn new(channel: &str, owner: Option<&KeyOwner>, key: &str) -> Option<Self> {
        let owner = owner.map_or("", |owner| &owner.name);
        let new = || Self { channel: channel.into(), owner: owner.into(), key: key.into() };
        (!key.is_empty()).then(new)
    }

    /// Approximate memory of its result.
    fn bytes(&self) -> usize {
        self.channel.len() + self.owner.len() + self.key.len() + KEY_BYTES_OVERHEAD
    }
}

impl Results {
    /// The position of the first publish with `key`.
    pub(super) fn find(&self, key: &IdempotencyKey, now: Instant) -> Option<Position> {
        let stored = self.positions.get(key).filter(|stored| stored.until > now);
        stored.map(|stored| stored.position)
    }

    /// Removes the oldest results as long as they have ended. Where lifetimes differ, some stay for as long as an older one.
    pub(super) fn remove_expired(&mut self, now: Instant, memory: &ResultsMemory) {
        while self.queue.front().is_some_and(|(until, _)| *until <= now) {
            self.remove_oldest(memory);
        }
    }

    /// Stores `position` until a time. Without memory it removes the oldest results of this stripe before they expire.
    pub(super) fn insert(
        &mut self,
        key: IdempotencyKey,
        position: Position,
        until: Instant,
        memory: &ResultsMemory,
    ) {
        let key = Arc::new(key);
        self.resize(self.bytes + key.bytes(), memory);
        self.queue.push_back((until, Arc::clone(&key)));
        self.positions.insert(key, StoredResult { position, until });
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
        let record = |(until, key): &(Instant, Arc<IdempotencyKey>)| {
            let stored = self.positions.get(key).filter(|stored| stored.until == *until)?;
            let Position { offset, epoch } = stored.position;
            let until = clock.unix_ms(*until);
            Some(ResultRecord {
                channel: key.channel.to_string(),
                key: key.key.to_string(),
                offset,
                epoch: epoch.as_str().to_owned(),
                since: until.saturating_sub(TTL.as_millis() as u64),
                owner: key.owner.to_string(),
                until,
            })
        };
        ResultsSection { results: self.queue.iter().filter_map(record).collect() }
    }

    /// Adds the result of a record. Returns whether its epoch can be one.
    pub(super) fn restore(
        &mut self,
        record: &ResultRecord,
        clock: &SnapshotClock,
        memory: &ResultsMemory,
    ) -> bool {
        let Some(epoch) = Epoch::parse(&record.epoch) else { return false };
        if record.key.is_empty() {
            return false;
        }
        let key = IdempotencyKey {
            channel: record.channel.as_str().into(),
            owner: record.owner.as_str().into(),
            key: record.key.as_str().into(),
        };
        if !self.positions.contains_key(&key) {
            let position = Position { offset: record.offset, epoch };
            let is_of_backend = record.owner.is_empty();
            let until = if is_of_backend {
                clock.instant(record.since) + TTL
            } else {
                clock.instant(record.until)
            };
            self.insert(key, position, until, memory);
        }
        true
    }

    /// Whether no result is stored.
    #[cfg(test)]
    pub(super) fn is_empty(&self) -> bool {
        self.positions.is_empty() && self.queue.is_empty() && self.bytes == 0
    }

    fn remove_oldest(&mut self, memory: &ResultsMemory) {
        if let Some((until, key)) = self.queue.pop_front() {
            self.resize(self.bytes - key.bytes(), memory);
            // A key that was used again after its end has another end.
            if self.positions.get(&key).is_some_and(|stored| stored.until == until) {
                self.positions.remove(&key);
            }
        }
    }

    fn resize(&mut self, bytes: usize, memory: &ResultsMemory) {
        let [before, after] = [self.bytes, bytes].map(|bytes| bytes.saturating_sub(SHARE_BYTES));
        memory.borrowed.fetch_add(after.wrapping_sub(before), Relaxed); // which may be negative
        self.bytes = bytes;
    }
}

/// How long a repeated idempotency key of a backend returns the first result.
pub(super) const TTL: Duration = Duration::from_secs(300);
/// Memory of one stripe that others cannot use: 32 MiB of all 64 stripes.
pub(super) const SHARE_BYTES: usize = 512 * 1024;
/// Memory beyond that, of all stripes together: some 180,000 keys, if they are of one channel.
pub(super) const BORROWED_BYTES_MAX: usize = 32 * 1024 * 1024;
/// A map entry, a queue entry and the heap block of a key.
const KEY_BYTES_OVERHEAD: usize = 160;
