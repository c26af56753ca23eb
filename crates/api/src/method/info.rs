//! info: name, version and counts of all nodes.
//! In: nothing. Out: one row per node, this one first; one row with the memory broker.
//! Uses the state that nodes send each other; counts of other nodes are up to 3 s old.
//! The nodes maintain the counts.

use std::collections::BTreeMap;

use fanwire_node::{Metrics, NodeState};
use fanwire_telemetry::centrifugo_item;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::json::is_zero;
use crate::{Api, ApiError, Method};

/// Empty.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
pub struct InfoRequest {}

/// The nodes.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct InfoResult {
    /// One row per running node.
    pub nodes: Vec<NodeInfo>,
}

/// One node; every field but `uptime`, `metrics` and `leaving` is always present in JSON.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct NodeInfo {
    /// A random id, created at the start of the process.
    pub uid: String,
    /// The configured name; `fanwire` by default.
    pub name: String,
    /// The version of the server.
    pub version: String,
    /// Number of connections.
    pub num_clients: u64,
    /// Number of distinct users; all anonymous users count as one.
    pub num_users: u64,
    /// Number of channels with at least one subscriber.
    pub num_channels: u64,
    /// Seconds since the start; absent in the first second.
    #[serde(skip_serializing_if = "is_zero")]
    pub uptime: u64,
    /// Absent in the first second.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub metrics: Option<NodeMetrics>,
    /// Number of subscriptions.
    pub num_subs: u64,
    /// Number of clients that it still sends to other nodes, by a rebalance or an evacuation; absent when there are none.
    #[serde(skip_serializing_if = "is_zero")]
    pub leaving: u64,
}

/// The metrics of a node in its last interval (`node.info_metrics_aggregate_interval`).
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct NodeMetrics {
    /// The length of the interval in seconds.
    pub interval: f64,
    /// The metrics of the Prometheus endpoint without prefix and suffix, with labels appended as in
    /// `client_commands.method.publish`: the increase of a counter, the value of a gauge. Zeros are omitted. Those that Centrifugo
    /// has are there under its names, too: `centrifugo.client.command_duration_seconds.count.method.publish`.
    pub items: BTreeMap<String, f64>,
}

impl Api {
    /// Returns name, version and counts of every node.
    ///
    /// # Errors
    /// None.
    pub async fn info(&self, _: InfoRequest) -> Result<InfoResult, ApiError> {
        self.measure(Method::Info, |now| {
            let nodes = self.node.nodes(now).into_iter().map(NodeInfo::from).collect();
            Ok(InfoResult { nodes })
        })
    }
}

impl From<NodeState> for NodeInfo {
    fn from(state: NodeState) -> Self {
        Self {
            uid: state.uid,
            name: state.name,
            version: state.version,
            num_clients: state.connections,
            num_users: state.users,
            num_channels: state.channels,
            uptime: state.uptime_seconds,
            metrics: state.metrics.map(NodeMetrics::from),
            num_subs: state.subscriptions,
            leaving: state.leaving,
        }
    }
}

impl From<Metrics> for NodeMetrics {
    fn from(metrics: Metrics) -> Self {
        let mut items = metrics.items;
        let renamed = |(name, value): (&String, &f64)| Some((centrifugo_item(name)?, *value));
        let theirs: Vec<_> = items.iter().filter_map(renamed).collect();
        items.extend(theirs);
        Self { interval: metrics.interval_seconds, items }
    }
}
