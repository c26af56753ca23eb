//! What reaches a shard from outside: publications, joins, leaves, disconnects and unsubscribes asked for by the server API.
//! In: calls of `Node` and `Deliver` on any thread → out: `Notice`s pushed into the `Inbox` of each shard.
//! Uses: protocol codes, `Broadcast`. Never: sockets, session state.
//! Change here: what can be told to a shard. How a shard obeys lives in `hub/notices.rs`.

use std::sync::Arc;

use fanwire_protocol::{Disconnect, UnsubscribeCode};

use crate::announcement::Announcement;
use crate::broadcast::Broadcast;
use crate::broker::Position;
use crate::waiting::Arrival;

/// A shard of this node, numbered from 0 in the order of [`crate::Node::attach`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ShardId(pub u16);

/// The letter box of one shard, written by every thread and emptied by the shard.
///
/// `push` must keep the order of the calls, must not block for longer than a short lock, and must wake the shard. It is
/// called while the lock of a channel is held, so it must never call back into the node.
pub trait Inbox: Send + Sync {
    /// Appends `notice` and wakes the shard.
    fn push(&self, notice: Notice);
}

/// One thing a shard is told.
#[derive(Clone, Debug)]
pub enum Notice {
    /// A publication of a channel that has subscribers on the shard.
    Broadcast(Arc<Broadcast>),
    /// The top of a channel's stream, for its subscribers to compare. When `is_in_order`, it follows all publications up to
    /// that top; else some may be on their way.
    Position { channel: Arc<str>, top: Position, is_in_order: bool },
    /// A join or leave in a channel that has subscribers on the shard.
    Announcement(Arc<Announcement>),
    /// A part of what a session of the shard waits for.
    Arrival(Box<Arrival>),
    /// Close the connections of `target`.
    Disconnect { target: Target, disconnect: Disconnect },
    /// End the subscriptions of `target` to `channel`, or to all channels when it is `None`.
    Unsubscribe { target: Target, channel: Option<Arc<str>>, code: UnsubscribeCode },
}

/// Which connections are meant: those of `user` (exact; "" = the anonymous ones) that pass every further filter.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Target {
    /// User id, matched exactly.
    pub user: String,
    /// Only this client id; "" = any.
    pub client: String,
    /// Only this session id; "" = any. WebSocket connections have none, so any other value leaves them out.
    pub session: String,
    /// Client ids that are spared.
    pub whitelist: Vec<String>,
}
