//! The port of blocks and revocations: one list for all nodes, which outlives them.
//! In: changes, cursors → out: pages of the list; every change of every node, in the order of their positions.
//! Uses `Answer`, `Position`. Never: decides the effect of a change; the node does.
//! Changed here: what a change contains, and the promises of every store.

use std::time::Instant;

use crate::{Answer, Position};

/// Stores blocks and revocations for all nodes of an installation. A node without a store keeps its own in memory.
///
/// Each change increments the offset of the list's position. Another epoch means that the store lost its data.
pub trait RevocationStore: Send + Sync {
    /// Passes every change from now on, those of this node included, to `listener`. Call it once, before the first page.
    fn listen(&self, listener: RevocationListener);

    /// Makes a change and sends it to every node, unless there is an entry that [covers](RevocationChange::covers) it.
    ///
    /// # Errors
    /// [`BrokerError::Unavailable`](crate::BrokerError::Unavailable) when it is not known to be stored.
    fn change(&self, change: &RevocationChange, now: Instant) -> Answer<()>;

    /// Makes a change again that the store has lost. An entry of its subject that the store has is newer, and stays.
    ///
    /// # Errors
    /// As those of [`change`](Self::change).
    fn restore(&self, change: &RevocationChange, now: Instant) -> Answer<()> {
        self.change(change, now)
    }

    /// Reads a page. An entry that exists during the whole reading is in some page, perhaps in two. The first page is read
    /// after the listener's subscription is active, so the listener gets every change that the pages may lack.
    ///
    /// # Errors
    /// [`BrokerError::Unavailable`](crate::BrokerError::Unavailable)
    fn page(&self, from: RevocationCursor) -> Answer<RevocationPage>;
}

/// Takes events of the store. It must be short, because it runs on the task of a connection.
pub type RevocationListener = Box<dyn Fn(RevocationEvent) + Send + Sync>;

/// News of a store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RevocationEvent {
    /// A change, and the position of the list after it.
    Change(Position, RevocationChange),
    /// Changes may have been missed; later ones arrive again.
    MayHaveGap,
}

/// One change. The meaning of the fields depends on its kind.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RevocationChange {
    /// The kind of entry, or its removal.
    pub kind: RevocationKind,
    /// The user id, or the `jti` of a token.
    pub subject: String,
    /// Limits invalidated tokens to subscription tokens of this channel.
    pub channel: Option<String>,
    /// Unix second at which the entry ends; 0 = never.
    pub expire_at: u64,
    /// Tokens with an earlier `iat` are invalidated.
    pub issued_before: u64,
}

impl RevocationChange {
    /// Whether this entry stays when a change of the same subject comes: it has a later `issued_before`, and lasts as long. A call
    /// can wait in a connection until after a newer one.
    pub fn covers(&self, change: &Self) -> bool {
        let never_ends = self.expire_at == 0;
        let lasts_as_long = never_ends || (1..=self.expire_at).contains(&change.expire_at);
        self.issued_before > change.issued_before && lasts_as_long
    }
}

/// The kind of a change.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum RevocationKind {
    #[default]
    BlockUser,
    UnblockUser,
    RevokeToken,
    InvalidateTokens,
}

/// A part of the list, as changes that make its entries.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RevocationPage {
    /// The position of the list at the time of the read.
    pub position: Position,
    pub entries: Vec<RevocationChange>,
    /// The next page; `None` after the last one.
    pub next: Option<RevocationCursor>,
}

/// A place between two pages; the default is before the first. Only the store reads it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RevocationCursor {
    pub table: u8,
    pub scan: u64,
}
