//! The deliveries of a publication on all nodes (server API §3 publication_report).
//! In: the number of a receipt → out: deliveries of each node that has it.
//! Uses: the receipts of the node, the broker. Never: shards; they count in the receipt.
//! Changed here: what a node tells of a publication. `cluster/receipt.rs` has the counts.

use std::time::{Duration, Instant};

use fanwire_broker::Suppression;
use fanwire_cluster::{Question, ReceiptRecord, SurveyKind};
use fanwire_protocol::ErrorCode;

use super::Ask;
use crate::node::Node;

/// Asks for the deliveries of a publication.
#[derive(Clone, Copy, PartialEq, Eq, prost::Message)]
pub struct ReportQuestion {
    /// Number of its receipt; 0 is none.
    #[prost(fixed64, tag = "3")]
    pub receipt: u64,
}

/// Deliveries on all nodes.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct DeliveryReports {
    #[prost(message, repeated, tag = "5")]
    pub nodes: Vec<NodeDeliveries>,
}

/// Deliveries on one node.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct NodeDeliveries {
    /// Name of the node.
    #[prost(string, tag = "1")]
    pub node: String,
    /// `None` if the node has no such receipt.
    #[prost(message, optional, tag = "3")]
    pub receipt: Option<ReceiptRecord>,
}

impl Question for ReportQuestion {
    type Answer = DeliveryReports;
    /// The same for each question for diagnosis of the first version.
    const TAG: u32 = 22;
    const KIND: SurveyKind = SurveyKind::Diagnostics;

    fn is_asked(&self) -> bool {
        self.receipt > 0
    }

    fn merge(&self, all: &mut DeliveryReports, one: DeliveryReports, _: Duration) {
        all.nodes.extend(one.nodes);
    }
}

impl Ask for ReportQuestion {
    const IS_FOR_SHARDS: bool = false;

    fn begin(&self, node: &Node, now: Instant) -> Result<DeliveryReports, ErrorCode> {
        let channels = node.channels();
        let mut receipt = node.diagnostics().own_receipt(self.receipt, now);
        if let Some(receipt) = &mut receipt {
            let suppressed = channels.broker.suppressed_of(self.receipt);
            let count = |why| suppressed.iter().filter(|one| **one == why).count() as u32;
            receipt.repeated_keys = count(Suppression::RepeatedKey);
            receipt.old_versions = count(Suppression::OldVersion);
        }
        let own = NodeDeliveries { node: node.options().name.clone(), receipt };
        Ok(DeliveryReports { nodes: vec![own] })
    }
}
