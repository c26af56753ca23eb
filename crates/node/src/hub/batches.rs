//! Publications of a channel that a shard delivers together (`batch_max_size`, `batch_max_delay`, `batch_flush_latest`).
//! In: broadcasts, the time → out: the broadcasts that are due, in the order of their channel.
//! Pure. Never: sessions, subscriber lists; `hub/notices.rs` delivers.
//! Changed here: when a batch is due.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::Arc;
use std::time::Instant;

use fanwire_policy::options::BatchOptions;
use hashbrown::HashMap;

use crate::broadcast::Broadcast;

/// The batches of a shard.
#[derive(Debug, Default)]
pub(super) struct Batches {
    by_channel: HashMap<Arc<str>, Batch>,
    /// Times at which batches are due, the first on top. A batch that was taken before leaves its entry behind.
    due: BinaryHeap<Reverse<(Instant, Arc<str>)>>,
}

#[derive(Debug)]
struct Batch {
    due_at: Instant,
    /// Number of broadcasts, with those that newer ones replaced.
    count: usize,
    broadcasts: Vec<Arc<Broadcast>>,
}

impl Batches {
    /// Adds a broadcast. A batch that is complete is due at once.
    pub(super) fn push(&mut self, broadcast: &Arc<Broadcast>, options: BatchOptions, now: Instant) {
        let channel = broadcast.channel();
        let batch = self.by_channel.entry(Arc::clone(channel)).or_insert_with(|| {
            let due_at = now + options.max_delay;
            self.due.push(Reverse((due_at, Arc::clone(channel))));
            Batch { due_at, count: 0, broadcasts: Vec::new() }
        });
        if options.flush_latest {
            batch.broadcasts.clear();
        }
        batch.broadcasts.push(Arc::clone(broadcast));
        batch.count += 1;
        let size = if options.max_size == 0 { BATCH_MAX } else { options.max_size.min(BATCH_MAX) };
        if batch.count == size && batch.due_at > now {
            batch.due_at = now;
            self.due.push(Reverse((now, Arc::clone(channel))));
        }
    }

    /// The batch of a channel, due or not.
    pub(super) fn take(&mut self, channel: &str) -> Vec<Arc<Broadcast>> {
        self.by_channel.remove(channel).map_or(Vec::new(), |batch| batch.broadcasts)
    }

    /// The next batch that is due.
    pub(super) fn pop_due(&mut self, now: Instant) -> Option<Vec<Arc<Broadcast>>> {
        while self.due.peek().is_some_and(|Reverse((due_at, _))| *due_at <= now) {
            let Reverse((due_at, channel)) = self.due.pop()?;
            if self.by_channel.get(&channel).is_some_and(|batch| batch.due_at == due_at) {
                return Some(self.take(&channel));
            }
        }
        None
    }

    /// A batch, due or not, as long as there is one.
    pub(super) fn pop(&mut self) -> Option<Vec<Arc<Broadcast>>> {
        while let Some(due_at) = self.next_deadline() {
            if let Some(batch) = self.pop_due(due_at) {
                return Some(batch);
            }
        }
        None
    }

    /// Returns the time to call [`pop_due`](Self::pop_due) next. Nothing may be due then.
    pub(super) fn next_deadline(&self) -> Option<Instant> {
        self.due.peek().map(|Reverse((due_at, _))| *due_at)
    }
}

/// A batch is due at this size, with any options: its memory must not grow with the rate.
const BATCH_MAX: usize = 4096;

#[cfg(test)]
mod tests;
