//! The way out of every broker: who takes its publications, joins and leaves.
//! In: publications in the order of their channel, on any thread → out: whatever the node behind it does with them.
//! Uses protocol values. Never: shards or subscribers, which a broker does not know.
//! Change here: the promises between a broker and its node. The node's side lives in `deliver.rs` of `node`.

use std::time::Instant;

use fanwire_protocol::{ClientInfo, Publication};

use crate::{ClientId, Delta, Epoch};

/// Takes publications from a broker.
///
/// For one channel the calls must not overlap, and their order is the order in every inbox. Never calls back into the
/// broker, so a broker may hold a lock meanwhile.
pub trait Deliver: Send + Sync {
    /// Hands `publication` to whoever listens to `channel`. `accepted_at` is where its latency begins.
    ///
    /// Its offset is its place in the stream named by `epoch`; 0 and none when it has no place in any.
    /// `delta` says what its delta can be made against; `exclude` is the connection that is not to get it, if any.
    fn deliver(
        &self,
        channel: &str,
        publication: Publication,
        epoch: Epoch,
        delta: Delta,
        exclude: Option<ClientId>,
        accepted_at: Instant,
    );

    /// Tells whoever listens to `channel` and wants to know that a client came or went.
    fn announce(&self, channel: &str, change: Change, info: ClientInfo);

    /// Publications of `channel` may have been lost on their way, and from now on none is: who keeps a position has to
    /// compare it with the stream. Nothing to do for a door behind which nobody does.
    fn doubt(&self, _channel: &str) {}

    /// Whether what is delivered waits too long already (back-pressure). A broker whose publications wait somewhere else, in
    /// a bounded queue, asks this before it brings more; one that publishes on the publisher's thread need not, as
    /// publishers are made to wait where they come in. Cheap, but not free: once for many deliveries.
    fn is_congested(&self) -> bool {
        false
    }
}

/// What a client did to a channel (protocol §19).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// It subscribed.
    Join,
    /// Its subscription ended, whichever way.
    Leave,
}
