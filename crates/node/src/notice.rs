//! What reaches a shard from outside: publications, joins, leaves, and the orders of the server API.
//! In: calls of `Node` and `Deliver` on any thread → out: `Notice`s pushed into the `Inbox` of each shard.
//! Uses: protocol codes, `Broadcast`. Never: sockets, session state.
//! Change here: what can be told to a shard. How a shard obeys lives in `hub/notices.rs` and `hub/orders.rs`.

use std::sync::Arc;

use bytes::Bytes;
use fanwire_auth::Overrides;
use fanwire_broker::{Position, Promise};
use fanwire_protocol::{Disconnect, ErrorCode, StreamPosition, UnsubscribeCode};
use parking_lot::Mutex;

use crate::announcement::Announcement;
use crate::broadcast::Broadcast;
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
    Position { channel: Arc<str>, look: Look },
    /// Publications of a channel may be missing: its subscribers are to compare their positions soon.
    Doubt(Arc<str>),
    /// A join or leave in a channel that has subscribers on the shard.
    Announcement(Arc<Announcement>),
    /// A part of what a session of the shard waits for.
    Arrival(Box<Arrival>),
    /// Close the connections of `target`.
    Disconnect { target: Target, disconnect: Disconnect },
    /// Subscribe the connections of `target`, as far as they are not subscribed.
    Subscribe { target: Target, order: Arc<SubscribeOrder> },
    /// Give the connections of `target` another lifetime.
    Refresh { target: Target, renewal: Renewal },
    /// Close the connections of a user but the newest.
    Supersede { user: Arc<str> },
    /// Unix time was set: what ends at a Unix second ends at another moment.
    ClockStep,
    /// End the subscriptions of `target` to `channel`, or to all channels when it is `None`.
    Unsubscribe { target: Target, channel: Option<Arc<str>>, code: UnsubscribeCode },
}

/// What a look at the top of a stream found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Look {
    pub top: Position,
    /// It follows all publications up to the top; else some may be on their way.
    pub is_in_order: bool,
    /// Before the look the stream reached further in the same epoch.
    pub has_lost_end: bool,
}

impl Notice {
    /// Memory of payloads that it keeps alive, in bytes; what a shell prepared not counted.
    pub fn payload_bytes(&self) -> usize {
        match self {
            Self::Broadcast(broadcast) => broadcast.payload_bytes(),
            Self::Arrival(arrival) => arrival.payload_bytes(),
            Self::Announcement(announcement) => announcement.payload_bytes(),
            Self::Subscribe { order, .. } => order.subscription().bytes(),
            Self::Refresh { renewal, .. } => renewal.info.len(),
            _ => 0,
        }
    }
}

/// A subscription that the server makes for connections that are there.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ServerSubscription {
    pub channel: Arc<str>,
    /// `chan_info` of its joins, presence and publications; empty = none.
    pub info: Bytes,
    /// For the client, in the subscribe push; empty = none.
    pub data: Bytes,
    /// Unix second at which it expires; `None` = never. After `client.expired_sub_close_delay` the connection ends (3006).
    pub expire_at: Option<u64>,
    /// What differs from the namespace.
    pub overrides: Overrides,
    /// Publications after this position are delivered first, where the subscription is recoverable.
    pub recover_since: Option<StreamPosition>,
}

/// A subscription on its way to connections. Whoever ordered it is answered when the last copy is gone: then it was obeyed
/// by all whom it reached.
#[derive(Debug)]
pub struct SubscribeOrder {
    subscription: ServerSubscription,
    orderer: Mutex<Option<Promise<(), ErrorCode>>>,
}

/// Another lifetime of connections.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Renewal {
    /// Unix second at which they expire; `None` = never.
    pub expire_at: Option<u64>,
    /// `conn_info` from now on; empty = as before.
    pub info: Bytes,
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

impl ServerSubscription {
    /// Memory of its texts.
    pub(crate) fn bytes(&self) -> usize {
        let since = self.recover_since.as_ref().map_or(0, |since| since.epoch.len());
        self.channel.len() + self.info.len() + self.data.len() + since
    }
}

impl SubscribeOrder {
    /// An order whose giver wants to know, or of another node, whose giver is answered there.
    pub(crate) fn new(
        subscription: ServerSubscription,
        orderer: Option<Promise<(), ErrorCode>>,
    ) -> Self {
        Self { subscription, orderer: Mutex::new(orderer) }
    }

    pub(crate) fn subscription(&self) -> &ServerSubscription {
        &self.subscription
    }

    /// It failed for somebody: the first failure is the answer.
    pub(crate) fn failed(&self, code: ErrorCode) {
        let orderer = self.orderer.lock().take();
        if let Some(orderer) = orderer {
            orderer.keep(Err(code));
        }
    }
}

impl Drop for SubscribeOrder {
    fn drop(&mut self) {
        if let Some(orderer) = self.orderer.get_mut().take() {
            orderer.keep(Ok(()));
        }
    }
}

#[cfg(test)]
mod tests;
