//! The broker port: what the node needs from the part that orders, stores and distributes publications (step 5 of the route).
//! In: `publish`, `history`, `subscribe` … of channels → out: publications handed to `Deliver`, in one order per channel.
//! Uses: protocol values. Never: sessions, sockets, clocks (time is a parameter).
//! Change here: the promises of every broker. The memory broker lives in `broker/memory.rs`, the common tests in
//! `broker/conformance.rs`.

mod memory;
mod position;

#[cfg(any(test, feature = "conformance"))]
pub mod conformance;

use std::time::{Duration, Instant};

use fanwire_protocol::{ClientInfo, Publication};

use crate::Answer;
use crate::Change;
use crate::ClientId;

pub use memory::MemoryBroker;
pub use position::{Epoch, Position};

/// Where publications bend from the way in to the way out.
///
/// **Order.** The publications of one channel reach every `Deliver` in one order, the same for all, whatever number of
/// threads publishes. A publication whose `publish` returned before another `publish` of that channel began comes first.
/// Between channels nothing is promised.
///
/// **Atomicity.** A publication is taken with all its consequences (idempotency result, version, position, storage,
/// distribution) or not at all; two calls with one idempotency key publish once even when they run at the same time.
///
/// **Positions.** Within one epoch the stored publications of a channel have the offsets 1, 2, 3 …, in the order of
/// their delivery. Whoever is told position T by [`follow`](Self::follow) gets every later publication from `Deliver`,
/// those up to T perhaps, too. Offset and epoch outlive the stored publications, for `meta_ttl` since the channel was last
/// published to or read; after that a new epoch begins. A channel that was never published to has offset 0 and an epoch
/// that its first publication keeps, for as long as the broker can tell it again; an epoch is never that of two streams.
///
/// **Distribution.** Once `follow` was answered after `subscribe`, later publications of the channel reach this node's
/// `Deliver`; some may before. After `unsubscribe` some may still arrive; the door drops what nobody listens to.
///
/// **Answers.** No call blocks. A broker that has to ask somebody else answers later, in bounded time; calls from one
/// thread about one channel take effect in their order, but a read may see what was begun after it, too. What was answered
/// before it began it sees, whoever asked for that.
///
/// **Exclusion.** `exclude_client` travels with its publication to every `Deliver`, unchanged.
///
/// **Deltas.** A publication with `delta` reaches every `Deliver` with the payload of the publication whose offset is one
/// less, if the stream still had it when the new one was stored: read and stored in one step. One that is not stored, or
/// whose predecessor is gone, comes alone.
///
/// Where `retention` keeps nothing there is no stream: positions are empty.
pub trait Broker: Send + Sync {
    /// Publishes and returns the position in the channel's stream, empty with `skip_history` or without history.
    ///
    /// A repeated `idempotency_key` of the same channel within 300 s publishes nothing and returns the first position. A
    /// `version` that is not above the stored one publishes nothing and returns the top.
    ///
    /// # Errors
    /// [`BrokerError::Unavailable`] when nothing was published; the caller may retry.
    fn publish(
        &self,
        channel: &str,
        publication: Publication,
        options: &PublishOptions,
        retention: Retention,
        now: Instant,
    ) -> Answer<Position>;

    /// Stored publications and the top of the stream, of one moment.
    ///
    /// # Errors
    /// [`BrokerError::Unavailable`]; the caller may retry.
    fn history(
        &self,
        channel: &str,
        query: Query,
        retention: Retention,
        now: Instant,
    ) -> Answer<StreamSlice>;

    /// From where a new subscriber of this node goes on: answered when every later publication reaches `Deliver`, with
    /// [`history`](Self::history) read after that, or with an empty stretch where no `query` is made. To be called after
    /// [`subscribe`](Self::subscribe), for each subscriber.
    ///
    /// # Errors
    /// [`BrokerError::Unavailable`]; the caller may retry.
    fn follow(
        &self,
        channel: &str,
        query: Option<Query>,
        retention: Retention,
        now: Instant,
    ) -> Answer<StreamSlice>;

    /// Tells the subscribers of a channel that want to know who came or went, in one order with its publications. Nothing
    /// is stored.
    ///
    /// # Errors
    /// [`BrokerError::Unavailable`] when nobody was told.
    fn announce(&self, channel: &str, change: Change, info: ClientInfo) -> Answer<()>;

    /// Drops the stored publications of a channel; offset and epoch stay.
    ///
    /// # Errors
    /// [`BrokerError::Unavailable`]; the caller may retry.
    fn remove_history(&self, channel: &str, now: Instant) -> Answer<()>;

    /// The node got its first subscriber of `channel`.
    ///
    /// This and `unsubscribe` come in the order in which it happened, because they are called under the channel's lock
    /// in the registry. Hence they must not block, and must not take a lock that is held while publications are handed
    /// to `Deliver`, which takes the registry's lock.
    fn subscribe(&self, channel: &str);

    /// The node lost its last subscriber of `channel`.
    fn unsubscribe(&self, channel: &str);

    /// Gives memory back of what expired and is not asked for any more. Worth a call a second; each takes bounded time.
    ///
    /// What expired is never returned, whether this is called or not. A broker that forgets by itself does nothing here.
    fn sweep(&self, now: Instant);

    /// Roughly the memory that histories take in this process; 0 for a broker that keeps them elsewhere.
    fn history_bytes(&self) -> usize;
}

/// How long the publications of a channel are kept (`history_size`, `history_ttl`, `history_meta_ttl`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Retention {
    /// Publications per channel; 0 = no history.
    pub size: usize,
    /// Since the last publication; zero = no history.
    pub ttl: Duration,
    /// Life of offset and epoch since the channel was last published to or read; zero = for ever.
    pub meta_ttl: Duration,
}

impl Retention {
    /// Whether there is a stream at all.
    pub fn keeps_history(self) -> bool {
        self.size > 0 && !self.ttl.is_zero()
    }
}

/// Which stored publications are wanted. The default wants all, oldest first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Query {
    /// Most publications; `None` = all.
    pub limit: Option<usize>,
    /// Only those after this offset; with `reverse` those before it.
    pub since: Option<u64>,
    /// Newest first.
    pub reverse: bool,
}

impl Query {
    /// No publications, only the top of the stream.
    pub const TOP: Self = Self { limit: Some(0), since: None, reverse: false };
}

/// A part of a stream.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct StreamSlice {
    /// With their offsets, in the order of the query. Payloads are shared with the stream, not copied.
    pub publications: Vec<Publication>,
    /// The newest position of the stream, whatever was asked for; offset 0 before the first publication.
    pub top: Position,
    /// A position in the epoch before: up to there both are the same stream. The default when there is none.
    pub inherited: Position,
}

impl StreamSlice {
    /// Whether who knows everything up to `offset` of `epoch` knows the same of this stream; "" is the epoch of any.
    pub fn continues(&self, offset: u64, epoch: &str) -> bool {
        let Position { offset: last, epoch: before } = self.inherited;
        let is_inherited = before != Epoch::NONE && epoch == before.as_str() && offset <= last;
        epoch.is_empty() || epoch == self.top.epoch.as_str() || is_inherited
    }

    /// Memory of payloads that it keeps alive, in bytes, shared with the stream or not.
    pub fn payload_bytes(&self) -> usize {
        self.publications.iter().map(|publication| publication.data.len()).sum()
    }
}

/// How to publish (server API §3 publish). The default publishes plainly.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PublishOptions {
    /// "" = none.
    pub idempotency_key: String,
    /// Do not store, give no offset.
    pub skip_history: bool,
    /// Subscribers that agreed to deltas may get it as one.
    pub delta: bool,
    /// Drop when not larger than the stored version; 0 = no check. Works only with history.
    pub version: u64,
    /// Versions are compared when this is "" or the stored version's; another one begins anew.
    pub version_epoch: String,
    /// The one connection that does not get it, subscribed or not. History and recovery have it for everybody.
    pub exclude_client: Option<ClientId>,
}

/// Why a broker could not do it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum BrokerError {
    /// Not reachable now; nothing was published (→ error 100, temporary).
    Unavailable,
}
