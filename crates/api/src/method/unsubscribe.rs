//! unsubscribe: unsubscribe connections from one channel, or from all.
//! In: `UnsubscribeRequest`. Out: nothing; the clients get an unsubscribe push with code 2000.
//! Uses the node's unsubscribe; a target without connections is not an error.
//! The node's hub selects the connections of a target.

use fanwire_node::ConnectionSelector;
use fanwire_node::protocol::FilterNode;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::selector::{LabelFilter, checked};
use crate::json::{object_or_none, or_default};
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
    /// Only connections whose labels match.
    #[serde(deserialize_with = "object_or_none")]
    #[schemars(with = "LabelFilter")]
    pub label_filter: Option<FilterNode>,
    /// Without `user`: the connections of all users, on every node.
    #[serde(deserialize_with = "or_default")]
    pub all_users: bool,
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
                ..ConnectionSelector::default()
            };
            let target = checked(target, request.label_filter, request.all_users)?;
            let channel = Some(request.channel.as_str()).filter(|channel| !channel.is_empty());
            self.node.connections().unsubscribe(target, channel).await?;
            Ok(UnsubscribeResult {})
        })
        .await
    }
}
