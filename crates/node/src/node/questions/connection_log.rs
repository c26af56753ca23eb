//! Logs of the flight recorder, on all nodes (server API §3 connection_log).
//! In: a user or a client → out: the last events of its connections, by node.
//! Uses: the recorder of each shard. Never: records; `flight_log.rs` does.
//! Changed here: what a log says. Field numbers stay for ever.

use std::time::{Duration, Instant};

use fanwire_cluster::{Question, SurveyKind};
use fanwire_protocol::ErrorCode;
use fanwire_recorder::{ConnectionFacts, FlightEvent, FlightLog, StoredEvent};
use parking_lot::Mutex;
use uuid::Uuid;

use super::{Ask, ShardView};
use crate::node::Node;

/// Asks for logs of connections.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct ConnectionLogQuestion {
    #[prost(message, optional, tag = "2")]
    pub query: Option<ConnectionLogQuery>,
}

/// Logs of the flight recorder.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct ConnectionLogQuery {
    /// `None` = any.
    #[prost(string, optional, tag = "1")]
    pub user: Option<String>,
    /// "" = any.
    #[prost(string, tag = "2")]
    pub client: String,
    /// Logs of each shard at most, the newest first.
    #[prost(uint32, tag = "3")]
    pub limit: u32,
}

/// Logs of all nodes.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct ConnectionLogs {
    #[prost(message, repeated, tag = "5")]
    pub nodes: Vec<NodeLogs>,
}

/// Logs of one node. Files with logs of ended connections have records of this form.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct NodeLogs {
    /// Name of the node.
    #[prost(string, tag = "1")]
    pub node: String,
    #[prost(message, repeated, tag = "2")]
    pub logs: Vec<ConnectionLogRecord>,
}

/// The log of a connection.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct ConnectionLogRecord {
    #[prost(string, tag = "1")]
    pub client: String,
    #[prost(string, tag = "2")]
    pub user: String,
    /// Without a port; "" = unknown.
    #[prost(string, tag = "3")]
    pub address: String,
    #[prost(string, tag = "4")]
    pub transport: String,
    /// Unix time in milliseconds.
    #[prost(uint64, tag = "5")]
    pub opened_ms: u64,
    /// Unix time in milliseconds; 0 for an open connection.
    #[prost(uint64, tag = "6")]
    pub ended_ms: u64,
    /// The last round trip of a ping.
    #[prost(uint32, optional, tag = "7")]
    pub ping_ms: Option<u32>,
    /// Oldest first.
    #[prost(message, repeated, tag = "8")]
    pub events: Vec<LoggedEvent>,
}

/// An event of a connection. The name decides what the other fields mean.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct LoggedEvent {
    /// Unix time in milliseconds; of the last one if there were several.
    #[prost(uint64, tag = "1")]
    pub at_ms: u64,
    #[prost(string, tag = "2")]
    pub name: String,
    /// How many equal events came one after the other.
    #[prost(uint32, tag = "3")]
    pub count: u32,
    #[prost(uint32, tag = "4")]
    pub code: u32,
    #[prost(uint64, tag = "5")]
    pub first: u64,
    #[prost(uint64, tag = "6")]
    pub second: u64,
    #[prost(string, tag = "7")]
    pub text: String,
    #[prost(string, tag = "8")]
    pub detail: String,
}

impl From<ConnectionLogQuery> for ConnectionLogQuestion {
    fn from(query: ConnectionLogQuery) -> Self {
        Self { query: Some(query) }
    }
}

impl Question for ConnectionLogQuestion {
    type Answer = ConnectionLogs;
    /// The same for each question for diagnosis of the first version.
    const TAG: u32 = 22;
    const KIND: SurveyKind = SurveyKind::Diagnostics;

    fn is_asked(&self) -> bool {
        self.query.is_some()
    }

    fn merge(&self, all: &mut ConnectionLogs, one: ConnectionLogs, _: Duration) {
        all.nodes.extend(one.nodes);
    }
}

impl Ask for ConnectionLogQuestion {
    const IS_FOR_SHARDS: bool = true;

    fn begin(&self, node: &Node, _: Instant) -> Result<ConnectionLogs, ErrorCode> {
        let own = NodeLogs { node: node.options().name.clone(), logs: Vec::new() };
        Ok(ConnectionLogs { nodes: vec![own] })
    }

    fn add(&self, shard: &ShardView<'_>, _: u32, answer: &Mutex<ConnectionLogs>) -> Option<u32> {
        let logs = self.query.as_ref().map(|query| find(shard, query)).unwrap_or_default();
        if let Some(own) = answer.lock().nodes.first_mut() {
            own.logs.extend(logs);
        }
        None
    }
}

/// The logs of a shard that a query asks for, the newest first.
fn find(shard: &ShardView<'_>, query: &ConnectionLogQuery) -> Vec<ConnectionLogRecord> {
    let client = match query.client.as_str() {
        "" => None,
        client => match Uuid::try_parse(client) {
            Ok(client) => Some(client.as_u128()),
            Err(_) => return Vec::new(),
        },
    };
    let logs = shard.session_table.recorder.find(query.user.as_deref(), client, shard.now_ms);
    logs.take(query.limit as usize).map(ConnectionLogRecord::of).collect()
}

impl ConnectionLogRecord {
    /// The record of a connection's log.
    pub(crate) fn of(log: &FlightLog) -> Self {
        let ConnectionFacts { client, user, address, transport } = log.facts();
        let (opened_ms, ended_ms) = log.times_ms();
        let events = log.events().map(|StoredEvent { after_ms, count, event }| {
            let FlightEvent { kind, code, numbers: [first, second], text, detail } = event;
            LoggedEvent {
                at_ms: opened_ms + after_ms,
                name: kind.name().to_owned(),
                count: count.into(),
                code,
                first,
                second,
                text: text.to_owned(),
                detail: detail.to_owned(),
            }
        });
        Self {
            client: if *client == 0 { String::new() } else { Uuid::from_u128(*client).to_string() },
            user: user.as_ref().to_owned(),
            address: address.map(|address| address.to_string()).unwrap_or_default(),
            transport: (*transport).to_owned(),
            opened_ms,
            ended_ms,
            ping_ms: log.ping_ms(),
            events: events.collect(),
        }
    }
}
