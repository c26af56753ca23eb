//! The port of statuses: when a user was active and online, and a text of the application.
//! In: changes, user ids, Unix seconds → out: the status of each user, until it expires.
//! Uses: `Answer`. Never: connections; the node knows who is online now.
//! Changed here: what a status contains, and the promises of every store. The memory store is `user_statuses/memory.rs`.

mod memory;

#[cfg(any(test, feature = "conformance"))]
pub mod conformance;

use std::time::Duration;

use crate::Answer;

pub use memory::MemoryUserStatuses;

/// Stores the status of users.
///
/// A status exists from the first update of its user until it is removed, or until the `ttl` of its last update has passed. The
/// effect of a call is visible to every call that begins after its answer. No call blocks.
pub trait UserStatusStore: Send + Sync {
    /// Changes the status of each user.
    ///
    /// # Errors
    /// [`BrokerError::Full`](crate::BrokerError::Full) before anything was changed, or
    /// [`BrokerError::Unavailable`](crate::BrokerError::Unavailable): then some users may have the change.
    fn update(&self, users: &[String], change: &UserStatusChange, unix: u64) -> Answer<()>;

    /// Removes the status of users; does nothing for those without one.
    ///
    /// # Errors
    /// [`BrokerError::Unavailable`](crate::BrokerError::Unavailable): some may be removed.
    fn remove(&self, users: &[String]) -> Answer<()>;

    /// The status of each user, in the order of `users`; the default for those without one.
    ///
    /// # Errors
    /// [`BrokerError::Unavailable`](crate::BrokerError::Unavailable)
    fn read(&self, users: &[String], unix: u64) -> Answer<Vec<UserStatus>>;

    /// Frees the memory of expired statuses; called once a second. Reads never return them.
    fn sweep(&self, unix: u64);
}

/// The status of one user.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UserStatus {
    /// Unix second of the last activity; 0 = none.
    pub active: u64,
    /// Unix second at which the user was last known to be connected; 0 = unknown.
    pub online: u64,
    /// Text of the application.
    pub state: Box<str>,
}

/// A change of the status of users.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UserStatusChange {
    /// Unix second; `None` keeps the earlier one.
    pub active: Option<u64>,
    /// Unix second; `None` keeps the earlier one.
    pub online: Option<u64>,
    /// `None` keeps the earlier one.
    pub state: Option<Box<str>>,
    /// How long the status stays after this change, at least a second.
    pub ttl: Duration,
}
