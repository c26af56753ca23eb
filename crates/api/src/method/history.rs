//! history: stored publications of a channel and the top of its stream.
//! In: `HistoryRequest`. Out: publications in the requested order, with the stream's offset and epoch.
//! Uses the node's history; channel permissions do not apply to the API.
//! The namespace decides how long publications are kept; the broker reads them.

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use fanwire_node::Page;
use fanwire_node::protocol::{ClientInfo, Publication, StreamPosition};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize, Serializer};

use crate::error::NO_CHANNEL;
use crate::json::{in_place, is_embeddable, or_default};
use crate::{Api, ApiError, Method};

/// A query for stored publications.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(extend("required" = ["channel"]))]
pub struct HistoryRequest {
    /// Required.
    #[serde(deserialize_with = "or_default")]
    #[schemars(length(min = 1))]
    pub channel: String,
    /// Maximum number of publications; 0 = only the position, below 0 = all stored publications.
    #[serde(deserialize_with = "or_default")]
    pub limit: i32,
    /// Only publications after this position; with `reverse`, before it.
    #[schemars(with = "Since")]
    pub since: Option<Since>,
    /// Newest first.
    #[serde(deserialize_with = "or_default")]
    pub reverse: bool,
}

/// A position in a stream.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Since {
    /// 0 means before the first publication.
    #[serde(deserialize_with = "or_default")]
    pub offset: u64,
    /// "" matches every epoch.
    #[serde(deserialize_with = "or_default")]
    pub epoch: String,
}

/// Stored publications and the position of the stream; all fields are always present.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct HistoryResult {
    /// In the requested order.
    #[serde(serialize_with = "publications")]
    #[schemars(with = "Vec<StoredPublication>")]
    pub publications: Vec<Publication>,
    /// The epoch of the stream.
    pub epoch: String,
    /// The offset of the newest publication, independent of the query.
    pub offset: u64,
}

/// One publication. A payload that is not JSON is returned in base64.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct StoredPublication {
    /// The payload, if it is JSON.
    #[serde(serialize_with = "in_place", skip_serializing_if = "Bytes::is_empty")]
    #[schemars(with = "serde_json::Value")]
    pub data: Bytes,
    /// The payload as standard base64 with padding, if it is not JSON.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub b64data: String,
    /// The publisher, if it was a client.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Client")]
    pub info: Option<Client>,
    /// The offset, from 1.
    pub offset: u64,
    /// The tags of the publication.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub tags: BTreeMap<String, String>,
}

/// A client that published or is present; `conn_info` and `chan_info` are omitted when they are not JSON.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Client {
    /// User id; "" is anonymous.
    pub user: String,
    /// Client id.
    pub client: String,
    /// From the connection token.
    #[serde(serialize_with = "in_place", skip_serializing_if = "Bytes::is_empty")]
    #[schemars(with = "serde_json::Value")]
    pub conn_info: Bytes,
    /// From the subscription token.
    #[serde(serialize_with = "in_place", skip_serializing_if = "Bytes::is_empty")]
    #[schemars(with = "serde_json::Value")]
    pub chan_info: Bytes,
}

impl Api {
    /// Reads the history of a channel.
    ///
    /// # Errors
    /// 107 without a channel, or for `reverse` before offset 0; 102 for an unknown namespace; 108 without history; 112 for
    /// a different epoch.
    pub async fn history(&self, request: HistoryRequest) -> Result<HistoryResult, ApiError> {
        self.measure_async(Method::History, async |now| {
            if request.channel.is_empty() {
                return Err(NO_CHANNEL);
            }
            let since =
                request.since.map(|Since { offset, epoch }| StreamPosition { offset, epoch });
            if request.reverse && since.as_ref().is_some_and(|since| since.offset == 0) {
                return Err(ApiError::BAD_REQUEST.because("reverse needs a since above offset 0"));
            }
            let limit = usize::try_from(request.limit).ok();
            let page = Page { limit, since, reverse: request.reverse };
            let slice = self.node.channels().history(&request.channel, &page, now).await?;
            Ok(HistoryResult {
                publications: slice.publications,
                epoch: slice.top.epoch.to_string(),
                offset: slice.top.offset,
            })
        })
        .await
    }
}

fn publications<S: Serializer>(list: &[Publication], to: S) -> Result<S::Ok, S::Error> {
    let is_text = to.is_human_readable();
    to.collect_seq(list.iter().map(|publication| StoredPublication::of(publication, is_text)))
}

impl StoredPublication {
    /// The form of a publication in JSON, or in an encoding whose payloads may have any bytes.
    fn of(publication: &Publication, is_text: bool) -> Self {
        let Publication { data, info, offset, tags, .. } = publication;
        let (data, b64data) = if !is_text || is_embeddable(data) {
            (data.clone(), String::new())
        } else {
            (Bytes::new(), STANDARD.encode(data))
        };
        let info = info.as_ref().map(|info| Client::of(info, is_text));
        Self { data, b64data, info, offset: *offset, tags: tags.clone() }
    }
}

impl Client {
    /// The form of a client in JSON, or in an encoding whose payloads may have any bytes.
    pub(super) fn of(info: &ClientInfo, is_text: bool) -> Self {
        let ClientInfo { user, client, conn_info, chan_info } = info.clone();
        let kept = |payload: Bytes| {
            if !is_text || is_embeddable(&payload) { payload } else { Bytes::new() }
        };
        Self { user, client, conn_info: kept(conn_info), chan_info: kept(chan_info) }
    }
}
