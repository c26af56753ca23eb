//! channels: the channels with subscribers, for debugging.
//! In: a glob pattern, a page. Out: each matching channel with its number of subscribers, sorted by name.
//! Uses the channel lists of all nodes; without a limit the result is as large as they are.
//! Pattern matching lives in the node.

use std::collections::BTreeMap;

use fanwire_node::Surveyed;
use fanwire_node::questions::ChannelQuestion;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::paging::page_limit;
use crate::json::or_default;
use crate::{Api, ApiError, Method};

/// A filter for channels.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(default)]
pub struct ChannelsRequest {
    /// `*`, `?`, classes `[a-z]` and alternatives `{a,b}`; "" means all.
    #[serde(deserialize_with = "or_default")]
    pub pattern: String,
    /// Channels of a page, at most 10,000; 0 or absent means all.
    #[serde(deserialize_with = "or_default")]
    #[schemars(range(max = 10000))]
    pub limit: u32,
    /// The `cursor` of the page before; absent for the first page.
    #[serde(deserialize_with = "or_default")]
    pub cursor: String,
    /// Without the nodes that do not answer: they are `missing`. Otherwise the call fails with 100.
    #[serde(deserialize_with = "or_default")]
    pub partial: bool,
}

/// The matching channels.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct ChannelsResult {
    /// Channels with at least one subscriber, by name.
    pub channels: BTreeMap<String, ChannelSummary>,
    /// For the next page; absent in the last one.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub cursor: String,
    /// With `partial`: names of the nodes that did not answer, whose subscribers are not counted.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub missing: Vec<String>,
}

/// One channel.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct ChannelSummary {
    /// Number of subscribers.
    pub num_clients: u32,
}

impl Api {
    /// Lists channels that have subscribers.
    ///
    /// # Errors
    /// 107 for a malformed pattern or a limit above 10,000; 100 without `partial` when a node could not be reached or did not
    /// answer in time; 111 when too many such requests are in flight.
    pub async fn channels(&self, request: ChannelsRequest) -> Result<ChannelsResult, ApiError> {
        self.measure_async(Method::Channels, async |now| {
            let ChannelsRequest { pattern, limit, cursor: after, partial } = request;
            let page = page_limit(limit, LIMIT_MAX)?;
            let question = ChannelQuestion { pattern, after, limit };
            let Surveyed { found, missing } = self.node.ask(question, now).await?;
            let mut found = found.channels;
            if !partial && !missing.is_empty() {
                return Err(ApiError::of_missing(&missing));
            }
            let has_more = limit > 0 && found.len() > page && found.pop_last().is_some();
            let cursor = found
                .last_key_value()
                .filter(|_| has_more)
                .map(|(name, _)| name)
                .cloned()
                .unwrap_or_default();
            let summary = |(name, num_clients)| (name, ChannelSummary { num_clients });
            let channels = found.into_iter().map(summary).collect();
            Ok(ChannelsResult { channels, cursor, missing })
        })
        .await
    }
}

const LIMIT_MAX: usize = 10_000;
