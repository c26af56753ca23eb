//! broadcast: the same publication into many channels.
//! In: `BroadcastRequest`. Out: one response per channel, in the order of the request.
//! Uses `publish_many`; channels are published to one after another and share the payload.
//! Channel rules and data formats live in the node, the payload's two fields in `json`.

mod publish_many;

use std::collections::BTreeMap;

use bytes::Bytes;
use fanwire_broker::PublishOptions;
use fanwire_node::protocol::Publication;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::publication_report::report_text;
use super::publish::{PublishResult, client_id, delivery_class};
use crate::json::{or_default, payload, raw, up_to};
use crate::{Api, ApiError, Method, call_span, json};
use publish_many::{PendingPublish, PublishMany};

/// Maximum number of channels in a broadcast; a longer list is refused as a whole.
pub const BROADCAST_CHANNELS_MAX: usize = 100_000;

/// A publication for many channels; all fields but `channels` are those of publish.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(extend("required" = ["channels"]))]
pub struct BroadcastRequest {
    /// Required: 1 to 100,000 channels.
    #[serde(deserialize_with = "up_to::<BROADCAST_CHANNELS_MAX, _, _>")]
    #[schemars(length(min = 1, max = BROADCAST_CHANNELS_MAX))]
    pub channels: Vec<String>,
    /// The payload: any JSON value, delivered byte for byte.
    #[serde(deserialize_with = "raw")]
    #[schemars(with = "serde_json::Value")]
    pub data: Bytes,
    /// A binary payload as standard base64 with padding; used instead of `data`.
    #[serde(deserialize_with = "or_default")]
    #[schemars(regex(pattern = json::BASE64))]
    pub b64data: String,
    /// Do not store the publication; it gets no offset.
    #[serde(deserialize_with = "or_default")]
    pub skip_history: bool,
    /// Delivered with the publication.
    #[serde(deserialize_with = "or_default")]
    pub tags: BTreeMap<String, String>,
    /// As in publish: a channel that got the same key within 300 s is not published to, and returns its first position.
    #[serde(deserialize_with = "or_default")]
    pub idempotency_key: String,
    /// Subscribers that negotiated deltas may get a delta.
    #[serde(deserialize_with = "or_default")]
    pub delta: bool,
    /// Published only in channels where it is above the stored version; 0 means no check.
    #[serde(deserialize_with = "or_default")]
    pub version: u64,
    /// Versions of another epoch are not compared.
    #[serde(deserialize_with = "or_default")]
    pub version_epoch: String,
    /// Fanwire only: the client id of a connection that does not receive the publication; "" for none.
    #[serde(deserialize_with = "or_default")]
    #[schemars(regex(pattern = json::CLIENT_ID))]
    pub exclude_client: String,
    /// Fanwire only: `reliable` or `latest`, instead of the `delivery` of the namespace; "" for that.
    #[serde(deserialize_with = "or_default")]
    #[schemars(regex(pattern = json::DELIVERY))]
    pub delivery: String,
    /// Fanwire only: count its deliveries in all channels, for `publication_report`.
    #[serde(deserialize_with = "or_default")]
    pub report: bool,
}

/// One response per channel.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct BroadcastResult {
    /// In the order of the request's channels.
    pub responses: Vec<PublishResponse>,
    /// With `report`: what `publication_report` takes.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub report: String,
}

/// The response for one channel: `{"result":{…}}` or `{"error":{…}}`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum PublishResponse {
    /// Published.
    Result(PublishResult),
    /// Not published in this channel; other channels are not affected.
    Error(ApiError),
}

impl Api {
    /// Publishes the same data to all subscribers of each channel in a list.
    ///
    /// # Errors
    /// 107 without channels or with more than [`BROADCAST_CHANNELS_MAX`], with invalid base64
    /// or an invalid `exclude_client` or `delivery`. An error of one channel is in its response only.
    pub async fn broadcast(&self, request: BroadcastRequest) -> Result<BroadcastResult, ApiError> {
        self.measure_async(Method::Broadcast, async |now| {
            if !(1..=BROADCAST_CHANNELS_MAX).contains(&request.channels.len()) {
                let cause = "channels is missing, empty or too long, expected 1 to 100,000 names";
                return Err(ApiError::BAD_REQUEST.because(cause));
            }
            let publication = Publication {
                data: payload(request.data, &request.b64data)?,
                tags: request.tags,
                ..Publication::default()
            };
            let wants_receipt = call_span::wants_receipt();
            let receipt = if request.report || wants_receipt {
                self.node.diagnostics().begin_receipt(now)
            } else {
                0
            };
            let options = PublishOptions {
                idempotency_key: request.idempotency_key,
                key_owner: None,
                skip_history: request.skip_history,
                delta: request.delta,
                version: request.version,
                version_epoch: request.version_epoch,
                exclude_client: client_id(&request.exclude_client)?,
                delivery: delivery_class(&request.delivery)?,
                receipt,
            };
            // All publications are sent before the first result is awaited, so that a remote broker gets them together.
            let pending = PublishMany::new(
                self.node.channels().publisher(),
                &request.channels,
                publication,
                options,
                now,
            )
            .await;
            if wants_receipt {
                call_span::await_delivery(receipt, "");
            }
            let responses = call_span::broker(async {
                let mut responses = Vec::with_capacity(pending.len());
                for published in pending {
                    responses.push(respond(published).await);
                }
                Ok::<_, ApiError>(responses)
            });
            let report = if request.report { report_text(receipt) } else { String::new() };
            Ok(BroadcastResult { responses: responses.await?, report })
        })
        .await
    }
}

async fn respond(published: PendingPublish) -> PublishResponse {
    match published.await {
        Ok(position) => PublishResponse::Result(position.into()),
        Err(error) => PublishResponse::Error(error.into()),
    }
}
