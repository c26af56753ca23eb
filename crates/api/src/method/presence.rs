//! presence: the clients that are subscribed to a channel.
//! In: `PresenceRequest`. Out: the subscribed clients, by client id.
//! Uses the node's presence; channel permissions do not apply to the API.
//! The namespace decides whether a channel has presence; the node maintains it.

use std::collections::BTreeMap;
use std::sync::Arc;

use fanwire_node::protocol::ClientInfo;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize, Serializer};

use super::history::Client;
use crate::error::NO_CHANNEL;
use crate::json::or_default;
use crate::{Api, ApiError, Method};

/// A channel.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(extend("required" = ["channel"]))]
pub struct PresenceRequest {
    /// Required.
    #[serde(deserialize_with = "or_default")]
    #[schemars(length(min = 1))]
    pub channel: String,
}

/// The present clients; the field is always present.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct PresenceResult {
    /// The clients by client id.
    #[serde(serialize_with = "clients")]
    #[schemars(with = "BTreeMap<String, Client>")]
    pub presence: BTreeMap<String, Arc<ClientInfo>>,
}

impl Api {
    /// Returns the clients that are subscribed to a channel.
    ///
    /// # Errors
    /// 107 without a channel; 102 for an unknown namespace; 108 without presence.
    pub async fn presence(&self, request: PresenceRequest) -> Result<PresenceResult, ApiError> {
        self.measure_async(Method::Presence, async |now| {
            if request.channel.is_empty() {
                return Err(NO_CHANNEL);
            }
            let members = self.node.channels().presence(&request.channel, now).await?;
            let presence = members.into_iter().map(|info| (info.client.clone(), info)).collect();
            Ok(PresenceResult { presence })
        })
        .await
    }
}

fn clients<S: Serializer>(
    clients: &BTreeMap<String, Arc<ClientInfo>>,
    to: S,
) -> Result<S::Ok, S::Error> {
    let is_text = to.is_human_readable();
    to.collect_map(clients.iter().map(|(id, info)| (id, Client::of(info, is_text))))
}
