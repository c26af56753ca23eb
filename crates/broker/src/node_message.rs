//! Messages between nodes that hooks and lists of the node take as they are: a new expiry, occupied channels, subjects of debug lines.
//! In: calls of the server API, answers of hooks, channels with subscribers → out: values; two of them travel as Protobuf.
//! Uses: prost. Never: how nodes exchange them, which `fanwire_cluster` does; their effects.
//! Changed here: what these messages contain. Field numbers stay for ever.

use bytes::Bytes;

/// A new expiry time for connections.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Renewal {
    /// Unix second at which they expire; `None` = never.
    pub expire_at: Option<u64>,
    /// `conn_info` from now on; empty = as before.
    pub info: Bytes,
}

/// An announcement (to all nodes), a report, or a request for one. A node that does not know the message ignores it.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct OccupancyReport {
    /// Start of the sender in Unix milliseconds: the oldest node tells the backend.
    #[prost(uint64, tag = "1")]
    pub started_ms: u64,
    /// Counts the events about channels that the sender has made, and those that its backend has accepted.
    #[prost(uint64, tag = "2")]
    pub told: u64,
    /// Counts the reports of the sender from 1, without a gap; 0 for other messages.
    #[prost(uint64, tag = "3")]
    pub number: u64,
    /// The receiver missed a report: asks it for all of its channels.
    #[prost(bool, tag = "4")]
    pub wants_all: bool,
    /// The first part of all channels of the sender.
    #[prost(bool, tag = "5")]
    pub is_first: bool,
    /// The last part of them.
    #[prost(bool, tag = "6")]
    pub is_last: bool,
    /// Channels that have subscribers on the sender.
    #[prost(string, repeated, tag = "7")]
    pub occupied: Vec<String>,
    /// Channels that have none any more.
    #[prost(string, repeated, tag = "8")]
    pub vacant: Vec<String>,
    /// A backend has no picture: the node that tells it tells all channels again.
    #[prost(bool, tag = "9")]
    pub wants_recount: bool,
}

/// Lists or unlists subjects whose events are logged.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct DebugForCommand {
    #[prost(string, repeated, tag = "1")]
    pub users: Vec<String>,
    #[prost(string, repeated, tag = "2")]
    pub channels: Vec<String>,
    /// IP addresses.
    #[prost(string, repeated, tag = "3")]
    pub addresses: Vec<String>,
    /// Unix second at which they end; 0 = now.
    #[prost(uint64, tag = "4")]
    pub until: u64,
}

impl DebugForCommand {
    /// How many subjects it names.
    #[expect(clippy::len_without_is_empty, reason = "an empty one changes nothing")]
    pub fn len(&self) -> usize {
        self.users.len() + self.channels.len() + self.addresses.len()
    }
}
