//! presence_stats: the number of clients and users in a channel.
//! In: `PresenceStatsRequest`. Out: the numbers of clients and of distinct users.
//! Uses the node's presence; channel permissions do not apply to the API.
//! The namespace decides whether a channel has presence; the node maintains it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::error::NO_CHANNEL;
use crate::json::or_default;
use crate::{Api, ApiError, Method};

/// A channel.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(extend("required" = ["channel"]))]
pub struct PresenceStatsRequest {
    /// Required.
    #[serde(deserialize_with = "or_default")]
    #[schemars(length(min = 1))]
    pub channel: String,
}

/// Both fields are always present.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct PresenceStatsResult {
    /// Number of subscribed clients.
    pub num_clients: usize,
    /// Number of distinct user ids; the empty id counts as one.
    pub num_users: usize,
}

impl Api {
    /// Counts the clients and users that are subscribed to a channel.
    ///
    /// # Errors
    /// 107 without a channel; 102 for an unknown namespace; 108 without presence.
    pub async fn presence_stats(
        &self,
        request: PresenceStatsRequest,
    ) -> Result<PresenceStatsResult, ApiError> {
        self.measure_async(Method::PresenceStats, async |now| {
            if request.channel.is_empty() {
                return Err(NO_CHANNEL);
            }
            let stats = self.node.channels().presence_stats(&request.channel, now).await?;
            Ok(PresenceStatsResult { num_clients: stats.clients, num_users: stats.users })
        })
        .await
    }
}
