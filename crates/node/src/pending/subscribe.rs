//! A subscribe that waits: the channels that a session is entering, and the answers that have come so far.
//! In: channels with what is known of them, answers of broker and presence → out: whether all are there, and what they say.
//! Uses: values only. Never: broker or presence themselves; who asked them is in `command/subscribe/begin.rs`.
//! Change here: the states of a pending subscribe. What follows the last answer is in `command/subscribe/commit.rs`.

use std::sync::Arc;

use bytes::Bytes;
use fanwire_broker::{Position, StreamSlice};
use fanwire_protocol::{ErrorCode, SubscribeResult};

use super::{BufferedMessages, Part};
use crate::control::ServerSubscribe;
use crate::encode_job::Encoded;
use crate::options::RecoveryMode;
use crate::recovery::ClaimedPosition;
use crate::session::{Lifetime, Terms};
use crate::subscribers::DeltaState;

/// A session on its way into channels: it is known to the registry, so broker and router serve it already, and it has asked
/// for everything it has to know. It hears nothing before the last answer is there.
#[derive(Debug)]
pub(crate) struct PendingSubscribe {
    pub(crate) channels: Vec<PendingChannel>,
    /// Which command it is.
    pub(crate) then: SubscribeOrigin,
    pub(crate) encoder: ReplyEncoder,
}

/// Who encodes what a session is told of the channels it enters.
#[derive(Debug)]
pub(crate) enum ReplyEncoder {
    /// Its shard, in the turn in which it enters.
    Here,
    /// Somebody else, because it is large: no channel is entered before that has come.
    Elsewhere,
    Encoded(Result<Encoded, ErrorCode>),
}

/// One channel on the way in.
#[derive(Debug)]
pub(crate) struct PendingChannel {
    pub(crate) channel: Arc<str>,
    pub(crate) server_side: bool,
    pub(crate) terms: Option<Box<Terms>>,
    pub(crate) tracking: Tracking,
    pub(crate) delta: Option<DeltaState>,
    pub(crate) visibility: Visibility,
    pub(crate) mode: RecoveryMode,
    pub(crate) claimed: Option<OwnedPosition>,
    /// What the result says of it, which is more than `claim` where nothing can be recovered.
    pub(crate) was_recovering: bool,
    /// Of the application, for the result.
    pub(crate) data: Bytes,
    pub(crate) stretch: Option<Result<StreamSlice, ErrorCode>>,
    pub(crate) appeared: Option<Result<(), ErrorCode>>,
    /// Both were there, and what they say is encoded elsewhere.
    pub(crate) large: Option<Large>,
    /// From where on the session is owed what the channel's channel_buffer holds.
    pub(crate) held_from: u64,
    /// What was published while the session waited, and whether that is all.
    pub(crate) buffered: BufferedMessages,
}

/// What an entry that waits for its large reply has to know when it is there.
#[derive(Debug)]
pub(crate) struct Large {
    pub(crate) top: Position,
    /// What became of its recovery, if it wants one.
    pub(crate) recovered: Option<bool>,
    /// Publications that it recovers.
    pub(crate) missed: usize,
}

/// A claim of a session that may have to wait.
#[derive(Debug)]
pub(crate) struct OwnedPosition {
    pub(crate) offset: u64,
    pub(crate) epoch: String,
    pub(crate) only_recovered: bool,
}

/// How a subscription follows the stream of its channel.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Tracking {
    /// Gaps are noticed.
    pub(crate) positioned: bool,
    /// Gaps can be filled; implies `positioned`.
    pub(crate) recoverable: bool,
}

/// How a subscription is seen by others, and sees them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Visibility {
    /// It is in the presence of the channel.
    pub(crate) present: bool,
    /// Its join and its leave are announced.
    pub(crate) announced: bool,
    /// It hears of joins and leaves.
    pub(crate) wants_join_leave: bool,
}

/// Which command enters channels, with what it needs to finish.
#[derive(Clone, Debug)]
pub(crate) enum SubscribeOrigin {
    Subscribe(Lifetime),
    Connect {
        lifetime: Lifetime,
        grants_hash: u64,
    },
    /// No command: an order of the server.
    Order(Lifetime, Arc<ServerSubscribe>),
}

impl OwnedPosition {
    pub(crate) fn borrowed(&self) -> ClaimedPosition<'_> {
        ClaimedPosition { offset: self.offset, epoch: &self.epoch }
    }
}

impl PendingSubscribe {
    pub(crate) fn new(channels: Vec<PendingChannel>, then: SubscribeOrigin) -> Self {
        Self { channels, then, encoder: ReplyEncoder::Here }
    }

    /// One that waits for its reply.
    pub(crate) fn without_results(channels: Vec<PendingChannel>, then: SubscribeOrigin) -> Self {
        Self { channels, then, encoder: ReplyEncoder::Elsewhere }
    }

    /// Its entries, which command it is, and the reply, if that was encoded elsewhere.
    pub(crate) fn into_parts(
        self,
    ) -> (Vec<PendingChannel>, SubscribeOrigin, Option<Result<Encoded, ErrorCode>>) {
        let encoded = match self.encoder {
            ReplyEncoder::Encoded(encoded) => Some(encoded),
            ReplyEncoder::Here | ReplyEncoder::Elsewhere => None,
        };
        (self.channels, self.then, encoded)
    }

    /// Whether every answer has come.
    pub(crate) fn is_complete(&self) -> bool {
        match self.encoder {
            ReplyEncoder::Here => self.channels.iter().all(PendingChannel::is_complete),
            ReplyEncoder::Elsewhere => false,
            ReplyEncoder::Encoded(_) => true,
        }
    }

    /// Whether it is the first one of its session.
    pub(crate) fn is_of_connect(&self) -> bool {
        matches!(self.then, SubscribeOrigin::Connect { .. })
    }

    /// One more answer.
    pub(crate) fn arrive(&mut self, part: Part) {
        match part {
            Part::StreamSlice(number, result) => self.channels[number].stretch = Some(result),
            Part::Presence(number, result) => self.channels[number].appeared = Some(result),
            Part::Encoded(result) => self.encoder = ReplyEncoder::Encoded(result),
            Part::Outcome(_) | Part::Key | Part::Turn => {
                unreachable!("a pending subscribe waits for none of these")
            }
        }
    }
}

impl PendingChannel {
    fn is_complete(&self) -> bool {
        self.stretch.is_some() && self.appeared.is_some()
    }

    pub(crate) fn gets_deltas(&self) -> bool {
        self.delta.is_some()
    }

    /// What became of its recovery, if there could be one.
    pub(crate) fn outcome(&self, result: &SubscribeResult) -> Option<bool> {
        self.claimed.as_ref().map(|_| result.recovered)
    }

    /// What it says is encoded elsewhere; it is entered behind that.
    pub(crate) fn defer(
        mut self,
        top: Position,
        mut result: SubscribeResult,
    ) -> (SubscribeResult, Self) {
        result.delta = self.gets_deltas();
        let (recovered, missed) = (self.outcome(&result), result.publications.len());
        self.large = Some(Large { top, recovered, missed });
        (result, self)
    }

    /// Whatever the answers say, this is not to be entered.
    pub(crate) fn fail(&mut self, error: ErrorCode) {
        self.stretch = Some(Err(error));
    }
}
