//! How the engine is: which connections are up, what went wrong last, what was skipped.
//! In: events of connections → out: a state for `/health`, counts for metrics, lines in the log.
//! Uses: atomics and a small lock. Never: decides anything.
//! Change here: what is known of an engine's state.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};

use parking_lot::Mutex;

use super::error::RedisError;

/// The state of an engine, shared by its connections.
#[derive(Debug, Default)]
pub struct Health {
    connections: AtomicUsize,
    up: AtomicUsize,
    trouble: Mutex<Option<RedisError>>,
    lost: AtomicU64,
    foreign: AtomicU64,
    refused: AtomicU64,
    unreplicated: AtomicU64,
    merged: AtomicU64,
}

impl Health {
    /// Whether every connection is up.
    pub fn is_well(&self) -> bool {
        self.up.load(Relaxed) == self.connections.load(Relaxed)
    }

    /// What keeps a connection from being up; `None` when all are.
    pub fn trouble(&self) -> Option<RedisError> {
        if self.is_well() { None } else { self.trouble.lock().clone() }
    }

    /// Connections that were up and ended.
    pub fn lost_count(&self) -> u64 {
        self.lost.load(Relaxed)
    }

    /// Messages and stored records that were skipped: of another version, or garbage.
    pub fn foreign_count(&self) -> u64 {
        self.foreign.load(Relaxed)
    }

    /// Commands that Redis answered with an error.
    pub fn refused_count(&self) -> u64 {
        self.refused.load(Relaxed)
    }

    /// Writes that failed because too few replicas had them in time.
    pub fn unreplicated_count(&self) -> u64 {
        self.unreplicated.load(Relaxed)
    }

    /// Reads that were answered by an equal one of somebody else.
    pub fn merged_count(&self) -> u64 {
        self.merged.load(Relaxed)
    }

    pub(crate) fn counts_on(&self) {
        self.connections.fetch_add(1, Relaxed);
    }

    /// A connection is not needed any more, and not up.
    pub(crate) fn counts_off(&self) {
        self.connections.fetch_sub(1, Relaxed);
        self.is_relieved();
    }

    pub(crate) fn came_up(&self) {
        self.up.fetch_add(1, Relaxed);
        self.is_relieved();
    }

    /// Ended because nobody needs it any more.
    pub(crate) fn was_closed(&self) {
        self.up.fetch_sub(1, Relaxed);
    }

    fn is_relieved(&self) {
        if self.is_well() && self.trouble.lock().take().is_some() {
            tracing::info!("all connections to Redis are up again");
        }
    }

    pub(crate) fn went_down(&self) {
        self.up.fetch_sub(1, Relaxed);
        self.lost.fetch_add(1, Relaxed);
    }

    /// Something keeps a connection from being up. Said once, until it is something else or all is well again.
    pub(crate) fn is_troubled(&self, error: RedisError) {
        let mut trouble = self.trouble.lock();
        if trouble.as_ref() != Some(&error) {
            tracing::warn!("{error}; trying again");
            *trouble = Some(error);
        }
    }

    /// Skipped a record.
    pub(crate) fn is_foreign(&self, name: &[u8]) {
        if self.foreign.fetch_add(1, Relaxed) == 0 {
            let name = String::from_utf8_lossy(name);
            tracing::warn!("skipped what another version or program left in {name}");
        }
    }

    /// Writes that too few replicas have.
    pub(crate) fn lacks_replicas(&self, writes: usize, replicas: u32) {
        if writes > 0 && self.unreplicated.fetch_add(writes as u64, Relaxed) == 0 {
            tracing::warn!(
                "writes fail: fewer than {replicas} replicas of Redis had them within engine.redis.wait.timeout"
            );
        }
    }

    /// So many reads need no command of their own.
    pub(crate) fn merges(&self, reads: usize) {
        self.merged.fetch_add(reads as u64, Relaxed);
    }

    /// Redis answered with an error.
    pub(crate) fn was_refused(&self, reply: &redis::ServerError) {
        if self.refused.fetch_add(1, Relaxed) == 0 {
            let details = reply.details().unwrap_or_default();
            tracing::warn!("Redis refused a command: {} {details}", reply.code());
        }
    }
}

#[cfg(test)]
mod tests;
