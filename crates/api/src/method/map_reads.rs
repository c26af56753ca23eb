//! map_read_state, map_read_stream, map_stats: what map channels hold.
//! In: a channel with a cursor, a key or a position. Out: entries or changes, with the position of the stream.
//! Uses the node's maps; channel permissions do not apply to the API.
//! The order of pages and lost positions are up to the broker.

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use fanwire_broker::map::{ChangesQuery, StateQuery};
use fanwire_broker::{Epoch, Position};
use fanwire_node::protocol::Publication;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize, Serializer};

use crate::error::NO_CHANNEL;
use crate::json::{in_place, is_embeddable, is_zero, or_default};
use crate::{Api, ApiError, Method};

/// A query for a page of entries.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(extend("required" = ["channel"]))]
pub struct MapReadStateRequest {
    /// Required.
    #[serde(deserialize_with = "or_default")]
    #[schemars(length(min = 1))]
    pub channel: String,
    /// The `cursor` of the page before; "" for the first page.
    #[serde(deserialize_with = "or_default")]
    pub cursor: String,
    /// Maximum number of entries; 0 = only the position, below 0 = all.
    #[serde(deserialize_with = "or_default")]
    pub limit: i32,
    /// Only the entry with this key; `limit` and `cursor` are then ignored.
    #[serde(deserialize_with = "or_default")]
    pub key: String,
    /// The `epoch` of the first page: if the map has begun again since then, the error is 112.
    #[serde(deserialize_with = "or_default")]
    pub revision_epoch: String,
}

/// A query for changes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(extend("required" = ["channel"]))]
pub struct MapReadStreamRequest {
    /// Required.
    #[serde(deserialize_with = "or_default")]
    #[schemars(length(min = 1))]
    pub channel: String,
    /// Only changes after this offset; with `reverse`, before it. 0 without `since_epoch` begins at the oldest stored change.
    #[serde(deserialize_with = "or_default")]
    pub since_offset: u64,
    /// The epoch of that offset; "" for any.
    #[serde(deserialize_with = "or_default")]
    pub since_epoch: String,
    /// Maximum number of changes; 0 = only the position, below 0 = all.
    #[serde(deserialize_with = "or_default")]
    pub limit: i32,
    /// Newest first.
    #[serde(deserialize_with = "or_default")]
    pub reverse: bool,
}

/// A map channel.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(extend("required" = ["channel"]))]
pub struct MapStatsRequest {
    /// Required.
    #[serde(deserialize_with = "or_default")]
    #[schemars(length(min = 1))]
    pub channel: String,
}

/// A page of entries, and the position of the stream at that moment.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct MapReadStateResult {
    /// Each key with its newest value.
    #[serde(serialize_with = "entries")]
    #[schemars(with = "Vec<StoredMapEntry>")]
    pub entries: Vec<Publication>,
    /// The offset of the newest change; 0 in an ephemeral channel.
    pub offset: u64,
    /// The epoch of the stream; "" in an ephemeral channel.
    pub epoch: String,
    /// Where the next page begins; "" when there is none.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub cursor: String,
}

/// Changes, and the position of the stream at that moment.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct MapReadStreamResult {
    /// In the requested order.
    #[serde(serialize_with = "entries")]
    #[schemars(with = "Vec<StoredMapEntry>")]
    pub entries: Vec<Publication>,
    /// The offset of the newest change, independent of the query.
    pub offset: u64,
    /// The epoch of the stream.
    pub epoch: String,
}

/// Counts of a map channel.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct MapStatsResult {
    /// Number of entries.
    pub num_keys: usize,
}

/// An entry, or a change of one. A value that is not JSON is returned in base64.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct StoredMapEntry {
    /// Names the entry.
    pub key: String,
    /// The value, if it is JSON.
    #[serde(serialize_with = "in_place", skip_serializing_if = "Bytes::is_empty")]
    #[schemars(with = "serde_json::Value")]
    pub data: Bytes,
    /// The value as standard base64 with padding, if it is not JSON.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub b64data: String,
    /// The tags of the entry.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub tags: BTreeMap<String, String>,
    /// The offset of the change; 0 in an ephemeral channel.
    #[serde(skip_serializing_if = "is_zero")]
    pub offset: u64,
    /// The change removed the entry.
    #[serde(skip_serializing_if = "is_zero")]
    pub removed: bool,
    /// Unix time of the change in milliseconds.
    #[serde(skip_serializing_if = "is_zero")]
    pub time: i64,
}

impl Api {
    /// Reads a page of the entries of a map channel.
    ///
    /// # Errors
    /// 107 without a channel, or for one that is no map; 102 for an unknown namespace; 112 for another `revision_epoch`.
    pub async fn map_read_state(
        &self,
        request: MapReadStateRequest,
    ) -> Result<MapReadStateResult, ApiError> {
        self.measure_async(Method::MapReadState, async |now| {
            if request.channel.is_empty() {
                return Err(NO_CHANNEL);
            }
            let query = StateQuery {
                cursor: request.cursor,
                limit: usize::try_from(request.limit).ok(),
                key: Some(request.key).filter(|key| !key.is_empty()),
                epoch: epoch(&request.revision_epoch)?,
            };
            let page = self.node.maps().read_state(&request.channel, &query, now).await?;
            let Position { offset, epoch } = page.top;
            let entries = page.entries;
            let cursor = page.cursor;
            Ok(MapReadStateResult { entries, offset, epoch: epoch.to_string(), cursor })
        })
        .await
    }

    /// Reads changes of a map channel.
    ///
    /// # Errors
    /// 107 without a channel, or for one that is no map; 102 for an unknown namespace; 112 for another epoch, or when changes behind the
    /// position are no longer stored.
    pub async fn map_read_stream(
        &self,
        request: MapReadStreamRequest,
    ) -> Result<MapReadStreamResult, ApiError> {
        self.measure_async(Method::MapReadStream, async |now| {
            if request.channel.is_empty() {
                return Err(NO_CHANNEL);
            }
            let since =
                Position { offset: request.since_offset, epoch: epoch(&request.since_epoch)? };
            let query = ChangesQuery {
                since: Some(since).filter(|since| *since != Position::default()),
                limit: usize::try_from(request.limit).ok(),
                reverse: request.reverse,
            };
            let slice = self.node.maps().read_stream(&request.channel, query, now).await?;
            let Position { offset, epoch } = slice.top;
            let entries = slice.publications;
            Ok(MapReadStreamResult { entries, offset, epoch: epoch.to_string() })
        })
        .await
    }

    /// Counts the entries of a map channel.
    ///
    /// # Errors
    /// 107 without a channel, or for one that is no map; 102 for an unknown namespace.
    pub async fn map_stats(&self, request: MapStatsRequest) -> Result<MapStatsResult, ApiError> {
        self.measure_async(Method::MapStats, async |now| {
            if request.channel.is_empty() {
                return Err(NO_CHANNEL);
            }
            let stats = self.node.maps().stats(&request.channel, now).await?;
            Ok(MapStatsResult { num_keys: stats.entries })
        })
        .await
    }
}

/// The epoch of a request.
///
/// # Errors
/// 112 for a text that no stream has as its epoch.
fn epoch(text: &str) -> Result<Epoch, ApiError> {
    let cause = "the map of the channel has another epoch";
    Epoch::parse(text).ok_or(ApiError::UNRECOVERABLE_POSITION.because(cause))
}

fn entries<S: Serializer>(list: &[Publication], to: S) -> Result<S::Ok, S::Error> {
    let is_text = to.is_human_readable();
    to.collect_seq(list.iter().map(|entry| StoredMapEntry::of(entry, is_text)))
}

impl StoredMapEntry {
    /// The form of an entry in JSON, or in an encoding whose payloads may have any bytes.
    fn of(entry: &Publication, is_text: bool) -> Self {
        let Publication { key, data, tags, offset, removed, time, .. } = entry.clone();
        let is_embedded = !is_text || is_embeddable(&data);
        let b64data = if is_embedded { String::new() } else { STANDARD.encode(&data) };
        let data = if is_embedded { data } else { Bytes::new() };
        Self { key, data, b64data, tags, offset, removed, time }
    }
}
