//! The state of the engine: connections that are up, the latest error, records that were skipped.
//! In: events of connections → out: a state for `/health`, counts for metrics, lines in the log.
//! Uses: atomics and a small lock. Never: decides anything.
//! Changed here: the recorded state of an engine.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::time::Instant;

use fanwire_broker::SuppressedCounters;
use fanwire_telemetry::LogThrottle;
use parking_lot::Mutex;

use super::address::Address;
use super::error::RedisError;
use super::error_hint;

/// The state of an engine, shared by its connections.
#[derive(Debug, Default)]
pub struct Health {
    /// The addresses, for log lines.
    addresses: String,
    connections: AtomicUsize,
    up: AtomicUsize,
    errors: Mutex<ConnectionErrors>,
    lost: AtomicU64,
    foreign: AtomicU64,
    refused: AtomicU64,
    unreplicated: AtomicU64,
    merged: AtomicU64,
    suppressed: SuppressedCounters,
    log_throttle: LogThrottle,
}

/// The errors of connections that are not up.
#[derive(Debug, Default)]
struct ConnectionErrors {
    latest: Option<RedisError>,
    /// Logged since all connections were up. Several addresses that are down report errors in turn, at every try.
    logged: Vec<RedisError>,
}

impl ConnectionErrors {
    /// Whether this error has not been logged yet.
    fn is_new(&mut self, error: RedisError) -> bool {
        let is_new = !self.logged.contains(&error);
        if is_new {
            // Drops the oldest, which may then be logged again, to bound memory.
            self.logged.drain(..(self.logged.len() + 1).saturating_sub(LOGGED_MAX));
            self.logged.push(error.clone());
        }
        self.latest = Some(error);
        is_new
    }
}

/// More than the masters of a Cluster, each with a few kinds of errors.
const LOGGED_MAX: usize = 256;

impl Health {
    /// State of an engine at these addresses.
    pub(crate) fn at<'a>(addresses: impl Iterator<Item = &'a Address>) -> Self {
        let addresses: Vec<_> = addresses.map(Address::to_string).collect();
        Self { addresses: addresses.join(" or "), ..Self::default() }
    }

    /// Whether every connection is up.
    pub fn is_healthy(&self) -> bool {
        self.up.load(Relaxed) == self.connections.load(Relaxed)
    }

    /// The latest error of a connection; `None` when all are up.
    pub fn current_error(&self) -> Option<RedisError> {
        if self.is_healthy() { None } else { self.errors.lock().latest.clone() }
    }

    /// Connections that were up and ended.
    pub fn lost_count(&self) -> u64 {
        self.lost.load(Relaxed)
    }

    /// Messages and stored records that were skipped, because another version or another program wrote them.
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

    /// Reads that shared the answer of an equal read.
    pub fn merged_count(&self) -> u64 {
        self.merged.load(Relaxed)
    }

    /// Publications that were not published.
    pub(crate) fn suppressed(&self) -> &SuppressedCounters {
        &self.suppressed
    }

    pub(crate) fn connection_added(&self) {
        self.connections.fetch_add(1, Relaxed);
    }

    /// A connection that is not up is not needed any more.
    pub(crate) fn connection_removed(&self) {
        self.connections.fetch_sub(1, Relaxed);
        self.log_recovery();
    }

    pub(crate) fn connection_up(&self) {
        self.up.fetch_add(1, Relaxed);
        self.log_recovery();
    }

    /// A connection that is up is not needed any more.
    pub(crate) fn connection_closed(&self) {
        self.up.fetch_sub(1, Relaxed);
    }

    fn log_recovery(&self) {
        let has_any = self.connections.load(Relaxed) > 0; // none are left when the server has stopped
        if has_any && self.is_healthy() && std::mem::take(&mut *self.errors.lock()).latest.is_some()
        {
            tracing::info!("all connections to Redis are up again");
        }
    }

    pub(crate) fn connection_lost(&self) {
        self.up.fetch_sub(1, Relaxed);
        self.lost.fetch_add(1, Relaxed);
    }

    /// An error keeps a connection from being up. It is logged once until all connections are up again.
    pub(crate) fn report_error(&self, error: RedisError) {
        if self.errors.lock().is_new(error.clone()) {
            tracing::warn!("{error}; trying again");
        }
    }

    /// Skipped a record that is stored under this key.
    pub(crate) fn skipped_foreign_record(&self, key: &[u8]) {
        self.foreign.fetch_add(1, Relaxed);
        if let Some(cases) = self.log_throttle.record("stored", Instant::now()) {
            let key = String::from_utf8_lossy(key);
            let addresses = &self.addresses;
            tracing::warn!(
                "skipped a record in {key} of Redis at {addresses}, which this version of Fanwire did not write: delete the key, or give whatever else writes there another prefix (engine.redis.prefix){cases}"
            );
        }
    }

    /// Skipped a message that was published under this name.
    pub(crate) fn skipped_foreign_message(&self, name: &[u8]) {
        self.foreign.fetch_add(1, Relaxed);
        self.log_foreign_message("published", name);
    }

    /// The node skipped and counted a message that was published under this name.
    pub(crate) fn skipped_foreign_node_message(&self, name: &[u8]) {
        self.log_foreign_message("node message", name);
    }

    fn log_foreign_message(&self, kind: &str, name: &[u8]) {
        if let Some(cases) = self.log_throttle.record(kind, Instant::now()) {
            let name = String::from_utf8_lossy(name);
            let addresses = &self.addresses;
            tracing::warn!(
                "skipped a message published to {name} of Redis at {addresses}, which this version of Fanwire did not send: give whatever else publishes there another prefix (engine.redis.prefix){cases}"
            );
        }
    }

    /// Writes failed because too few replicas had them.
    pub(crate) fn count_unreplicated(&self, writes: usize, replicas: u32) {
        if writes == 0 {
            return;
        }
        self.unreplicated.fetch_add(writes as u64, Relaxed);
        if let Some(cases) = self.log_throttle.record("replicas", Instant::now()) {
            tracing::warn!(
                "writes fail: fewer than {replicas} replicas of Redis had them within engine.redis.wait.timeout{cases}"
            );
        }
    }

    /// Counts reads that shared the command of another one.
    pub(crate) fn count_merged(&self, reads: usize) {
        self.merged.fetch_add(reads as u64, Relaxed);
    }

    /// The Redis at this address answered with an error.
    pub(crate) fn command_refused(
        &self,
        at: &Address,
        command: &redis::Cmd,
        reply: &redis::ServerError,
    ) {
        self.refused.fetch_add(1, Relaxed);
        if let Some(cases) = self.log_throttle.record(reply.code(), Instant::now()) {
            let what = error_hint::describe_command(command);
            let hint = error_hint::hint(reply);
            let code = reply.code();
            let details = reply.details().unwrap_or_default();
            tracing::warn!("Redis at {at} refused {what}: {code} {details}{hint}{cases}");
        }
    }
}

#[cfg(test)]
mod tests;
