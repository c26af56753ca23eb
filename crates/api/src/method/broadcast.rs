//! broadcast: the same publication into many channels.
//! In: `BroadcastRequest`. Out: one response per channel, in the order of the request.
//! Uses `spread` to publish; channels are served one after another, the payload is shared.
//! Channel rules and data formats live in the node, the payload's two fields in `json`.

mod spread;

use std::collections::BTreeMap;

use bytes::Bytes;
use fanwire_broker::PublishOptions;
use fanwire_node::protocol::Publication;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::publish::{PublishResult, client_id};
use crate::json::{or_default, payload, raw, up_to};
use crate::{Api, ApiError, Method, openapi};
use spread::{Begun, Spread};

/// Most channels of one broadcast; a longer list is refused whole.
pub const BROADCAST_CHANNELS_MAX: usize = 100_000;

/// What to publish, in which channels and how; every field but `channels` is that of publish.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(extend("required" = ["channels"]))]
pub struct BroadcastRequest {
    /// Required: 1 to 100,000 of them.
    #[serde(deserialize_with = "up_to::<BROADCAST_CHANNELS_MAX, _, _>")]
    #[schemars(length(min = 1, max = BROADCAST_CHANNELS_MAX))]
    pub channels: Vec<String>,
    /// The payload: in JSON any value, kept byte for byte.
    #[serde(deserialize_with = "raw")]
    #[schemars(with = "serde_json::Value")]
    pub data: Bytes,
    /// A binary payload as standard base64 with padding; wins over `data`.
    #[serde(deserialize_with = "or_default")]
    #[schemars(regex(pattern = openapi::BASE64))]
    pub b64data: String,
    /// Deliver only: no offset, nothing stored.
    #[serde(deserialize_with = "or_default")]
    pub skip_history: bool,
    /// Delivered with the publication.
    #[serde(deserialize_with = "or_default")]
    pub tags: BTreeMap<String, String>,
    /// As in publish: a channel that had the key within 300 s is left out and answers its first position.
    #[serde(deserialize_with = "or_default")]
    pub idempotency_key: String,
    /// Subscribers that agreed to deltas may get one.
    #[serde(deserialize_with = "or_default")]
    pub delta: bool,
    /// Dropped in channels where it is not above the stored version; 0 means no check.
    #[serde(deserialize_with = "or_default")]
    pub version: u64,
    /// Versions of another epoch are not compared.
    #[serde(deserialize_with = "or_default")]
    pub version_epoch: String,
    /// Fanwire only: the client id of the one connection that does not get it; "" for nobody.
    #[serde(deserialize_with = "or_default")]
    #[schemars(regex(pattern = openapi::CLIENT_ID))]
    pub exclude_client: String,
}

/// One response per channel.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct BroadcastResult {
    /// In the order of the request's channels.
    pub responses: Vec<PublishResponse>,
}

/// What became of one channel: `{"result":{…}}` or `{"error":{…}}`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum PublishResponse {
    /// Published there.
    Result(PublishResult),
    /// Not published there; the other channels are not affected.
    Error(ApiError),
}

impl Api {
    /// Publishes the same data to all subscribers of every channel of a list.
    ///
    /// # Errors
    /// 107 without channels or with more than [`BROADCAST_CHANNELS_MAX`], with invalid base64 or an `exclude_client` that is no client id. What is wrong with one channel is told in its response only.
    pub async fn broadcast(&self, request: BroadcastRequest) -> Result<BroadcastResult, ApiError> {
        self.measure_later(Method::Broadcast, async |now| {
            if !(1..=BROADCAST_CHANNELS_MAX).contains(&request.channels.len()) {
                return Err(ApiError::BAD_REQUEST);
            }
            let publication = Publication {
                data: payload(request.data, &request.b64data)?,
                tags: request.tags,
                ..Publication::default()
            };
            let options = PublishOptions {
                idempotency_key: request.idempotency_key,
                skip_history: request.skip_history,
                delta: request.delta,
                version: request.version,
                version_epoch: request.version_epoch,
                exclude_client: client_id(&request.exclude_client)?,
            };
            // All leave before the first is awaited, so that a broker far away is asked for all of them together.
            let begun = Spread::new(&self.node, &request.channels, publication, options, now);
            let begun = begun.await;
            let mut responses = Vec::with_capacity(begun.len());
            for published in begun {
                responses.push(respond(published).await);
            }
            Ok(BroadcastResult { responses })
        })
        .await
    }
}

async fn respond(published: Begun) -> PublishResponse {
    match published.await {
        Ok(position) => PublishResponse::Result(position.into()),
        Err(error) => PublishResponse::Error(error.into()),
    }
}
