//! channels: the channels with subscribers, for debugging.
//! In: a glob pattern. Out: each matching channel with its number of subscribers, sorted by name.
//! Uses the channel lists of all nodes; the result has no pages (advice: at most about 10,000 active channels).
//! Pattern matching lives in the node.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::json::or_default;
use crate::{Api, ApiError, Method};

/// A filter for channels.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(default)]
pub struct ChannelsRequest {
    /// `*`, `?`, classes `[a-z]` and alternatives `{a,b}`; "" means all.
    #[serde(deserialize_with = "or_default")]
    pub pattern: String,
}

/// The matching channels.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct ChannelsResult {
    /// Channels with at least one subscriber, by name.
    pub channels: BTreeMap<String, ChannelSummary>,
}

/// One channel.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct ChannelSummary {
    /// Number of subscribers.
    pub num_clients: u32,
}

impl Api {
    /// Lists channels that have subscribers.
    ///
    /// # Errors
    /// 107 for a malformed pattern; 100 when a node could not be reached or did not answer within 10 s; 111 when too many
    /// such requests are in flight.
    pub async fn channels(&self, request: ChannelsRequest) -> Result<ChannelsResult, ApiError> {
        self.measure_async(Method::Channels, async |now| {
            let channels = self.node.channels().list(&request.pattern, now).await?;
            let summary = |(name, num_clients)| (name, ChannelSummary { num_clients });
            Ok(ChannelsResult { channels: channels.into_iter().map(summary).collect() })
        })
        .await
    }
}
