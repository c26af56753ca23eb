//! publication_report: what became of a publication that was published with `report`.
//! In: `PublicationReportRequest`. Out: counts and times of each node, for a minute after the publication.
//! Uses a question to all nodes. Never: connections; shards count in the node's receipts.
//! Counts are changed in `cluster`, in `receipt.rs`.

use fanwire_node::questions::{NodeDeliveries, ReportQuestion};
use fanwire_node::{ReceiptRecord, Surveyed};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::DiagnosticMethods;
use crate::json::or_default;
use crate::{ApiError, Method};

/// A report to read.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(extend("required" = ["report"]))]
pub struct PublicationReportRequest {
    /// Required: `report` in the result of publish or broadcast.
    #[serde(deserialize_with = "or_default")]
    pub report: String,
}

/// Deliveries of the publication, by node.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct PublicationReportResult {
    /// The nodes that had subscribers, and that of the call; empty for an unknown report, or after a minute.
    pub nodes: Vec<DeliveryReport>,
    /// Names of the nodes that did not answer; what they have is not in the result.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub missing: Vec<String>,
}

/// Counts of one node, and times from the arrival of the publication at it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct DeliveryReport {
    /// Name of the node.
    pub node: String,
    /// Subscribers that were to get it.
    pub subscribers: u32,
    /// Taken by the kernel in the turn of the delivery.
    pub at_once: u32,
    /// Taken by the kernel later.
    pub waited: u32,
    /// A newer publication took its place (`delivery: latest`).
    pub replaced: u32,
    /// The connection or subscription ended before.
    pub dropped: u32,
    /// Not taken within a second, or not yet after a second.
    pub late: u32,
    /// Microseconds until the kernel had it for half of the others; absent as long as it has not.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "u64")]
    pub half_us: Option<u64>,
    /// The same for 99 %.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "u64")]
    pub most_us: Option<u64>,
    /// The same for all.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "u64")]
    pub all_us: Option<u64>,
    /// Subscribers that do not get it, because their filter does not match its tags, or they are excluded.
    pub filtered: u32,
    /// Channels in which it was not published, because its idempotency key was used before.
    #[serde(skip_serializing_if = "is_zero_count")]
    pub repeated_keys: u32,
    /// Channels in which it was not published, because its version is not newer than the stored one.
    #[serde(skip_serializing_if = "is_zero_count")]
    pub old_versions: u32,
}

fn is_zero_count(count: &u32) -> bool {
    *count == 0
}

impl DiagnosticMethods<'_> {
    /// Returns what became of a publication.
    ///
    /// # Errors
    /// 107 for another text than a report; 111 when too many such requests are in flight.
    pub(super) async fn publication_report(
        self,
        request: PublicationReportRequest,
    ) -> Result<PublicationReportResult, ApiError> {
        self.0
            .measure_async(Method::PublicationReport, async |now| {
                let number = u64::from_str_radix(&request.report, 16)
                    .ok()
                    .filter(|number| *number > 0)
                    .ok_or(ApiError::BAD_REQUEST.because(NO_REPORT))?;
                let question = ReportQuestion { receipt: number };
                let Surveyed { found, missing } = self.0.node.ask(question, now).await?;
                let report = |NodeDeliveries { node, receipt }| {
                    let record: ReceiptRecord = receipt?;
                    Some(DeliveryReport {
                        node,
                        subscribers: record.subscribers,
                        at_once: record.at_once,
                        waited: record.waited,
                        replaced: record.replaced,
                        dropped: record.dropped,
                        late: record.late,
                        half_us: record.half_us,
                        most_us: record.most_us,
                        all_us: record.all_us,
                        filtered: record.filtered,
                        repeated_keys: record.repeated_keys,
                        old_versions: record.old_versions,
                    })
                };
                let nodes = found.nodes.into_iter().filter_map(report).collect();
                Ok(PublicationReportResult { nodes, missing })
            })
            .await
    }
}

/// The text of a receipt's number; "" for none.
pub(super) fn report_text(number: u64) -> String {
    if number == 0 { String::new() } else { format!("{number:016x}") }
}

const NO_REPORT: &str = "report is no result of publish or broadcast with report: true";
