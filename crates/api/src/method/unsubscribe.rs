//! unsubscribe: unsubscribe connections from one channel, or from all.
//! In: `UnsubscribeRequest`. Out: nothing; the clients get an unsubscribe push with code 2000.
//! Uses the node's unsubscribe; a target without connections is not an error.
//! The node's hub selects the connections of a target.

use fanwire_node::ConnectionSelector;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::json::or_default;
use crate::{Api, ApiError, Method};

/// The connections to unsubscribe, and the channel.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(default)]
pub struct UnsubscribeRequest {
    /// "" means all channels.
    #[serde(deserialize_with = "or_default")]
    pub channel: String,
    /// Exact match; "" is the anonymous user.
    #[serde(deserialize_with = "or_default")]
    pub user: String,
    /// Only this client id; "" means any.
    #[serde(deserialize_with = "or_default")]
    pub client: String,
    /// Only this session id; "" means any.
    #[serde(deserialize_with = "or_default")]
    pub session: String,
}

/// Empty.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct UnsubscribeResult {}

impl Api {
    /// Unsubscribes a user's connections.
    ///
    /// # Errors
    /// 102 for the unknown namespace of a given channel; 100 when the other nodes could not be reached.
    pub async fn unsubscribe(
        &self,
        request: UnsubscribeRequest,
    ) -> Result<UnsubscribeResult, ApiError> {
        self.measure_async(Method::Unsubscribe, async |_| {
            let target = ConnectionSelector {
                user: request.user,
                client: request.client,
                session: request.session,
                whitelist: Vec::new(),
            };
            let channel = Some(request.channel.as_str()).filter(|channel| !channel.is_empty());
            self.node.unsubscribe(target, channel).await?;
            Ok(UnsubscribeResult {})
        })
        .await
    }
}
