//! unsubscribe: take connections out of one channel, or out of all.
//! In: `UnsubscribeRequest`. Out: nothing; the clients get an unsubscribe push with code 2000.
//! Uses the node's unsubscribe; it is no error when nobody matched.
//! Who matches a target is decided in the node's hub.

use fanwire_node::Target;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::json::or_default;
use crate::{Api, ApiError, Method};

/// Whom to unsubscribe from what.
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
    /// 102 for an unknown namespace, when a channel is given; 100 when the other nodes could not be told.
    pub async fn unsubscribe(
        &self,
        request: UnsubscribeRequest,
    ) -> Result<UnsubscribeResult, ApiError> {
        self.measure_later(Method::Unsubscribe, async |_| {
            let target = Target {
                user: request.user,
                client: request.client,
                session: request.session,
                whitelist: Vec::new(),
            };
            let channel = (!request.channel.is_empty()).then_some(request.channel.as_str());
            self.node.unsubscribe(target, channel).await?;
            Ok(UnsubscribeResult {})
        })
        .await
    }
}
