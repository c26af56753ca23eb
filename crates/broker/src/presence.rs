//! The presence port: the clients that are subscribed to a channel now. It is separate from the broker.
//! In: members that are added, renewed and removed, with the time → out: the members of a channel, or their number.
//! Uses: protocol values. Never: sessions, sockets, clocks (time is a parameter).
//! Changed here: the promises of every store. The memory store lives in `presence/memory.rs`, the common tests in
//! `presence/conformance.rs`.

mod memory;

#[cfg(any(test, feature = "conformance"))]
pub mod conformance;

use std::sync::Arc;
use std::time::{Duration, Instant};

use fanwire_protocol::ClientInfo;

use crate::Answer;

pub use memory::MemoryPresence;

/// Stores the members of channels.
///
/// A member is a client in a channel, identified by `ClientInfo::client`. It exists from [`add`](Self::add) until
/// [`remove`](Self::remove), or until its `ttl` has passed: so it also disappears when its node crashed. The effect of a
/// call is visible to every call that begins after its answer, and to later calls from the same thread. No call blocks.
pub trait Presence: Send + Sync {
    /// Adds or renews a member: stores `info`, which expires `ttl` after `now`.
    ///
    /// # Errors
    /// [`BrokerError::Unavailable`](crate::BrokerError::Unavailable); the node does not retry, because it renews its members regularly.
    fn add(&self, channel: &str, info: ClientInfo, ttl: Duration, now: Instant) -> Answer<()>;

    /// Removes a member; does nothing when the channel has no such member.
    ///
    /// # Errors
    /// [`BrokerError::Unavailable`](crate::BrokerError::Unavailable); the member then stays until it expires.
    fn remove(&self, channel: &str, client: &str) -> Answer<()>;

    /// The members of a channel at one moment, in any order. Values are shared, not copied.
    ///
    /// # Errors
    /// [`BrokerError::Unavailable`](crate::BrokerError::Unavailable); the caller may retry.
    fn members(&self, channel: &str, now: Instant) -> Answer<Vec<Arc<ClientInfo>>>;

    /// A page of the members of a channel, in an order of the store. `cursor` is 0 for the first page, then
    /// [`PresencePage::next`]. A member that exists from the first page to the last is in at least one of them; with Redis it may
    /// be in two, and a page may have some more members than `limit`, which is at least 1.
    ///
    /// # Errors
    /// [`BrokerError::Unavailable`](crate::BrokerError::Unavailable); the caller may retry.
    fn page(&self, channel: &str, cursor: u64, limit: usize, now: Instant) -> Answer<PresencePage>;

    /// The number of members of a channel. Does not iterate over them.
    ///
    /// # Errors
    /// [`BrokerError::Unavailable`](crate::BrokerError::Unavailable); the caller may retry.
    fn stats(&self, channel: &str, now: Instant) -> Answer<PresenceStats>;

    /// Frees the memory of expired members. The node calls it once a second; each call takes bounded time.
    ///
    /// Reads never return expired members, with or without this call.
    fn sweep(&self, now: Instant);
}

/// A part of the members of a channel.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PresencePage {
    pub members: Vec<Arc<ClientInfo>>,
    /// The cursor of the next page; 0 after the last one. A page may be empty and have a next one.
    pub next: u64,
}

/// The size of a channel.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PresenceStats {
    /// Number of members.
    pub clients: usize,
    /// Number of distinct user ids; the empty id counts as one.
    pub users: usize,
}
