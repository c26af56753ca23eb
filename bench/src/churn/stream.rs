//! The checker: what one subscriber has of one channel, against what was published there.
//! In: positions and publications as a client got them, in order → out: counts of everything that was wrong.
//! Pure, and uses none of Fanwire's crates: a checker must not share the code it checks.
//! Changed here: what counts as a fault; how clients come and go lives in `client`.

use std::collections::BTreeSet;
use std::fmt;

/// One channel as one client sees it over all of its connections. Publication number `n` of a channel has offset `n`.
#[derive(Default, Debug)]
pub struct Stream {
    epoch: Option<String>,
    last: u64,
    /// Offsets that were passed over; one that comes later was reordered, one that never comes was lost.
    missing: BTreeSet<u64>,
}

/// The statements of a subscribe reply about the stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    pub offset: u64,
    pub epoch: String,
    pub recovered: bool,
}

/// Everything that must not happen, counted.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub struct Faults {
    pub lost: u64,
    pub duplicated: u64,
    pub reordered: u64,
    /// Publications whose data is not what was published at their offset.
    pub altered: u64,
    /// Returns that were told that recovery was impossible.
    pub unrecovered: u64,
    /// Replies that name another position than the one that was asked for.
    pub misplaced: u64,
    /// Connections and subscriptions that the server ended.
    pub ended: u64,
}

impl Stream {
    /// Epoch and offset to recover from; `None` before the first subscribe reply.
    pub fn position(&self) -> Option<(&str, u64)> {
        self.epoch.as_deref().map(|epoch| (epoch, self.last))
    }

    /// Whether everything up to `offset` has arrived, or was passed over.
    pub fn has_reached(&self, offset: u64) -> bool {
        self.epoch.is_some() && self.last >= offset
    }

    /// A subscribe reply; its publications follow by [`Stream::publication`].
    pub fn subscribed(&mut self, answer: Answer, faults: &mut Faults) {
        match &self.epoch {
            None => self.last = answer.offset,
            Some(_) if !answer.recovered => {
                faults.unrecovered += 1;
                self.pass_over(answer.offset + 1);
                self.last = answer.offset;
            }
            Some(epoch) => {
                let is_same = *epoch == answer.epoch && self.last == answer.offset;
                faults.misplaced += u64::from(!is_same);
            }
        }
        self.epoch = Some(answer.epoch);
    }

    /// A publication with its offset and the number in its data.
    pub fn publication(&mut self, offset: u64, number: u64, faults: &mut Faults) {
        faults.altered += u64::from(offset != number);
        if offset > self.last {
            self.pass_over(offset);
            self.last = offset;
        } else if self.missing.remove(&offset) {
            faults.reordered += 1;
        } else {
            faults.duplicated += 1;
        }
    }

    /// The end: `top` publications were made, and whatever did not arrive is lost.
    pub fn finish(&mut self, top: u64, faults: &mut Faults) {
        self.pass_over(top + 1);
        faults.lost += self.missing.len() as u64;
        self.missing.clear();
    }

    fn pass_over(&mut self, next: u64) {
        self.missing.extend(self.last + 1..next);
    }
}

impl Faults {
    pub fn is_none(self) -> bool {
        self == Self::default()
    }

    fn rows(self) -> [(&'static str, u64); 7] {
        [
            ("lost", self.lost),
            ("duplicated", self.duplicated),
            ("reordered", self.reordered),
            ("altered", self.altered),
            ("unrecovered", self.unrecovered),
            ("misplaced", self.misplaced),
            ("ended by the server", self.ended),
        ]
    }
}

impl fmt::Display for Faults {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let rows = self.rows().map(|(what, count)| format!("{count} {what}"));
        f.write_str(&rows.join(", "))
    }
}

#[cfg(test)]
mod tests;
