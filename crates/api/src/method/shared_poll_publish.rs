//! shared_poll_publish: a new value of a key, for the clients that track it, without the next poll.
//! In: a channel, a key, its value and version. Out: nothing, when the engine has the value.
//! Uses the node's channels; never touches connections.
//! Which clients get the value is decided in `policy::shared_poll`.

use bytes::Bytes;
use fanwire_node::shared_poll::DirectPublish;
use schemars::JsonSchema;
use serde::Deserialize;

use super::Empty;
use crate::error::check_key;
use crate::json::{or_default, payload, raw};
use crate::{Api, ApiError, Method, json};

/// A value of a key of a shared poll channel.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(extend("required" = ["channel", "key", "version"]))]
pub struct SharedPollPublishRequest {
    /// Required. Its namespace must have `subscription_type` shared_poll and `shared_poll.publish_enabled`.
    #[serde(deserialize_with = "or_default")]
    #[schemars(length(min = 1))]
    pub channel: String,
    /// Required: the key that clients track, in at most 255 bytes.
    #[serde(deserialize_with = "or_default")]
    #[schemars(length(min = 1, max = 255))]
    pub key: String,
    /// The value: any JSON value, delivered byte for byte.
    #[serde(deserialize_with = "raw")]
    #[schemars(with = "serde_json::Value")]
    pub data: Bytes,
    /// A binary value as standard base64 with padding; used instead of `data`.
    #[serde(deserialize_with = "or_default")]
    #[schemars(regex(pattern = json::BASE64))]
    pub b64data: String,
    /// Required: the version of the value, at least 1. Clients that have this version or a higher one do not get the value.
    #[serde(deserialize_with = "or_default")]
    #[schemars(range(min = 1))]
    pub version: u64,
    /// The epoch of the version, as the backend returns it to polls.
    #[serde(deserialize_with = "or_default")]
    pub epoch: String,
}

impl Api {
    /// Publishes a value of a key of a shared poll channel on all nodes.
    ///
    /// # Errors
    /// 107 without a channel, key or version, with invalid base64, data of a format that the channel does not allow, or a channel that is
    /// no shared poll; 108 unless `shared_poll.publish_enabled`; 102 for an unknown namespace.
    pub async fn shared_poll_publish(
        &self,
        request: SharedPollPublishRequest,
    ) -> Result<Empty, ApiError> {
        self.measure_async(Method::SharedPollPublish, async |now| {
            let SharedPollPublishRequest { channel, key, data, b64data, version, epoch } = request;
            check_key(&channel, &key)?;
            let data = payload(data, &b64data)?;
            let publish = DirectPublish { key, data, version, epoch };
            self.node.channels().publish_value(&channel, publish, now).await?;
            Ok(Empty {})
        })
        .await
    }
}
