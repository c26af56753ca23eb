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
    /// With the position of the first change of each: a page after another lacks nothing that was there all the time.
    entries: BTreeMap<(u8, String, Option<String>), (u64, RevocationChange)>,
}

impl Blocks {
    /// Makes a change. The first one of an empty list gives it `epoch`.
    pub(super) fn change(&mut self, change: &RevocationChange, epoch: Epoch) -> Position {
        if self.position.epoch == Epoch::NONE {
            self.position.epoch = epoch;
        }
        self.position.offset += 1;
        let key = key_of(change);
        match change.kind {
            RevocationKind::UnblockUser => drop(self.entries.remove(&key)),
            _ => {
                let new = || (self.position.offset, change.clone());
                self.entries.entry(key).or_insert_with(new).1 = change.clone();
            }
        }
        self.position
    }

    /// The entry of the subject of a change.
    pub(super) fn entry(&self, change: &RevocationChange) -> Option<&RevocationChange> {
        self.entries.get(&key_of(change)).map(|(_, entry)| entry)
    }

    pub(super) fn page(&self, from: RevocationCursor) -> RevocationPage {
        let mut rest: Vec<_> = self.entries.values().filter(|(at, _)| *at > from.scan).collect();
        rest.sort_unstable_by_key(|(at, _)| *at);
        let has_more = rest.len() > PAGE;
        rest.truncate(PAGE);
        let scan = rest.last().map_or(0, |(at, _)| *at);
        let next = has_more.then_some(RevocationCursor { table: 0, scan });
        let entries = rest.into_iter().map(|(_, change)| change.clone()).collect();
        RevocationPage { position: self.position, entries, next }
    }
}

/// The subject of a change: a block and its end have the same.
fn key_of(change: &RevocationChange) -> (u8, String, Option<String>) {
    let table = match change.kind {
        RevocationKind::BlockUser | RevocationKind::UnblockUser => 0,
        RevocationKind::RevokeToken => 1,
        RevocationKind::InvalidateTokens => 2,
    };
    (table, change.subject.clone(), change.channel.clone())
}

const PAGE: usize = 3;
