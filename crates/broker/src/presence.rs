//! The presence port: who is subscribed to a channel right now, beside the broker, which knows what is published.
//! In: members that come, are renewed and go, with the time → out: the members of a channel, or how many they are.
//! Uses: protocol values. Never: sessions, sockets, clocks (time is a parameter).
//! Change here: the promises of every store. The one in memory lives in `presence/memory.rs`, the common tests in
//! `presence/conformance.rs`.

mod memory;

#[cfg(any(test, feature = "conformance"))]
pub mod conformance;

use std::sync::Arc;
use std::time::{Duration, Instant};

use fanwire_protocol::ClientInfo;

use crate::Answer;

pub use memory::MemoryPresence;

/// Who is where.
///
/// A member is a client of a channel, named by `ClientInfo::client`. It is there from [`add`](Self::add) until
/// [`remove`](Self::remove), at the latest until its `ttl` is over, should its node have died. What a call did is seen by
/// every call after its answer, and by later calls from the same thread. No call blocks.
pub trait Presence: Send + Sync {
    /// Adds a member, or renews it: from now on it is as `info` says, for `ttl` from `now`.
    ///
    /// # Errors
    /// [`BrokerError::Unavailable`](crate::BrokerError::Unavailable); the member is renewed later anyway.
    fn add(&self, channel: &str, info: ClientInfo, ttl: Duration, now: Instant) -> Answer<()>;

    /// Removes a member, if it is there.
    ///
    /// # Errors
    /// [`BrokerError::Unavailable`](crate::BrokerError::Unavailable); the member then stays until its time is over.
    fn remove(&self, channel: &str, client: &str) -> Answer<()>;

    /// The members of a channel at one moment, in no promised order. They are shared, not copied.
    ///
    /// # Errors
    /// [`BrokerError::Unavailable`](crate::BrokerError::Unavailable); the caller may retry.
    fn members(&self, channel: &str, now: Instant) -> Answer<Vec<Arc<ClientInfo>>>;

    /// How many members a channel has; does not look at each of them.
    ///
    /// # Errors
    /// [`BrokerError::Unavailable`](crate::BrokerError::Unavailable); the caller may retry.
    fn stats(&self, channel: &str, now: Instant) -> Answer<PresenceStats>;

    /// Gives memory back of members whose time was over long ago. Worth a call a second; each takes bounded time.
    ///
    /// What is over is never returned, whether this is called or not.
    fn sweep(&self, now: Instant);
}

/// How many are in a channel.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PresenceStats {
    /// Members.
    pub clients: usize,
    /// Distinct user ids among them; the empty one counts as one.
    pub users: usize,
}
