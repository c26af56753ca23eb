//! Positions of the positioned subscribers of one channel (protocol §10), stored once for all of them on a shard.
//! In: joins with a position, publications with theirs, the stream's top at times → out: which subscribers get it, which missed some.
//! Uses: positions only. Never: sessions, lists, brokers.
//! Changed here: when a subscriber has lost its position. `hub/notices.rs` and `hub/checks.rs` end its subscription.

use std::sync::Arc;

use fanwire_broker::{Epoch, Position};
use hashbrown::HashMap;

use crate::broadcast::Broadcast;
use crate::clock::Moment;

/// The result of reading the top of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PositionCheck {
    pub top: Position,
    /// The top was read behind all publications up to it; else some may be in flight.
    pub is_in_order: bool,
    /// The stream was longer before, in the same epoch.
    pub has_lost_end: bool,
}

/// One position for all subscribers, because all receive the same publications in the same order. Only a new
/// subscriber is ahead of the others for a moment: publications that its subscribe reply covered are still in the
/// shard's inbox.
///
/// It costs a positioned subscriber nothing, and a delivery one comparison.
#[derive(Debug)]
pub(crate) struct PositionTracker {
    /// Position of all subscribers that are not in `ahead`.
    position: Position,
    /// Connections that are ahead, until the others have caught up. Usually empty; after many simultaneous subscribes
    /// it is read once for every subscriber and publication.
    ahead: HashMap<u32, Position>,
    /// Positioned subscribers.
    count: u32,
    /// Time at which the position was last confirmed.
    pub(crate) sure_at: Moment,
    pub(crate) possible_gap: Option<PossibleGap>,
    /// Publications may be missing, however recent `sure_at` is.
    pub(crate) may_have_gap: bool,
}

/// A stream top seen before its publications; until `until` they may still be in flight.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PossibleGap {
    pub(crate) top: Position,
    /// A subscriber that still lacks them then has lost its position.
    pub(crate) until: Moment,
}

/// Relation of a publication to a subscriber's position.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PositionStep {
    /// The one after the last: to be delivered.
    Next,
    /// Received already.
    Known,
    /// An earlier one was missed, or the epoch differs.
    Lost,
}

impl PositionStep {
    /// Returns the step from a position to a publication (the table of protocol §10).
    fn from_to(from: Position, to: Position) -> Self {
        if from.epoch == Epoch::NONE {
            return Self::Next; // a subscriber without an epoch adopts the first one
        }
        if from.epoch != to.epoch || to.offset > from.offset + 1 {
            return Self::Lost;
        }
        if to.offset == from.offset + 1 { Self::Next } else { Self::Known }
    }
}

impl PositionTracker {
    /// Without subscribers.
    pub(crate) fn new(now: Moment) -> Self {
        let position = Position::default();
        Self {
            position,
            ahead: HashMap::new(),
            count: 0,
            sure_at: now,
            possible_gap: None,
            may_have_gap: false,
        }
    }

    /// Adds a positioned subscriber at `position`.
    pub(crate) fn join(&mut self, connection: u32, position: Position) {
        self.count += 1;
        if self.count == 1 {
            self.position = position;
        } else if position != self.position {
            self.ahead.insert(connection, position);
        }
    }

    /// Removes one. Returns whether none is left.
    pub(crate) fn leave(&mut self, connection: u32) -> bool {
        self.count -= 1;
        self.ahead.remove(&connection);
        self.count == 0
    }

    /// Advances by a publication that is the next one for all, or has no position in the stream. False when it is
    /// not: then subscribers are visited one by one, and [`settle`](Self::settle) ends that.
    pub(crate) fn take_for_all(&mut self, publication: Position, now: Moment) -> bool {
        if publication.offset == 0 {
            return true;
        }
        if !self.ahead.is_empty()
            || PositionStep::from_to(self.position, publication) != PositionStep::Next
        {
            return false;
        }
        self.position = publication;
        self.sure_at = now;
        true
    }

    /// The relation of a publication to one positioned subscriber.
    pub(crate) fn step(&self, connection: u32, publication: Position) -> PositionStep {
        PositionStep::from_to(self.position_of(connection), publication)
    }

    /// Every subscriber was visited; those that lost their position are about to be ended.
    pub(crate) fn settle(&mut self, publication: Position, now: Moment) {
        let reached = |from| match PositionStep::from_to(from, publication) {
            PositionStep::Known => from,
            PositionStep::Next | PositionStep::Lost => publication,
        };
        if PositionStep::from_to(self.position, publication) != PositionStep::Known {
            self.sure_at = now; // else the stream may have lost its end, and comes here for the second time
        }
        self.position = reached(self.position);
        self.ahead.retain(|_, position| {
            *position = reached(*position);
            *position != self.position
        });
        self.forget_crowd();
    }

    /// Positioned subscribers.
    #[cfg(test)]
    pub(crate) fn count(&self) -> usize {
        self.count as usize
    }

    /// The position of a positioned subscriber.
    pub(crate) fn position_of(&self, connection: u32) -> Position {
        *self.ahead.get(&connection).unwrap_or(&self.position)
    }

    /// Frees the memory of `ahead`.
    fn forget_crowd(&mut self) {
        if self.ahead.is_empty() {
            self.ahead = HashMap::new();
        }
    }

    /// The furthest position of a subscriber in this epoch.
    pub(crate) fn furthest(&self) -> Position {
        let ahead = self.ahead.values().filter(|ahead| ahead.epoch == self.position.epoch);
        let offset = ahead.map(|ahead| ahead.offset).max().unwrap_or(0);
        Position { offset: offset.max(self.position.offset), ..self.position }
    }

    /// Whether a subscriber lacks a publication up to `top`. One without an epoch lacks all.
    pub(crate) fn lacks(&self, connection: u32, top: Position) -> bool {
        let position = self.position_of(connection);
        if position.epoch == top.epoch {
            position.offset < top.offset
        } else {
            position.epoch == Epoch::NONE
        }
    }

    /// Whether a subscriber has another epoch. One without an epoch has not.
    pub(crate) fn is_elsewhere(&self, connection: u32, top: Position) -> bool {
        let position = self.position_of(connection);
        position.epoch != Epoch::NONE && position.epoch != top.epoch
    }

    /// Whether a subscriber is ahead of the stream, now or when it was read.
    pub(crate) fn is_beyond(&self, connection: u32, top: Position) -> bool {
        let position = self.position_of(connection);
        position.epoch == top.epoch && position.offset > top.offset
    }

    /// Confirms the position with the top of the stream; subscribers that lack a publication before it, or are ahead
    /// of a stream that lost its end, are about to be ended. False when a subscriber is ahead of that top.
    pub(crate) fn confirm(&mut self, check: PositionCheck, now: Moment) -> bool {
        let top = check.top;
        let is_behind = self.position.epoch != top.epoch || self.position.offset < top.offset;
        if is_behind || check.has_lost_end {
            self.position = top;
            self.ahead.retain(|_, position| *position != top);
            self.forget_crowd();
        }
        let is_there = self.position == top;
        if is_there {
            self.sure_at = now;
        }
        is_there
    }
}

/// Publications buffered for a subscriber while it waited, without those that its stream slice contains.
#[derive(Debug, Default)]
pub(crate) struct CatchUp {
    /// Publications to deliver after the reply, in this order.
    pub(crate) broadcasts: Vec<Arc<Broadcast>>,
    /// Its position afterwards.
    pub(crate) position: Position,
    /// A publication in between is missing.
    pub(crate) has_lost: bool,
}

impl CatchUp {
    /// Selects the publications for a positioned subscriber at `position`.
    pub(crate) fn from(mut position: Position, held: Vec<Arc<Broadcast>>) -> Self {
        let mut broadcasts = Vec::new();
        for broadcast in held {
            let to = broadcast.position();
            if to.offset > 0 {
                match PositionStep::from_to(position, to) {
                    PositionStep::Known => continue,
                    PositionStep::Lost => return Self { broadcasts, position, has_lost: true },
                    PositionStep::Next => position = to,
                }
            }
            broadcasts.push(broadcast);
        }
        Self { broadcasts, position, has_lost: false }
    }

    /// Takes all publications, for a subscriber without a position.
    pub(crate) fn all(broadcasts: Vec<Arc<Broadcast>>) -> Self {
        Self { broadcasts, ..Self::default() }
    }
}

#[cfg(test)]
mod tests;
