//! connections: the connections of a user, or with certain labels, on all nodes.
//! In: `ConnectionsRequest`. Out: what the server knows of each connection, by client id.
//! Uses a question to all nodes; pages are in the order of client ids.
//! Changed here: the answer of the method. The record of a connection is in `questions/connections.rs` of `node`.

use std::collections::BTreeMap;

use bytes::Bytes;
use fanwire_node::protocol::FilterNode;
use fanwire_node::questions::{CONNECTIONS_MAX, ConnectionQuestion, ConnectionRecord, TokenRecord};
use fanwire_node::{ConnectionSelector, Surveyed};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::paging::page_limit;
use super::selector::{LabelFilter, checked};
use crate::json::{in_place, is_embeddable, is_zero, or_default};
use crate::{Api, ApiError, Method};

/// The connections to list: those of a user, those whose labels match, or both.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(default)]
pub struct ConnectionsRequest {
    /// Exact match; "" means any user. Required without `label_filter`.
    #[serde(deserialize_with = "or_default")]
    pub user: String,
    /// Must be absent or empty: expressions are not supported.
    #[serde(deserialize_with = "or_default")]
    pub expression: String,
    /// Only connections whose labels match.
    #[schemars(with = "LabelFilter")]
    pub label_filter: Option<FilterNode>,
    /// Connections of a page, at most 10,000; 0 or absent means all, and an error for more than 10,000.
    #[serde(deserialize_with = "or_default")]
    #[schemars(range(max = 10000))]
    pub limit: u32,
    /// The `cursor` of the page before; absent for the first page.
    #[serde(deserialize_with = "or_default")]
    pub cursor: String,
}

/// Connections.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct ConnectionsResult {
    /// Connections by client id.
    pub connections: BTreeMap<String, ConnectionSummary>,
    /// For the next page; absent in the last one.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub cursor: String,
    /// Names of the nodes that did not answer; what they have is not in the result.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub missing: Vec<String>,
}

/// One connection.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct ConnectionSummary {
    /// Name of the client library, as it says itself; 64 bytes at most.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub app_name: String,
    /// Version of the client library, as it says itself; 64 bytes at most.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub app_version: String,
    /// The transport, for one `websocket`.
    pub transport: String,
    /// `json` or `protobuf`.
    pub protocol: String,
    /// The user id.
    pub user: String,
    /// IP address of the client, or of a proxy that does not tell it.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub address: String,
    /// Name of its node.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub node: String,
    /// State of the connection.
    pub state: ConnectionState,
    /// Time of the connect, as Unix time in milliseconds.
    pub connected_at_ms: u64,
    /// The last round trip of a ping in milliseconds, by the flight recorder; -1 when it is unknown.
    pub ping_pong_latency_ms: i64,
    /// Labels from the token or the connect proxy.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
}

/// State of a connection.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct ConnectionState {
    /// Subscriptions by channel.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub channels: BTreeMap<String, ConnectionChannel>,
    /// The token of the connection; absent when a proxy, a hook or a header decided.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "TokenSummary")]
    pub connection_token: Option<TokenSummary>,
    /// Tokens of subscriptions, by channel.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub subscription_tokens: BTreeMap<String, TokenSummary>,
    /// Any JSON that the token or the proxy set; clients never see it.
    #[serde(skip_serializing_if = "Bytes::is_empty", serialize_with = "in_place")]
    #[schemars(with = "serde_json::Value")]
    pub meta: Bytes,
}

/// A token that is in use.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct TokenSummary {
    /// The claim `jti`, as `revoke_token` takes it.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub uid: String,
    /// The claim `iat`, a Unix second.
    #[serde(skip_serializing_if = "is_zero")]
    pub issued_at: u64,
}

/// Empty.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct ConnectionChannel {}

impl Api {
    /// Lists connections.
    ///
    /// # Errors
    /// 107 without a user and a filter, for an invalid filter, for more than 10,000 connections without a limit, and a limit
    /// above that; 108 for an expression; 111 when too many such requests are in flight.
    pub async fn connections(
        &self,
        request: ConnectionsRequest,
    ) -> Result<ConnectionsResult, ApiError> {
        self.measure_async(Method::Connections, async |now| {
            if !request.expression.is_empty() {
                return Err(ApiError::NOT_AVAILABLE.because("expressions are not supported"));
            }
            if request.user.is_empty() && request.label_filter.is_none() {
                return Err(ApiError::BAD_REQUEST.because(NOTHING_SELECTED));
            }
            let target = ConnectionSelector { user: request.user, ..ConnectionSelector::default() };
            let target = checked(target, request.label_filter, true)?;
            let limit = page_limit(request.limit, CONNECTIONS_MAX)?;
            let mut question = ConnectionQuestion::of(&target);
            question.after = request.cursor;
            question.limit = limit as u32;
            let Surveyed { found, missing } = self.node.ask(question, now).await?;
            let mut found = found.connections;
            let has_more = found.len() > limit && found.pop_last().is_some();
            if has_more && request.limit == 0 {
                return Err(ApiError::BAD_REQUEST.because(TOO_MANY));
            }
            let cursor = found
                .last_key_value()
                .filter(|_| has_more)
                .map(|(client, _)| client)
                .cloned()
                .unwrap_or_default();
            let summary = |(client, record)| (client, summary(record));
            let connections = found.into_iter().map(summary).collect();
            Ok(ConnectionsResult { connections, cursor, missing })
        })
        .await
    }
}

fn summary(record: ConnectionRecord) -> ConnectionSummary {
    let channels = record.channels.into_iter().map(|channel| (channel, ConnectionChannel {}));
    let token = |TokenRecord { uid, issued_at }| TokenSummary { uid, issued_at };
    let tokens = record.subscription_tokens.into_iter();
    let state = ConnectionState {
        channels: channels.collect(),
        connection_token: record.token.map(token),
        subscription_tokens: tokens.map(|(channel, id)| (channel, token(id))).collect(),
        meta: if is_embeddable(&record.meta) { record.meta } else { Bytes::new() },
    };
    ConnectionSummary {
        app_name: record.app_name,
        app_version: record.app_version,
        transport: record.transport,
        protocol: record.protocol,
        user: record.user,
        address: record.address,
        node: record.node,
        state,
        connected_at_ms: record.connected_at_ms,
        ping_pong_latency_ms: record.ping_ms.map_or(-1, i64::from),
        labels: record.labels,
    }
}

const TOO_MANY: &str = "there are more than 10,000 such connections: set a limit, and read pages";
const NOTHING_SELECTED: &str = "both user and label_filter are missing or empty";
