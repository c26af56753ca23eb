//! Messages about users: surveys of their connections.
//! In: calls of the server API, answers of nodes → out: values that travel between nodes, as Protobuf.
//! Uses: prost. Never: sessions, statuses.
//! Change here: what nodes tell of users. Field numbers stay for ever.

use std::collections::BTreeMap;

use bytes::Bytes;

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
    /// JSON of the token or of a hook; empty = none.
    #[prost(bytes = "bytes", tag = "9")]
    pub meta: Bytes,
    /// The token of the connection; `None` when a hook or a header decided.
    #[prost(message, optional, tag = "10")]
    pub token: Option<TokenRecord>,
    /// The tokens of subscriptions, by channel.
    #[prost(btree_map = "string, message", tag = "11")]
    pub subscription_tokens: BTreeMap<String, TokenRecord>,
    /// The last round trip of a ping; `None` = unknown.
    #[prost(uint32, optional, tag = "12")]
    pub ping_ms: Option<u32>,
    /// Without a port; "" = unknown.
    #[prost(string, tag = "20")]
    pub address: String,
    /// Name of the node; "" from a node of an older version.
    #[prost(string, tag = "21")]
    pub node: String,
}

/// A token that is in use.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct TokenRecord {
    /// The `jti`; "" without one.
    #[prost(string, tag = "1")]
    pub uid: String,
    /// The `iat`, a Unix second; 0 without one.
    #[prost(uint64, tag = "2")]
    pub issued_at: u64,
}

/// A part of the connections that a selector matches, in the order of client ids.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConnectionRange {
    /// Only client ids that come after this one; "" = all.
    pub after: String,
    /// Connections of the range. A result has one more when there are more.
    pub limit: usize,
}

impl Default for ConnectionRange {
    fn default() -> Self {
        Self { after: String::new(), limit: CONNECTIONS_MAX }
    }
}

impl ConnectionRange {
    /// Removes what is not in the range, except the first connection after it.
    pub fn cut(&self, connections: &mut Connections) {
        while connections.len() > self.limit + 1 {
            connections.pop_last();
        }
    }

    /// Whether a client id may be in the range, after those that were found.
    pub fn has(&self, client: &str, found: &Connections) -> bool {
        let is_before_last =
            || found.last_key_value().is_some_and(|(last, _)| client < last.as_str());
        client > self.after.as_str() && (found.len() <= self.limit || is_before_last())
    }
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

/// Connections of one answer.
pub const CONNECTIONS_MAX: usize = 10_000;
