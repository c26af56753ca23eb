//! connection_log: the last events of the connections of a user, or of one client, for an hour after their end.
//! In: `ConnectionLogRequest`. Out: logs of all nodes, the newest connection first.
//! Uses a question to all nodes. Never: sessions; the node's flight recorder keeps the events.
//! Recorded events are changed in the node, in `flight_log.rs`.

use fanwire_node::Surveyed;
use fanwire_node::questions::{
    ConnectionLogQuery, ConnectionLogQuestion, ConnectionLogRecord, LoggedEvent,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::DiagnosticMethods;
use crate::json::{is_zero, or_default};
use crate::{ApiError, Method};

/// The connections: those of a user, one client, or both.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(default)]
pub struct ConnectionLogRequest {
    /// Exact match; "" means any user. Required without `client`.
    #[serde(deserialize_with = "or_default")]
    pub user: String,
    /// A client id; "" means any.
    #[serde(deserialize_with = "or_default")]
    pub client: String,
    /// Logs at most, the newest first: 1 to 100; 0 or absent means 20.
    #[serde(deserialize_with = "or_default")]
    #[schemars(range(max = 100))]
    pub limit: u32,
}

/// Logs of connections.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct ConnectionLogResult {
    /// The newest connection first.
    pub logs: Vec<ConnectionLog>,
    /// Names of the nodes that did not answer; what they have is not in the result.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub missing: Vec<String>,
}

/// The log of one connection.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct ConnectionLog {
    /// The client id; "" for a client whose connect was refused.
    pub client: String,
    /// The user id; of a client whose connect was refused, the one that its token names.
    pub user: String,
    /// Name of its node.
    pub node: String,
    /// IP address of the client, or of a proxy that does not tell it.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub address: String,
    /// The transport, for one `websocket`.
    pub transport: String,
    /// Time of the connect, as Unix time in milliseconds.
    pub opened_ms: u64,
    /// Time of the end, as Unix time in milliseconds; absent while the connection is open.
    #[serde(skip_serializing_if = "is_zero")]
    pub ended_ms: u64,
    /// The last round trip of a ping in milliseconds; absent before the first pong.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "u32")]
    pub ping_ms: Option<u32>,
    /// Events, oldest first. The oldest are dropped when they exceed about 1 KB.
    pub events: Vec<ConnectionEvent>,
}

/// One event. Fields that an event does not have are absent.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct ConnectionEvent {
    /// Unix time in milliseconds; of the last one if there were several.
    pub at_ms: u64,
    /// `connect`, `subscribe`, `recover`, `unrecovered`, `unsubscribe`, `refuse`, `ping`, `stall` or `close`.
    pub event: String,
    /// How many equal events came one after the other.
    pub count: u32,
    /// Code of an error, an unsubscribe of the server, or the end.
    #[serde(skip_serializing_if = "is_zero_code")]
    pub code: u32,
    /// The channel, cut to 160 bytes.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub channel: String,
    /// The cause in words, or for `unrecovered` the label of the metric: `epoch`, `limit`, `size` or `ttl`.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub cause: String,
    /// The command that was refused.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub command: String,
    /// Name and version of the client library.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub app: String,
    /// Last offset that a recovering client had.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "u64")]
    pub from: Option<u64>,
    /// Newest offset, after a recovery.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "u64")]
    pub to: Option<u64>,
    /// The round trip of a ping, or how long the socket took no bytes, in milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "u64")]
    pub ms: Option<u64>,
    /// The most bytes that were queued while the socket took none.
    #[serde(skip_serializing_if = "is_zero")]
    pub queued_bytes: u64,
}

impl DiagnosticMethods<'_> {
    /// Returns logs of connections.
    ///
    /// # Errors
    /// 107 without user and client, and for a limit above 100; 111 when too many such requests are in flight.
    pub(super) async fn connection_log(
        self,
        request: ConnectionLogRequest,
    ) -> Result<ConnectionLogResult, ApiError> {
        self.0
            .measure_async(Method::ConnectionLog, async |now| {
                let ConnectionLogRequest { user, client, limit } = request;
                if user.is_empty() && client.is_empty() {
                    return Err(ApiError::BAD_REQUEST.because("both user and client are empty"));
                }
                let limit = match limit {
                    0 => LOGS,
                    limit if limit <= LOGS_MAX => limit,
                    _ => return Err(ApiError::BAD_REQUEST.because("limit is above 100")),
                };
                let user = Some(user).filter(|user| !user.is_empty());
                let question =
                    ConnectionLogQuestion::from(ConnectionLogQuery { user, client, limit });
                let Surveyed { found, missing } = self.0.node.ask(question, now).await?;
                let mut logs: Vec<_> = found
                    .nodes
                    .into_iter()
                    .flat_map(|answer| {
                        let node = answer.node;
                        answer.logs.into_iter().map(move |record| ConnectionLog::new(&node, record))
                    })
                    .collect();
                logs.sort_by_key(|log| std::cmp::Reverse(log.opened_ms));
                logs.truncate(limit as usize);
                Ok(ConnectionLogResult { logs, missing })
            })
            .await
    }
}

impl ConnectionLog {
    /// The log that a node has.
    pub fn new(node: &str, record: ConnectionLogRecord) -> Self {
        Self {
            client: record.client,
            user: record.user,
            node: node.to_owned(),
            address: record.address,
            transport: record.transport,
            opened_ms: record.opened_ms,
            ended_ms: record.ended_ms,
            ping_ms: record.ping_ms,
            events: record.events.into_iter().map(event).collect(),
        }
    }
}

fn event(logged: LoggedEvent) -> ConnectionEvent {
    let LoggedEvent { at_ms, name, count, code, first, second, text, detail } = logged;
    let mut event = ConnectionEvent { at_ms, count, code, ..ConnectionEvent::default() };
    match name.as_str() {
        "connect" => event.app = format!("{text} {detail}").trim().to_owned(),
        "subscribe" | "unsubscribe" => event.channel = text,
        "recover" | "unrecovered" => {
            (event.channel, event.cause) = (text, detail);
            (event.from, event.to) = (Some(first), Some(second));
        }
        "refuse" => (event.cause, event.command) = (text, detail),
        "ping" => event.ms = Some(first),
        "stall" => (event.ms, event.queued_bytes) = (Some(first), second),
        _ => event.cause = text,
    }
    ConnectionEvent { event: name, ..event }
}

fn is_zero_code(code: &u32) -> bool {
    *code == 0
}

const LOGS: u32 = 20;
const LOGS_MAX: u32 = 100;
