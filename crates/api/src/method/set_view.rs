//! set_view: what a client sees of a channel with places.
//! In: `SetViewRequest`. Out: nothing; the client gets what is published in the tiles of its view from then on.
//! Uses the node's view of a client, on every node; a client that is not subscribed is not an error.
//! The forms of views live in `fanwire_area`, the tiles of a client in the node.

use bytes::Bytes;
use fanwire_broker::ClientId;
use fanwire_node::area::View;
use schemars::JsonSchema;
use serde::Deserialize;

use super::Empty;
use crate::error::NO_CHANNEL;
use crate::json::{or_default, raw};
use crate::{Api, ApiError, Method};

/// The view of a client.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(extend("required" = ["client", "channel", "view"]))]
pub struct SetViewRequest {
    /// Required. The id of the client.
    #[serde(deserialize_with = "or_default")]
    #[schemars(length(min = 1))]
    pub client: String,
    /// Required. A channel with places that it is subscribed to.
    #[serde(deserialize_with = "or_default")]
    #[schemars(length(min = 1))]
    pub channel: String,
    /// Required. The centre `x` and `y`, and either `width` and `height` or `radius`; `layer` and `margin` are 0 by default.
    #[serde(deserialize_with = "raw")]
    #[schemars(with = "serde_json::Value")]
    pub view: Bytes,
}

impl Api {
    /// Sets what a client sees of a channel with places.
    ///
    /// # Errors
    /// 107 without a channel or a client id, for an impossible view, and for a channel without places; 102 for an unknown
    /// namespace; 100 when the other nodes could not be reached.
    pub async fn set_view(&self, request: SetViewRequest) -> Result<Empty, ApiError> {
        self.measure_async(Method::SetView, async |_| {
            if request.channel.is_empty() {
                return Err(NO_CHANNEL);
            }
            let no_client =
                || ApiError::BAD_REQUEST.because("client is not a client id, expected a UUID");
            let client = ClientId::parse(&request.client).ok_or_else(no_client)?;
            let view = View::from_json(&request.view)
                .map_err(|error| ApiError::BAD_REQUEST.because(error.text()))?;
            self.node.connections().set_view_on_every_node(client, &request.channel, view).await?;
            Ok(Empty {})
        })
        .await
    }
}
