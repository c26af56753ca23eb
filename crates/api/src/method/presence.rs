//! presence: the clients that are subscribed to a channel.
//! In: `PresenceRequest`. Out: the subscribed clients, by client id.
//! Uses the node's presence; channel permissions do not apply to the API.
//! The namespace decides whether a channel has presence; the node maintains it.

use std::collections::BTreeMap;
use std::sync::Arc;

use fanwire_broker::PresencePage;
use fanwire_node::protocol::ClientInfo;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize, Serializer};

use super::history::Client;
use super::paging::page_limit;
use crate::error::NO_CHANNEL;
use crate::json::or_default;
use crate::{Api, ApiError, Method};

/// A channel.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(extend("required" = ["channel"]))]
pub struct PresenceRequest {
    /// Required.
    #[serde(deserialize_with = "or_default")]
    #[schemars(length(min = 1))]
    pub channel: String,
    /// About so many clients in a page, at most 10,000; 0 or absent without a cursor means all clients in one answer.
    #[serde(deserialize_with = "or_default")]
    #[schemars(range(max = 10000))]
    pub limit: u32,
    /// The `cursor` of the page before; absent for the first page.
    #[serde(deserialize_with = "or_default")]
    pub cursor: String,
}

/// The present clients; the field is always present.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct PresenceResult {
    /// The clients by client id.
    #[serde(serialize_with = "clients")]
    #[schemars(with = "BTreeMap<String, Client>")]
    pub presence: BTreeMap<String, Arc<ClientInfo>>,
    /// For the next page; absent in the last one.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub cursor: String,
}

impl Api {
    /// Returns the clients that are subscribed to a channel.
    ///
    /// # Errors
    /// 107 without a channel, and for an invalid limit or cursor; 102 for an unknown namespace; 108 without presence.
    pub async fn presence(&self, request: PresenceRequest) -> Result<PresenceResult, ApiError> {
        self.measure_async(Method::Presence, async |now| {
            if request.channel.is_empty() {
                return Err(NO_CHANNEL);
            }
            let PresenceRequest { channel, limit, cursor } = request;
            let page = if limit == 0 && cursor.is_empty() {
                let members = self.node.channels().presence(&channel, now).await?;
                PresencePage { members, next: 0 }
            } else {
                let limit = page_limit(limit, MEMBERS_MAX)?;
                let from = if cursor.is_empty() { Ok(0) } else { cursor.parse() };
                let from = from.map_err(|_| ApiError::BAD_REQUEST.because(NO_CURSOR))?;
                self.node.channels().presence_page(&channel, from, limit, now).await?
            };
            let members = page.members.into_iter();
            let presence = members.map(|info| (info.client.clone(), info)).collect();
            let cursor = if page.next == 0 { String::new() } else { page.next.to_string() };
            Ok(PresenceResult { presence, cursor })
        })
        .await
    }
}

/// Clients of a page.
const MEMBERS_MAX: usize = 10_000;
const NO_CURSOR: &str = "cursor is not the cursor of an earlier page";

fn clients<S: Serializer>(
    clients: &BTreeMap<String, Arc<ClientInfo>>,
    to: S,
) -> Result<S::Ok, S::Error> {
    let is_text = to.is_human_readable();
    to.collect_map(clients.iter().map(|(id, info)| (id, Client::of(info, is_text))))
}
