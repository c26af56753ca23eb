//! Indices of a shard's tables, each a type of its own: two of them stand side by side in most calls.
//! In: positions in dense lists → out: the same, 4 bytes each.
//! Pure. Never: a list; its owner knows what an index means.
//! Changed here: nothing but another index.

use std::sync::Arc;

/// Index of a subscription in its session. It changes only when another subscription of the session ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SubscriptionIndex(pub u32);

/// Index of a subscriber in the list of its channel on this shard.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SubscriberIndex(pub(crate) u32);

/// A subscription, as its connection and its channel name it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SubscriptionKey<'a> {
    /// Index of the connection.
    pub(crate) connection: u32,
    pub(crate) channel: &'a Arc<str>,
}

/// A subscription of a session ended, and the last one of the session moved to its index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MovedSubscription {
    /// Index of the subscription that ended.
    pub to: SubscriptionIndex,
    /// Earlier index of the one that moved there; the same if none moved.
    pub from: SubscriptionIndex,
}
