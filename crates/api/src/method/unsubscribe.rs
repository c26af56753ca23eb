//! unsubscribe: unsubscribe connections from one channel, or from all.
//! In: `UnsubscribeRequest`. Out: nothing; the clients get an unsubscribe push with code 2000.
//! Uses the node's unsubscribe; a target without connections is not an error.
//! The node's hub selects the connections of a target.

use fanwire_node::ConnectionSelector;
use schemars::JsonSchema;
use serde::Deserialize;

use super::Empty;
use super::selector::selecting;
use crate::json::or_default;
use crate::{Api, ApiError, Method};

selecting! {
    /// The connections to unsubscribe, and the channel.
    pub struct UnsubscribeRequest {
        /// "" means all channels.
        #[serde(deserialize_with = "or_default")]
        pub channel: String,
    }
}

impl Api {
    /// Unsubscribes a user's connections.
    ///
    /// # Errors
    /// 102 for the unknown namespace of a given channel; 100 when the other nodes could not be reached.
    pub async fn unsubscribe(&self, mut request: UnsubscribeRequest) -> Result<Empty, ApiError> {
        self.measure_async(Method::Unsubscribe, async |_| {
            let target = request.take_target()?;
            let channel = Some(request.channel.as_str()).filter(|channel| !channel.is_empty());
            self.node.connections().unsubscribe(target, channel).await?;
            Ok(Empty {})
        })
        .await
    }
}
