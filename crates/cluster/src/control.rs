//! Control commands of the server API for existing connections: subscribe, refresh, and the selector of connections.
//! In: calls of the server API on any node → out: values that travel between nodes and into the inboxes of shards.
//! Uses: shared strings, a promise for the caller. Never: sessions; `hub/control_commands.rs` executes the commands.
//! Changed here: what a command contains. `message.rs` encodes it between nodes.

use std::sync::Arc;

use bytes::Bytes;
use fanwire_auth::Overrides;
use fanwire_broker::Promise;
use fanwire_protocol::{ErrorCode, FilterNode, StreamPosition};
use parking_lot::Mutex;

/// A subscription that the server makes for existing connections.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ServerSubscription {
    pub channel: Arc<str>,
    /// `chan_info` of its joins, presence and publications; empty = none.
    pub info: Bytes,
    /// Data for the client, in the subscribe push; empty = none.
    pub data: Bytes,
    /// Unix second at which it expires; `None` = never. After `client.expired_sub_close_delay` the connection ends (3006).
    pub expire_at: Option<u64>,
    /// Options that differ from the namespace.
    pub overrides: Overrides,
    /// Publications after this position are delivered first, where the subscription is recoverable.
    pub recover_since: Option<StreamPosition>,
}

/// A server-side subscription on its way to connections. The caller is answered when the last copy is dropped: then
/// every shard that received the command has executed it.
#[derive(Debug)]
pub struct ServerSubscribe {
    subscription: ServerSubscription,
    orderer: Mutex<Option<Promise<(), ErrorCode>>>,
}

/// Selects connections: those of `user` (exact; "" = the anonymous ones, or all with `all_users`) that match every further
/// filter.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct ConnectionSelector {
    /// User id, matched exactly.
    #[prost(string, tag = "1")]
    pub user: String,
    /// Only this client id; "" = any.
    #[prost(string, tag = "2")]
    pub client: String,
    /// Only this session id; "" = any. WebSocket connections have none, so any other value leaves them out.
    #[prost(string, tag = "3")]
    pub session: String,
    /// Client ids to leave out.
    #[prost(string, repeated, tag = "4")]
    pub whitelist: Vec<String>,
    /// Only those whose labels match; an invalid filter matches none.
    #[prost(message, optional, boxed, tag = "5")]
    pub label_filter: Option<Box<FilterNode>>,
    /// Without `user`: the connections of all users.
    #[prost(bool, tag = "6")]
    pub all_users: bool,
}

impl ConnectionSelector {
    /// Whether it selects connections of every user.
    pub fn is_of_all_users(&self) -> bool {
        self.all_users && self.user.is_empty()
    }
}

impl ServerSubscription {
    /// Bytes of its strings.
    pub fn bytes(&self) -> usize {
        let since = self.recover_since.as_ref().map_or(0, |since| since.epoch.len());
        self.channel.len() + self.info.len() + self.data.len() + since
    }
}

impl ServerSubscribe {
    /// A command with a promise for its caller, or without one when it comes from another node, which answers its
    /// caller itself.
    pub fn new(subscription: ServerSubscription, orderer: Option<Promise<(), ErrorCode>>) -> Self {
        Self { subscription, orderer: Mutex::new(orderer) }
    }

    pub fn subscription(&self) -> &ServerSubscription {
        &self.subscription
    }

    /// Reports a failure for one connection. The first failure is the answer; returns whether it is this one.
    pub fn failed(&self, code: ErrorCode) -> bool {
        let orderer = self.orderer.lock().take();
        let is_answer = orderer.is_some();
        if let Some(orderer) = orderer {
            orderer.keep(Err(code));
        }
        is_answer
    }
}

impl Drop for ServerSubscribe {
    fn drop(&mut self) {
        if let Some(orderer) = self.orderer.get_mut().take() {
            orderer.keep(Ok(()));
        }
    }
}
