//! A pending subscribe: the channels of a session, and the answers that have arrived.
//! In: channels with their parameters, answers of broker and presence → out: whether all have arrived, and their contents.
//! Uses: values only. Never: broker or presence themselves; `command/subscribe/begin.rs` calls them.
//! Changed here: the states of a pending subscribe. `command/subscribe/commit.rs` follows the last answer.

use std::sync::Arc;

use bytes::Bytes;
use fanwire_area::{Grid, View};
use fanwire_broker::{Position, StreamSlice};
use fanwire_cluster::ServerSubscribe;
use fanwire_policy::options::RecoveryMode;
use fanwire_policy::recovery::{ClaimedPosition, Unrecovered};
use fanwire_protocol::{ErrorCode, SubscribeResult};

use super::{BufferedMessages, Part};
use crate::encode_job::Encoded;
use crate::last_event_id::Unresumed;
use crate::map::live::LiveSwitch;
use crate::session::{Lifetime, SubscriptionGrant};
use crate::subscribers::DeltaState;

/// A session that subscribes to channels. It is in the registry, so the router sends it publications already, and all
/// calls to broker and presence were made. It sends nothing before the last answer.
#[derive(Debug)]
pub(crate) struct PendingSubscribe {
    pub(crate) channels: Vec<PendingChannel>,
    /// The command it belongs to.
    pub(crate) then: SubscribeOrigin,
    pub(crate) encoder: ReplyEncoder,
}

/// Which thread encodes the results.
#[derive(Debug)]
pub(crate) enum ReplyEncoder {
    /// The shard, in the turn of the last answer.
    Here,
    /// A worker, because the reply is large: no subscription is made before it is encoded.
    Elsewhere,
    Encoded(Result<Encoded, ErrorCode>),
}

/// One channel of a pending subscribe.
#[derive(Debug)]
pub(crate) struct PendingChannel {
    pub(crate) channel: Arc<str>,
    pub(crate) server_side: bool,
    pub(crate) terms: Option<Box<SubscriptionGrant>>,
    pub(crate) tracking: Tracking,
    pub(crate) delta: Option<DeltaState>,
    pub(crate) visibility: Visibility,
    pub(crate) mode: RecoveryMode,
    pub(crate) claimed: Option<OwnedPosition>,
    /// Why that position was not recovered.
    pub(crate) unrecovered: Option<Unrecovered>,
    pub(crate) history_size: usize,
    /// The value of `was_recovering` in the result; true also without a claimed position where recovery was requested.
    pub(crate) was_recovering: bool,
    /// Application data for the result.
    pub(crate) data: Bytes,
    /// Data of the client's request, for reports.
    pub(crate) requested_data: Bytes,
    /// First view of the client, in a channel with places.
    pub(crate) view: Option<Box<GridView>>,
    /// The end of a subscribe that took several requests.
    pub(crate) switch: Option<Box<LiveSwitch>>,
    pub(crate) slice: Option<Result<StreamSlice, ErrorCode>>,
    pub(crate) appeared: Option<Result<(), ErrorCode>>,
    /// Both answers arrived, and a worker encodes the result.
    pub(crate) large: Option<SubscriptionStart>,
    /// Number of the first publication in the channel's buffer for this session.
    pub(crate) held_from: u64,
    /// The publications buffered while the session waited, and whether they are complete.
    pub(crate) buffered: BufferedMessages,
}

/// The position at which a subscription begins, and what it recovered.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SubscriptionStart {
    pub(crate) top: Position,
    /// The result of its recovery, if it requested one.
    pub(crate) recovered: Option<Result<(), Unrecovered>>,
    /// Number of publications that it recovered.
    pub(crate) missed: usize,
    /// The last of them is the newest of the stream, which a filter may have left out.
    pub(crate) has_newest: bool,
}

/// A view, and the grid of the channel that has the tiles.
#[derive(Clone, Copy, Debug)]
pub(crate) struct GridView {
    pub(crate) grid: Grid,
    pub(crate) view: View,
}

/// An owned copy of a claimed position, for a session that may have to wait.
#[derive(Debug)]
pub(crate) struct OwnedPosition {
    pub(crate) offset: u64,
    pub(crate) epoch: String,
    pub(crate) only_recovered: bool,
}

/// How a subscription follows the stream of its channel.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Tracking {
    #[default]
    None,
    /// Gaps are detected.
    Positioned,
    /// Gaps are detected, and filled on recovery.
    Recoverable,
}

/// Presence, joins and leaves of a subscription.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Visibility {
    /// The subscription is in the presence of the channel.
    pub(crate) present: bool,
    /// Its join and leave are sent to others.
    pub(crate) announced: bool,
    /// The subscription receives joins and leaves.
    pub(crate) wants_join_leave: bool,
    /// Maps have entries because of it.
    pub(crate) has_entries: bool,
}

/// The command that subscribes, with the state it needs to finish.
#[derive(Clone, Debug)]
pub(crate) enum SubscribeOrigin {
    Subscribe(Lifetime),
    Connect(ConnectAttributes),
    /// A control command of the server.
    ControlCommand(Lifetime, Arc<ServerSubscribe>),
}

/// Attributes of a connection that its connect sets at the end.
#[derive(Clone, Debug)]
pub(crate) struct ConnectAttributes {
    pub(crate) lifetime: Lifetime,
    /// Application data for the result.
    pub(crate) data: Bytes,
    /// Whether the client continues after its last event; `None` without one.
    pub(crate) resume: Option<Result<Position, Unresumed>>,
    /// Positions of the messages that a worker encodes.
    pub(crate) positions: Vec<Position>,
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

    /// One that waits for its encoded reply.
    pub(crate) fn without_results(channels: Vec<PendingChannel>, then: SubscribeOrigin) -> Self {
        Self { channels, then, encoder: ReplyEncoder::Elsewhere }
    }

    /// Its channels, its command, and the reply, if a worker encoded it.
    pub(crate) fn into_parts(
        self,
    ) -> (Vec<PendingChannel>, SubscribeOrigin, Option<Result<Encoded, ErrorCode>>) {
        let encoded = match self.encoder {
            ReplyEncoder::Encoded(encoded) => Some(encoded),
            ReplyEncoder::Here | ReplyEncoder::Elsewhere => None,
        };
        (self.channels, self.then, encoded)
    }

    /// Whether all answers have arrived.
    pub(crate) fn is_complete(&self) -> bool {
        match self.encoder {
            ReplyEncoder::Here => self.channels.iter().all(PendingChannel::is_complete),
            ReplyEncoder::Elsewhere => false,
            ReplyEncoder::Encoded(_) => true,
        }
    }

    /// Whether it belongs to the connect of its session.
    pub(crate) fn is_of_connect(&self) -> bool {
        matches!(self.then, SubscribeOrigin::Connect(_))
    }

    /// Stores an answer.
    pub(crate) fn arrive(&mut self, part: Part) {
        match part {
            Part::StreamSlice(number, result) => self.channels[number].slice = Some(result),
            Part::Presence(number, result) => self.channels[number].appeared = Some(result),
            Part::Encoded(result) => self.encoder = ReplyEncoder::Encoded(result),
            Part::Outcome(_)
            | Part::Key
            | Part::CommandDecision(_)
            | Part::Page(_)
            | Part::Turn => {
                unreachable!("a pending subscribe waits for none of these")
            }
        }
    }
}

impl PendingChannel {
    fn is_complete(&self) -> bool {
        self.slice.is_some() && self.appeared.is_some()
    }

    pub(crate) fn gets_deltas(&self) -> bool {
        self.delta.is_some()
    }

    /// The start of its subscription at `top`, with the publications of `result`.
    pub(crate) fn start(&self, top: Position, result: &SubscribeResult) -> SubscriptionStart {
        let recovered = self.claimed.as_ref().map(|_| self.unrecovered.map_or(Ok(()), Err));
        let missed = &result.publications;
        let has_newest = missed.last().is_some_and(|last| last.offset == top.offset);
        SubscriptionStart { top, recovered, missed: missed.len(), has_newest }
    }

    /// A worker encodes its result; the subscription is made afterwards.
    pub(crate) fn defer(
        mut self,
        top: Position,
        mut result: SubscribeResult,
    ) -> (SubscribeResult, Self) {
        result.delta = self.gets_deltas();
        self.large = Some(self.start(top, &result));
        (result, self)
    }

    /// Fails the channel, whatever the answers contain.
    pub(crate) fn fail(&mut self, error: ErrorCode) {
        self.slice = Some(Err(error));
    }
}
