//! hot_lists: the channels, users and clients that cause the most work, on all nodes.
//! In: `HotListsRequest`. Out: short lists, largest first.
//! Uses a survey of all nodes. Never: sessions; nodes count, for some seconds after a call.
//! Counts are changed in the node, in `hot_channels.rs` and `hub/diagnostics.rs`.

use std::collections::BTreeMap;

use fanwire_node::{DiagnosticQuestion, HotEntry, HotRecord};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::DiagnosticMethods;
use crate::json::or_default;
use crate::{ApiError, Method};

/// How long the lists are.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(default)]
pub struct HotListsRequest {
    /// Entries of each list, 1 to 100; 0 or absent means 10.
    #[serde(deserialize_with = "or_default")]
    #[schemars(range(max = 100))]
    pub limit: u32,
}

/// Lists of all nodes, largest first. Values of several nodes are added.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct HotListsResult {
    /// Seconds for which the two rates were counted; 0 in the first call, which begins to count.
    pub seconds: f64,
    /// Channels by publications a second, with those that have no subscriber.
    pub publications: Vec<HotItem>,
    /// Channels by deliveries to subscribers a second.
    pub deliveries: Vec<HotItem>,
    /// Channels by bytes of history in memory; empty with Redis.
    pub history: Vec<HotItem>,
    /// Namespaces by bytes of history in memory; "" for channels without one.
    pub namespaces: Vec<HotItem>,
    /// Users by connections.
    pub users: Vec<HotItem>,
    /// Clients by bytes that wait for their sockets.
    pub queues: Vec<HotItem>,
    /// Clients by refused commands, by the flight recorder.
    pub refusals: Vec<HotItem>,
}

/// An entry of a list.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct HotItem {
    /// Name of the channel or namespace, the user id, or the client id.
    pub name: String,
    /// User of a client; absent in other lists.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub user: String,
    /// In the unit of the list.
    pub value: f64,
}

impl DiagnosticMethods<'_> {
    /// Returns the lists.
    ///
    /// # Errors
    /// 107 for a limit above 100; 100 when a node could not be reached or did not answer within 10 s; 111 when too many such
    /// requests are in flight.
    pub(super) async fn hot_lists(
        self,
        request: HotListsRequest,
    ) -> Result<HotListsResult, ApiError> {
        self.0
            .measure_async(Method::HotLists, async |now| {
                let limit = match request.limit {
                    0 => 10,
                    limit if limit <= 100 => limit,
                    _ => return Err(ApiError::BAD_REQUEST.because("limit is above 100")),
                };
                let question = DiagnosticQuestion::HotLists(limit);
                let answers = self.0.node.diagnostics().ask(question, now).await?;
                let nodes = answers.into_iter().filter_map(|answer| answer.hot).collect();
                Ok(HotListsResult::of(nodes, limit))
            })
            .await
    }
}

impl HotListsResult {
    /// The lists of these nodes.
    pub(super) fn of(nodes: Vec<HotRecord>, limit: u32) -> Self {
        let list = |of: fn(&HotRecord) -> &Vec<HotEntry>, is_rate| {
            sum(&nodes, of, is_rate, limit as usize)
        };
        Self {
            seconds: nodes.iter().map(|node| node.seconds).fold(0.0, f64::max),
            publications: list(|node| &node.publications, true),
            deliveries: list(|node| &node.deliveries, true),
            history: list(|node| &node.history, false),
            namespaces: list(|node| &node.namespaces, false),
            users: list(|node| &node.users, false),
            queues: list(|node| &node.queues, false),
            refusals: list(|node| &node.refusals, false),
        }
    }
}

/// One list of all nodes; counts become rates per second.
fn sum(
    nodes: &[HotRecord],
    of: fn(&HotRecord) -> &Vec<HotEntry>,
    is_rate: bool,
    limit: usize,
) -> Vec<HotItem> {
    let mut sums = BTreeMap::<(&str, &str), f64>::new();
    for node in nodes.iter().filter(|node| !is_rate || node.seconds > 0.0) {
        for HotEntry { name, user, value } in of(node) {
            let value = *value as f64 / if is_rate { node.seconds } else { 1.0 };
            *sums.entry((name, user)).or_default() += value;
        }
    }
    let item = |((name, user), value): ((&str, &str), f64)| HotItem {
        name: name.to_owned(),
        user: user.to_owned(),
        value,
    };
    let mut items: Vec<_> = sums.into_iter().map(item).collect();
    items.sort_by(|one, other| other.value.total_cmp(&one.value));
    items.truncate(limit);
    items
}
