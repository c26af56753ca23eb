//! The output port of every broker: it receives publications, joins and leaves.
//! In: publications in the order of their channel, on any thread → out: nothing; the node passes them to its shards.
//! Uses protocol values. Never: shards or subscribers, which a broker cannot see.
//! Change here: the promises between a broker and its node. The node's implementation lives in `deliver.rs` of `node`.

use std::time::Instant;

use fanwire_protocol::{ClientInfo, Publication};

use crate::{ClientId, Delta, Epoch};

/// Receives publications from a broker.
///
/// Calls for one channel must not overlap; subscribers receive in the order of these calls. An implementation never calls
/// the broker back, so a broker may hold a lock during a call.
pub trait Deliver: Send + Sync {
    /// Sends `publication` to the subscribers of `channel` on this node.
    ///
    /// The publication's `offset` counts in the stream named by `epoch`; 0 and [`Epoch::NONE`] when it was not stored.
    /// `delta` is the base for a delta. `exclude` is a connection that must not receive the publication.
    /// `accepted_at` is the start of its latency.
    fn deliver(
        &self,
        channel: &str,
        publication: Publication,
        epoch: Epoch,
        delta: Delta,
        exclude: Option<ClientId>,
        accepted_at: Instant,
    );

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

/// What a client did to a channel (protocol §19).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// It subscribed.
    Join,
    /// Its subscription ended, for any reason.
    Leave,
}
