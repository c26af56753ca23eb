//! info: what the nodes of the installation hold right now.
//! In: nothing. Out: one row per node; with the memory broker there is exactly one.
//! Uses the node's counts and the time since the API was made.
//! The counts are kept by the node.

use serde::{Deserialize, Serialize};

use crate::{Api, ApiError, Method};

/// Empty.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct InfoRequest {}

/// The nodes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct InfoResult {
    /// One row per running node.
    pub nodes: Vec<NodeInfo>,
}

/// One node; every field but `uptime` is always present in JSON.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
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
    /// None with the memory broker.
    pub fn info(&self, _: InfoRequest) -> Result<InfoResult, ApiError> {
        self.measure(Method::Info, |now| {
            let counts = self.node.counts();
            let options = self.node.options();
            let node = NodeInfo {
                uid: self.uid.clone(),
                name: options.name.clone(),
                version: options.version.clone(),
                num_clients: counts.connections as u64,
                num_users: counts.users as u64,
                num_channels: counts.channels as u64,
                uptime: now.duration_since(self.started_at).as_secs(),
                num_subs: counts.subscriptions as u64,
            };
            Ok(InfoResult { nodes: vec![node] })
        })
    }
}

fn is_zero(seconds: &u64) -> bool {
    *seconds == 0
}
