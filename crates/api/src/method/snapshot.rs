//! snapshot: who is connected and subscribed, as the start of a picture that events out keep true.
//! In: nothing, or a node and the start of a page. Out: the nodes with the numbers of their events, or connections of that node.
//! Uses the connection lists of nodes, page by page. Never: counts of subscribers.
//! Events are made in `fanwire_events`; pages in the node, in `questions/connection_page.rs`.

use fanwire_node::questions::{ConnectionPage, ConnectionRecord, PageQuestion};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::json::{is_zero, or_default};
use crate::{Api, ApiError, Method};

/// A node, and where its page starts.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(default)]
pub struct SnapshotRequest {
    /// The node whose connections are listed; "" lists the nodes, and sends all occupied channels in events again.
    #[serde(deserialize_with = "or_default")]
    pub node: String,
    /// 0 for the first page, then `next` of the one before.
    #[serde(deserialize_with = "or_default")]
    pub start: u64,
    /// Connections of a page, at most 1,000; 0 means 1,000.
    #[serde(deserialize_with = "or_default")]
    pub limit: u32,
}

/// The nodes, or a page of connections.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct SnapshotResult {
    /// All nodes; empty in a page.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub nodes: Vec<SnapshotNode>,
    /// Connections of the node.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub clients: Vec<SnapshotClient>,
    /// Start of the next page; absent after the last one. A page without clients may have a next one.
    #[serde(skip_serializing_if = "is_zero")]
    pub next: u64,
}

/// A node.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct SnapshotNode {
    /// Its id, as in batches of events.
    pub node: String,
    /// Number of an event: pages that are read from now on contain it and all before.
    pub seq: u64,
}

/// A connection.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct SnapshotClient {
    /// The client id.
    pub client: String,
    /// The user id.
    pub user: String,
    /// Channels of its subscriptions.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub channels: Vec<String>,
}

impl Api {
    /// Lists the nodes and begins a recount of channels, or lists a page of the connections of one node.
    ///
    /// # Errors
    /// 104 for a node that is not there; 107 for a limit above 1,000; 100 when the node could not be reached or did not
    /// answer in time; 111 when too many such requests are in flight.
    pub async fn snapshot(&self, request: SnapshotRequest) -> Result<SnapshotResult, ApiError> {
        self.measure_async(Method::Snapshot, async |now| {
            if request.node.is_empty() {
                let nodes = self
                    .node
                    .nodes(now)
                    .into_iter()
                    .map(|it| SnapshotNode { node: it.uid, seq: it.event_seq })
                    .collect(); // before the recount, whose events come after these numbers
                self.node.recount_channels().await?;
                return Ok(SnapshotResult { nodes, ..SnapshotResult::default() });
            }
            let limit = match request.limit {
                0 => LIMIT_MAX,
                limit if limit <= LIMIT_MAX => limit,
                _ => return Err(ApiError::BAD_REQUEST.because("limit is above 1,000")),
            };
            let question = PageQuestion { limit, start: request.start };
            let page = self.node.ask_node(&request.node, question, now).await?;
            if !page.missing.is_empty() {
                return Err(ApiError::of_missing(&page.missing));
            }
            let ConnectionPage { connections, next } = page.found;
            let client = |(client, record)| {
                let ConnectionRecord { user, channels, .. } = record;
                SnapshotClient { client, user, channels }
            };
            let clients = connections.into_iter().map(client).collect();
            Ok(SnapshotResult { clients, next, ..SnapshotResult::default() })
        })
        .await
    }
}

/// A shard lists a page in one turn.
const LIMIT_MAX: u32 = 1000;
