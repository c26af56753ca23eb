//! presence_stats: how many are in a channel.
//! In: `PresenceStatsRequest`. Out: the numbers of clients and of users among them.
//! Uses the node's presence; no permission applies to the API.
//! Who counts as present is decided by the namespace and kept in the node.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::json::or_default;
use crate::{Api, ApiError, Method};

/// Which channel.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(extend("required" = ["channel"]))]
pub struct PresenceStatsRequest {
    /// Required.
    #[serde(deserialize_with = "or_default")]
    #[schemars(length(min = 1))]
    pub channel: String,
}

/// How many; both fields are always there.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct PresenceStatsResult {
    /// Clients that are subscribed.
    pub num_clients: usize,
    /// Distinct user ids among them; the empty one counts as one.
    pub num_users: usize,
}

impl Api {
    /// Counts who is in a channel.
    ///
    /// # Errors
    /// 107 without a channel; 102 for an unknown namespace; 108 without presence.
    pub async fn presence_stats(
        &self,
        request: PresenceStatsRequest,
    ) -> Result<PresenceStatsResult, ApiError> {
        self.measure_later(Method::PresenceStats, async |now| {
            if request.channel.is_empty() {
                return Err(ApiError::BAD_REQUEST);
            }
            let stats = self.node.presence_stats(&request.channel, now).await?;
            Ok(PresenceStatsResult { num_clients: stats.clients, num_users: stats.users })
        })
        .await
    }
}
