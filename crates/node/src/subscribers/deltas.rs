//! Subscribers of a channel with deltas, and which of them have the base of the next delta (protocol §11).
//! In: negotiated deltas, broadcasts that are sent or skipped → out: the delta mode for each subscriber.
//! Uses: broadcasts. Never: sessions, encoding; `hub/notices.rs` decides which subscribers are skipped or excluded.
//! Changed here: when a subscriber may get a patch. `delta.rs` makes it.

use bytes::Bytes;
use fanwire_protocol::Encoding;

use crate::broadcast::{Broadcast, DeltaMode};
use crate::index::SubscriberIndex;

/// One byte for each subscriber of a channel on a shard, as long as one of them has deltas.
#[derive(Debug)]
pub(crate) struct Deltas {
    /// States in the order of the channel's list.
    marks: Vec<DeltaState>,
    /// Subscribers with deltas.
    count: u32,
    /// Subscribers with deltas and JSON.
    json: u32,
    /// Subscribers with deltas, but without a position.
    unpositioned: u32,
    /// The last publication, as long as there are subscribers without a position.
    latest: Option<Bytes>,
}

/// Delta state of one subscriber: whether it has deltas, and whether the client has the base of the next one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DeltaState {
    /// No deltas.
    Plain,
    /// Deltas, but without position and latest publication: always gets the full data.
    Full,
    /// Positioned; does not have the newest publication of its stream.
    AwaitsStream,
    /// Positioned; the last publication sent to it is the one at its position.
    HasStream,
    /// Without position; was not sent the last publication of the shard.
    AwaitsLatest,
    /// Without position; was sent the last publication of the shard.
    HasLatest,
}

impl Deltas {
    /// No subscriber of `count` has deltas.
    pub(crate) fn new(count: usize) -> Self {
        let marks = vec![DeltaState::Plain; count];
        Self { marks, count: 0, json: 0, unpositioned: 0, latest: None }
    }

    /// Subscribers with deltas and JSON.
    pub(crate) fn json(&self) -> u32 {
        self.json
    }

    /// Adds a subscriber without deltas.
    pub(crate) fn push(&mut self) {
        self.marks.push(DeltaState::Plain);
    }

    /// The state of a subscriber.
    pub(crate) fn state(&self, subscriber: SubscriberIndex) -> DeltaState {
        self.marks[subscriber.0 as usize]
    }

    /// Enables deltas for a subscriber.
    pub(crate) fn agree(
        &mut self,
        subscriber: SubscriberIndex,
        encoding: Encoding,
        mark: DeltaState,
    ) {
        let old = std::mem::replace(self.mark_mut(subscriber), mark);
        debug_assert!(old == DeltaState::Plain && mark != DeltaState::Plain, "agreed once");
        self.count += 1;
        self.json += u32::from(encoding == Encoding::Json);
        self.unpositioned += u32::from(mark.is_unpositioned());
    }

    /// Removes a subscriber; the last one moves to its index. Returns whether no subscriber with deltas is left.
    pub(crate) fn remove(&mut self, subscriber: SubscriberIndex, encoding: Encoding) -> bool {
        let mark = self.marks.swap_remove(subscriber.0 as usize);
        let has_agreed = mark != DeltaState::Plain;
        self.unpositioned -= u32::from(mark.is_unpositioned());
        self.count -= u32::from(has_agreed);
        self.json -= u32::from(has_agreed && encoding == Encoding::Json);
        if self.marks.capacity() > SHRINK_FROM && self.marks.len() < self.marks.capacity() / 4 {
            self.marks.shrink_to_fit();
        }
        self.count == 0
    }

    /// Records that the broadcast is sent to a subscriber, and returns its delta mode.
    ///
    /// The base is the last publication that the client received, so a publication outside of the stream
    /// invalidates the base of subscribers that follow the stream. The base of a change of a map is the value of its
    /// key before, which a subscriber with a filter may not have.
    pub(crate) fn send(
        &mut self,
        subscriber: SubscriberIndex,
        broadcast: &Broadcast,
        has_filter: bool,
    ) -> DeltaMode {
        let mark = *self.mark_mut(subscriber);
        let is_base_held = match mark {
            DeltaState::Plain => return DeltaMode::Plain,
            DeltaState::Full | DeltaState::AwaitsStream | DeltaState::AwaitsLatest => false,
            DeltaState::HasStream => broadcast.follows_stream(),
            DeltaState::HasLatest => {
                self.latest.as_ref().is_some_and(|latest| broadcast.follows(latest))
            }
        };
        *self.mark_mut(subscriber) = mark.sent(broadcast.position().offset > 0);
        let is_base_held = is_base_held && !(has_filter && broadcast.is_of_map());
        if is_base_held && broadcast.patch().is_some() { DeltaMode::Patch } else { DeltaMode::Full }
    }

    /// Records a broadcast as [`send`](Self::send) does, for a buffered broadcast that the shard has sent to others
    /// already: for subscribers without a position it may be the latest publication.
    pub(crate) fn catch_up(
        &mut self,
        subscriber: SubscriberIndex,
        broadcast: &Broadcast,
        has_filter: bool,
    ) -> DeltaMode {
        if !self.mark_mut(subscriber).is_unpositioned() {
            return self.send(subscriber, broadcast, has_filter);
        }
        let is_latest = self.latest.as_ref() == Some(&broadcast.publication().data);
        *self.mark_mut(subscriber) =
            if is_latest { DeltaState::HasLatest } else { DeltaState::AwaitsLatest };
        DeltaMode::Full
    }

    /// The broadcast is not sent to a subscriber.
    pub(crate) fn skip(&mut self, subscriber: SubscriberIndex) {
        let mark = self.mark_mut(subscriber);
        *mark = mark.skipped();
    }

    fn mark_mut(&mut self, subscriber: SubscriberIndex) -> &mut DeltaState {
        &mut self.marks[subscriber.0 as usize]
    }

    /// All subscribers were visited: stores the latest publication, without a copy of the payload.
    pub(crate) fn settle(&mut self, broadcast: &Broadcast) {
        self.latest = (self.unpositioned > 0).then(|| broadcast.publication().data.clone());
    }
}

impl DeltaState {
    /// The state after a publication was sent, with or without a position in the stream.
    fn sent(self, is_in_stream: bool) -> Self {
        match self {
            Self::AwaitsStream | Self::HasStream if is_in_stream => Self::HasStream,
            Self::AwaitsStream | Self::HasStream => Self::AwaitsStream,
            Self::AwaitsLatest | Self::HasLatest => Self::HasLatest,
            Self::Plain | Self::Full => self,
        }
    }

    /// The state after a publication was sent to others.
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
