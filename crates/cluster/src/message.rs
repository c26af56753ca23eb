//! Messages between nodes, as Protobuf behind a version byte.
//! In: messages → out: bytes; and back, `None` for garbage and for other versions.
//! Uses: prost. Never: trusts its input; every byte may come from any program that reaches the bus.
//! Changed here: the messages. Field numbers stay for ever, meanings change with the version byte.

use std::collections::BTreeMap;

use bytes::{BufMut, Bytes, BytesMut};
use fanwire_auth::Overrides;
use fanwire_broker::{DebugForCommand, OccupancyReport, Renewal};
use fanwire_protocol::{Disconnect, StreamPosition};
use prost::Message as _;

use crate::control::{ConnectionSelector, ServerSubscription};

/// One message of a node.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct NodeMessage {
    /// Uid of the sender.
    #[prost(string, tag = "1")]
    pub from: String,
    /// `None` in a question, whose field is one of another number.
    #[prost(
        oneof = "ControlCommand",
        tags = "2, 3, 4, 5, 7, 8, 9, 11, 12, 16, 17, 18, 19, 21, 23, 25, 26"
    )]
    pub command: Option<ControlCommand>,
    /// Sequence number of a control command, which is repeated until every node has it, counted by its sender from 1;
    /// 0 for other messages.
    #[prost(uint64, tag = "10")]
    pub number: u64,
}

/// The content. Tag 10 is the number of the message, tags 13 and 15 are not used any more; those of questions are in
/// `node/questions/`.
#[derive(Clone, PartialEq, prost::Oneof)]
pub enum ControlCommand {
    #[prost(message, tag = "2")]
    State(NodeState),
    #[prost(message, tag = "3")]
    Leaving(Leaving),
    #[prost(message, tag = "4")]
    Disconnect(DisconnectCommand),
    #[prost(message, tag = "5")]
    Unsubscribe(UnsubscribeCommand),
    /// The answer to a question.
    #[prost(bytes = "bytes", tag = "7")]
    Answer(Bytes),
    #[prost(message, tag = "8")]
    Subscribe(SubscribeCommand),
    #[prost(message, tag = "9")]
    Refresh(RefreshCommand),
    #[prost(message, tag = "11")]
    View(ViewCommand),
    #[prost(message, tag = "12")]
    Emulation(EmulationCommand),
    /// The next four have a label filter, or are for all users. A node that does not know them does nothing; as fields of
    /// the older messages it would skip the filter, and select more connections.
    #[prost(message, tag = "16")]
    DisconnectSelected(DisconnectCommand),
    #[prost(message, tag = "17")]
    UnsubscribeSelected(UnsubscribeCommand),
    #[prost(message, tag = "18")]
    SubscribeSelected(SubscribeCommand),
    #[prost(message, tag = "19")]
    RefreshSelected(RefreshCommand),
    #[prost(message, tag = "21")]
    Occupancy(OccupancyReport),
    #[prost(message, tag = "23")]
    DebugFor(DebugForCommand),
    /// A node of an older version does nothing.
    #[prost(message, tag = "25")]
    SendAway(SendAwayCommand),
    /// A node of an older version does nothing.
    #[prost(message, tag = "26")]
    Usage(UsageReport),
}

/// State of a node, sent every 3 s.
#[derive(Clone, PartialEq, prost::Message)]
pub struct NodeState {
    /// Random, made at the start of the process.
    #[prost(string, tag = "1")]
    pub uid: String,
    #[prost(string, tag = "2")]
    pub name: String,
    #[prost(string, tag = "3")]
    pub version: String,
    #[prost(uint64, tag = "4")]
    pub connections: u64,
    /// Distinct user ids; the empty one counts as one.
    #[prost(uint64, tag = "5")]
    pub users: u64,
    /// Channels with at least one subscriber.
    #[prost(uint64, tag = "6")]
    pub channels: u64,
    #[prost(uint64, tag = "7")]
    pub subscriptions: u64,
    #[prost(uint64, tag = "8")]
    pub uptime_seconds: u64,
    /// `None` before the end of the first interval.
    #[prost(message, optional, tag = "9")]
    pub metrics: Option<Metrics>,
    /// The position up to which it has the blocks and revocations of all nodes; `None` before it has loaded them.
    #[prost(message, optional, tag = "10")]
    pub revocations: Option<StreamPosition>,
    /// Number of the last event that the node made for a backend; 0 without events out.
    #[prost(uint64, tag = "11")]
    pub event_seq: u64,
    /// Clients that it still sends to other nodes.
    #[prost(uint64, tag = "12")]
    pub leaving: u64,
    /// It does not receive its own messages, and so perhaps none of other nodes.
    #[prost(bool, tag = "13")]
    pub cannot_receive: bool,
}

/// Metrics of a node in its last interval (`node.info_metrics_aggregate_interval`).
#[derive(Clone, PartialEq, prost::Message)]
pub struct Metrics {
    /// Length of the interval in seconds.
    #[prost(double, tag = "1")]
    pub interval_seconds: f64,
    /// Metrics by name: the increase of a counter, or the value of a gauge at the end. Zeros are left out.
    #[prost(btree_map = "string, double", tag = "2")]
    pub items: BTreeMap<String, f64>,
}

/// The node stops; other nodes do not wait for it.
#[derive(Clone, Copy, PartialEq, Eq, prost::Message)]
pub struct Leaving {}

/// `Node::disconnect` of another node.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct DisconnectCommand {
    #[prost(message, required, tag = "1")]
    target: ConnectionSelector,
    #[prost(uint32, tag = "2")]
    code: u32,
    #[prost(string, tag = "3")]
    reason: String,
}

/// `Node::unsubscribe` of another node.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct UnsubscribeCommand {
    #[prost(message, required, tag = "1")]
    target: ConnectionSelector,
    /// `None` = all channels.
    #[prost(string, optional, tag = "2")]
    channel: Option<String>,
}

/// `Node::set_view_on_every_node` of another node.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct ViewCommand {
    #[prost(string, tag = "1")]
    pub client: String,
    #[prost(string, tag = "2")]
    pub channel: String,
    /// JSON.
    #[prost(string, tag = "3")]
    pub view: String,
}

/// A rebalance or an evacuation.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct SendAwayCommand {
    /// Uid or name of the node that sends clients away; "" = each node.
    #[prost(string, tag = "1")]
    pub node: String,
    /// Percent of its clients, of any age; 0 = those above the average of all nodes.
    #[prost(uint32, tag = "2")]
    pub percent: u32,
    /// Clients a second; 0 = as the options of the node say.
    #[prost(uint32, tag = "3")]
    pub rate: u32,
}

/// Publishes of clients of a node since its last report, and the connections that it has now; sent once a second if there are some.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct UsageReport {
    #[prost(message, repeated, tag = "1")]
    pub publications: Vec<UserPublications>,
    #[prost(message, repeated, tag = "2")]
    pub addresses: Vec<AddressConnections>,
}

/// Publishes of a user in a namespace that count against a limit.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct UserPublications {
    /// "" = channels without a namespace.
    #[prost(string, tag = "1")]
    pub namespace: String,
    /// "" = all users.
    #[prost(string, tag = "2")]
    pub user: String,
    #[prost(uint32, tag = "3")]
    pub count: u32,
}

/// Connections of an address.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct AddressConnections {
    /// As text; of IPv6 the network of 64 bits.
    #[prost(string, tag = "1")]
    pub address: String,
    #[prost(uint32, tag = "2")]
    pub connections: u32,
}

/// Commands of a client of the receiving node that came to another node (client protocol §24).
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct EmulationCommand {
    #[prost(string, tag = "1")]
    pub session: String,
    #[prost(bytes = "bytes", tag = "2")]
    pub data: Bytes,
}

/// `Node::subscribe` of another node.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct SubscribeCommand {
    #[prost(message, required, tag = "1")]
    target: ConnectionSelector,
    #[prost(string, tag = "2")]
    channel: String,
    #[prost(bytes = "bytes", tag = "3")]
    info: Bytes,
    #[prost(bytes = "bytes", tag = "4")]
    data: Bytes,
    /// Unix second.
    #[prost(uint64, optional, tag = "5")]
    expire_at: Option<u64>,
    #[prost(bool, optional, tag = "6")]
    presence: Option<bool>,
    #[prost(bool, optional, tag = "7")]
    join_leave: Option<bool>,
    #[prost(bool, optional, tag = "8")]
    force_recovery: Option<bool>,
    #[prost(bool, optional, tag = "9")]
    force_positioning: Option<bool>,
    #[prost(bool, optional, tag = "10")]
    force_push_join_leave: Option<bool>,
    #[prost(message, optional, tag = "11")]
    recover_since: Option<StreamPosition>,
}

/// `Node::refresh` of another node.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct RefreshCommand {
    #[prost(message, required, tag = "1")]
    target: ConnectionSelector,
    /// Unix second.
    #[prost(uint64, optional, tag = "2")]
    expire_at: Option<u64>,
    #[prost(bytes = "bytes", tag = "3")]
    info: Bytes,
}

impl NodeMessage {
    pub(super) fn encoded(&self) -> Bytes {
        let mut out = BytesMut::with_capacity(1 + self.encoded_len());
        out.put_u8(VERSION);
        self.encode(&mut out).expect("a buffer grows");
        out.freeze()
    }

    /// `None` for bytes that are no message of this version.
    pub(super) fn decoded(bytes: &[u8]) -> Option<Self> {
        let (version, message) = bytes.split_first()?;
        (*version == VERSION).then(|| Self::decode(message).ok()).flatten()
    }
}

impl ControlCommand {
    pub fn disconnect(target: &ConnectionSelector, disconnect: &Disconnect) -> Self {
        let code = u32::from(disconnect.code);
        let reason = disconnect.reason.to_string();
        let command = DisconnectCommand { target: target.clone(), code, reason };
        select(target, command, Self::Disconnect, Self::DisconnectSelected)
    }

    pub fn unsubscribe(target: &ConnectionSelector, channel: Option<&str>) -> Self {
        let channel = channel.map(str::to_owned);
        let command = UnsubscribeCommand { target: target.clone(), channel };
        select(target, command, Self::Unsubscribe, Self::UnsubscribeSelected)
    }

    pub fn subscribe(target: &ConnectionSelector, subscription: &ServerSubscription) -> Self {
        let ServerSubscription { channel, info, data, expire_at, overrides, recover_since } =
            subscription.clone();
        let Overrides {
            presence,
            join_leave,
            force_recovery,
            force_positioning,
            force_push_join_leave,
        } = overrides;
        let command = SubscribeCommand {
            target: target.clone(),
            channel: channel.as_ref().to_owned(),
            info,
            data,
            expire_at,
            presence,
            join_leave,
            force_recovery,
            force_positioning,
            force_push_join_leave,
            recover_since,
        };
        select(target, command, Self::Subscribe, Self::SubscribeSelected)
    }

    pub fn refresh(target: &ConnectionSelector, renewal: &Renewal) -> Self {
        let Renewal { expire_at, info } = renewal.clone();
        let command = RefreshCommand { target: target.clone(), expire_at, info };
        select(target, command, Self::Refresh, Self::RefreshSelected)
    }
}

/// The message of a command: the second one where older nodes would select more connections.
fn select<C>(
    target: &ConnectionSelector,
    command: C,
    plain: fn(C) -> ControlCommand,
    selected: fn(C) -> ControlCommand,
) -> ControlCommand {
    let is_selected = target.label_filter.is_some() || target.is_of_all_users();
    if is_selected { selected(command) } else { plain(command) }
}

impl SubscribeCommand {
    pub fn into_parts(self) -> (ConnectionSelector, ServerSubscription) {
        let overrides = Overrides {
            presence: self.presence,
            join_leave: self.join_leave,
            force_recovery: self.force_recovery,
            force_positioning: self.force_positioning,
            force_push_join_leave: self.force_push_join_leave,
        };
        let subscription = ServerSubscription {
            channel: self.channel.into(),
            info: self.info,
            data: self.data,
            expire_at: self.expire_at,
            overrides,
            recover_since: self.recover_since,
        };
        (self.target, subscription)
    }
}

impl RefreshCommand {
    pub fn into_parts(self) -> (ConnectionSelector, Renewal) {
        (self.target, Renewal { expire_at: self.expire_at, info: self.info })
    }
}

impl DisconnectCommand {
    /// `None` for a code that is invalid in close frames.
    pub fn into_parts(self) -> Option<(ConnectionSelector, Disconnect)> {
        let code = u16::try_from(self.code).ok()?;
        Some((self.target, Disconnect { code, reason: self.reason.into() }))
    }
}

impl UnsubscribeCommand {
    pub fn into_parts(self) -> (ConnectionSelector, Option<String>) {
        (self.target, self.channel)
    }
}

/// First byte of every message. Messages of another version are counted and dropped.
const VERSION: u8 = 1;
