//! dump: the tables of the node that answers and their sizes, in one document.
//! In: `DumpRequest`. Out: `DumpResult`.
//! Uses the meters and the hot lists of the node. Never: other nodes, contents of channels.
//! A size is a gauge in `fanwire_metrics`; a list is changed in the node, in `questions/hot_lists.rs`.

use std::collections::BTreeMap;

use fanwire_node::questions::HotListsQuestion;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::DiagnosticMethods;
use super::hot_lists::HotListsResult;
use crate::{ApiError, Method};

/// Empty.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(default)]
pub struct DumpRequest {}

/// The tables of a node.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct DumpResult {
    /// Name of the node.
    pub node: String,
    /// Its version.
    pub version: String,
    /// Unix second of the dump.
    pub unix: u64,
    /// Seconds since its start.
    pub uptime: u64,
    /// Nodes that it knows, itself included.
    pub nodes: u32,
    /// Every gauge of the metrics by name and labels: entries of tables, bytes of queues, histories and the process.
    pub sizes: BTreeMap<String, f64>,
    /// Its largest channels, namespaces, users and clients.
    pub largest: Box<HotListsResult>,
}

impl DiagnosticMethods<'_> {
    /// Returns the tables of this node.
    ///
    /// # Errors
    /// 100 when a shard did not answer.
    pub(super) async fn dump(self, _: DumpRequest) -> Result<DumpResult, ApiError> {
        let node = &self.0.node;
        self.0
            .measure_async(Method::Dump, async |now| {
                let question = HotListsQuestion { limit: LISTED };
                let hot = node
                    .ask_this_node(question, now)
                    .await?
                    .nodes
                    .into_iter()
                    .map(|own| own.lists)
                    .collect();
                let states = node.nodes(now);
                Ok(DumpResult {
                    node: node.options().name.clone(),
                    version: node.options().version.clone(),
                    unix: node.unix(now),
                    uptime: states.first().map_or(0, |own| own.uptime_seconds),
                    nodes: states.len() as u32,
                    sizes: node.diagnostics().levels(),
                    largest: Box::new(HotListsResult::of(hot, LISTED)),
                })
            })
            .await
    }
}

/// Entries of each list.
const LISTED: u32 = 20;
