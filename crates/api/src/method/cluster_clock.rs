//! cluster_clock: how far the clocks of the nodes are apart.
//! In: `ClusterClockRequest`. Out: the offset of each clock from that of the node that answers.
//! Uses a question to all nodes. Never: the clock itself.
//! Offsets are computed in the node, in `questions/cluster_clock.rs`.

use fanwire_node::Surveyed;
use fanwire_node::questions::{ClockQuestion, NodeClock};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::DiagnosticMethods;
use crate::{ApiError, Method};

/// Empty.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(default)]
pub struct ClusterClockRequest {}

/// The clocks of the nodes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct ClusterClockResult {
    /// The node that answers is the first one.
    pub clocks: Vec<ClockItem>,
    /// Names of the nodes that did not answer; their clocks are not in the result.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub missing: Vec<String>,
}

/// The clock of a node.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct ClockItem {
    /// Name of the node.
    pub node: String,
    /// Milliseconds by which its clock is ahead of that of the first node; negative for one that is behind.
    pub offset_ms: i64,
    /// The true offset differs from `offset_ms` by at most so many milliseconds: half of the round trip, and 1.
    pub uncertainty_ms: u64,
}

impl DiagnosticMethods<'_> {
    /// Compares the clocks.
    ///
    /// # Errors
    /// 111 when too many such requests are in flight.
    pub(super) async fn cluster_clock(
        self,
        _: ClusterClockRequest,
    ) -> Result<ClusterClockResult, ApiError> {
        let node = &self.0.node;
        self.0
            .measure_async(Method::ClusterClock, async |now| {
                let question = ClockQuestion::of(node, now);
                let Surveyed { found, missing } = node.ask(question, now).await?;
                let clocks = found.nodes.into_iter().map(item).collect();
                Ok(ClusterClockResult { clocks, missing })
            })
            .await
    }
}

fn item(clock: NodeClock) -> ClockItem {
    let NodeClock { node, offset_ms, uncertainty_ms, .. } = clock;
    ClockItem { node, offset_ms, uncertainty_ms }
}
