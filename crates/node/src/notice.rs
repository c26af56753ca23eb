//! What reaches a shard from outside: publications, joins, leaves, and the orders of the server API.
//! In: calls of `Node` and `Deliver` on any thread → out: `Notice`s pushed into the `Inbox` of each shard.
//! Uses: protocol codes, `Broadcast`. Never: sockets, session state.
//! Change here: what can be told to a shard. How a shard obeys lives in `hub/notices.rs` and `hub/control_commands.rs`.

use std::sync::Arc;

use fanwire_protocol::{Disconnect, UnsubscribeCode};

use crate::broadcast::Broadcast;
use crate::control::{ConnectionSelector, Renewal, ServerSubscribe};
use crate::join_leave::JoinLeave;
use crate::pending::AwaitedResult;
use crate::subscribers::PositionCheck;

/// The letter box of one shard, written by every thread and emptied by the shard.
///
/// `push` must keep the order of the calls, must not block for longer than a short lock, and must wake the shard. It is
/// called while the lock of a channel is held, so it must never call back into the node.
pub trait Inbox: Send + Sync {
    /// Appends `notice` and wakes the shard.
    fn push(&self, notice: Notice);

    /// Whether the shard is so far behind that whoever can wait should bring nothing more. `push` refuses nothing.
    fn is_congested(&self) -> bool {
        false
    }
}

/// One thing a shard is told.
#[derive(Clone, Debug)]
pub enum Notice {
    /// A publication of a channel that has subscribers on the shard.
    Broadcast(Arc<Broadcast>),
    /// The top of a channel's stream, for its subscribers to compare.
    Position { channel: Arc<str>, look: PositionCheck },
    /// Publications of a channel may be missing: its subscribers are to compare their positions soon.
    PossibleGap(Arc<str>),
    /// A join or leave in a channel that has subscribers on the shard.
    JoinLeave(Arc<JoinLeave>),
    /// A part of what a session of the shard waits for.
    AwaitedResult(Box<AwaitedResult>),
    /// Close the connections of `target`.
    Disconnect { target: ConnectionSelector, disconnect: Disconnect },
    /// Subscribe the connections of `target`, as far as they are not subscribed.
    Subscribe { target: ConnectionSelector, command: Arc<ServerSubscribe> },
    /// Give the connections of `target` another lifetime.
    Refresh { target: ConnectionSelector, renewal: Renewal },
    /// Close the connections of a user but the newest.
    Supersede { user: Arc<str> },
    /// Unix time was set: what ends at a Unix second ends at another moment.
    ClockStep,
    /// End the subscriptions of `target` to `channel`, or to all channels when it is `None`.
    Unsubscribe { target: ConnectionSelector, channel: Option<Arc<str>>, code: UnsubscribeCode },
}

impl Notice {
    /// Memory of payloads that it keeps alive, in bytes; what a shell prepared not counted.
    pub fn payload_bytes(&self) -> usize {
        match self {
            Self::Broadcast(broadcast) => broadcast.payload_bytes(),
            Self::AwaitedResult(arrival) => arrival.payload_bytes(),
            Self::JoinLeave(join_leave) => join_leave.payload_bytes(),
            Self::Subscribe { command, .. } => command.subscription().bytes(),
            Self::Refresh { renewal, .. } => renewal.info.len(),
            _ => 0,
        }
    }
}

#[cfg(test)]
mod tests;
