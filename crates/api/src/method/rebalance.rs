//! rebalance, evacuate: nodes send clients to other nodes, in the pace of `cluster.rebalance.rate`.
//! In: a node, a share, a rate. Out: nothing; clients get 3001 and reconnect, a few each second.
//! Uses a control command to all nodes. Never: waits for clients.
//! When a rebalance ends is decided in `fanwire_cluster`, in `rebalance.rs`.

use fanwire_node::SendAwayCommand;
use schemars::JsonSchema;
use serde::Deserialize;

use super::Empty;
use crate::json::or_default;
use crate::{Api, ApiError, Method};

/// The nodes that are to have the average of all.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(default)]
pub struct RebalanceRequest {
    /// Id or name of the only node that sends clients away; "" means each node that is above the average.
    #[serde(deserialize_with = "or_default")]
    pub node: String,
    /// Clients that a node sends away in a second; 0 means `cluster.rebalance.rate`.
    #[serde(deserialize_with = "or_default")]
    pub rate: u32,
}

/// The clients that are to leave a node.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(extend("required" = ["node"]))]
pub struct EvacuateRequest {
    /// Id or name of the node.
    #[serde(deserialize_with = "or_default")]
    #[schemars(length(min = 1))]
    pub node: String,
    /// Percent of its clients, 1 to 100; 0 means all.
    #[serde(deserialize_with = "or_default")]
    #[schemars(range(max = 100))]
    pub percent: u32,
    /// Clients that it sends away in a second; 0 means `cluster.rebalance.rate`.
    #[serde(deserialize_with = "or_default")]
    pub rate: u32,
}

impl Api {
    /// Has nodes that are above the average of connections send clients away until they have the average.
    ///
    /// # Errors
    /// 104 for a node that is not there; 108 without another node; 100 when the other nodes could not be reached.
    pub async fn rebalance(&self, request: RebalanceRequest) -> Result<Empty, ApiError> {
        let RebalanceRequest { node, rate } = request;
        self.measure_async(Method::Rebalance, async |_| {
            send_away(self, SendAwayCommand { node, percent: 0, rate }).await
        })
        .await
    }

    /// Has a node send away clients of any age.
    ///
    /// # Errors
    /// 107 without a node, or for more than 100 percent; 104 for a node that is not there; 108 without another node; 100 when the
    /// other nodes could not be reached.
    pub async fn evacuate(&self, request: EvacuateRequest) -> Result<Empty, ApiError> {
        let EvacuateRequest { node, percent, rate } = request;
        self.measure_async(Method::Evacuate, async |_| {
            if node.is_empty() {
                return Err(
                    ApiError::BAD_REQUEST.because("node is missing or empty, expected an id")
                );
            }
            if percent > 100 {
                return Err(ApiError::BAD_REQUEST.because("percent is above 100"));
            }
            let percent = if percent == 0 { 100 } else { percent };
            send_away(self, SendAwayCommand { node, percent, rate }).await
        })
        .await
    }
}

async fn send_away(api: &Api, command: SendAwayCommand) -> Result<Empty, ApiError> {
    api.node.connections().rebalancing().command(command).await?;
    Ok(Empty {})
}
