//! Messages about users: surveys of their connections, and changes of their status.
//! In: calls of the server API, answers of nodes → out: values that travel between nodes, as Protobuf.
//! Uses: prost. Never: sessions, the table of statuses.
//! Change here: what nodes tell of users. Field numbers stay for ever.

use std::collections::BTreeMap;

/// Asks how many connections users have. A node that does not know the message sends no answer.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct UserSurvey {
    #[prost(uint64, tag = "1")]
    pub number: u64,
    #[prost(string, repeated, tag = "2")]
    pub users: Vec<String>,
    /// Above 0, a page of so many connections of all users is described; `users` is empty.
    #[prost(uint32, tag = "3")]
    pub page_limit: u32,
    /// Start of the page: 0, or [`ConnectionPage::next`].
    #[prost(uint64, tag = "4")]
    pub page_start: u64,
}

/// One connection, for the server API.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct ConnectionRecord {
    /// Name of the SDK, as it says itself.
    #[prost(string, tag = "1")]
    pub app_name: String,
    #[prost(string, tag = "2")]
    pub app_version: String,
    #[prost(string, tag = "3")]
    pub transport: String,
    /// `json` or `protobuf`.
    #[prost(string, tag = "4")]
    pub protocol: String,
    /// Unix time in milliseconds.
    #[prost(uint64, tag = "5")]
    pub connected_at_ms: u64,
    #[prost(string, repeated, tag = "6")]
    pub channels: Vec<String>,
    #[prost(btree_map = "string, string", tag = "7")]
    pub labels: BTreeMap<String, String>,
    #[prost(string, tag = "8")]
    pub user: String,
    /// Without a port; "" = unknown.
    #[prost(string, tag = "20")]
    pub address: String,
}

/// A change of the status of users.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct UserStatusChange {
    #[prost(string, repeated, tag = "1")]
    pub users: Vec<String>,
    /// Text of the application.
    #[prost(string, tag = "2")]
    pub state: String,
    /// Unix second of the change; 0 removes the status.
    #[prost(uint64, tag = "3")]
    pub active: u64,
}

/// Connections of a node, by client id.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ConnectionPage {
    pub connections: Connections,
    /// Start of the next page; 0 after the last one. A page may be empty and have a next one.
    pub next: u64,
}

/// Connections by client id.
pub type Connections = BTreeMap<String, ConnectionRecord>;

/// Connections that a node describes, and one more when there are more.
pub const CONNECTIONS_MAX: usize = 10_000;
