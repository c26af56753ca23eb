//! Decides when a node reads the list of blocks and revocations that all nodes share, and what of it is new.
//! In: positions of changes, pages and other nodes → out: whether to read the list, changes to make again after it.
//! Pure: no table, no store, no clock. Never: the effect of a change.
//! Changed here: the rules of versions. `node/revocations.rs` reads the pages and makes the changes.

use fanwire_broker::{Epoch, Position, RevocationChange};
use hashbrown::HashMap;

/// The state of a node's copy of the list. At first the list has to be read.
#[derive(Debug, Default)]
pub struct RevocationSync {
    /// The position of the last change that this node made; `None` before the first reading.
    known: Option<Position>,
    reading: Option<Reading>,
    /// The last reading failed.
    has_failed: bool,
    /// Some page since the last reading that did not fail contained what the table did not.
    has_news: bool,
    /// The most advanced position of another node that was ahead at the last comparison.
    ahead: Option<Position>,
    /// The position of another node that the last reading was for.
    read_for: Option<Position>,
}

/// The list is being read, page by page.
#[derive(Debug, Default)]
struct Reading {
    /// The position of the first page.
    from: Option<Position>,
    /// The last change of each subject since the begin, with its offset: the pages may contain an earlier one.
    changes: HashMap<(u8, String, Option<String>), (u64, RevocationChange)>,
    /// The offset of the first of all changes since the begin, and the position of the last one.
    received: Option<(u64, Position)>,
    /// Changes may be missing: the list is read again.
    is_void: bool,
}

/// The step that follows a change that arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Received {
    /// Nothing: the table has it already, or the end of the reading returns it.
    Known,
    Next,
    /// Make it, and read the list, because changes before it are missing.
    Ahead,
}

/// The state after the last page.
#[derive(Debug, PartialEq, Eq)]
pub enum AfterPages {
    /// Make these changes, and ask again.
    Make(Vec<RevocationChange>),
    /// Make these changes. The table may differ from the list; the next reading is due.
    Failed(Vec<RevocationChange>),
    /// The table is that of the list.
    Done { has_lost_entries: bool, has_news: bool },
}

impl RevocationSync {
    /// Begins a reading. Returns false while one is running; that one fails, because changes may be missing.
    pub fn begin(&mut self) -> bool {
        match &mut self.reading {
            Some(reading) => {
                reading.is_void = true;
                false
            }
            None => {
                (self.reading, self.has_failed) = (Some(Reading::default()), false);
                true
            }
        }
    }

    /// A change arrived.
    pub fn receive(&mut self, position: Position, change: &RevocationChange) -> Received {
        if let Some(reading) = &mut self.reading {
            let (first, last) = reading.received.unwrap_or((position.offset, position));
            let is_next = follows(position, last) || reading.received.is_none();
            reading.is_void |= !is_next || reading.changes.len() >= CHANGES_MAX;
            reading.received = Some((first, position));
            if !reading.is_void {
                reading.changes.insert(subject(change), (position.offset, change.clone()));
            }
            return Received::Known;
        }
        match &mut self.known {
            None => Received::Next, // a reading is due
            Some(known) if follows(position, *known) => {
                *known = position;
                Received::Next
            }
            Some(known) if position.epoch == known.epoch && position.offset <= known.offset => {
                Received::Known
            }
            Some(_) => Received::Ahead,
        }
    }

    /// A page arrived, and `has_news` of it was new. Returns false when it is of another list than the page before it.
    pub fn page(&mut self, position: Position, has_news: bool) -> bool {
        self.has_news |= has_news;
        let Some(reading) = &mut self.reading else { return false };
        reading.from.get_or_insert(position).epoch == position.epoch
    }

    /// The reading failed; the next [`is_due`](Self::is_due) is true. Returns the changes that arrived in the meantime.
    pub fn fail(&mut self) -> Vec<RevocationChange> {
        self.has_failed = true;
        self.reading.take().map(|mut reading| reading.take_changes(0)).unwrap_or_default()
    }

    /// The last page has arrived. Call it again after changes that it returned.
    pub fn end(&mut self) -> AfterPages {
        let reading = self.reading.get_or_insert_default();
        let from = reading.from.unwrap_or_default();
        let (first, last) = reading.received.unwrap_or((0, from));
        let is_same_list = last.epoch == from.epoch || from.epoch == Epoch::NONE;
        if reading.is_void || !is_same_list || first > from.offset + 1 {
            return AfterPages::Failed(self.fail());
        }
        let changes = reading.take_changes(from.offset);
        if !changes.is_empty() {
            return AfterPages::Make(changes);
        }
        // Another list, or this one without its end: a promoted replica.
        let lacks_known = |known: Position| known.epoch != from.epoch || known.offset > from.offset;
        let has_lost_entries =
            self.known.is_some_and(|known| known.epoch != Epoch::NONE && lacks_known(known));
        let has_news = std::mem::take(&mut self.has_news);
        self.known = Some(if last.offset > from.offset { last } else { from });
        self.reading = None;
        AfterPages::Done { has_lost_entries, has_news }
    }

    /// Compares with the positions of the other nodes, once a second. Returns whether the list must be read: the last
    /// reading failed, or another node has been ahead since the last comparison, so that its change is not on the way.
    pub fn is_due(&mut self, others: impl Iterator<Item = Position>) -> bool {
        let Some(known) = self.known.filter(|_| self.reading.is_none() && !self.has_failed) else {
            return self.has_failed;
        };
        // One that has read an empty list shows that the list has lost its entries.
        let is_ahead = |other: &Position| other.epoch != known.epoch || other.offset > known.offset;
        let ahead = others.filter(is_ahead).max_by_key(|other| other.offset);
        let was_ahead = std::mem::replace(&mut self.ahead, ahead);
        let is_due = ahead.is_some() && ahead == was_ahead && ahead != self.read_for;
        if is_due {
            self.read_for = ahead;
        }
        is_due
    }

    /// The position up to which this node has the list.
    pub fn known(&self) -> Option<Position> {
        self.known
    }
}

impl Reading {
    /// Removes the changes, and returns those after an offset, in their order.
    fn take_changes(&mut self, offset: u64) -> Vec<RevocationChange> {
        let mut changes: Vec<_> = self.changes.drain().map(|(_, change)| change).collect();
        changes.retain(|(at, _)| *at > offset);
        changes.sort_by_key(|(at, _)| *at);
        changes.into_iter().map(|(_, change)| change).collect()
    }
}

/// Whether a position is the next one. The first change of an empty list gives it an epoch.
fn follows(position: Position, known: Position) -> bool {
    let is_same_list = position.epoch == known.epoch || known.epoch == Epoch::NONE;
    is_same_list && position.offset == known.offset + 1
}

/// The subject of a change: a block and its end have the same.
fn subject(change: &RevocationChange) -> (u8, String, Option<String>) {
    use fanwire_broker::RevocationKind::{BlockUser, InvalidateTokens, RevokeToken, UnblockUser};
    let table = match change.kind {
        BlockUser | UnblockUser => 0,
        RevokeToken => 1,
        InvalidateTokens => 2,
    };
    (table, change.subject.clone(), change.channel.clone())
}

/// Changes that a reading keeps; beyond that the list is read again.
const CHANGES_MAX: usize = 65_536;

#[cfg(test)]
mod tests;
