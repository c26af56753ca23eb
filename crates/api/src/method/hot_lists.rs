//! hot_lists: the channels, users and clients that cause the most work, on all nodes.
//! In: `HotListsRequest`. Out: short lists, largest first.
//! Uses a question to all nodes. Never: sessions; nodes count, for some seconds after a call.
//! Counts are changed in the node, in `questions/hot_lists.rs`.

use std::collections::BTreeMap;

use fanwire_node::questions::{HotEntry, HotListsQuestion, HotRecord};
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

/// Lists of all nodes, largest first; rates by the larger one of `value` and `recent`. Values of several nodes are added.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct HotListsResult {
    /// Seconds for which the two rates were counted; 0 in the first call, which begins to count.
    pub seconds: f64,
    /// Seconds for which the rates `recent` were counted: some 5.
    pub recent_seconds: f64,
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
    /// Clients by refused commands, and addresses by connects that were refused in the last hour, by the flight recorder.
    pub refusals: Vec<HotItem>,
    /// Names of the nodes that did not answer; what they have is not in the result.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub missing: Vec<String>,
}

/// An entry of a list.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct HotItem {
    /// Name of the channel or namespace, the user id, or the client id; in `refusals` also the address of clients whose connect was
    /// refused.
    pub name: String,
    /// User of a client, or the one that a refused token names; absent in other lists.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub user: String,
    /// In the unit of the list.
    pub value: f64,
    /// The same rate in the last `recent_seconds`; absent in lists without rates, and for 0.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "f64")]
    pub recent: Option<f64>,
}

impl DiagnosticMethods<'_> {
    /// Returns the lists.
    ///
    /// # Errors
    /// 107 for a limit above 100; 111 when too many such requests are in flight.
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
                let answers = self.0.node.ask(HotListsQuestion { limit }, now).await?;
                let nodes = answers.found.nodes.into_iter().map(|node| node.lists).collect();
                let lists = HotListsResult::of(nodes, limit);
                Ok(HotListsResult { missing: answers.missing, ..lists })
            })
            .await
    }
}

impl HotListsResult {
    /// The lists of these nodes.
    pub(super) fn of(nodes: Vec<HotRecord>, limit: u32) -> Self {
        let limit = limit as usize;
        let list = |of: fn(&HotRecord) -> &Vec<HotEntry>| largest(sums(&nodes, of, |_| 1.0), limit);
        let rates = |all: fn(&HotRecord) -> &Vec<HotEntry>,
                     recent: fn(&HotRecord) -> &Vec<HotEntry>| {
            let mut items = sums(&nodes, all, |node| node.seconds);
            for (name, Sum { value, .. }) in sums(&nodes, recent, |node| node.recent_seconds) {
                items.entry(name).or_default().recent = Some(value);
            }
            largest(items, limit)
        };
        let longest = |of: fn(&HotRecord) -> f64| nodes.iter().map(of).fold(0.0, f64::max);
        Self {
            seconds: longest(|node| node.seconds),
            recent_seconds: longest(|node| node.recent_seconds),
            publications: rates(|node| &node.publications, |node| &node.recent_publications),
            deliveries: rates(|node| &node.deliveries, |node| &node.recent_deliveries),
            history: list(|node| &node.history),
            namespaces: list(|node| &node.namespaces),
            users: list(|node| &node.users),
            queues: list(|node| &node.queues),
            refusals: list(|node| &node.refusals),
            missing: Vec::new(),
        }
    }
}

/// Values of an entry, summed up over all nodes.
#[derive(Default)]
struct Sum {
    value: f64,
    recent: Option<f64>,
}

/// One list of all nodes, by name and user. Each value is divided by that of `seconds`; a node with 0 has counted nothing.
fn sums(
    nodes: &[HotRecord],
    of: fn(&HotRecord) -> &Vec<HotEntry>,
    seconds: fn(&HotRecord) -> f64,
) -> BTreeMap<(&str, &str), Sum> {
    let mut sums = BTreeMap::<(&str, &str), Sum>::new();
    for node in nodes.iter().filter(|node| seconds(node) > 0.0) {
        for HotEntry { name, user, value } in of(node) {
            sums.entry((name, user)).or_default().value += *value as f64 / seconds(node);
        }
    }
    sums
}

/// The entries with the largest value, now or in the whole time.
fn largest(sums: BTreeMap<(&str, &str), Sum>, limit: usize) -> Vec<HotItem> {
    let item = |((name, user), Sum { value, recent }): ((&str, &str), Sum)| HotItem {
        name: name.to_owned(),
        user: user.to_owned(),
        value,
        recent,
    };
    let size = |item: &HotItem| item.recent.unwrap_or(0.0).max(item.value);
    let mut items: Vec<_> = sums.into_iter().map(item).collect();
    items.sort_by(|one, other| size(other).total_cmp(&size(one)));
    items.truncate(limit);
    items
}
