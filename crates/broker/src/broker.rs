//! The broker port: the part that orders, stores and distributes publications (step 5 of the route).
//! In: `publish`, `history`, `subscribe` … of channels → out: calls of `Deliver`, in one order per channel.
//! Uses: protocol values. Never: sessions, sockets, clocks (time is a parameter).
//! Changed here: the promises of every broker. The memory broker lives in `broker/memory.rs`, the common tests in
//! `broker/conformance.rs`, the port of map channels in `broker/map.rs`.

pub mod map;
mod memory;

#[cfg(any(test, feature = "conformance"))]
pub mod conformance;

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

use fanwire_protocol::{ClientInfo, Publication};
use parking_lot::Mutex;

use crate::{
    Answer, Append, AppendError, Appended, BrokerError, Change, ClientId, DeliveryClass, Epoch,
    Position,
};

pub use memory::{
    Bucket, ChangeMarks, ChangesSince, MemoryBroker, MemoryState, RestoreOptions, SNAPSHOT_VERSION,
    Snapshot, SnapshotError, SnapshotHead, SnapshotTotals,
};

use map::MapBroker;

/// Orders, stores and distributes publications.
///
/// A broker gets publications from the node of the publisher and passes them to the [`Deliver`](crate::Deliver) of every
/// node with subscribers. Its promises, most of them tested by the conformance suite:
///
/// **Order.** All publications of one channel reach every `Deliver` in the same order, also when many threads publish.
/// If one `publish` returned before another `publish` of the same channel began, its publication comes first.
/// There is no order between channels.
///
/// **Atomicity.** A publish succeeds as a whole (idempotency result, version, position, storage, distribution) or has no
/// effect. Two calls with the same idempotency key publish once, even when they run at the same time.
///
/// **Positions.** Within one epoch the stored publications of a channel have the offsets 1, 2, 3 …, in the order of
/// their delivery. After [`follow`](Self::follow) returned the top position T, every publication above T reaches
/// `Deliver`; publications up to T may arrive too. Offset and epoch are kept longer than the publications: for `meta_ttl`
/// since the last publish or read of the channel. After that the stream starts again with a new epoch. A channel without
/// any publication has offset 0 and an epoch; its first publication keeps that epoch unless the broker lost it before.
/// Two streams never have the same epoch.
///
/// **Distribution.** When `follow` was called after `subscribe` and has answered, all later publications of the channel
/// reach this node's `Deliver`; earlier ones may. After `unsubscribe` some may still arrive; the node drops publications
/// of channels without subscribers.
///
/// **Answers.** No call blocks. A broker that needs another process answers later, in bounded time. Calls from one thread
/// for one channel take effect in their order. A read returns the effect of every call that was answered before the read
/// began, on any thread; it may also return effects of calls that began after it.
///
/// **Exclusion, class, receipt.** `exclude_client`, `delivery` and `receipt` reach every `Deliver` with their publication, unchanged.
///
/// **Deltas.** A publication with `delta` reaches every `Deliver` with the payload of the publication whose offset is one
/// less, if the stream still had that one when it stored the new one; reading and storing are one atomic step. Otherwise,
/// and when the new one is not stored, it arrives as [`Delta::Alone`](crate::Delta::Alone).
///
/// **Growing messages.** A stream stores the newest publication of each growing message; it replaces the one before it, whose
/// offset is then missing in reads. Live, each one arrives with the next offset. Fragments of one message take effect in one
/// order on all nodes. Other texts of a message are never published: each is the one before with more text behind it.
///
/// When `retention` keeps no history there is no stream, and positions are empty.
pub trait Broker: Send + Sync {
    /// Publishes and returns the position in the channel's stream, empty with `skip_history` or without history.
    ///
    /// When an `idempotency_key` is repeated in the same channel within 300 s, nothing is published and the first position
    /// is returned. When a `version` is not above the stored one, nothing is published and the top is returned.
    ///
    /// # Errors
    /// [`BrokerError::Unavailable`](crate::BrokerError::Unavailable) when nothing was published; the caller may retry.
    fn publish(
        &self,
        channel: &str,
        publication: Publication,
        options: &PublishOptions,
        retention: Retention,
        now: Instant,
    ) -> Answer<Position>;

    /// Appends to a growing message, or publishes its text that waits. The first fragment and a final one are published at
    /// once, others when the last publication is as old as [`AppendLimits::interval`](crate::AppendLimits::interval). Call it
    /// with a `retention` that keeps history.
    ///
    /// A message is forgotten when nothing was appended for the `ttl` of the retention, a final one after
    /// [`FINAL_TTL`](crate::FINAL_TTL) at the latest. A broker without growing messages need not implement it.
    ///
    /// # Errors
    /// [`BrokerError::Unavailable`](crate::BrokerError::Unavailable); the caller may retry. A fragment with `at` is then not
    /// appended twice.
    fn append(
        &self,
        channel: &str,
        append: Append,
        retention: Retention,
        now: Instant,
    ) -> Answer<Result<Appended, AppendError>> {
        let _ = (channel, append, retention, now);
        Answer::now(Err(BrokerError::Unavailable))
    }

    /// Returns stored publications and the top of the stream, both read at the same moment.
    ///
    /// # Errors
    /// [`BrokerError::Unavailable`](crate::BrokerError::Unavailable); the caller may retry.
    fn history(
        &self,
        channel: &str,
        query: Query,
        retention: Retention,
        now: Instant,
    ) -> Answer<StreamSlice>;

    /// Returns the position from which a new subscriber of this node continues.
    ///
    /// The answer is ready once every later publication reaches `Deliver`. It is the [`history`](Self::history) for
    /// `query`, read after that moment, or an empty slice without a `query`. Call it for each subscriber, after
    /// [`subscribe`](Self::subscribe).
    ///
    /// # Errors
    /// [`BrokerError::Unavailable`](crate::BrokerError::Unavailable); the caller may retry.
    fn follow(
        &self,
        channel: &str,
        query: Option<Query>,
        retention: Retention,
        now: Instant,
    ) -> Answer<StreamSlice>;

    /// Sends a join or leave to the nodes with subscribers of the channel, in one order with its publications.
    ///
    /// Nothing is stored.
    ///
    /// # Errors
    /// [`BrokerError::Unavailable`](crate::BrokerError::Unavailable) when it was not sent.
    fn publish_join_leave(&self, channel: &str, change: Change, info: ClientInfo) -> Answer<()>;

    /// Removes the stored publications of a channel and keeps offset and epoch.
    ///
    /// # Errors
    /// [`BrokerError::Unavailable`](crate::BrokerError::Unavailable); the caller may retry.
    fn remove_history(&self, channel: &str, now: Instant) -> Answer<()>;

    /// The map channels of the same engine; `None` of one that has none.
    fn maps(self: Arc<Self>) -> Option<Arc<dyn MapBroker>> {
        None
    }

    /// Called when the node gets its first subscriber of `channel`.
    ///
    /// The node calls this and `unsubscribe` under the channel's lock in its registry, so the calls of a channel come in
    /// the order of its changes. They must not block, and must not take a lock that the broker holds while it calls
    /// `Deliver`, because `Deliver` takes the registry's lock.
    fn subscribe(&self, channel: &str);

    /// Called when the node loses its last subscriber of `channel`.
    fn unsubscribe(&self, channel: &str);

    /// Frees the memory of expired entries. The node calls it once a second; each call takes bounded time.
    ///
    /// Reads never return expired entries, with or without this call. A broker whose backend expires entries by itself
    /// does nothing here.
    fn sweep(&self, now: Instant);

    /// Approximate memory of histories in this process, in bytes; 0 for a broker that stores them elsewhere.
    fn history_bytes(&self) -> usize;

    /// Calls `visit` with each channel that has a history in this process, and its approximate bytes. For a look of an
    /// operator: the time grows with the channels, and publishers wait for parts of it.
    fn visit_histories(&self, _visit: &mut dyn FnMut(&str, usize)) {}

    /// Publications that were not published, since the start.
    fn suppressed(&self) -> SuppressedCounts {
        SuppressedCounts::default()
    }

    /// The publications with this receipt that were not published; of the last thousand of them.
    fn suppressed_of(&self, _receipt: u64) -> Vec<Suppression> {
        Vec::new()
    }

    /// Returns how many histories were dropped because their memory is limited; 0 of an engine without such a limit.
    fn history_evictions(&self) -> u64 {
        0
    }
}

/// Publications that were not published, because the caller got the position of an earlier one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SuppressedCounts {
    /// Their idempotency key was repeated.
    pub idempotency: u64,
    /// Their version was not newer than the stored one.
    pub version: u64,
    /// Idempotency keys that were forgotten early, because of their memory: what is repeated then is published again.
    pub keys_dropped: u64,
}

/// The counters of a broker behind [`SuppressedCounts`].
#[derive(Debug, Default)]
pub struct SuppressedCounters {
    idempotency: AtomicU64,
    version: AtomicU64,
    /// The last ones that had a receipt, by its number.
    reported: Mutex<VecDeque<(u64, Suppression)>>,
}

/// Why a publication was not published.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Suppression {
    RepeatedKey,
    OldVersion,
}

impl SuppressedCounters {
    /// A publication with the number of a receipt, or 0, was not published.
    pub fn add(&self, suppression: Suppression, receipt: u64) {
        let counter = match suppression {
            Suppression::RepeatedKey => &self.idempotency,
            Suppression::OldVersion => &self.version,
        };
        counter.fetch_add(1, Relaxed);
        if receipt > 0 {
            let mut reported = self.reported.lock();
            reported.push_back((receipt, suppression));
            let surplus = reported.len().saturating_sub(REPORTED_MAX);
            reported.drain(..surplus);
        }
    }

    /// Those with this receipt.
    pub fn of_receipt(&self, receipt: u64) -> Vec<Suppression> {
        let reported = self.reported.lock();
        reported.iter().filter(|(of, _)| *of == receipt).map(|(_, why)| *why).collect()
    }

    /// The counts; no key was dropped.
    pub fn counts(&self) -> SuppressedCounts {
        let idempotency = self.idempotency.load(Relaxed);
        let version = self.version.load(Relaxed);
        SuppressedCounts { idempotency, version, keys_dropped: 0 }
    }
}

/// As many as a node keeps receipts.
const REPORTED_MAX: usize = 1000;

/// How many publications of a channel are kept, and how long (`history_size`, `history_ttl`, `history_meta_ttl`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Retention {
    /// Publications per channel; 0 = no history.
    pub size: usize,
    /// Lifetime of all stored publications since the last one; zero = no history.
    pub ttl: Duration,
    /// Lifetime of offset and epoch since the last publish or read of the channel; zero = no limit.
    pub meta_ttl: Duration,
}

impl Retention {
    /// Whether the channel has a stream.
    pub fn keeps_history(self) -> bool {
        self.size > 0 && !self.ttl.is_zero()
    }
}

/// Selects stored publications. The default selects all, oldest first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Query {
    /// Maximum number of publications; `None` = no limit.
    pub limit: Option<usize>,
    /// Only publications after this offset; with `reverse`, before it.
    pub since: Option<u64>,
    /// Newest first.
    pub reverse: bool,
}

impl Query {
    /// No publications, only the top of the stream.
    pub const TOP: Self = Self { limit: Some(0), since: None, reverse: false };
}

/// Publications read from a stream, with the stream's position.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct StreamSlice {
    /// Publications with their offsets, in the order of the query. Payloads are shared with the stream, not copied.
    pub publications: Vec<Publication>,
    /// The newest position of the stream, independent of the query; offset 0 before the first publication.
    pub top: Position,
    /// A position of the previous epoch: up to its offset, both epochs have the same publications. The default when
    /// nothing was inherited.
    pub inherited: Position,
    /// The newest offset that is not stored for another reason than a newer publication of its message. `None` in a stream
    /// without growing messages, where the offsets up to the top have no gap.
    pub dropped: Option<u64>,
}

impl StreamSlice {
    /// Whether this stream has the same publications up to `offset` as the stream of `epoch`; "" stands for every epoch.
    pub fn continues(&self, offset: u64, epoch: &str) -> bool {
        let Position { offset: last, epoch: before } = self.inherited;
        let is_inherited = before != Epoch::NONE && epoch == before.as_str() && offset <= last;
        epoch.is_empty() || epoch == self.top.epoch.as_str() || is_inherited
    }

    /// Sum of the payload sizes, in bytes, including payloads that are shared with the stream.
    pub fn payload_bytes(&self) -> usize {
        self.publications.iter().map(|publication| publication.data.len()).sum()
    }
}

/// A client whose idempotency keys are apart from those of backends and of other clients.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyOwner {
    /// Tells owners apart; never empty.
    pub name: String,
    /// How long the key is remembered.
    pub ttl: Duration,
}

/// Options of a publish (server API §3 publish). The default uses none.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PublishOptions {
    /// "" = none.
    pub idempotency_key: String,
    /// The client that chose the key; `None` = a backend.
    pub key_owner: Option<KeyOwner>,
    /// Do not store the publication; it gets no offset.
    pub skip_history: bool,
    /// Subscribers that negotiated deltas may get a delta.
    pub delta: bool,
    /// Publish only if larger than the stored version; 0 = no check. Works only with history.
    pub version: u64,
    /// Versions are compared when this is "" or equal to the stored epoch; a different epoch accepts every version.
    pub version_epoch: String,
    /// A connection that does not receive the publication live. History and recovery return it to every client.
    pub exclude_client: Option<ClientId>,
    /// `None` = as the namespace of the channel says.
    pub delivery: Option<DeliveryClass>,
    /// Number of the receipt in which nodes count its deliveries; 0 = none.
    pub receipt: u64,
}
