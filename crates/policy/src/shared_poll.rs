//! Shared poll: the node polls a backend for keys, once for all clients that track them (protocol §28).
//! In: tracked keys, answers of a backend, direct publishes, the time → out: requests, updates for those who track a key.
//! Pure: no session, no socket, no clock (time is a parameter).
//! Changed here: the values that cross this module. A channel of a node is in `channel.rs`, all channels in
//! `table.rs`, the keys of a connection in `tracked_keys.rs`.

mod channel;
mod table;
mod tracked_keys;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::time::Duration;

use bytes::Bytes;

pub use channel::{PollChannel, PollCounts};
pub use table::PollTable;
pub use tracked_keys::{TooManyKeys, TrackedItem, TrackedKeys};

/// How a channel is polled (`shared_poll.*` of a namespace).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PollOptions {
    pub mode: PollMode,
    /// Time between the beginnings of two cycles; not zero.
    pub refresh_interval: Duration,
    /// Most keys of a request; at least 1.
    pub refresh_batch_size: usize,
    /// After this time a request counts as failed.
    pub request_timeout: Duration,
    /// A channel is removed this long after its last key was untracked.
    pub shutdown_delay: Duration,
    /// Most bytes of values that a channel keeps for clients that come later; approximately.
    pub values_bytes_max: usize,
}

impl Default for PollOptions {
    fn default() -> Self {
        Self {
            mode: PollMode::Versionless,
            refresh_interval: Duration::from_secs(10),
            refresh_batch_size: 1000,
            request_timeout: Duration::from_secs(30),
            shutdown_delay: Duration::from_secs(1),
            values_bytes_max: 64 << 20,
        }
    }
}

/// Who counts the versions of a value.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PollMode {
    /// The node, which compares values. Requests have no versions.
    #[default]
    Versionless,
    /// The backend. A request has the version that the node knows, 0 for any.
    Versioned,
}

impl PollMode {
    /// The values of the configuration key, as [`parse`](Self::parse) reads them.
    pub const NAMES: [&'static str; 3] = ["", "versionless", "versioned"];

    /// Reads the value of the configuration key; `None` for anything not in [`NAMES`](Self::NAMES).
    pub fn parse(name: &str) -> Option<Self> {
        match name {
            "" | "versionless" => Some(Self::Versionless),
            "versioned" => Some(Self::Versioned),
            _ => None,
        }
    }
}

/// What all channels of a node share: numbers that are unique, so that an answer to a channel that was removed is no answer to its
/// successor, and the memory for values.
#[derive(Debug)]
pub struct PollNodeState {
    /// The newest version that a value of a versionless channel got.
    versions: AtomicU64,
    requests: AtomicU64,
    /// Bytes of the values that all channels keep. Its users hold the lock of the table.
    values_bytes: AtomicUsize,
    values_bytes_max: usize,
}

impl PollNodeState {
    /// Numbers of a node whose channels keep at most this many bytes of values (`shared_poll.values_memory_max`).
    pub fn new(values_bytes_max: usize) -> Self {
        Self {
            versions: AtomicU64::new(0),
            requests: AtomicU64::new(0),
            values_bytes: AtomicUsize::new(0),
            values_bytes_max,
        }
    }

    /// Takes memory for a value. Returns whether there is enough.
    fn reserve(&self, bytes: usize) -> bool {
        let all = self.values_bytes.load(Relaxed).saturating_add(bytes);
        if all > self.values_bytes_max {
            return false;
        }
        self.values_bytes.store(all, Relaxed);
        true
    }

    fn release(&self, bytes: usize) {
        self.values_bytes.fetch_sub(bytes, Relaxed);
    }
}

/// Names one request of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RequestId(u64);

/// A request for a backend.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PollRequest {
    pub id: RequestId,
    /// Each key once, with the version that the node knows; 0 = none, or a value is needed whatever its version.
    pub keys: Vec<(Arc<str>, u64)>,
}

/// The answer of a backend.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PollAnswer {
    pub items: Vec<PollItem>,
    /// Versions of two epochs are not comparable; "" is an epoch, too. Ignored in a versionless channel.
    pub epoch: String,
}

/// The answer of a backend about a key. A key that its answer does not name is unchanged.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PollItem {
    pub key: String,
    /// Empty = unchanged.
    pub data: Bytes,
    /// Ignored in a versionless channel.
    pub version: u64,
    /// The key does not exist any more.
    pub is_removed: bool,
}

/// A value that was published directly, in a versioned channel.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DirectPublish {
    pub key: String,
    pub data: Bytes,
    /// At least 1.
    pub version: u64,
    pub epoch: String,
}

/// A value of a key, for all connections that track it and have an older version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyUpdate {
    pub key: Arc<str>,
    pub data: Bytes,
    pub version: u64,
}

/// The effect of an answer or of a direct publish. Effects are in their order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PollEffect {
    /// All subscribers of the channel must subscribe again (2500), because versions are no longer comparable.
    EpochChanged,
    Updated(KeyUpdate),
    /// Connections that track the key track it no longer, and have to say so with [`PollChannel::untrack`].
    Removed(Arc<str>),
}
