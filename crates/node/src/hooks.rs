//! Hooks (the port for programs that embed a node): decisions about client commands, and reports of what clients did.
//! In: events of clients → out: grants or rejections, ready or pending; nothing for reports.
//! Uses: values of the protocol. Never: threads, timeouts; the program around the node has them.
//! Change here: what a hook receives and what it may grant. `command/hook.rs` asks, `hub/timers.rs` refreshes.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use bytes::Bytes;
use fanwire_area::ViewChange;
use fanwire_auth::{ChannelGrant, Overrides};
use fanwire_broker::{Abandoned, Answer};
use fanwire_cluster::Renewal;
use fanwire_protocol::{ClientInfo, Disconnect, Error};

/// The functions that a node calls. They run on the thread of a shard, so they must return at once; what takes time is
/// a pending answer. A session waits for one answer at most, and its later commands wait behind it.
///
/// An answer `None` decides nothing: the node continues as without the hook. Of a refresh it means that the connection
/// expired.
#[derive(Default)]
pub struct Hooks {
    /// Authenticates a connect that has no token, or one that no configured key can verify.
    pub connect: Option<Hook<ConnectEvent, ConnectGrant>>,
    /// Gives a connection a new expiry time when the old one has passed. With this hook clients do not refresh.
    pub refresh: Option<Hook<RefreshEvent, Renewal>>,
    /// Decides about a subscribe without a token, to a channel that is neither private nor of listed users.
    pub subscribe: Option<Hook<SubscribeEvent, SubscribeGrant>>,
    /// Decides about a publish, before the permissions of the namespace.
    pub publish: Option<Hook<PublishEvent, PublishGrant>>,
    /// Answers a call of a method that the node does not have, with the data of the result.
    pub rpc: Option<Hook<RpcEvent, Bytes>>,
    /// Receives reports, of each client in order.
    pub report: Option<Box<dyn Fn(ClientReport) + Send + Sync>>,
}

/// A function that decides about an event.
pub type Hook<Event, Grant> = Box<dyn Fn(Event) -> Answer<Option<Grant>, Rejection> + Send + Sync>;

/// A connect without a token that a configured key can verify.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ConnectEvent {
    /// The id that the client gets.
    pub client: String,
    /// "" = none.
    pub token: String,
    /// Data of the connect command, as the client sent it; empty = none.
    pub data: Bytes,
    /// Name and version of the client's SDK, as it says.
    pub name: String,
    pub version: String,
}

/// A connection whose expiry time has passed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RefreshEvent {
    pub client: ClientInfo,
}

/// A subscribe command.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SubscribeEvent {
    pub client: ClientInfo,
    pub channel: String,
    /// Data of the subscribe command; empty = none.
    pub data: Bytes,
}

/// A publish command. The data has the format of the namespace.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PublishEvent {
    /// The client, with `chan_info` if it is subscribed to the channel.
    pub client: ClientInfo,
    pub channel: String,
    pub data: Bytes,
}

/// An rpc command.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RpcEvent {
    pub client: ClientInfo,
    pub method: String,
    pub data: Bytes,
}

/// Credentials and attributes of a connection.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ConnectGrant {
    /// "" = anonymous.
    pub user: String,
    /// `conn_info`, which others see in presence, joins and publications; empty = none.
    pub info: Bytes,
    /// Unix second at which the connection expires; `None` = never. In the past: error 110.
    pub expire_at: Option<u64>,
    /// Data of the connect result; empty = none.
    pub data: Bytes,
    /// Channels to which the server subscribes the client.
    pub channels: BTreeMap<String, ChannelGrant>,
}

/// Attributes of a permitted subscription.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SubscribeGrant {
    /// `chan_info`, which others see in presence, joins and publications; empty = none.
    pub info: Bytes,
    /// Data of the subscribe result; empty = none.
    pub data: Bytes,
    /// Options that differ from those of the namespace.
    pub overrides: Overrides,
}

/// Handling of a permitted publication. The client gets an empty result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PublishGrant {
    /// The node publishes it with this data.
    Publish { data: Bytes, tags: BTreeMap<String, String> },
    /// The program has processed it; nothing is published.
    Processed,
}

/// The refusal of an event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Rejection {
    /// An error reply. Codes of applications are 400 to 1999. A refused refresh ends the connection with 3005.
    Error(Error),
    /// The end of the connection. Codes of applications are 4000 to 4999, without reconnect from 4500 on.
    Disconnect(Disconnect),
    /// The hook made no decision, for this cause: the connection ends with 3004 and the client reconnects. After a failed
    /// refresh the connection continues for a minute and is refreshed again.
    Failed(Cow<'static, str>),
}

/// Report about a client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ClientReport {
    /// A subscription began, with this data of the client's request: the client gets what is published from now on.
    Subscribed { client: ClientInfo, channel: Arc<str>, data: Bytes },
    /// The view of a subscriber of a channel with places touches other tiles.
    ViewChanged { client: ClientInfo, channel: Arc<str>, change: ViewChange },
    /// A subscription ended, also when its connection ended.
    Unsubscribed { client: ClientInfo, channel: Arc<str> },
    /// The connection of a connected client ended; 3000 if the client closed it, or its network.
    Disconnected { client: ClientInfo, disconnect: Disconnect },
}

impl fmt::Debug for Hooks {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("Hooks")
    }
}

impl Abandoned for Rejection {
    fn abandoned() -> Self {
        Self::Failed("the hook ended without an answer".into())
    }
}

impl From<Disconnect> for Rejection {
    fn from(disconnect: Disconnect) -> Self {
        Self::Disconnect(disconnect)
    }
}

impl From<Error> for Rejection {
    fn from(error: Error) -> Self {
        Self::Error(error)
    }
}

/// The answer of a hook to a command.
#[derive(Clone, Debug)]
pub(crate) enum Decision {
    Connect(Option<ConnectGrant>),
    Subscribe(Option<SubscribeGrant>),
    Publish(Option<PublishGrant>),
    Rpc(Option<Bytes>),
}

impl Decision {
    pub(crate) fn into_connect(self) -> Option<ConnectGrant> {
        if let Self::Connect(granted) = self { granted } else { None }
    }

    pub(crate) fn into_subscribe(self) -> Option<SubscribeGrant> {
        if let Self::Subscribe(granted) = self { granted } else { None }
    }

    pub(crate) fn into_publish(self) -> Option<PublishGrant> {
        if let Self::Publish(granted) = self { granted } else { None }
    }

    pub(crate) fn into_rpc(self) -> Option<Bytes> {
        if let Self::Rpc(granted) = self { granted } else { None }
    }

    /// Approximate bytes.
    pub(crate) fn bytes(&self) -> usize {
        match self {
            Self::Connect(Some(grant)) => {
                let channels = grant.channels.iter();
                let each = |(name, channel): (&String, &ChannelGrant)| {
                    name.len() + channel.info.len() + channel.data.len()
                };
                grant.info.len() + grant.data.len() + channels.map(each).sum::<usize>()
            }
            Self::Subscribe(Some(grant)) => grant.info.len() + grant.data.len(),
            Self::Publish(Some(PublishGrant::Publish { data, .. })) | Self::Rpc(Some(data)) => {
                data.len()
            }
            _ => 0,
        }
    }
}
