//! Notices for a shard: publications, joins, leaves, and control commands of the server API.
//! In: calls of `Node` and `Deliver` on any thread → out: `Notice`s pushed into the `Inbox` of each shard.
//! Uses: protocol codes, `Broadcast`. Never: sockets, session state.
//! Changed here: the notices. `hub/notices.rs` and `hub/control_commands.rs` handle them.

use std::sync::Arc;

use bytes::Bytes;
use fanwire_area::View;
use fanwire_broker::{ClientId, Renewal};
use fanwire_cluster::ServerSubscribe;
use fanwire_policy::hooks::{RefreshGrant, Rejection};
use fanwire_protocol::{Disconnect, UnsubscribeCode};
use uuid::Uuid;

use crate::broadcast::Broadcast;
use crate::join_leave::JoinLeave;
use crate::pending::AwaitedResult;
use crate::session::ConnectionKey;
use crate::session_table::selection::SelectedConnections;
use crate::shard_question::ShardQuestion;
use crate::subscribers::PositionCheck;

/// The inbox of one shard, written by every thread and emptied by the shard.
///
/// `push` must keep the order of the calls, must not block for longer than a short lock, and must wake the shard. The
/// caller holds the lock of a channel, so `push` must never call the node.
pub trait Inbox: Send + Sync {
    /// Appends `notice` and wakes the shard.
    fn push(&self, notice: Notice);

    /// Whether the shard is far behind, so that producers that can wait should wait. `push` accepts everything.
    fn is_congested(&self) -> bool {
        false
    }
}

/// A notice for a shard.
#[derive(Clone, Debug)]
pub enum Notice {
    /// A publication of a channel that has subscribers on the shard.
    Broadcast(Arc<Broadcast>),
    /// A value or a removal of a key of a shared poll channel, for those who track the key.
    KeyUpdate(Arc<Broadcast>),
    /// The top of a channel's stream, for its subscribers to compare.
    Position { channel: Arc<str>, check: PositionCheck },
    /// Publications of a channel may be missing: its subscribers compare their positions soon.
    PossibleGap(Arc<str>),
    /// A join or leave in a channel that has subscribers on the shard.
    JoinLeave(Arc<JoinLeave>),
    /// A subscriber of a channel with joins and leaves has left; the shard listens until it has delivered what came before.
    Left(Arc<str>),
    /// One of the results that a session of the shard waits for.
    AwaitedResult(Box<AwaitedResult>),
    /// Close the connections of `target`.
    Disconnect { target: SelectedConnections, disconnect: Disconnect },
    /// Subscribe the connections of `target` that are not subscribed yet.
    Subscribe { target: SelectedConnections, command: Arc<ServerSubscribe> },
    /// Set the lifetime of the connections of `target`.
    Refresh { target: SelectedConnections, renewal: Renewal },
    /// The decision of a hook about an expired connection or subscription.
    Refreshed(Box<Refreshed>),
    /// End the connections and subscriptions that are blocked or revoked by now: those of a user, or of all users, from a
    /// connection index on.
    CheckTokens { user: Option<Arc<str>>, from: u32 },
    /// Answer a question of the server API or of another node.
    Question(ShardQuestion),
    /// Close the connections of a user except the newest.
    Supersede { user: Arc<str> },
    /// The new view of a subscriber of a channel with places.
    View { client: ClientId, channel: Arc<str>, view: View },
    /// Commands of a client whose transport does not carry any (protocol §24).
    Commands { client: ClientId, secret: Uuid, data: Bytes },
    /// The system clock stepped: expiry timers must be set again.
    ClockStep,
    /// End the subscriptions of `target` to `channel`, or to all channels when it is `None`.
    Unsubscribe { target: SelectedConnections, channel: Option<Arc<str>>, code: UnsubscribeCode },
}

/// The decision of a refresh hook.
#[derive(Clone, Debug)]
pub struct Refreshed {
    pub(crate) key: ConnectionKey,
    /// `None` for the connection.
    pub(crate) channel: Option<Arc<str>>,
    pub(crate) decision: Result<Option<RefreshGrant>, Rejection>,
}

impl Refreshed {
    /// Bytes of payloads that it keeps alive.
    pub(crate) fn payload_bytes(&self) -> usize {
        let grant = self.decision.as_ref().ok().and_then(Option::as_ref);
        grant.map_or(0, |grant| grant.info.len() + grant.meta.len())
    }
}

impl Notice {
    /// The connections that it is for, if a selector says it.
    pub(crate) fn target(&self) -> Option<&SelectedConnections> {
        match self {
            Self::Disconnect { target, .. }
            | Self::Subscribe { target, .. }
            | Self::Refresh { target, .. }
            | Self::Unsubscribe { target, .. } => Some(target),
            _ => None,
        }
    }

    /// The same for connections from an index on.
    pub(crate) fn starting_at(&self, from: u32) -> Self {
        let mut notice = self.clone();
        match &mut notice {
            Self::Disconnect { target, .. }
            | Self::Subscribe { target, .. }
            | Self::Refresh { target, .. }
            | Self::Unsubscribe { target, .. } => target.from = from,
            _ => {}
        }
        notice
    }

    /// Bytes of payloads that it keeps alive, without the prepared state of the shell.
    pub fn payload_bytes(&self) -> usize {
        match self {
            Self::Broadcast(broadcast) | Self::KeyUpdate(broadcast) => broadcast.payload_bytes(),
            Self::AwaitedResult(arrival) => arrival.payload_bytes(),
            Self::JoinLeave(join_leave) => join_leave.payload_bytes(),
            Self::Subscribe { command, .. } => command.subscription().bytes(),
            Self::Refresh { renewal, .. } => renewal.info.len(),
            Self::Refreshed(refreshed) => refreshed.payload_bytes(),
            Self::Commands { data, .. } => data.len(),
            _ => 0,
        }
    }
}

#[cfg(test)]
mod tests;
