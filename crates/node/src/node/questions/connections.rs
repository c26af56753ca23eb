//! The connections of some users, on all nodes (server API §3 connections).
//! In: a selector, a range of client ids → out: a record for each connected session of it.
//! Uses: `session_table`. Never: sends to clients.
//! Changed here: what a record says of a connection. Field numbers stay for ever.

use std::collections::BTreeMap;
use std::time::Duration;

use bytes::Bytes;
use fanwire_auth::TokenId;
use fanwire_cluster::{ConnectionSelector, Question, SurveyKind};
use fanwire_recorder::FlightLog;
use parking_lot::Mutex;

use super::{Ask, NameRange, ShardView};
use crate::session::{Session, Subscription};
use crate::session_table::SessionTable;
use crate::session_table::selection::{self, SelectedConnections};

/// Asks for the connections of `target`, in the order of client ids.
///
/// A connection that exists during a whole series of ranges, each after the last one of the range before, is in exactly one of
/// them.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct ConnectionQuestion {
    #[prost(message, required, tag = "2")]
    target: ConnectionSelector,
    /// Only client ids that come after this one; "" = all.
    #[prost(string, tag = "3")]
    pub after: String,
    /// Connections of the range, at most [`CONNECTIONS_MAX`]. An answer has one more when there are more.
    #[prost(uint32, tag = "4")]
    pub limit: u32,
}

/// Connections by client id.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct ConnectionPage {
    #[prost(btree_map = "string, message", tag = "3")]
    pub connections: BTreeMap<String, ConnectionRecord>,
    /// Start of the next page of a [`PageQuestion`](super::PageQuestion); 0 after the last one. A page may be empty and have a
    /// next one.
    #[prost(uint64, tag = "4")]
    pub next: u64,
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

impl ConnectionQuestion {
    /// The first connections of a selector.
    pub fn of(target: &ConnectionSelector) -> Self {
        let limit = CONNECTIONS_MAX as u32;
        Self { target: target.clone(), after: String::new(), limit }
    }

    fn range(&self) -> NameRange<'_> {
        NameRange { after: &self.after, limit: (self.limit as usize).min(CONNECTIONS_MAX) }
    }
}

impl Question for ConnectionQuestion {
    type Answer = ConnectionPage;
    const TAG: u32 = 20;
    const KIND: SurveyKind = SurveyKind::Connections;

    fn merge(&self, all: &mut ConnectionPage, one: ConnectionPage, _: Duration) {
        all.connections.extend(one.connections);
        self.range().cut(&mut all.connections);
    }
}

impl Ask for ConnectionQuestion {
    const IS_FOR_SHARDS: bool = true;

    fn add(&self, shard: &ShardView<'_>, from: u32, answer: &Mutex<ConnectionPage>) -> Option<u32> {
        let session_table = shard.session_table;
        let target = SelectedConnections { selector: self.target.clone(), from };
        let range = self.range();
        for key in selection::matching(session_table, &target) {
            let Some(session) = session_table.session(key) else { continue };
            let client = session.client();
            if !range.has(&client, &answer.lock().connections) {
                continue;
            }
            let mut record = record(session_table, session);
            let address = (shard.address)(key).map(|address| address.ip().to_string());
            record.address = address.unwrap_or_default();
            record.ping_ms = session_table.recorder.log(key.index).and_then(FlightLog::ping_ms);
            record.node = shard.node_name.to_owned();
            let connections = &mut answer.lock().connections;
            connections.insert(client, record);
            range.cut(connections);
        }
        selection::next_step(session_table, &target)
    }
}

/// The record of a session.
pub(super) fn record(session_table: &SessionTable, session: &Session) -> ConnectionRecord {
    let subscriptions = session.subscriptions.iter().filter(|one| !one.is_tile);
    let subscribers = session_table.subscribers();
    let channel = |index| subscribers.channel_subscribers(index).channel.as_ref().to_owned();
    let token_of = |one: &Subscription| {
        Some((channel(one.channel), token(one.terms.as_ref()?.token.as_deref()?)))
    };
    ConnectionRecord {
        app_name: session.app.name.as_ref().to_owned(),
        app_version: session.app.version.as_ref().to_owned(),
        transport: session.app.transport.to_owned(),
        protocol: session.encoding.name().to_owned(),
        connected_at_ms: session.connected_at_ms(),
        subscription_tokens: subscriptions.clone().filter_map(token_of).collect(),
        channels: subscriptions.map(|one| channel(one.channel)).collect(),
        labels: session.app.labels.as_ref().clone(),
        user: session.user.as_ref().to_owned(),
        meta: session.context.as_ref().map(|context| context.meta.clone()).unwrap_or_default(),
        address: String::new(),
        node: String::new(),
        ping_ms: None,
        token: session.grant.as_ref().and_then(|grant| grant.token.as_ref()).map(token),
    }
}

fn token(id: &TokenId) -> TokenRecord {
    TokenRecord { uid: id.uid.as_ref().to_owned(), issued_at: id.issued_at.into() }
}

/// Connections of one answer.
pub const CONNECTIONS_MAX: usize = 10_000;
