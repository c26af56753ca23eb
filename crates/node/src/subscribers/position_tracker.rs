//! What the positioned subscribers of one channel have seen (protocol §10), kept once for all of them on a shard.
//! In: joins with a position, publications with theirs, the stream's top now and then → out: which subscribers get it, which missed some.
//! Uses: positions only. Never: sessions, lists, brokers.
//! Change here: when a subscriber has lost its place. What becomes of it lives in `hub/notices.rs` and `hub/checks.rs`.

use std::sync::Arc;

use fanwire_broker::{Epoch, Position};
use hashbrown::HashMap;

use crate::broadcast::Broadcast;
use crate::clock::Moment;

/// What a look at the top of a stream found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PositionCheck {
    pub top: Position,
    /// It follows all publications up to the top; else some may be on their way.
    pub is_in_order: bool,
    /// Before the look the stream reached further in the same epoch.
    pub has_lost_end: bool,
}

/// One position for everybody, because everybody is told the same in the same order. Only who has just subscribed knows
/// more than the others for a moment: publications that its subscribe reply covered are still in the shard's inbox.
///
/// It costs a positioned subscriber nothing, and a delivery one comparison.
#[derive(Debug)]
pub(crate) struct PositionTracker {
    /// Of all subscribers that are not `ahead`.
    position: Position,
    /// Connections that know more, until the others have caught up. Usually empty; after many came at once it is asked once
    /// for every subscriber and publication.
    ahead: HashMap<u32, Position>,
    /// Positioned subscribers.
    count: u32,
    /// When the position was last known to be right.
    pub(crate) sure_at: Moment,
    pub(crate) possible_gap: Option<PossibleGap>,
    /// Publications may be missing, however short ago the position was right.
    pub(crate) is_doubted: bool,
}

/// A top that some lacked when they were told of it out of order: it may have been on its way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PossibleGap {
    pub(crate) top: Position,
    /// When it has had its time: who lacks it then has lost its place.
    pub(crate) until: Moment,
}

/// What a publication is to a subscriber.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PositionStep {
    /// The one after the last: to be delivered.
    Next,
    /// Seen already.
    Known,
    /// Something before it never came, or the stream is another one.
    Lost,
}

impl PositionStep {
    /// The step from a position to a publication (the table of protocol §10).
    fn from_to(from: Position, to: Position) -> Self {
        if from.epoch == Epoch::NONE {
            return Self::Next; // whoever knew of no stream adopts the first one
        }
        if from.epoch != to.epoch || to.offset > from.offset + 1 {
            return Self::Lost;
        }
        if to.offset == from.offset + 1 { Self::Next } else { Self::Known }
    }
}

impl PositionTracker {
    /// Nobody watches yet.
    pub(crate) fn new(now: Moment) -> Self {
        let position = Position::default();
        Self {
            position,
            ahead: HashMap::new(),
            count: 0,
            sure_at: now,
            possible_gap: None,
            is_doubted: false,
        }
    }

    /// One more positioned subscriber, who knows everything up to `position`.
    pub(crate) fn join(&mut self, connection: u32, position: Position) {
        self.count += 1;
        if self.count == 1 {
            self.position = position;
        } else if position != self.position {
            self.ahead.insert(connection, position);
        }
    }

    /// One less. Returns whether nobody is left.
    pub(crate) fn leave(&mut self, connection: u32) -> bool {
        self.count -= 1;
        self.ahead.remove(&connection);
        self.count == 0
    }

    /// Takes a publication that is the next one for everybody, or has no place in the stream. False when it is not, and
    /// subscribers have to be looked at one by one; then [`settle`](Self::settle) ends that.
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

    /// What a publication is to one positioned subscriber.
    pub(crate) fn step(&self, connection: u32, publication: Position) -> PositionStep {
        PositionStep::from_to(self.position_of(connection), publication)
    }

    /// Every subscriber was looked at; those who lost their place are about to be told so.
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

    fn position_of(&self, connection: u32) -> Position {
        *self.ahead.get(&connection).unwrap_or(&self.position)
    }

    /// Gives the memory of those who were ahead back.
    fn forget_crowd(&mut self) {
        if self.ahead.is_empty() {
            self.ahead = HashMap::new();
        }
    }

    /// How far somebody has seen the stream of the position.
    pub(crate) fn furthest(&self) -> Position {
        let ahead = self.ahead.values().filter(|ahead| ahead.epoch == self.position.epoch);
        let offset = ahead.map(|ahead| ahead.offset).max().unwrap_or(0);
        Position { offset: offset.max(self.position.offset), ..self.position }
    }

    /// Whether a subscriber lacks something of the stream up to `top`. One that knows of no stream yet lacks all.
    pub(crate) fn lacks(&self, connection: u32, top: Position) -> bool {
        let position = self.position_of(connection);
        match position.epoch == top.epoch {
            true => position.offset < top.offset,
            false => position.epoch == Epoch::NONE,
        }
    }

    /// Whether a subscriber is in another epoch. One that knows of no stream yet is in none.
    pub(crate) fn is_elsewhere(&self, connection: u32, top: Position) -> bool {
        let position = self.position_of(connection);
        position.epoch != Epoch::NONE && position.epoch != top.epoch
    }

    /// Whether a subscriber knows what the stream does not, or did not when it was read.
    pub(crate) fn is_beyond(&self, connection: u32, top: Position) -> bool {
        let position = self.position_of(connection);
        position.epoch == top.epoch && position.offset > top.offset
    }

    /// A look at the stream says what its top is; subscribers that lack something before it, or know what the stream has lost,
    /// are about to be told so. False when somebody knows more than that top.
    pub(crate) fn confirm(&mut self, look: PositionCheck, now: Moment) -> bool {
        let top = look.top;
        let is_behind = self.position.epoch != top.epoch || self.position.offset < top.offset;
        if is_behind || look.has_lost_end {
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

/// What was held for a subscriber while it waited, sorted by what its stretch of the stream did not cover.
#[derive(Debug, Default)]
pub(crate) struct CatchUp {
    /// To be delivered behind its reply, in this order.
    pub(crate) broadcasts: Vec<Arc<Broadcast>>,
    /// Where it is afterwards.
    pub(crate) position: Position,
    /// Something in between never came.
    pub(crate) has_lost: bool,
}

impl CatchUp {
    /// For a positioned subscriber that knows everything up to `position`.
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

    /// For a subscriber without a position.
    pub(crate) fn all(broadcasts: Vec<Arc<Broadcast>>) -> Self {
        Self { broadcasts, ..Self::default() }
    }
}

#[cfg(test)]
mod tests;
