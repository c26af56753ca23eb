//! The output port of every broker: it receives publications, joins and leaves.
//! In: publications in the order of their channel, on any thread → out: nothing; the node passes them to its shards.
//! Uses protocol values. Never: shards or subscribers, which a broker cannot see.
//! Changed here: the promises between a broker and its node. The node's implementation lives in `deliver.rs` of `node`.

use std::time::Instant;

use fanwire_protocol::{ClientInfo, Publication};

use crate::{ClientId, DeliveryClass, Delta, Epoch};

/// Options that a broker adds to a publication for the nodes that deliver it.
#[derive(Clone, Debug)]
pub struct DeliverOptions {
    /// [`Epoch::NONE`] when the publication was not stored.
    pub epoch: Epoch,
    /// The base for a delta.
    pub delta: Delta,
    /// A connection that must not receive the publication.
    pub exclude: Option<ClientId>,
    /// `None` = as the namespace of the channel says.
    pub class: Option<DeliveryClass>,
    /// Number of the receipt in which its deliveries are counted; 0 = none.
    pub receipt: u64,
    /// The start of its latency.
    pub accepted_at: Instant,
}

impl DeliverOptions {
    /// Options of a publication that was not stored, without delta, exclusion, class and receipt.
    pub fn new(accepted_at: Instant) -> Self {
        let epoch = Epoch::NONE;
        let delta = Delta::Off;
        Self { epoch, delta, exclude: None, class: None, receipt: 0, accepted_at }
    }
}

/// Receives publications from a broker.
///
/// Calls for one channel must not overlap; subscribers receive in the order of these calls. An implementation never calls
/// the broker back, so a broker may hold a lock during a call.
pub trait Deliver: Send + Sync {
    /// Sends `publication` to the subscribers of `channel` on this node.
    ///
    /// The publication's `offset` counts in the stream named by `options.epoch`; 0 when it was not stored.
    fn deliver(&self, channel: &str, publication: Publication, options: DeliverOptions);

    /// Sends a join or leave to those subscribers of `channel` that asked for them.
    fn deliver_join_leave(&self, channel: &str, change: Change, info: ClientInfo);

    /// Reports that publications of `channel` may have been lost before this call; none is lost after it.
    ///
    /// Subscribers with a position must then be compared with the stream. Does nothing by default, for receivers without
    /// such subscribers.
    fn report_possible_gap(&self, _channel: &str) {}

    /// Whether too many deliveries are still unprocessed (back-pressure).
    ///
    /// A broker that reads publications from a bounded queue calls this before it reads more. A broker that delivers on the
    /// publisher's thread need not: publishers are slowed down where their requests arrive. It may take a lock, so
    /// call it once for many deliveries.
    fn is_congested(&self) -> bool {
        false
    }
}

/// Change of a client's subscription to a channel (protocol §19).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// The client subscribed.
    Join,
    /// Its subscription ended, for any reason.
    Leave,
}
