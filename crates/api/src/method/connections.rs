//! connections: the connections of a user, on all nodes.
//! In: `ConnectionsRequest`. Out: what the server knows of each connection, by client id.
//! Uses a survey of all nodes; the result has no pages, so it is limited.
//! The node's hub describes its connections.

use std::collections::BTreeMap;

use fanwire_node::{CONNECTIONS_MAX, ConnectionRecord};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::block_user::{NO_USER, named};
use crate::json::or_default;
use crate::{Api, ApiError, Method};

/// The user whose connections are listed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(extend("required" = ["user"]))]
pub struct ConnectionsRequest {
    /// Required. Exact match.
    #[serde(deserialize_with = "or_default")]
    #[schemars(length(min = 1))]
    pub user: String,
    /// Must be absent or empty: expressions are not supported.
    #[serde(deserialize_with = "or_default")]
    pub expression: String,
}

/// The connections of a user.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct ConnectionsResult {
    /// Connections by client id.
    pub connections: BTreeMap<String, ConnectionSummary>,
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
    /// State of the connection.
    pub state: ConnectionState,
    /// Time of the connect, as Unix time in milliseconds.
    pub connected_at_ms: u64,
    /// Always -1: the latency is unknown.
    pub ping_pong_latency_ms: i64,
}

/// State of a connection.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct ConnectionState {
    /// Subscriptions by channel.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub channels: BTreeMap<String, ConnectionChannel>,
}

/// Empty.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct ConnectionChannel {}

impl Api {
    /// Lists the connections of a user.
    ///
    /// # Errors
    /// 107 without a user, and for a user with more than 10,000 connections; 108 for an expression; 100 when a node could
    /// not be reached or did not answer within 10 s; 111 when too many such requests are in flight.
    pub async fn connections(
        &self,
        request: ConnectionsRequest,
    ) -> Result<ConnectionsResult, ApiError> {
        self.measure_async(Method::Connections, async |now| {
            if !request.expression.is_empty() {
                return Err(ApiError::NOT_AVAILABLE.because("expressions are not supported"));
            }
            let user = named(request.user, NO_USER)?;
            let found = self.node.connections(&user, now).await?;
            if found.len() > CONNECTIONS_MAX {
                return Err(ApiError::BAD_REQUEST.because(TOO_MANY));
            }
            let summary = |(client, record)| (client, summary(&user, record));
            Ok(ConnectionsResult { connections: found.into_iter().map(summary).collect() })
        })
        .await
    }
}

fn summary(user: &str, record: ConnectionRecord) -> ConnectionSummary {
    let ConnectionRecord {
        app_name,
        app_version,
        transport,
        protocol,
        connected_at_ms,
        channels,
        ..
    } = record;
    let channels = channels.into_iter().map(|channel| (channel, ConnectionChannel {})).collect();
    ConnectionSummary {
        app_name,
        app_version,
        transport,
        protocol,
        user: user.to_owned(),
        state: ConnectionState { channels },
        connected_at_ms,
        ping_pong_latency_ms: -1,
    }
}

const TOO_MANY: &str = "the user has more than 10,000 connections";
