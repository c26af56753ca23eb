//! Which subscribers of a channel have agreed to deltas, and who holds what the next one would be made against (protocol §11).
//! In: agreements, broadcasts as they are handed out or kept back → out: the shape that each subscriber gets.
//! Uses: broadcasts. Never: sessions, encoding; who is skipped or excluded is decided in `hub/notices.rs`.
//! Change here: when a subscriber may get a patch. How one is made lives in `delta.rs`.

use bytes::Bytes;
use fanwire_protocol::Encoding;

use crate::broadcast::{Broadcast, DeltaMode};

/// One byte for each subscriber of a channel on a shard, as long as one of them has agreed.
#[derive(Debug)]
pub(crate) struct Deltas {
    /// In the order of the channel's list.
    marks: Vec<DeltaState>,
    /// Who have agreed.
    count: u32,
    /// Those of them that speak JSON.
    json: u32,
    /// Those of them that have no position and get deltas all the same.
    unpositioned: u32,
    /// What was handed out last, as long as there are such.
    latest: Option<Bytes>,
}

/// What one subscriber has agreed to, and whether the client holds the base of the next delta.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DeltaState {
    /// No deltas.
    Plain,
    /// It would understand deltas and never gets one: nothing says what it has missed.
    Full,
    /// It has a position. It does not hold the newest publication that it knows of the stream.
    AwaitsStream,
    /// It does: the publication at its position is the last one that it was sent.
    HasStream,
    /// It has no position, and was not sent what the shard handed out last.
    AwaitsLatest,
    /// It was.
    HasLatest,
}

impl Deltas {
    /// Nobody of `count` subscribers has agreed.
    pub(crate) fn new(count: usize) -> Self {
        let marks = vec![DeltaState::Plain; count];
        Self { marks, count: 0, json: 0, unpositioned: 0, latest: None }
    }

    /// How many of those who agreed speak JSON.
    pub(crate) fn json(&self) -> u32 {
        self.json
    }

    /// A further subscriber, who has not agreed.
    pub(crate) fn push(&mut self) {
        self.marks.push(DeltaState::Plain);
    }

    /// The subscriber at `place` agrees.
    pub(crate) fn agree(&mut self, place: u32, encoding: Encoding, mark: DeltaState) {
        let old = std::mem::replace(&mut self.marks[place as usize], mark);
        debug_assert!(old == DeltaState::Plain && mark != DeltaState::Plain, "agreed once");
        self.count += 1;
        self.json += u32::from(encoding == Encoding::Json);
        self.unpositioned += u32::from(mark.is_unpositioned());
    }

    /// Removes the subscriber at `place`, where the last one comes to stand. Returns whether nobody is left who agreed.
    pub(crate) fn remove(&mut self, place: u32, encoding: Encoding) -> bool {
        let mark = self.marks.swap_remove(place as usize);
        let has_agreed = mark != DeltaState::Plain;
        self.unpositioned -= u32::from(mark.is_unpositioned());
        self.count -= u32::from(has_agreed);
        self.json -= u32::from(has_agreed && encoding == Encoding::Json);
        if self.marks.capacity() > SHRINK_FROM && self.marks.len() < self.marks.capacity() / 4 {
            self.marks.shrink_to_fit();
        }
        self.count == 0
    }

    /// The shape in which the subscriber at `place` of the list is to be sent the broadcast; it is sent.
    ///
    /// A base is what the client was sent last, so whatever it is sent becomes the next one: a publication outside of the
    /// stream takes the base away from those who follow the stream.
    pub(crate) fn send(&mut self, place: usize, broadcast: &Broadcast) -> DeltaMode {
        let mark = self.marks[place];
        let is_base_held = match mark {
            DeltaState::Plain => return DeltaMode::Plain,
            DeltaState::Full | DeltaState::AwaitsStream | DeltaState::AwaitsLatest => false,
            DeltaState::HasStream => broadcast.follows_stream(),
            DeltaState::HasLatest => {
                self.latest.as_ref().is_some_and(|latest| broadcast.follows(latest))
            }
        };
        self.marks[place] = mark.sent(broadcast.position().offset > 0);
        if is_base_held && broadcast.patch().is_some() { DeltaMode::Patch } else { DeltaMode::Full }
    }

    /// As [`send`](Self::send), of a broadcast that the shard has handed to others already: for those without a position it
    /// is not behind what they hold, but perhaps the latest itself.
    pub(crate) fn catch_up(&mut self, place: usize, broadcast: &Broadcast) -> DeltaMode {
        if !self.marks[place].is_unpositioned() {
            return self.send(place, broadcast);
        }
        let is_latest = self.latest.as_ref() == Some(&broadcast.publication().data);
        self.marks[place] =
            if is_latest { DeltaState::HasLatest } else { DeltaState::AwaitsLatest };
        DeltaMode::Full
    }

    /// The subscriber at `place` of the list is not sent the broadcast, and others are.
    pub(crate) fn skip(&mut self, place: usize) {
        self.marks[place] = self.marks[place].skipped();
    }

    /// Everybody was looked at. Without a copy of the payload.
    pub(crate) fn settle(&mut self, broadcast: &Broadcast) {
        self.latest = (self.unpositioned > 0).then(|| broadcast.publication().data.clone());
    }
}

impl DeltaState {
    /// After a publication was sent, which has a place in the stream or not.
    fn sent(self, is_in_stream: bool) -> Self {
        match self {
            Self::AwaitsStream | Self::HasStream if is_in_stream => Self::HasStream,
            Self::AwaitsStream | Self::HasStream => Self::AwaitsStream,
            Self::AwaitsLatest | Self::HasLatest => Self::HasLatest,
            Self::Plain | Self::Full => self,
        }
    }

    /// After a publication was sent to others.
    fn skipped(self) -> Self {
        match self {
            Self::AwaitsStream | Self::HasStream => Self::AwaitsStream,
            Self::AwaitsLatest | Self::HasLatest => Self::AwaitsLatest,
            Self::Plain | Self::Full => self,
        }
    }

    fn is_unpositioned(self) -> bool {
        matches!(self, Self::AwaitsLatest | Self::HasLatest)
    }
}

/// Lists below this length are not worth shrinking.
const SHRINK_FROM: usize = 512;

#[cfg(test)]
mod tests;
