//! The record of a session that moves to another program, as a Protobuf message: a later version may add fields.
//! In: the values of a session → out: bytes, and the same values in the other program. Times are milliseconds that are left.
//! Uses: prost. Pure. Never: the tables of a shard; `hub/takeover.rs` reads and fills them.
//! Changed here: what a record has. A tag is never used for another meaning; `session_record/parts.rs` converts the parts.

mod parts;

use std::collections::BTreeMap;

use bytes::Bytes;
use fanwire_protocol::FilterNode;
use prost::Message as _;

pub(crate) use parts::{SavedSubscription, delta_number, end, left, moment};

/// The state of one session.
///
/// Without the base of deltas: the client gets the full data first. Without commands that wait: such a session does not move.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct SessionRecord {
    #[prost(message, required, tag = "1")]
    pub(crate) connection: ConnectionRecord,
    #[prost(string, tag = "2")]
    pub(crate) user: String,
    /// The client id, 16 bytes.
    #[prost(bytes = "vec", tag = "3")]
    pub(crate) id: Vec<u8>,
    /// The secret part of the session id, 16 bytes; empty = none.
    #[prost(bytes = "vec", tag = "4")]
    pub(crate) secret: Vec<u8>,
    #[prost(bytes = "bytes", tag = "5")]
    pub(crate) info: Bytes,
    /// Unix second.
    #[prost(uint64, optional, tag = "6")]
    pub(crate) expire_at: Option<u64>,
    /// Unix time in milliseconds.
    #[prost(uint64, tag = "7")]
    pub(crate) connected_at_ms: u64,
    #[prost(message, required, tag = "8")]
    pub(crate) timers: TimersRecord,
    #[prost(message, optional, tag = "9")]
    pub(crate) context: Option<ContextRecord>,
    #[prost(message, required, tag = "10")]
    pub(crate) app: AppRecord,
    #[prost(message, optional, tag = "11")]
    pub(crate) grant: Option<GrantRecord>,
    #[prost(message, repeated, tag = "12")]
    pub(crate) subscriptions: Vec<SubscriptionRecord>,
    #[prost(message, repeated, tag = "13")]
    pub(crate) views: Vec<ViewRecord>,
    #[prost(message, optional, tag = "14")]
    pub(crate) rates: Option<RatesRecord>,
}

/// How a session is connected.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct ConnectionRecord {
    /// The number of its phase in the life of a connection.
    #[prost(uint32, tag = "1")]
    pub(crate) phase: u32,
    #[prost(string, tag = "2")]
    pub(crate) encoding: String,
    #[prost(bool, tag = "3")]
    pub(crate) frame_ping: bool,
    /// The number of the way of its commands.
    #[prost(uint32, tag = "4")]
    pub(crate) command_source: u32,
    #[prost(string, tag = "5")]
    pub(crate) transport: String,
    /// User id that the request carried, until connect.
    #[prost(string, optional, tag = "6")]
    pub(crate) user: Option<String>,
    /// The last event that the request named, until connect; "" for one without a position.
    #[prost(string, optional, tag = "7")]
    pub(crate) last_event_id: Option<String>,
}

/// Milliseconds that are left; `None` = never.
#[derive(Clone, Copy, PartialEq, prost::Message)]
pub(crate) struct TimersRecord {
    /// To the next ping, or to the end of a connection that is not connected yet.
    #[prost(uint64, optional, tag = "1")]
    pub(crate) beat: Option<u64>,
    /// To the end of a connection without the pong that it awaits.
    #[prost(uint64, optional, tag = "2")]
    pub(crate) pong: Option<u64>,
    #[prost(bool, tag = "3")]
    pub(crate) awaits_pong: bool,
    /// The shell does not read the connection: the time to the pong begins again.
    #[prost(bool, tag = "4")]
    pub(crate) is_held: bool,
    /// To the next renewal of presence.
    #[prost(uint64, optional, tag = "5")]
    pub(crate) renewal: Option<u64>,
}

/// Facts for hooks.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct ContextRecord {
    #[prost(message, repeated, tag = "1")]
    pub(crate) headers: Vec<HeaderRecord>,
    #[prost(message, repeated, tag = "2")]
    pub(crate) emulated_headers: Vec<EmulatedHeaderRecord>,
    #[prost(bytes = "bytes", tag = "3")]
    pub(crate) meta: Bytes,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct HeaderRecord {
    #[prost(string, tag = "1")]
    pub(crate) name: String,
    #[prost(bytes = "bytes", tag = "2")]
    pub(crate) value: Bytes,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct EmulatedHeaderRecord {
    #[prost(string, tag = "1")]
    pub(crate) name: String,
    #[prost(string, tag = "2")]
    pub(crate) value: String,
}

/// The program of the client, and its labels.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct AppRecord {
    #[prost(string, tag = "1")]
    pub(crate) name: String,
    #[prost(string, tag = "2")]
    pub(crate) version: String,
    #[prost(btree_map = "string, string", tag = "3")]
    pub(crate) labels: BTreeMap<String, String>,
}

/// Attributes from the credentials.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct GrantRecord {
    /// Made by the standard library. If the other one makes another hash, a refresh ends with 3010 and the client reconnects.
    #[prost(fixed64, tag = "1")]
    pub(crate) channels_hash: u64,
    #[prost(message, optional, tag = "2")]
    pub(crate) token: Option<TokenRecord>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct TokenRecord {
    #[prost(string, tag = "1")]
    pub(crate) uid: String,
    /// Unix second.
    #[prost(uint32, tag = "2")]
    pub(crate) issued_at: u32,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct SubscriptionRecord {
    #[prost(string, tag = "1")]
    pub(crate) channel: String,
    #[prost(bool, tag = "2")]
    pub(crate) server_side: bool,
    #[prost(bool, tag = "3")]
    pub(crate) present: bool,
    #[prost(bool, tag = "4")]
    pub(crate) announced: bool,
    #[prost(bool, tag = "5")]
    pub(crate) wants_join_leave: bool,
    #[prost(bool, tag = "6")]
    pub(crate) has_entries: bool,
    #[prost(message, optional, tag = "7")]
    pub(crate) position: Option<PositionRecord>,
    /// The number of its kind of deltas; 0 = none. The client gets the full data first.
    #[prost(uint32, tag = "8")]
    pub(crate) delta: u32,
    #[prost(message, optional, tag = "9")]
    pub(crate) terms: Option<TermsRecord>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct PositionRecord {
    #[prost(uint64, tag = "1")]
    pub(crate) offset: u64,
    #[prost(string, tag = "2")]
    pub(crate) epoch: String,
    /// Publications after it may have been lost: it is compared with the stream soon.
    #[prost(bool, tag = "3")]
    pub(crate) may_have_gap: bool,
}

/// Attributes from a token or a hook, and the filter.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct TermsRecord {
    #[prost(bytes = "bytes", tag = "1")]
    pub(crate) info: Bytes,
    /// Unix second.
    #[prost(uint64, optional, tag = "2")]
    pub(crate) expire_at: Option<u64>,
    /// The filter of the client.
    #[prost(message, optional, tag = "3")]
    pub(crate) filter: Option<FilterNode>,
    #[prost(bool, tag = "4")]
    pub(crate) is_refreshed_by_hook: bool,
    #[prost(message, optional, tag = "5")]
    pub(crate) token: Option<TokenRecord>,
    #[prost(message, optional, tag = "6")]
    pub(crate) server_filter: Option<FilterNode>,
}

/// The tiles that a subscriber of a spatial channel sees.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct ViewRecord {
    #[prost(string, tag = "1")]
    pub(crate) channel: String,
    #[prost(message, repeated, tag = "2")]
    pub(crate) tiles: Vec<TileRecord>,
}

#[derive(Clone, Copy, PartialEq, prost::Message)]
pub(crate) struct TileRecord {
    #[prost(sint32, tag = "1")]
    pub(crate) x: i32,
    #[prost(sint32, tag = "2")]
    pub(crate) y: i32,
    #[prost(sint32, tag = "3")]
    pub(crate) layer: i32,
    #[prost(uint32, tag = "4")]
    pub(crate) ring: u32,
}

/// Nanoseconds until the buckets of the session are full.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct RatesRecord {
    #[prost(uint64, tag = "1")]
    pub(crate) commands: u64,
    #[prost(uint64, tag = "2")]
    pub(crate) refusals: u64,
    #[prost(message, repeated, tag = "3")]
    pub(crate) namespaces: Vec<NamespaceRateRecord>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct NamespaceRateRecord {
    /// Its name; "" for channels without a namespace.
    #[prost(string, tag = "1")]
    pub(crate) namespace: String,
    #[prost(bool, tag = "2")]
    pub(crate) is_of_subscribes: bool,
    #[prost(uint64, tag = "3")]
    pub(crate) nanos: u64,
}

impl SessionRecord {
    /// The format, then the message.
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut saved = Vec::with_capacity(1 + self.encoded_len());
        saved.push(SESSION_FORMAT);
        self.encode_raw(&mut saved);
        saved
    }

    /// The record that these bytes are; `None` for others, and for those of another format.
    pub(crate) fn decode(saved: &[u8]) -> Option<Self> {
        let (format, message) = saved.split_first()?;
        let record = <Self as prost::Message>::decode(message).ok()?;
        (*format == SESSION_FORMAT).then_some(record)
    }
}

/// The format of the record. Raised when an older program would understand one wrongly.
pub const SESSION_FORMAT: u8 = 1;

#[cfg(test)]
pub(crate) mod tests;
