//! Blocks and revocations in the model engine: one list with a position.
//! In: changes → out: the position after each, pages.
//! Pure. Never: the effect of a change.
//! Changed here: what an engine may do with the list.

use std::collections::BTreeMap;

use fanwire_broker::{
    Epoch, Position, RevocationChange, RevocationCursor, RevocationKind, RevocationPage,
};

/// The list. Like that of Redis it keeps its epoch when a replica takes the place of the master.
#[derive(Clone, Default)]
pub(super) struct Blocks {
    position: Position,
    entries: BTreeMap<(u8, String, Option<String>), RevocationChange>,
}

impl Blocks {
    /// Makes a change. The first one of an empty list gives it `epoch`.
    pub(super) fn change(&mut self, change: &RevocationChange, epoch: Epoch) -> Position {
        if self.position.epoch == Epoch::NONE {
            self.position.epoch = epoch;
        }
        self.position.offset += 1;
        let table = match change.kind {
            RevocationKind::BlockUser | RevocationKind::UnblockUser => 0,
            RevocationKind::RevokeToken => 1,
            RevocationKind::InvalidateTokens => 2,
        };
        let key = (table, change.subject.clone(), change.channel.clone());
        match change.kind {
            RevocationKind::UnblockUser => drop(self.entries.remove(&key)),
            _ => drop(self.entries.insert(key, change.clone())),
        }
        self.position
    }

    pub(super) fn page(&self, from: RevocationCursor) -> RevocationPage {
        let first = from.scan as usize;
        let end = first + PAGE;
        let entries = self.entries.values().skip(first).take(PAGE).cloned().collect();
        let cursor = RevocationCursor { table: 0, scan: end as u64 };
        let next = (end < self.entries.len()).then_some(cursor);
        RevocationPage { position: self.position, entries, next }
    }
}

const PAGE: usize = 3;
