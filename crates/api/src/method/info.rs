//! info: what the nodes of the installation hold right now.
//! In: nothing. Out: one row per node, this one first; with the memory broker there is exactly one.
//! Uses what the nodes tell each other; numbers of others are up to 3 s old.
//! The counts are kept by the nodes.

use fanwire_node::NodeState;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Api, ApiError, Method};

/// Empty.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
pub struct InfoRequest {}

/// The nodes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct InfoResult {
    /// One row per running node.
    pub nodes: Vec<NodeInfo>,
}

/// One node; every field but `uptime` is always present in JSON.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct NodeInfo {
    /// Random, made at the start of the process.
    pub uid: String,
    /// As configured, or made of host and port.
    pub name: String,
    /// Of the server.
    pub version: String,
    /// Connections.
    pub num_clients: u64,
    /// Different users among them; anonymous ones count as one.
    pub num_users: u64,
    /// Channels with at least one subscriber.
    pub num_channels: u64,
    /// Seconds since the start; absent in the first one.
    #[serde(skip_serializing_if = "is_zero")]
    pub uptime: u64,
    /// Subscriptions.
    pub num_subs: u64,
}

impl Api {
    /// Tells name, version and counts of every node.
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
            num_subs: state.subscriptions,
        }
    }
}

fn is_zero(seconds: &u64) -> bool {
    *seconds == 0
}
