//! The messages of the client protocol, kept by hand; a test compares them with `proto/client.proto` (`tests/it/proto_file.rs`).
//! In: nothing. Out: plain structs which prost reads and writes as Protobuf, serde_json reads and `json` writes as JSON.
//! Uses prost, serde and the rules in `json`; holds no logic.
//! A field is added here and in the `.proto` file, in the form of prost-build (`btree_map`, `bytes`), with a `#[serde]` line.

use std::collections::BTreeMap;

use bytes::Bytes;
use serde::{Deserialize, Serialize};

use crate::json;

/// One message from the client. With an id it asks for a `Reply` with the same id; without any
/// field it is a pong.
#[derive(Clone, PartialEq, prost::Message, Serialize, Deserialize)]
#[serde(default)]
pub struct Command {
    /// Chosen by the client, only echoed. 0 is allowed for `send` and for the pong.
    #[prost(uint32, tag = "1")]
    #[serde(deserialize_with = "json::scalar", skip_serializing_if = "json::is_default")]
    pub id: u32,
    #[prost(message, optional, tag = "4")]
    #[serde(deserialize_with = "json::message", skip_serializing_if = "json::is_default")]
    pub connect: Option<ConnectRequest>,
    #[prost(message, optional, tag = "5")]
    #[serde(deserialize_with = "json::message", skip_serializing_if = "json::is_default")]
    pub subscribe: Option<SubscribeRequest>,
    #[prost(message, optional, tag = "6")]
    #[serde(deserialize_with = "json::message", skip_serializing_if = "json::is_default")]
    pub unsubscribe: Option<UnsubscribeRequest>,
    #[prost(message, optional, tag = "7")]
    #[serde(deserialize_with = "json::message", skip_serializing_if = "json::is_default")]
    pub publish: Option<PublishRequest>,
    #[prost(message, optional, tag = "8")]
    #[serde(deserialize_with = "json::message", skip_serializing_if = "json::is_default")]
    pub presence: Option<PresenceRequest>,
    #[prost(message, optional, tag = "9")]
    #[serde(deserialize_with = "json::message", skip_serializing_if = "json::is_default")]
    pub presence_stats: Option<PresenceStatsRequest>,
    #[prost(message, optional, tag = "10")]
    #[serde(deserialize_with = "json::message", skip_serializing_if = "json::is_default")]
    pub history: Option<HistoryRequest>,
    #[prost(message, optional, tag = "11")]
    #[serde(deserialize_with = "json::message", skip_serializing_if = "json::is_default")]
    pub ping: Option<PingRequest>,
    #[prost(message, optional, tag = "12")]
    #[serde(deserialize_with = "json::message", skip_serializing_if = "json::is_default")]
    pub send: Option<SendRequest>,
    #[prost(message, optional, tag = "13")]
    #[serde(deserialize_with = "json::message", skip_serializing_if = "json::is_default")]
    pub rpc: Option<RpcRequest>,
    #[prost(message, optional, tag = "14")]
    #[serde(deserialize_with = "json::message", skip_serializing_if = "json::is_default")]
    pub refresh: Option<RefreshRequest>,
    #[prost(message, optional, tag = "15")]
    #[serde(deserialize_with = "json::message", skip_serializing_if = "json::is_default")]
    pub sub_refresh: Option<SubRefreshRequest>,
}

/// One message to the client: the answer to a command (`id` above 0, then `error` or the result of
/// the command's kind), a push, or, without any field, a ping.
#[derive(Clone, PartialEq, prost::Message, Serialize, Deserialize)]
#[serde(default)]
pub struct Reply {
    #[prost(uint32, tag = "1")]
    #[serde(deserialize_with = "json::scalar", skip_serializing_if = "json::is_default")]
    pub id: u32,
    #[prost(message, optional, tag = "2")]
    #[serde(deserialize_with = "json::message", skip_serializing_if = "json::is_default")]
    pub error: Option<Error>,
    #[prost(message, optional, tag = "4")]
    #[serde(deserialize_with = "json::message", skip_serializing_if = "json::is_default")]
    pub push: Option<Push>,
    #[prost(message, optional, tag = "5")]
    #[serde(deserialize_with = "json::message", skip_serializing_if = "json::is_default")]
    pub connect: Option<ConnectResult>,
    #[prost(message, optional, tag = "6")]
    #[serde(deserialize_with = "json::message", skip_serializing_if = "json::is_default")]
    pub subscribe: Option<SubscribeResult>,
    #[prost(message, optional, tag = "7")]
    #[serde(deserialize_with = "json::message", skip_serializing_if = "json::is_default")]
    pub unsubscribe: Option<UnsubscribeResult>,
    #[prost(message, optional, tag = "8")]
    #[serde(deserialize_with = "json::message", skip_serializing_if = "json::is_default")]
    pub publish: Option<PublishResult>,
    #[prost(message, optional, tag = "9")]
    #[serde(deserialize_with = "json::message", skip_serializing_if = "json::is_default")]
    pub presence: Option<PresenceResult>,
    #[prost(message, optional, tag = "10")]
    #[serde(deserialize_with = "json::message", skip_serializing_if = "json::is_default")]
    pub presence_stats: Option<PresenceStatsResult>,
    #[prost(message, optional, tag = "11")]
    #[serde(deserialize_with = "json::message", skip_serializing_if = "json::is_default")]
    pub history: Option<HistoryResult>,
    #[prost(message, optional, tag = "12")]
    #[serde(deserialize_with = "json::message", skip_serializing_if = "json::is_default")]
    pub ping: Option<PingResult>,
    #[prost(message, optional, tag = "13")]
    #[serde(deserialize_with = "json::message", skip_serializing_if = "json::is_default")]
    pub rpc: Option<RpcResult>,
    #[prost(message, optional, tag = "14")]
    #[serde(deserialize_with = "json::message", skip_serializing_if = "json::is_default")]
    pub refresh: Option<RefreshResult>,
    #[prost(message, optional, tag = "15")]
    #[serde(deserialize_with = "json::message", skip_serializing_if = "json::is_default")]
    pub sub_refresh: Option<SubRefreshResult>,
}

/// Why a command failed. Rows: `ErrorCode`.
#[derive(Clone, PartialEq, Eq, Hash, prost::Message, Serialize, Deserialize)]
#[serde(default)]
pub struct Error {
    #[prost(uint32, tag = "1")]
    #[serde(deserialize_with = "json::scalar", skip_serializing_if = "json::is_default")]
    pub code: u32,
    #[prost(string, tag = "2")]
    #[serde(deserialize_with = "json::scalar", skip_serializing_if = "json::is_default")]
    pub message: String,
    /// The client may try again by itself.
    #[prost(bool, tag = "3")]
    #[serde(deserialize_with = "json::scalar", skip_serializing_if = "json::is_default")]
    pub temporary: bool,
}

/// A message nobody asked for. Never empty: Python takes an empty push as a ping.
#[derive(Clone, PartialEq, prost::Message, Serialize, Deserialize)]
#[serde(default)]
pub struct Push {
    /// Stands for the channel once compaction is negotiated; 0 means none.
    #[prost(int64, tag = "1")]
    #[serde(deserialize_with = "json::scalar", skip_serializing_if = "json::is_default")]
    pub id: i64,
    #[prost(string, tag = "2")]
    #[serde(deserialize_with = "json::scalar", skip_serializing_if = "json::is_default")]
    pub channel: String,
    #[prost(message, optional, tag = "4")]
    #[serde(deserialize_with = "json::message", skip_serializing_if = "json::is_default")]
    pub r#pub: Option<Publication>,
    #[prost(message, optional, tag = "5")]
    #[serde(deserialize_with = "json::message", skip_serializing_if = "json::is_default")]
    pub join: Option<Join>,
    #[prost(message, optional, tag = "6")]
    #[serde(deserialize_with = "json::message", skip_serializing_if = "json::is_default")]
    pub leave: Option<Leave>,
    #[prost(message, optional, tag = "7")]
    #[serde(deserialize_with = "json::message", skip_serializing_if = "json::is_default")]
    pub unsubscribe: Option<Unsubscribe>,
    #[prost(message, optional, tag = "8")]
    #[serde(deserialize_with = "json::message", skip_serializing_if = "json::is_default")]
    pub message: Option<Message>,
    #[prost(message, optional, tag = "9")]
    #[serde(deserialize_with = "json::message", skip_serializing_if = "json::is_default")]
    pub subscribe: Option<Subscribe>,
    #[prost(message, optional, tag = "10")]
    #[serde(deserialize_with = "json::message", skip_serializing_if = "json::is_default")]
    pub connect: Option<Connect>,
    #[prost(message, optional, tag = "11")]
    #[serde(deserialize_with = "json::message", skip_serializing_if = "json::is_default")]
    pub disconnect: Option<Disconnect>,
    #[prost(message, optional, tag = "12")]
    #[serde(deserialize_with = "json::message", skip_serializing_if = "json::is_default")]
    pub refresh: Option<Refresh>,
}

/// Commands of an emulated connection (SSE, HTTP stream). In JSON `data` is a string that holds the
/// commands.
#[derive(Clone, PartialEq, Eq, Hash, prost::Message, Serialize, Deserialize)]
#[serde(default)]
pub struct EmulationRequest {
    #[prost(string, tag = "1")]
    #[serde(deserialize_with = "json::scalar", skip_serializing_if = "json::is_default")]
    pub node: String,
    #[prost(string, tag = "2")]
    #[serde(deserialize_with = "json::scalar", skip_serializing_if = "json::is_default")]
    pub session: String,
    #[prost(bytes = "bytes", tag = "3")]
    #[serde(with = "json::text_bytes", skip_serializing_if = "json::is_default")]
    pub data: Bytes,
}

/// Who a connection is, as other clients see it.
#[derive(Clone, PartialEq, Eq, Hash, prost::Message, Serialize, Deserialize)]
#[serde(default)]
pub struct ClientInfo {
    #[prost(string, tag = "1")]
    #[serde(deserialize_with = "json::scalar")]
    pub user: String,
    #[prost(string, tag = "2")]
    #[serde(deserialize_with = "json::scalar")]
    pub client: String,
    /// From the connection's token.
    #[prost(bytes = "bytes", tag = "3")]
    #[serde(with = "json::raw", skip_serializing_if = "json::is_default")]
    pub conn_info: Bytes,
    /// From the subscription's token.
    #[prost(bytes = "bytes", tag = "4")]
    #[serde(with = "json::raw", skip_serializing_if = "json::is_default")]
    pub chan_info: Bytes,
}

/// What a subscriber receives.
#[derive(Clone, PartialEq, prost::Message, Serialize, Deserialize)]
#[serde(default)]
pub struct Publication {
    /// The payload: raw JSON in JSON; a JSON string when delta is negotiated there.
    #[prost(bytes = "bytes", tag = "4")]
    #[serde(with = "json::raw", skip_serializing_if = "json::is_default")]
    pub data: Bytes,
    /// The publisher, when it was a client.
    #[prost(message, optional, tag = "5")]
    #[serde(deserialize_with = "json::message", skip_serializing_if = "json::is_default")]
    pub info: Option<ClientInfo>,
    /// Place in the channel's stream, from 1; 0 without history.
    #[prost(uint64, tag = "6")]
    #[serde(deserialize_with = "json::scalar", skip_serializing_if = "json::is_default")]
    pub offset: u64,
    #[prost(btree_map = "string, string", tag = "7")]
    #[serde(deserialize_with = "json::map", skip_serializing_if = "json::is_default")]
    pub tags: BTreeMap<String, String>,
    /// `data` is a patch against the preceding publication.
    #[prost(bool, tag = "8")]
    #[serde(deserialize_with = "json::scalar", skip_serializing_if = "json::is_default")]
    pub delta: bool,
    /// Unix milliseconds; internal, never sent.
    #[prost(int64, tag = "9")]
    #[serde(deserialize_with = "json::scalar", skip_serializing_if = "json::is_default")]
    pub time: i64,
    /// Only when it differs from the channel subscribed to.
    #[prost(string, tag = "10")]
    #[serde(deserialize_with = "json::scalar", skip_serializing_if = "json::is_default")]
    pub channel: String,
    /// Map channels: the key this publication sets or removes.
    #[prost(string, tag = "11")]
    #[serde(deserialize_with = "json::scalar", skip_serializing_if = "json::is_default")]
    pub key: String,
    #[prost(bool, tag = "12")]
    #[serde(deserialize_with = "json::scalar", skip_serializing_if = "json::is_default")]
    pub removed: bool,
    #[prost(sint64, tag = "13")]
    #[serde(deserialize_with = "json::scalar", skip_serializing_if = "json::is_default")]
    pub score: i64,
    /// Only with a live publication of offset 1.
    #[prost(string, tag = "14")]
    #[serde(deserialize_with = "json::scalar", skip_serializing_if = "json::is_default")]
    pub epoch: String,
    /// Internal, never sent.
    #[prost(bytes = "bytes", tag = "15")]
    #[serde(with = "json::raw", skip_serializing_if = "json::is_default")]
    pub prev_data: Bytes,
    #[prost(uint64, tag = "16")]
    #[serde(deserialize_with = "json::scalar", skip_serializing_if = "json::is_default")]
    pub version: u64,
}

/// A place in a channel's stream.
#[derive(Clone, PartialEq, Eq, Hash, prost::Message, Serialize, Deserialize)]
#[serde(default)]
pub struct StreamPosition {
    #[prost(uint64, tag = "1")]
    #[serde(deserialize_with = "json::scalar", skip_serializing_if = "json::is_default")]
    pub offset: u64,
    #[prost(string, tag = "2")]
    #[serde(deserialize_with = "json::scalar", skip_serializing_if = "json::is_default")]
    pub epoch: String,
}

/// A tree that chooses publications by their tags.
#[derive(Clone, PartialEq, prost::Message, Serialize, Deserialize)]
#[serde(default)]
pub struct FilterNode {
    /// `and`, `or`, `not`, or empty for a leaf.
    #[prost(string, tag = "1")]
    #[serde(deserialize_with = "json::scalar", skip_serializing_if = "json::is_default")]
    pub op: String,
    #[prost(string, tag = "2")]
    #[serde(deserialize_with = "json::scalar", skip_serializing_if = "json::is_default")]
    pub key: String,
    /// `eq neq in nin ex nex sw ew ct lt lte gt gte`.
    #[prost(string, tag = "3")]
    #[serde(deserialize_with = "json::scalar", skip_serializing_if = "json::is_default")]
    pub cmp: String,
    #[prost(string, tag = "4")]
    #[serde(deserialize_with = "json::scalar", skip_serializing_if = "json::is_default")]
    pub val: String,
    #[prost(string, repeated, tag = "5")]
    #[serde(deserialize_with = "json::list", skip_serializing_if = "json::is_default")]
    pub vals: Vec<String>,
    #[prost(message, repeated, tag = "6")]
    #[serde(deserialize_with = "json::list", skip_serializing_if = "json::is_default")]
    pub nodes: Vec<FilterNode>,
}

/// A compression dictionary; JSON connections get `data_b64`.
#[derive(Clone, PartialEq, Eq, Hash, prost::Message, Serialize, Deserialize)]
#[serde(default)]
pub struct Dictionary {
    #[prost(string, tag = "1")]
    #[serde(deserialize_with = "json::scalar", skip_serializing_if = "json::is_default")]
    pub id: String,
    #[prost(bytes = "bytes", tag = "2")]
    #[serde(with = "json::raw", skip_serializing_if = "json::is_default")]
    pub data: Bytes,
    #[prost(string, tag = "3")]
    #[serde(deserialize_with = "json::scalar", skip_serializing_if = "json::is_default")]
    pub data_b64: String,
}

#[derive(Clone, PartialEq, prost::Message, Serialize, Deserialize)]
#[serde(default)]
pub struct ConnectRequest {
    #[prost(string, tag = "1")]
    #[serde(deserialize_with = "json::scalar", skip_serializing_if = "json::is_default")]
    pub token: String,
    #[prost(bytes = "bytes", tag = "2")]
    #[serde(with = "json::raw", skip_serializing_if = "json::is_default")]
    pub data: Bytes,
    /// Requested server-side subscriptions, with their recovery positions.
    #[prost(btree_map = "string, message", tag = "3")]
    #[serde(deserialize_with = "json::map", skip_serializing_if = "json::is_default")]
    pub subs: BTreeMap<String, SubscribeRequest>,
    #[prost(string, tag = "4")]
    #[serde(deserialize_with = "json::scalar", skip_serializing_if = "json::is_default")]
    pub name: String,
    #[prost(string, tag = "5")]
    #[serde(deserialize_with = "json::scalar", skip_serializing_if = "json::is_default")]
    pub version: String,
    /// Headers a browser cannot set itself.
    #[prost(btree_map = "string, string", tag = "6")]
    #[serde(deserialize_with = "json::map", skip_serializing_if = "json::is_default")]
    pub headers: BTreeMap<String, String>,
    /// Bit 1: dictionary compression.
    #[prost(int64, tag = "7")]
    #[serde(deserialize_with = "json::scalar", skip_serializing_if = "json::is_default")]
    pub flag: i64,
    /// Id of a dictionary the client has.
    #[prost(string, tag = "8")]
    #[serde(deserialize_with = "json::scalar", skip_serializing_if = "json::is_default")]
    pub dict: String,
    #[prost(string, tag = "9")]
    #[serde(deserialize_with = "json::scalar", skip_serializing_if = "json::is_default")]
    pub profile: String,
}

#[derive(Clone, PartialEq, prost::Message, Serialize, Deserialize)]
#[serde(default)]
pub struct ConnectResult {
    /// Unique id of the connection; never empty.
    #[prost(string, tag = "1")]
    #[serde(deserialize_with = "json::scalar", skip_serializing_if = "json::is_default")]
    pub client: String,
    #[prost(string, tag = "2")]
    #[serde(deserialize_with = "json::scalar", skip_serializing_if = "json::is_default")]
    pub version: String,
    /// The client must refresh its token within `ttl` seconds.
    #[prost(bool, tag = "3")]
    #[serde(deserialize_with = "json::scalar", skip_serializing_if = "json::is_default")]
    pub expires: bool,
    #[prost(uint32, tag = "4")]
    #[serde(deserialize_with = "json::scalar", skip_serializing_if = "json::is_default")]
    pub ttl: u32,
    #[prost(bytes = "bytes", tag = "5")]
    #[serde(with = "json::raw", skip_serializing_if = "json::is_default")]
    pub data: Bytes,
    #[prost(btree_map = "string, message", tag = "6")]
    #[serde(deserialize_with = "json::map", skip_serializing_if = "json::is_default")]
    pub subs: BTreeMap<String, SubscribeResult>,
    /// Seconds between pings; 0 with native ping frames.
    #[prost(uint32, tag = "7")]
    #[serde(deserialize_with = "json::scalar", skip_serializing_if = "json::is_default")]
    pub ping: u32,
    /// The client must answer pings.
    #[prost(bool, tag = "8")]
    #[serde(deserialize_with = "json::scalar", skip_serializing_if = "json::is_default")]
    pub pong: bool,
    #[prost(string, tag = "9")]
    #[serde(deserialize_with = "json::scalar", skip_serializing_if = "json::is_default")]
    pub session: String,
    #[prost(string, tag = "10")]
    #[serde(deserialize_with = "json::scalar", skip_serializing_if = "json::is_default")]
    pub node: String,
    /// Unix milliseconds of the server.
    #[prost(int64, tag = "11")]
    #[serde(deserialize_with = "json::scalar", skip_serializing_if = "json::is_default")]
    pub time: i64,
    #[prost(int64, tag = "12")]
    #[serde(deserialize_with = "json::scalar", skip_serializing_if = "json::is_default")]
    pub flag: i64,
    #[prost(message, optional, tag = "13")]
    #[serde(deserialize_with = "json::message", skip_serializing_if = "json::is_default")]
    pub dict: Option<Dictionary>,
}

#[derive(Clone, PartialEq, Eq, Hash, prost::Message, Serialize, Deserialize)]
#[serde(default)]
pub struct RefreshRequest {
    #[prost(string, tag = "1")]
    #[serde(deserialize_with = "json::scalar", skip_serializing_if = "json::is_default")]
    pub token: String,
}

#[derive(Clone, PartialEq, Eq, Hash, prost::Message, Serialize, Deserialize)]
#[serde(default)]
pub struct RefreshResult {
    #[prost(string, tag = "1")]
    #[serde(deserialize_with = "json::scalar", skip_serializing_if = "json::is_default")]
    pub client: String,
    #[prost(string, tag = "2")]
    #[serde(deserialize_with = "json::scalar", skip_serializing_if = "json::is_default")]
    pub version: String,
    #[prost(bool, tag = "3")]
    #[serde(deserialize_with = "json::scalar", skip_serializing_if = "json::is_default")]
    pub expires: bool,
    #[prost(uint32, tag = "4")]
    #[serde(deserialize_with = "json::scalar", skip_serializing_if = "json::is_default")]
    pub ttl: u32,
}

#[derive(Clone, PartialEq, prost::Message, Serialize, Deserialize)]
#[serde(default)]
pub struct SubscribeRequest {
    #[prost(string, tag = "1")]
    #[serde(deserialize_with = "json::scalar", skip_serializing_if = "json::is_default")]
    pub channel: String,
    #[prost(string, tag = "2")]
    #[serde(deserialize_with = "json::scalar", skip_serializing_if = "json::is_default")]
    pub token: String,
    #[prost(bool, tag = "3")]
    #[serde(deserialize_with = "json::scalar", skip_serializing_if = "json::is_default")]
    pub recover: bool,
    /// Where to recover from.
    #[prost(string, tag = "6")]
    #[serde(deserialize_with = "json::scalar", skip_serializing_if = "json::is_default")]
    pub epoch: String,
    #[prost(uint64, tag = "7")]
    #[serde(deserialize_with = "json::scalar", skip_serializing_if = "json::is_default")]
    pub offset: u64,
    #[prost(bytes = "bytes", tag = "8")]
    #[serde(with = "json::raw", skip_serializing_if = "json::is_default")]
    pub data: Bytes,
    #[prost(bool, tag = "9")]
    #[serde(deserialize_with = "json::scalar", skip_serializing_if = "json::is_default")]
    pub positioned: bool,
    #[prost(bool, tag = "10")]
    #[serde(deserialize_with = "json::scalar", skip_serializing_if = "json::is_default")]
    pub recoverable: bool,
    #[prost(bool, tag = "11")]
    #[serde(deserialize_with = "json::scalar", skip_serializing_if = "json::is_default")]
    pub join_leave: bool,
    /// `fossil` or empty.
    #[prost(string, tag = "12")]
    #[serde(deserialize_with = "json::scalar", skip_serializing_if = "json::is_default")]
    pub delta: String,
    #[prost(message, optional, tag = "13")]
    #[serde(deserialize_with = "json::message", skip_serializing_if = "json::is_default")]
    pub tf: Option<FilterNode>,
    /// Bit 1: channel compaction. Bit 2: error 112 rather than an unrecovered subscription.
    #[prost(int64, tag = "14")]
    #[serde(deserialize_with = "json::scalar", skip_serializing_if = "json::is_default")]
    pub flag: i64,
    /// 0 stream; 1, 2, 3 map; 4 shared poll.
    #[prost(int32, tag = "15")]
    #[serde(deserialize_with = "json::scalar", skip_serializing_if = "json::is_default")]
    pub r#type: i32,
    /// Map subscriptions: 0 live, 1 stream, 2 state.
    #[prost(int32, tag = "16")]
    #[serde(deserialize_with = "json::scalar", skip_serializing_if = "json::is_default")]
    pub phase: i32,
    #[prost(string, tag = "17")]
    #[serde(deserialize_with = "json::scalar", skip_serializing_if = "json::is_default")]
    pub cursor: String,
    #[prost(int32, tag = "18")]
    #[serde(deserialize_with = "json::scalar", skip_serializing_if = "json::is_default")]
    pub limit: i32,
    #[prost(bool, tag = "19")]
    #[serde(deserialize_with = "json::scalar", skip_serializing_if = "json::is_default")]
    pub asc: bool,
}

#[derive(Clone, PartialEq, prost::Message, Serialize, Deserialize)]
#[serde(default)]
pub struct SubscribeResult {
    #[prost(bool, tag = "1")]
    #[serde(deserialize_with = "json::scalar", skip_serializing_if = "json::is_default")]
    pub expires: bool,
    #[prost(uint32, tag = "2")]
    #[serde(deserialize_with = "json::scalar", skip_serializing_if = "json::is_default")]
    pub ttl: u32,
    #[prost(bool, tag = "3")]
    #[serde(deserialize_with = "json::scalar", skip_serializing_if = "json::is_default")]
    pub recoverable: bool,
    #[prost(string, tag = "6")]
    #[serde(deserialize_with = "json::scalar", skip_serializing_if = "json::is_default")]
    pub epoch: String,
    /// Missed publications, oldest first; only when `recovered`.
    #[prost(message, repeated, tag = "7")]
    #[serde(deserialize_with = "json::list", skip_serializing_if = "json::is_default")]
    pub publications: Vec<Publication>,
    #[prost(bool, tag = "8")]
    #[serde(deserialize_with = "json::scalar", skip_serializing_if = "json::is_default")]
    pub recovered: bool,
    /// The request's offset when `recovered`, else the stream's top.
    #[prost(uint64, tag = "9")]
    #[serde(deserialize_with = "json::scalar", skip_serializing_if = "json::is_default")]
    pub offset: u64,
    #[prost(bool, tag = "10")]
    #[serde(deserialize_with = "json::scalar", skip_serializing_if = "json::is_default")]
    pub positioned: bool,
    #[prost(bytes = "bytes", tag = "11")]
    #[serde(with = "json::raw", skip_serializing_if = "json::is_default")]
    pub data: Bytes,
    #[prost(bool, tag = "12")]
    #[serde(deserialize_with = "json::scalar", skip_serializing_if = "json::is_default")]
    pub was_recovering: bool,
    /// Publications of this subscription may be patches.
    #[prost(bool, tag = "13")]
    #[serde(deserialize_with = "json::scalar", skip_serializing_if = "json::is_default")]
    pub delta: bool,
    #[prost(int64, tag = "14")]
    #[serde(deserialize_with = "json::scalar", skip_serializing_if = "json::is_default")]
    pub id: i64,
    #[prost(int32, tag = "15")]
    #[serde(deserialize_with = "json::scalar", skip_serializing_if = "json::is_default")]
    pub r#type: i32,
    #[prost(int32, tag = "16")]
    #[serde(deserialize_with = "json::scalar", skip_serializing_if = "json::is_default")]
    pub phase: i32,
    #[prost(string, tag = "17")]
    #[serde(deserialize_with = "json::scalar", skip_serializing_if = "json::is_default")]
    pub cursor: String,
    #[prost(message, repeated, tag = "18")]
    #[serde(deserialize_with = "json::list", skip_serializing_if = "json::is_default")]
    pub state: Vec<Publication>,
    /// Milliseconds.
    #[prost(uint32, tag = "19")]
    #[serde(deserialize_with = "json::scalar", skip_serializing_if = "json::is_default")]
    pub publish_debounce: u32,
}

#[derive(Clone, PartialEq, prost::Message, Serialize, Deserialize)]
#[serde(default)]
pub struct SubRefreshRequest {
    #[prost(string, tag = "1")]
    #[serde(deserialize_with = "json::scalar", skip_serializing_if = "json::is_default")]
    pub channel: String,
    #[prost(string, tag = "2")]
    #[serde(deserialize_with = "json::scalar", skip_serializing_if = "json::is_default")]
    pub token: String,
    /// Shared poll: 1 track, 2 untrack.
    #[prost(int32, tag = "3")]
    #[serde(deserialize_with = "json::scalar", skip_serializing_if = "json::is_default")]
    pub r#type: i32,
    #[prost(message, repeated, tag = "4")]
    #[serde(deserialize_with = "json::list", skip_serializing_if = "json::is_default")]
    pub track: Vec<TrackBatch>,
    #[prost(string, repeated, tag = "5")]
    #[serde(deserialize_with = "json::list", skip_serializing_if = "json::is_default")]
    pub untrack: Vec<String>,
}

#[derive(Clone, PartialEq, prost::Message, Serialize, Deserialize)]
#[serde(default)]
pub struct TrackBatch {
    #[prost(string, tag = "1")]
    #[serde(deserialize_with = "json::scalar", skip_serializing_if = "json::is_default")]
    pub signature: String,
    #[prost(message, repeated, tag = "2")]
    #[serde(deserialize_with = "json::list", skip_serializing_if = "json::is_default")]
    pub items: Vec<KeyedItem>,
}

#[derive(Clone, PartialEq, Eq, Hash, prost::Message, Serialize, Deserialize)]
#[serde(default)]
pub struct KeyedItem {
    #[prost(string, tag = "1")]
    #[serde(deserialize_with = "json::scalar", skip_serializing_if = "json::is_default")]
    pub key: String,
    #[prost(uint64, tag = "2")]
    #[serde(deserialize_with = "json::scalar", skip_serializing_if = "json::is_default")]
    pub version: u64,
}

#[derive(Clone, PartialEq, prost::Message, Serialize, Deserialize)]
#[serde(default)]
pub struct SubRefreshResult {
    #[prost(bool, tag = "1")]
    #[serde(deserialize_with = "json::scalar", skip_serializing_if = "json::is_default")]
    pub expires: bool,
    #[prost(uint32, tag = "2")]
    #[serde(deserialize_with = "json::scalar", skip_serializing_if = "json::is_default")]
    pub ttl: u32,
    #[prost(message, repeated, tag = "3")]
    #[serde(deserialize_with = "json::list", skip_serializing_if = "json::is_default")]
    pub items: Vec<Publication>,
}

#[derive(Clone, PartialEq, Eq, Hash, prost::Message, Serialize, Deserialize)]
#[serde(default)]
pub struct UnsubscribeRequest {
    #[prost(string, tag = "1")]
    #[serde(deserialize_with = "json::scalar", skip_serializing_if = "json::is_default")]
    pub channel: String,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, prost::Message, Serialize, Deserialize)]
#[serde(default)]
pub struct UnsubscribeResult {}

#[derive(Clone, PartialEq, Eq, Hash, prost::Message, Serialize, Deserialize)]
#[serde(default)]
pub struct PublishRequest {
    #[prost(string, tag = "1")]
    #[serde(deserialize_with = "json::scalar", skip_serializing_if = "json::is_default")]
    pub channel: String,
    #[prost(bytes = "bytes", tag = "2")]
    #[serde(with = "json::raw", skip_serializing_if = "json::is_default")]
    pub data: Bytes,
    /// 1 on map channels.
    #[prost(int32, tag = "3")]
    #[serde(deserialize_with = "json::scalar", skip_serializing_if = "json::is_default")]
    pub r#type: i32,
    #[prost(string, tag = "4")]
    #[serde(deserialize_with = "json::scalar", skip_serializing_if = "json::is_default")]
    pub key: String,
    #[prost(bool, tag = "5")]
    #[serde(deserialize_with = "json::scalar", skip_serializing_if = "json::is_default")]
    pub removed: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, prost::Message, Serialize, Deserialize)]
#[serde(default)]
pub struct PublishResult {}

#[derive(Clone, PartialEq, Eq, Hash, prost::Message, Serialize, Deserialize)]
#[serde(default)]
pub struct PresenceRequest {
    #[prost(string, tag = "1")]
    #[serde(deserialize_with = "json::scalar", skip_serializing_if = "json::is_default")]
    pub channel: String,
}

#[derive(Clone, PartialEq, prost::Message, Serialize, Deserialize)]
#[serde(default)]
pub struct PresenceResult {
    /// By client id.
    #[prost(btree_map = "string, message", tag = "1")]
    #[serde(deserialize_with = "json::map")]
    pub presence: BTreeMap<String, ClientInfo>,
}

#[derive(Clone, PartialEq, Eq, Hash, prost::Message, Serialize, Deserialize)]
#[serde(default)]
pub struct PresenceStatsRequest {
    #[prost(string, tag = "1")]
    #[serde(deserialize_with = "json::scalar", skip_serializing_if = "json::is_default")]
    pub channel: String,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, prost::Message, Serialize, Deserialize)]
#[serde(default)]
pub struct PresenceStatsResult {
    #[prost(uint32, tag = "1")]
    #[serde(deserialize_with = "json::scalar")]
    pub num_clients: u32,
    #[prost(uint32, tag = "2")]
    #[serde(deserialize_with = "json::scalar")]
    pub num_users: u32,
}

#[derive(Clone, PartialEq, Eq, Hash, prost::Message, Serialize, Deserialize)]
#[serde(default)]
pub struct HistoryRequest {
    #[prost(string, tag = "1")]
    #[serde(deserialize_with = "json::scalar", skip_serializing_if = "json::is_default")]
    pub channel: String,
    /// 0: only the position. Below 0: as many as allowed.
    #[prost(int32, tag = "7")]
    #[serde(deserialize_with = "json::scalar", skip_serializing_if = "json::is_default")]
    pub limit: i32,
    #[prost(message, optional, tag = "8")]
    #[serde(deserialize_with = "json::message", skip_serializing_if = "json::is_default")]
    pub since: Option<StreamPosition>,
    #[prost(bool, tag = "9")]
    #[serde(deserialize_with = "json::scalar", skip_serializing_if = "json::is_default")]
    pub reverse: bool,
}

#[derive(Clone, PartialEq, prost::Message, Serialize, Deserialize)]
#[serde(default)]
pub struct HistoryResult {
    #[prost(message, repeated, tag = "1")]
    #[serde(deserialize_with = "json::list")]
    pub publications: Vec<Publication>,
    #[prost(string, tag = "2")]
    #[serde(deserialize_with = "json::scalar")]
    pub epoch: String,
    /// The stream's top, not the last one returned.
    #[prost(uint64, tag = "3")]
    #[serde(deserialize_with = "json::scalar")]
    pub offset: u64,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, prost::Message, Serialize, Deserialize)]
#[serde(default)]
pub struct PingRequest {}

#[derive(Clone, Copy, PartialEq, Eq, Hash, prost::Message, Serialize, Deserialize)]
#[serde(default)]
pub struct PingResult {}

#[derive(Clone, PartialEq, Eq, Hash, prost::Message, Serialize, Deserialize)]
#[serde(default)]
pub struct RpcRequest {
    #[prost(bytes = "bytes", tag = "1")]
    #[serde(with = "json::raw", skip_serializing_if = "json::is_default")]
    pub data: Bytes,
    #[prost(string, tag = "2")]
    #[serde(deserialize_with = "json::scalar", skip_serializing_if = "json::is_default")]
    pub method: String,
}

#[derive(Clone, PartialEq, Eq, Hash, prost::Message, Serialize, Deserialize)]
#[serde(default)]
pub struct RpcResult {
    #[prost(bytes = "bytes", tag = "1")]
    #[serde(with = "json::raw", skip_serializing_if = "json::is_default")]
    pub data: Bytes,
}

#[derive(Clone, PartialEq, Eq, Hash, prost::Message, Serialize, Deserialize)]
#[serde(default)]
pub struct SendRequest {
    #[prost(bytes = "bytes", tag = "1")]
    #[serde(with = "json::raw", skip_serializing_if = "json::is_default")]
    pub data: Bytes,
}

/// Push: a client entered the channel.
#[derive(Clone, PartialEq, Eq, Hash, prost::Message, Serialize, Deserialize)]
#[serde(default)]
pub struct Join {
    #[prost(message, optional, tag = "1")]
    #[serde(deserialize_with = "json::message", skip_serializing_if = "json::is_default")]
    pub info: Option<ClientInfo>,
}

/// Push: a client left the channel.
#[derive(Clone, PartialEq, Eq, Hash, prost::Message, Serialize, Deserialize)]
#[serde(default)]
pub struct Leave {
    #[prost(message, optional, tag = "1")]
    #[serde(deserialize_with = "json::message", skip_serializing_if = "json::is_default")]
    pub info: Option<ClientInfo>,
}

/// Push: the server ended a subscription. Rows: `UnsubscribeCode`.
#[derive(Clone, PartialEq, Eq, Hash, prost::Message, Serialize, Deserialize)]
#[serde(default)]
pub struct Unsubscribe {
    #[prost(uint32, tag = "2")]
    #[serde(deserialize_with = "json::scalar", skip_serializing_if = "json::is_default")]
    pub code: u32,
    #[prost(string, tag = "3")]
    #[serde(deserialize_with = "json::scalar", skip_serializing_if = "json::is_default")]
    pub reason: String,
}

/// Push: the server made a subscription.
#[derive(Clone, PartialEq, Eq, Hash, prost::Message, Serialize, Deserialize)]
#[serde(default)]
pub struct Subscribe {
    #[prost(bool, tag = "1")]
    #[serde(deserialize_with = "json::scalar", skip_serializing_if = "json::is_default")]
    pub recoverable: bool,
    #[prost(string, tag = "4")]
    #[serde(deserialize_with = "json::scalar", skip_serializing_if = "json::is_default")]
    pub epoch: String,
    #[prost(uint64, tag = "5")]
    #[serde(deserialize_with = "json::scalar", skip_serializing_if = "json::is_default")]
    pub offset: u64,
    #[prost(bool, tag = "6")]
    #[serde(deserialize_with = "json::scalar", skip_serializing_if = "json::is_default")]
    pub positioned: bool,
    #[prost(bytes = "bytes", tag = "7")]
    #[serde(with = "json::raw", skip_serializing_if = "json::is_default")]
    pub data: Bytes,
}

/// Push: something for the application, outside of any channel.
#[derive(Clone, PartialEq, Eq, Hash, prost::Message, Serialize, Deserialize)]
#[serde(default)]
pub struct Message {
    #[prost(bytes = "bytes", tag = "1")]
    #[serde(with = "json::raw", skip_serializing_if = "json::is_default")]
    pub data: Bytes,
}

/// Push: the connect result of a unidirectional transport.
#[derive(Clone, PartialEq, prost::Message, Serialize, Deserialize)]
#[serde(default)]
pub struct Connect {
    #[prost(string, tag = "1")]
    #[serde(deserialize_with = "json::scalar", skip_serializing_if = "json::is_default")]
    pub client: String,
    #[prost(string, tag = "2")]
    #[serde(deserialize_with = "json::scalar", skip_serializing_if = "json::is_default")]
    pub version: String,
    #[prost(bytes = "bytes", tag = "3")]
    #[serde(with = "json::raw", skip_serializing_if = "json::is_default")]
    pub data: Bytes,
    #[prost(btree_map = "string, message", tag = "4")]
    #[serde(deserialize_with = "json::map", skip_serializing_if = "json::is_default")]
    pub subs: BTreeMap<String, SubscribeResult>,
    #[prost(bool, tag = "5")]
    #[serde(deserialize_with = "json::scalar", skip_serializing_if = "json::is_default")]
    pub expires: bool,
    #[prost(uint32, tag = "6")]
    #[serde(deserialize_with = "json::scalar", skip_serializing_if = "json::is_default")]
    pub ttl: u32,
    #[prost(uint32, tag = "7")]
    #[serde(deserialize_with = "json::scalar", skip_serializing_if = "json::is_default")]
    pub ping: u32,
    #[prost(bool, tag = "8")]
    #[serde(deserialize_with = "json::scalar", skip_serializing_if = "json::is_default")]
    pub pong: bool,
    #[prost(string, tag = "9")]
    #[serde(deserialize_with = "json::scalar", skip_serializing_if = "json::is_default")]
    pub session: String,
    #[prost(string, tag = "10")]
    #[serde(deserialize_with = "json::scalar", skip_serializing_if = "json::is_default")]
    pub node: String,
    #[prost(int64, tag = "11")]
    #[serde(deserialize_with = "json::scalar", skip_serializing_if = "json::is_default")]
    pub time: i64,
}

/// Push: the end of a connection on transports without close codes. Rows: `codes::Disconnect`.
#[derive(Clone, PartialEq, Eq, Hash, prost::Message, Serialize, Deserialize)]
#[serde(default)]
pub struct Disconnect {
    #[prost(uint32, tag = "1")]
    #[serde(deserialize_with = "json::scalar", skip_serializing_if = "json::is_default")]
    pub code: u32,
    #[prost(string, tag = "2")]
    #[serde(deserialize_with = "json::scalar", skip_serializing_if = "json::is_default")]
    pub reason: String,
    /// Never set: the code's range decides.
    #[prost(bool, tag = "3")]
    #[serde(deserialize_with = "json::scalar", skip_serializing_if = "json::is_default")]
    pub reconnect: bool,
}

/// Push: the server moved the connection's expiry.
#[derive(Clone, Copy, PartialEq, Eq, Hash, prost::Message, Serialize, Deserialize)]
#[serde(default)]
pub struct Refresh {
    #[prost(bool, tag = "1")]
    #[serde(deserialize_with = "json::scalar", skip_serializing_if = "json::is_default")]
    pub expires: bool,
    #[prost(uint32, tag = "2")]
    #[serde(deserialize_with = "json::scalar", skip_serializing_if = "json::is_default")]
    pub ttl: u32,
}
