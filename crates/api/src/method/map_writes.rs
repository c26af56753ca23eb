//! map_publish, map_remove, map_clear: changes of the entries of map channels.
//! In: a channel, a key and its value. Out: the position of the change, or the reason why there was none.
//! Uses the node's maps; never touches connections.
//! The order of checks lives in the broker, channel rules and data formats in the node.

use std::collections::BTreeMap;

use bytes::Bytes;
use fanwire_broker::map::{KeyMode, MapError, MapOutcome, MapPublish, MapRemoval};
use fanwire_broker::{Epoch, Position};
use fanwire_node::protocol::Publication;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Empty;
use crate::error::{NO_CHANNEL, check_key};
use crate::json::{is_zero, or_default, payload, raw};
use crate::{Api, ApiError, Method, json};

/// A value for a key of a map channel.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(extend("required" = ["channel", "key"]))]
pub struct MapPublishRequest {
    /// Required. Its namespace must have `subscription_type` map.
    #[serde(deserialize_with = "or_default")]
    #[schemars(length(min = 1))]
    pub channel: String,
    /// Required: names the entry in its channel, in at most 255 bytes.
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
    /// Kept with the entry, and delivered with its changes.
    #[serde(deserialize_with = "or_default")]
    pub tags: BTreeMap<String, String>,
    /// A second request with the same idempotency key and channel within 300 s changes nothing and returns the first position.
    #[serde(deserialize_with = "or_default")]
    pub idempotency_key: String,
    /// Subscribers that negotiated deltas may get one against the value before.
    #[serde(deserialize_with = "or_default")]
    pub delta: bool,
    /// Published only if above the stored version of the entry; 0 means no check.
    #[serde(deserialize_with = "or_default")]
    pub version: u64,
    /// Versions of another epoch are not compared.
    #[serde(deserialize_with = "or_default")]
    pub version_epoch: String,
    /// `if_new`: only if the key does not exist; `if_exists`: only if it does; "" for either.
    #[serde(deserialize_with = "or_default")]
    #[schemars(regex(pattern = "^(if_new|if_exists)?$"))]
    pub key_mode: String,
    /// Fanwire only: published only if the entry has this offset.
    #[serde(deserialize_with = "or_default")]
    pub expected_offset: Option<u64>,
    /// Fanwire only, with `expected_offset`: the epoch of that offset.
    #[serde(deserialize_with = "or_default")]
    pub expected_epoch: String,
}

/// A key of a map channel.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(extend("required" = ["channel", "key"]))]
pub struct MapRemoveRequest {
    /// Required.
    #[serde(deserialize_with = "or_default")]
    #[schemars(length(min = 1))]
    pub channel: String,
    /// Required.
    #[serde(deserialize_with = "or_default")]
    #[schemars(length(min = 1, max = 255))]
    pub key: String,
    /// A second request with the same idempotency key and channel within 300 s changes nothing and returns the first position.
    #[serde(deserialize_with = "or_default")]
    pub idempotency_key: String,
    /// Fanwire only: removed only if the entry has this offset.
    #[serde(deserialize_with = "or_default")]
    pub expected_offset: Option<u64>,
    /// Fanwire only, with `expected_offset`: the epoch of that offset.
    #[serde(deserialize_with = "or_default")]
    pub expected_epoch: String,
}

/// A map channel.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(extend("required" = ["channel"]))]
pub struct MapClearRequest {
    /// Required.
    #[serde(deserialize_with = "or_default")]
    #[schemars(length(min = 1))]
    pub channel: String,
}

/// The position of a change, or why there was none. In an ephemeral channel there are no positions.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct MapChangeResult {
    /// The offset of the change in the stream; that of the entry with `position_mismatch`, 0 if the key does not exist; else the
    /// offset of the newest change.
    #[serde(skip_serializing_if = "is_zero")]
    pub offset: u64,
    /// The epoch of the stream.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub epoch: String,
    /// Nothing was changed.
    #[serde(skip_serializing_if = "is_zero")]
    pub suppressed: bool,
    /// `idempotency`, `version`, `key_exists`, `key_not_found` or `position_mismatch`.
    #[serde(skip_serializing_if = "str::is_empty")]
    pub suppress_reason: &'static str,
}

impl Api {
    /// Sets a key of a map channel.
    ///
    /// # Errors
    /// 107 without a channel or key, with invalid base64, another `key_mode`, an expected position without stream, data of a format that
    /// the channel does not allow, a value beyond `map.bytes_max`, or a channel that is no map; 111 beyond `map.entries_max` or without
    /// memory; 102 for an unknown namespace.
    pub async fn map_publish(
        &self,
        request: MapPublishRequest,
    ) -> Result<MapChangeResult, ApiError> {
        self.measure_async(Method::MapPublish, async |now| {
            check_key(&request.channel, &request.key)?;
            let mode = "key_mode is neither if_new nor if_exists, nor empty";
            let publish = MapPublish {
                publication: Publication {
                    key: request.key,
                    data: payload(request.data, &request.b64data)?,
                    tags: request.tags,
                    ..Publication::default()
                },
                idempotency_key: request.idempotency_key,
                version: request.version,
                version_epoch: request.version_epoch,
                key_mode: KeyMode::parse(&request.key_mode)
                    .ok_or(ApiError::BAD_REQUEST.because(mode))?,
                expected: expected(request.expected_offset, &request.expected_epoch)?,
                delta: request.delta,
            };
            let published = self.node.maps().publish(&request.channel, publish, now);
            Ok(published.await??.into())
        })
        .await
    }

    /// Removes a key of a map channel.
    ///
    /// # Errors
    /// 107 without a channel or key, an expected position without stream, or for a channel that is no map; 102 for an unknown namespace.
    pub async fn map_remove(&self, request: MapRemoveRequest) -> Result<MapChangeResult, ApiError> {
        self.measure_async(Method::MapRemove, async |now| {
            check_key(&request.channel, &request.key)?;
            let removal = MapRemoval {
                publication: Publication { key: request.key, ..Publication::default() },
                idempotency_key: request.idempotency_key,
                expected: expected(request.expected_offset, &request.expected_epoch)?,
            };
            let removed = self.node.maps().remove(&request.channel, removal, now);
            Ok(removed.await??.into())
        })
        .await
    }

    /// Forgets the entries, the changes and the epoch of a map channel.
    ///
    /// # Errors
    /// 107 without a channel, or for one that is no map; 102 for an unknown namespace.
    pub async fn map_clear(&self, request: MapClearRequest) -> Result<Empty, ApiError> {
        self.measure_async(Method::MapClear, async |now| {
            if request.channel.is_empty() {
                return Err(NO_CHANNEL);
            }
            self.node.maps().clear(&request.channel, now).await?;
            Ok(Empty {})
        })
        .await
    }
}

impl From<MapOutcome> for MapChangeResult {
    fn from(outcome: MapOutcome) -> Self {
        let MapOutcome { position: Position { offset, epoch }, suppression } = outcome;
        let suppress_reason = suppression.as_ref().map_or("", |why| why.reason());
        let suppressed = suppression.is_some();
        Self { offset, epoch: epoch.to_string(), suppressed, suppress_reason }
    }
}

impl From<MapError> for ApiError {
    fn from(refusal: MapError) -> Self {
        match refusal {
            MapError::NoStream => Self::BAD_REQUEST
                .because("an ephemeral map has no positions and no versions: leave out expected_offset and version"),
            MapError::TooManyEntries => Self::TOO_MANY_REQUESTS
                .because("the channel has map.entries_max entries: remove some, or raise it"),
            MapError::TooLarge => Self::BAD_REQUEST
                .because("the entries of the channel would be larger than map.bytes_max: remove some, or raise it"),
            MapError::MemoryFull => Self::TOO_MANY_REQUESTS
                .because("the entries of all maps would be larger than channel.history_memory_max: raise it"),
        }
    }
}

/// The position of two fields, of which the first one asks for the check.
///
/// # Errors
/// 107 for an epoch without an offset, or one that no stream can have.
fn expected(offset: Option<u64>, epoch: &str) -> Result<Option<Position>, ApiError> {
    let Some(offset) = offset else {
        let cause = "expected_epoch needs expected_offset";
        return if epoch.is_empty() { Ok(None) } else { Err(ApiError::BAD_REQUEST.because(cause)) };
    };
    let cause = "expected_epoch is not the epoch of a stream, as results have it";
    let epoch = Epoch::parse(epoch)
        .filter(|epoch| *epoch != Epoch::NONE)
        .ok_or(ApiError::BAD_REQUEST.because(cause))?;
    Ok(Some(Position { offset, epoch }))
}
