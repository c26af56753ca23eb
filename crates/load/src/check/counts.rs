//! Counts of what subscribers of a group received.
//! In: single faults → out: sums, and one example of a broken message.
//! Pure.
//! Changed here: what is counted; what is a fault is decided in `check`.

use serde::Serialize;
use std::collections::BTreeMap;

/// Groups of subscribers that are counted apart.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Group {
    Regular,
    /// Read at a limited rate.
    Slow,
    /// Read nothing until publishing has ended.
    Stopped,
}

impl Group {
    pub const ALL: [Self; 3] = [Self::Regular, Self::Slow, Self::Stopped];

    pub fn name(self) -> &'static str {
        match self {
            Self::Regular => "regular",
            Self::Slow => "slow",
            Self::Stopped => "stopped",
        }
    }
}

/// Publications that the subscribers of a group received.
#[derive(Clone, Default, PartialEq, Eq, Debug, Serialize)]
pub struct GroupCounts {
    pub subscribers: u64,
    pub received: u64,
    pub lost: u64,
    /// Arrived a second time.
    pub duplicates: u64,
    /// Arrived after a later one.
    pub reordered: u64,
    /// Damaged, unknown or not for this subscriber.
    pub broken: u64,
    /// Left out because a newer one replaced it, where that is allowed.
    pub conflated: u64,
    /// Connections that the server ended, by close code; 0 without a code.
    pub disconnects: BTreeMap<u16, u64>,
    /// The first broken message.
    pub example: Option<String>,
}

impl GroupCounts {
    pub fn broken(&mut self, example: impl FnOnce() -> String) {
        self.broken += 1;
        self.example.get_or_insert_with(example);
    }
}
