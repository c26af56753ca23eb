//! history_remove: remove the stored publications of a channel.
//! In: `HistoryRemoveRequest`. Out: nothing; the channel keeps offset and epoch, and its subscribers get no message.
//! Uses the node's history.
//! The effect on clients that recover later is decided in the node.

use schemars::JsonSchema;
use serde::Deserialize;

use super::Empty;
use crate::error::NO_CHANNEL;
use crate::json::or_default;
use crate::{Api, ApiError, Method};

/// A channel.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(extend("required" = ["channel"]))]
pub struct HistoryRemoveRequest {
    /// Required.
    #[serde(deserialize_with = "or_default")]
    #[schemars(length(min = 1))]
    pub channel: String,
}

impl Api {
    /// Removes the stored publications of a channel.
    ///
    /// # Errors
    /// 107 without a channel; 102 for an unknown namespace; 108 without history.
    pub async fn history_remove(&self, request: HistoryRemoveRequest) -> Result<Empty, ApiError> {
        self.measure_async(Method::HistoryRemove, async |now| {
            if request.channel.is_empty() {
                return Err(NO_CHANNEL);
            }
            self.node.channels().remove_history(&request.channel, now).await?;
            Ok(Empty {})
        })
        .await
    }
}
