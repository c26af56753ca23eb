//! presence: who is in a channel.
//! In: `PresenceRequest`. Out: the clients that are subscribed to it, by client id.
//! Uses the node's presence; no permission applies to the API.
//! Who counts as present is decided by the namespace and kept in the node.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::history::Client;
use crate::json::or_default;
use crate::{Api, ApiError, Method};

/// Which channel.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(extend("required" = ["channel"]))]
pub struct PresenceRequest {
    /// Required.
    #[serde(deserialize_with = "or_default")]
    #[schemars(length(min = 1))]
    pub channel: String,
}

/// Who is there; the field is always there.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct PresenceResult {
    /// By client id.
    pub presence: BTreeMap<String, Client>,
}

impl Api {
    /// Tells who is in a channel.
    ///
    /// # Errors
    /// 107 without a channel; 102 for an unknown namespace; 108 without presence.
    pub async fn presence(&self, request: PresenceRequest) -> Result<PresenceResult, ApiError> {
        self.measure_later(Method::Presence, async |now| {
            if request.channel.is_empty() {
                return Err(ApiError::BAD_REQUEST);
            }
            let members = self.node.presence(&request.channel, now).await?;
            let presence = (members.iter())
                .map(|info| (info.client.clone(), Client::from(info.as_ref().clone())))
                .collect();
            Ok(PresenceResult { presence })
        })
        .await
    }
}
