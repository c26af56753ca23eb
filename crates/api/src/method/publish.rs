//! publish: one publication into one channel.
//! In: `PublishRequest`. Out: its position in the channel's history, if there is one.
//! Uses the node's publish; never touches connections.
//! Channel rules and data formats live in the node, the payload's two fields in `json`.

use std::collections::BTreeMap;

use bytes::Bytes;
use fanwire_broker::{ClientId, DeliveryClass, Position, PublishOptions};
use fanwire_node::area::Place;
use fanwire_node::protocol::Publication;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::publication_report::report_text;
use crate::error::NO_CHANNEL;
use crate::json::{is_zero, or_default, payload, raw};
use crate::{Api, ApiError, Method, call_span, json};

/// A publication for one channel.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(extend("required" = ["channel"]))]
pub struct PublishRequest {
    /// Required.
    #[serde(deserialize_with = "or_default")]
    #[schemars(length(min = 1))]
    pub channel: String,
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
    /// A second request with the same key and channel within 300 s publishes nothing and returns the first position.
    #[serde(deserialize_with = "or_default")]
    pub idempotency_key: String,
    /// Subscribers that negotiated deltas may get a delta.
    #[serde(deserialize_with = "or_default")]
    pub delta: bool,
    /// Published only if above the channel's stored version; 0 means no check.
    #[serde(deserialize_with = "or_default")]
    pub version: u64,
    /// Versions of another epoch are not compared.
    #[serde(deserialize_with = "or_default")]
    pub version_epoch: String,
    /// Fanwire only: the client id of a connection that does not receive the publication, usually that of the client that
    /// caused it; "" for none.
    #[serde(deserialize_with = "or_default")]
    #[schemars(regex(pattern = json::CLIENT_ID))]
    pub exclude_client: String,
    /// Fanwire only: `reliable` or `latest`, instead of the `delivery` of the namespace; "" for that.
    #[serde(deserialize_with = "or_default")]
    #[schemars(regex(pattern = json::DELIVERY))]
    pub delivery: String,
    /// Fanwire only: where it happens, in a channel with places (`area_tile_size`): only subscribers whose view touches the tile of
    /// the place receive it. Without a place all subscribers do.
    #[serde(deserialize_with = "or_default")]
    pub place: Option<PlaceInChannel>,
    /// Fanwire only: count its deliveries, for `publication_report`.
    #[serde(deserialize_with = "or_default")]
    pub report: bool,
}

/// A point of a channel with places.
#[derive(Clone, Copy, Debug, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(default)]
pub struct PlaceInChannel {
    /// In the unit of `area_tile_size`.
    pub x: f64,
    /// In the unit of `area_tile_size`.
    pub y: f64,
    /// A world may have several layers, such as floors.
    pub layer: i32,
}

/// The position of the publication; without history both fields are empty, and absent in JSON.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct PublishResult {
    /// The offset in the stream, from 1; 0 without history.
    #[serde(skip_serializing_if = "is_zero")]
    pub offset: u64,
    /// The stream's epoch; "" without history.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub epoch: String,
    /// With `report` of publish: what `publication_report` takes.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub report: String,
}

impl Api {
    /// Publishes to all subscribers of one channel.
    ///
    /// # Errors
    /// 107 without a channel, with invalid base64, an invalid `exclude_client` or `delivery`, data of a format that the
    /// channel does not allow, `latest` where subscribers rely on every publication, or a `place` in a channel without places; 102
    /// for an unknown namespace.
    pub async fn publish(&self, request: PublishRequest) -> Result<PublishResult, ApiError> {
        self.measure_async(Method::Publish, async |now| {
            if request.channel.is_empty() {
                return Err(NO_CHANNEL);
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
            let node = &self.node;
            let channel = &request.channel;
            let published = match request.place {
                Some(PlaceInChannel { x, y, layer }) => {
                    let place = Place { x, y, layer };
                    node.channels().publish_at(place, channel, publication, options, now)
                }
                None => node.channels().publish(channel, publication, options, now),
            };
            if wants_receipt {
                call_span::await_delivery(receipt, channel);
            }
            let report = if request.report { report_text(receipt) } else { String::new() };
            Ok(PublishResult { report, ..call_span::broker(published).await?.into() })
        })
        .await
    }
}

impl From<Position> for PublishResult {
    fn from(position: Position) -> Self {
        let offset = position.offset;
        let epoch = position.epoch.to_string();
        Self { offset, epoch, report: String::new() }
    }
}

/// Parses a client id from a field that may be empty.
///
/// # Errors
/// 107 for any other text; ignoring it would deliver to the client that should be excluded.
pub(super) fn client_id(text: &str) -> Result<Option<ClientId>, ApiError> {
    if text.is_empty() {
        return Ok(None);
    }
    let cause = "exclude_client is not a client id, expected a UUID";
    ClientId::parse(text).map(Some).ok_or(ApiError::BAD_REQUEST.because(cause))
}

/// Parses a delivery class from a field that may be empty.
///
/// # Errors
/// 107 for any other text.
pub(super) fn delivery_class(text: &str) -> Result<Option<DeliveryClass>, ApiError> {
    if text.is_empty() {
        return Ok(None);
    }
    let cause = "delivery is neither reliable nor latest";
    DeliveryClass::parse(text).map(Some).ok_or(ApiError::BAD_REQUEST.because(cause))
}
