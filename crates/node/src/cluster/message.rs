//! What nodes tell each other, as Protobuf behind a version byte.
//! In: orders → out: bytes; and back, `None` for garbage and for other versions.
//! Uses: prost. Never: trusts; every byte may come from anywhere that reaches the bus.
//! Change here: the messages. Field numbers stay for ever, meanings change with the version byte.

use std::collections::BTreeMap;

use bytes::{BufMut, Bytes, BytesMut};
use fanwire_auth::Overrides;
use fanwire_protocol::{Disconnect, StreamPosition};
use prost::Message as _;

use crate::control::{Renewal, ServerSubscription, Target};

/// One message of a node.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct Message {
    /// Its uid.
    #[prost(string, tag = "1")]
    pub(crate) from: String,
    #[prost(oneof = "Order", tags = "2, 3, 4, 5, 6, 7, 8, 9")]
    pub(crate) order: Option<Order>,
    /// Of what is given again when it did not reach every node, counted by its sender from 1; 0 for the rest.
    #[prost(uint64, tag = "10")]
    pub(crate) number: u64,
}

/// What it says.
#[derive(Clone, PartialEq, prost::Oneof)]
pub(crate) enum Order {
    #[prost(message, tag = "2")]
    State(NodeState),
    #[prost(message, tag = "3")]
    Leaving(Leaving),
    #[prost(message, tag = "4")]
    Disconnect(DisconnectOrder),
    #[prost(message, tag = "5")]
    Unsubscribe(UnsubscribeOrder),
    #[prost(message, tag = "6")]
    Survey(Survey),
    #[prost(message, tag = "7")]
    Channels(Channels),
    #[prost(message, tag = "8")]
    Subscribe(SubscribeOrder),
    #[prost(message, tag = "9")]
    Refresh(RefreshOrder),
}

/// How a node is, as it tells the others every 3 s.
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
    /// None before the end of the first interval.
    #[prost(message, optional, tag = "9")]
    pub metrics: Option<Metrics>,
}

/// The numbers of a node in its last interval (`node.info_metrics_aggregate_interval`).
#[derive(Clone, PartialEq, prost::Message)]
pub struct Metrics {
    /// How long it was.
    #[prost(double, tag = "1")]
    pub interval_seconds: f64,
    /// By name: by how much a total grew in it, where a level stood at its end. What is 0 is left out.
    #[prost(btree_map = "string, double", tag = "2")]
    pub items: BTreeMap<String, f64>,
}

/// The node goes; nobody needs to wait for it.
#[derive(Clone, Copy, PartialEq, Eq, prost::Message)]
pub(crate) struct Leaving {}

/// `Node::disconnect` of another node.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub(crate) struct DisconnectOrder {
    #[prost(message, required, tag = "1")]
    target: TargetMessage,
    #[prost(uint32, tag = "2")]
    code: u32,
    #[prost(string, tag = "3")]
    reason: String,
}

/// `Node::unsubscribe` of another node.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub(crate) struct UnsubscribeOrder {
    #[prost(message, required, tag = "1")]
    target: TargetMessage,
    /// None = all channels.
    #[prost(string, optional, tag = "2")]
    channel: Option<String>,
}

/// `Node::subscribe` of another node.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub(crate) struct SubscribeOrder {
    #[prost(message, required, tag = "1")]
    target: TargetMessage,
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
pub(crate) struct RefreshOrder {
    #[prost(message, required, tag = "1")]
    target: TargetMessage,
    /// Unix second.
    #[prost(uint64, optional, tag = "2")]
    expire_at: Option<u64>,
    #[prost(bytes = "bytes", tag = "3")]
    info: Bytes,
}

/// The channels that match are wanted.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub(crate) struct Survey {
    #[prost(uint64, tag = "1")]
    pub(crate) number: u64,
    #[prost(string, tag = "2")]
    pub(crate) pattern: String,
}

/// The answer to a survey.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub(crate) struct Channels {
    #[prost(uint64, tag = "1")]
    pub(crate) survey: u64,
    #[prost(btree_map = "string, uint32", tag = "2")]
    pub(crate) channels: BTreeMap<String, u32>,
}

#[derive(Clone, PartialEq, Eq, prost::Message)]
struct TargetMessage {
    #[prost(string, tag = "1")]
    user: String,
    #[prost(string, tag = "2")]
    client: String,
    #[prost(string, tag = "3")]
    session: String,
    #[prost(string, repeated, tag = "4")]
    whitelist: Vec<String>,
}

impl Message {
    pub(super) fn encoded(&self) -> Bytes {
        let mut out = BytesMut::with_capacity(1 + self.encoded_len());
        out.put_u8(VERSION);
        self.encode(&mut out).expect("a buffer grows");
        out.freeze()
    }

    /// `None` for what is no message of this version.
    pub(super) fn decoded(bytes: &[u8]) -> Option<Self> {
        let (version, message) = bytes.split_first()?;
        (*version == VERSION).then(|| Self::decode(message).ok()).flatten()
    }
}

impl Order {
    pub(crate) fn disconnect(target: &Target, disconnect: &Disconnect) -> Self {
        let (code, reason) = (u32::from(disconnect.code), disconnect.reason.to_string());
        Self::Disconnect(DisconnectOrder { target: target.into(), code, reason })
    }

    pub(crate) fn unsubscribe(target: &Target, channel: Option<&str>) -> Self {
        let channel = channel.map(str::to_owned);
        Self::Unsubscribe(UnsubscribeOrder { target: target.into(), channel })
    }

    pub(crate) fn subscribe(target: &Target, subscription: &ServerSubscription) -> Self {
        let ServerSubscription { channel, info, data, expire_at, overrides, recover_since } =
            subscription.clone();
        let Overrides {
            presence,
            join_leave,
            force_recovery,
            force_positioning,
            force_push_join_leave,
        } = overrides;
        Self::Subscribe(SubscribeOrder {
            target: target.into(),
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
        })
    }

    pub(crate) fn refresh(target: &Target, renewal: &Renewal) -> Self {
        let Renewal { expire_at, info } = renewal.clone();
        Self::Refresh(RefreshOrder { target: target.into(), expire_at, info })
    }
}

impl SubscribeOrder {
    pub(crate) fn into_parts(self) -> (Target, ServerSubscription) {
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
        (self.target.into(), subscription)
    }
}

impl RefreshOrder {
    pub(crate) fn into_parts(self) -> (Target, Renewal) {
        (self.target.into(), Renewal { expire_at: self.expire_at, info: self.info })
    }
}

impl DisconnectOrder {
    /// `None` for a code that no close frame has.
    pub(crate) fn into_parts(self) -> Option<(Target, Disconnect)> {
        let code = u16::try_from(self.code).ok()?;
        Some((self.target.into(), Disconnect { code, reason: self.reason.into() }))
    }
}

impl UnsubscribeOrder {
    pub(crate) fn into_parts(self) -> (Target, Option<String>) {
        (self.target.into(), self.channel)
    }
}

impl From<&Target> for TargetMessage {
    fn from(target: &Target) -> Self {
        let Target { user, client, session, whitelist } = target.clone();
        Self { user, client, session, whitelist }
    }
}

impl From<TargetMessage> for Target {
    fn from(message: TargetMessage) -> Self {
        let TargetMessage { user, client, session, whitelist } = message;
        Self { user, client, session, whitelist }
    }
}

/// In front of every message. A node of another version is not understood, and counts what it cannot read.
const VERSION: u8 = 1;
