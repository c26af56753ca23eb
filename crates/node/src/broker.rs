//! The broker port: what the node needs from the part that orders, stores and distributes publications (design §6).
//! In: `publish`, `subscribe`, `unsubscribe` of channels → out: publications handed to `Deliver`, in one order per channel.
//! Uses: protocol values. Never: sessions, sockets, clocks (time is a parameter).
//! Change here: the promises of every broker. The memory broker lives in `broker/memory.rs`, the common tests in
//! `broker/conformance.rs`.

mod memory;

#[cfg(any(test, feature = "conformance"))]
pub mod conformance;

use std::time::Instant;

use fanwire_protocol::Publication;

pub use memory::MemoryBroker;

/// Where publications bend from the way in to the way out.
///
/// **Order.** The publications of one channel reach every `Deliver` in one order, the same for all, whatever number of
/// threads publishes. A publication whose `publish` returned before another `publish` of that channel began comes first.
/// Between channels nothing is promised.
///
/// **Atomicity.** A publication is taken with all its consequences (idempotency result, position, distribution) or not
/// at all; two calls with one idempotency key publish once even when they run at the same time.
///
/// **Distribution.** Once `subscribe` returned, later publications of the channel reach this node's `Deliver`. After
/// `unsubscribe` some may still arrive; the door drops what nobody listens to.
pub trait Broker: Send + Sync {
    /// Publishes and returns the position in the channel's stream (offset 0 and epoch "" without history).
    ///
    /// A repeated `idempotency_key` of the same channel within 300 s publishes nothing and returns the first position.
    ///
    /// # Errors
    /// [`BrokerError::Unavailable`] when nothing was published; the caller may retry.
    fn publish(
        &self,
        channel: &str,
        publication: Publication,
        options: &PublishOptions,
        now: Instant,
    ) -> Result<Position, BrokerError>;

    /// The node got its first subscriber of `channel`.
    ///
    /// This and `unsubscribe` come in the order in which it happened, because they are called under the channel's lock
    /// in the registry. Hence they must not block, and must not take a lock that is held while publications are handed
    /// to `Deliver`, which takes the registry's lock.
    fn subscribe(&self, channel: &str);

    /// The node lost its last subscriber of `channel`.
    fn unsubscribe(&self, channel: &str);
}

/// Where a publication stands in the stream of its channel.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Position {
    /// 1 for the first publication; 0 without history.
    pub offset: u64,
    /// Changes when the stream is lost and made anew; "" without history.
    pub epoch: String,
}

/// How to publish (server API §3 publish). The default publishes plainly.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PublishOptions {
    /// "" = none.
    pub idempotency_key: String,
    /// Do not store, give no offset.
    pub skip_history: bool,
    /// Make it a delta candidate.
    pub delta: bool,
    /// Drop when not larger than the stored version; 0 = no check. Works only with history.
    pub version: u64,
    /// Another version epoch resets the comparison.
    pub version_epoch: String,
}

/// Why a broker could not do it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum BrokerError {
    /// Not reachable now; nothing was published (→ error 100, temporary).
    Unavailable,
}
