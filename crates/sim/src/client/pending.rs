//! Commands of a client that wait for their answers.
//! In: commands that are sent → out: what is known of them when the answer comes.
//! Pure. Never: the answers.
//! Changed here: what a client remembers of a command.

use std::time::Duration;

use super::frames::{Claim, HistoryPage};

/// A command without an answer.
#[derive(Clone, Debug)]
pub struct Pending {
    pub sent_at: Duration,
    pub kind: PendingKind,
}

#[derive(Clone, Debug)]
pub enum PendingKind {
    Connect,
    Refresh,
    Subscribe {
        channel: String,
        claim: Option<Claim>,
    },
    Unsubscribe(String),
    /// With the time of its token.
    SubRefresh {
        channel: String,
        issued_at: Option<u64>,
    },
    History(String, HistoryPage),
    Presence(String),
    Publish {
        channel: String,
        number: u64,
    },
    /// With the milliseconds that the backend takes, and whether commands before it may take as long.
    Call(u64),
}
