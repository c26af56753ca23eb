//! The way of broadcasts to connections: a hub of sessions behind each shard, and one compression for all receivers.
//! In: messages, notices and time from the shard → out: frames on the shard's `ConnectionWriter`, shared where receivers can share them.
//! Uses `node` for every decision, `shard` for connections, `deflate` for bytes. Never: sockets, HTTP, rules of channels.
//! Changed here: the public items. The hub behind a shard lives in `realtime`, histories of channels in `compression`.
#![forbid(unsafe_code)]

mod clock;
mod compression;
mod event;
mod realtime;

pub use clock::unix_ms;
pub use compression::{
    ContextSettings, Contexts, DeliveryKind, GAPS_MAX, NamespaceCounters, Policies,
};
pub use realtime::{
    BacklogCounters, ConnectError, EncodeWorker, MakeResponse, NewSession, PendingResponse,
    Realtime, RealtimeCounters, ShardInbox, Shards, last_message,
};
