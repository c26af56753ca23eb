//! One publication on its way to all shards: each encoding of it is made once, by the first shard that needs it.
//! In: a publication with its channel → out: encoded pushes (one per encoding and delta mode), and the state that the shell prepared.
//! Uses: `fanwire_protocol` to encode, write-once cells. Never: sockets, frames, subscriber lists.
//! Changed here: what all receivers share. `hub/notices.rs` selects the receivers; the shell makes frames.

mod deltas;

use std::any::Any;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use bytes::Bytes;
use fanwire_broker::{ClientId, Delta, Epoch, Position};
use fanwire_cluster::Receipt;
use fanwire_policy::channel::NamespaceId;
use fanwire_policy::options::{BatchOptions, DeliveryOptions};
use fanwire_policy::tiles::public_channel;
use fanwire_protocol::{Encoding, Publication, encode_publication};

use deltas::Deltas;

/// A publication shared by all its receivers. Immutable, except that each empty slot is filled once.
#[derive(Debug)]
pub struct Broadcast {
    channel: Arc<str>,
    namespace: NamespaceId,
    publication: Publication,
    epoch: Epoch,
    accepted_at: Instant,
    /// Unix time in milliseconds; 0 = unknown.
    published_ms: i64,
    messages: [OnceLock<Option<Bytes>>; 2],
    /// Time that [`take_encode_time`](Self::take_encode_time) has not taken yet.
    encode_ns: AtomicU64,
    prepared: Option<Prepared>,
    excluded: Option<ClientId>,
    receiver: Option<ClientId>,
    delta: Delta,
    /// Set for [`DeliveryClass::Latest`](fanwire_broker::DeliveryClass::Latest).
    latest: Option<Arc<DeliveryOptions>>,
    batch: Option<BatchOptions>,
    receipt: Option<Arc<Receipt>>,
    /// Allocated for the first subscriber that negotiated deltas.
    deltas: OnceLock<Box<Deltas>>,
}

/// How the data of a publication is written for a subscriber (protocol §11). Delta mode and encoding determine the
/// bytes of the push.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum DeltaMode {
    /// The data for subscribers without deltas: in JSON, it is part of the text.
    Plain,
    /// The whole data for subscribers with deltas: in JSON a string; in Protobuf the same bytes as `Plain`.
    Full,
    /// A patch against the previous data; in JSON a string.
    Patch,
}

/// State that the shell attaches to a broadcast. The node stores it and never reads it.
pub type Prepared = Box<dyn Any + Send + Sync>;

/// Prepares the shell's state of a broadcast, once for all shards.
///
/// For one channel the calls do not overlap and follow the order of its publications. The caller holds a lock of the
/// channel, so `prepare` must be short and must not call the node.
pub trait Prepare: Send + Sync {
    fn prepare(&self, broadcast: &Broadcast) -> Prepared;
}

impl Broadcast {
    /// Wraps a publication; encodes nothing. Its `time` is for the nodes and is not sent to clients.
    pub fn new(
        channel: Arc<str>,
        namespace: NamespaceId,
        mut publication: Publication,
        epoch: Epoch,
        accepted_at: Instant,
    ) -> Self {
        let published_ms = std::mem::take(&mut publication.time);
        Self {
            channel,
            namespace,
            publication,
            epoch,
            accepted_at,
            published_ms,
            messages: Default::default(),
            encode_ns: Default::default(),
            prepared: None,
            excluded: None,
            receiver: None,
            delta: Delta::default(),
            latest: None,
            batch: None,
            receipt: None,
            deltas: OnceLock::new(),
        }
    }

    /// The channel, shared with the registry and the hubs; for a tile, with a name that clients do not see.
    pub fn channel(&self) -> &Arc<str> {
        &self.channel
    }

    pub fn namespace(&self) -> NamespaceId {
        self.namespace
    }

    /// The publication itself.
    pub fn publication(&self) -> &Publication {
        &self.publication
    }

    /// Position in the channel's stream; offset 0 without one.
    pub fn position(&self) -> Position {
        Position { offset: self.publication.offset, epoch: self.epoch }
    }

    /// Returns the time at which the node accepted the publication; the start of its latency.
    pub fn accepted_at(&self) -> Instant {
        self.accepted_at
    }

    /// Time since publication at `unix_ms`, by the clocks of two nodes; `None` when the publication has no time.
    pub(crate) fn age(&self, unix_ms: u64) -> Option<Duration> {
        let published_ms = u64::try_from(self.published_ms).ok().filter(|ms| *ms > 0)?;
        Some(Duration::from_millis(unix_ms.saturating_sub(published_ms)))
    }

    /// The encoded push (Protobuf: with its length prefix), made at the first call and shared afterwards.
    ///
    /// `None` for JSON when the data is not JSON: the subscriber is disconnected with 3506 (protocol §3).
    pub fn message(&self, encoding: Encoding) -> Option<&Bytes> {
        self.messages[encoding.index()]
            .get_or_init(|| self.encode(encoding, &self.publication))
            .as_ref()
    }

    /// Encodes a form of the push, and adds the time it took. For that metric the clock is read here; it decides nothing.
    fn encode(&self, encoding: Encoding, publication: &Publication) -> Option<Bytes> {
        let started = Instant::now();
        let message = encode_publication(encoding, public_channel(&self.channel), publication);
        let ns = u64::try_from(started.elapsed().as_nanos()).unwrap_or(u64::MAX);
        self.encode_ns.fetch_add(ns, Relaxed);
        message
    }

    /// The time that encoding took on any thread since the last call.
    pub fn take_encode_time(&self) -> Duration {
        Duration::from_nanos(self.encode_ns.swap(0, Relaxed))
    }

    /// [`message`](Self::message) in a delta mode. `None` also when there is no patch, and for `Full` in JSON when
    /// the data is empty, because an empty string is not a JSON document.
    pub fn message_in(&self, delta_mode: DeltaMode, encoding: Encoding) -> Option<&Bytes> {
        match (delta_mode, encoding) {
            (DeltaMode::Plain, _) | (DeltaMode::Full, Encoding::Protobuf) => self.message(encoding),
            (DeltaMode::Full, Encoding::Json) => self.deltas().text(self),
            (DeltaMode::Patch, _) => self.deltas().patched(self, encoding),
        }
    }

    /// Whether `Full` exists in JSON. Encodes nothing.
    pub fn is_json(&self) -> bool {
        self.deltas().is_json(self)
    }

    /// The patch, made at the first call and shared afterwards; `None` without a base, or when it would not be shorter
    /// than the data.
    pub fn patch(&self) -> Option<&Bytes> {
        self.deltas().patch(self)
    }

    /// Whether it changes a key of a map.
    pub(crate) fn is_of_map(&self) -> bool {
        !self.publication.key.is_empty()
    }

    /// Whether the patch is against the previous publication of the stream.
    pub(crate) fn follows_stream(&self) -> bool {
        matches!(self.delta, Delta::Against(_))
    }

    /// Whether the patch is against `latest`. Where the stream has no base, the first call chooses it.
    pub(crate) fn follows(&self, latest: &Bytes) -> bool {
        let base = match &self.delta {
            Delta::Off => return false,
            Delta::Alone => self.deltas().propose(latest),
            Delta::Against(previous) => previous,
        };
        (base.as_ptr(), base.len()) == (latest.as_ptr(), latest.len()) || base == latest
    }

    fn deltas(&self) -> &Deltas {
        self.deltas.get_or_init(Box::default)
    }

    /// Bytes of payloads that this value keeps alive.
    pub fn payload_bytes(&self) -> usize {
        let previous = match &self.delta {
            Delta::Against(previous) => previous.len(),
            Delta::Off | Delta::Alone => 0,
        };
        self.publication.data.len() + previous
    }

    /// The prepared state, if its type is `T`.
    pub fn prepared<T: 'static>(&self) -> Option<&T> {
        self.prepared.as_ref()?.downcast_ref()
    }

    /// The connection that does not receive the publication.
    pub fn excluded(&self) -> Option<ClientId> {
        self.excluded
    }

    /// Excludes one connection. Call before the broadcast is shared.
    pub fn exclude(&mut self, client: Option<ClientId>) {
        self.excluded = client;
    }

    /// The only connection that receives the publication; `None` = all subscribers.
    pub fn receiver(&self) -> Option<ClientId> {
        self.receiver
    }

    /// Only this connection receives it, or all. Call before the broadcast is shared.
    pub fn deliver_only_to(&mut self, client: Option<ClientId>) {
        self.receiver = client;
    }

    /// Allows deltas. Call before the broadcast is shared.
    pub fn allow_delta(&mut self, delta: Delta) {
        self.delta = delta;
    }

    /// While it waits for a connection that takes no bytes, a newer publication of the channel may take its place. Call
    /// before the broadcast is shared.
    pub fn may_be_replaced(&mut self, delivery: Arc<DeliveryOptions>) {
        self.latest = Some(delivery);
    }

    /// The delivery options of the namespace, if a newer publication may take its place.
    pub fn latest(&self) -> Option<&DeliveryOptions> {
        self.latest.as_deref()
    }

    /// Shards deliver it with others of its channel. Call before the broadcast is shared.
    pub fn batch(&mut self, options: BatchOptions) {
        self.batch = Some(options).filter(BatchOptions::is_on);
    }

    /// Returns the batch in which a shard delivers it; `None` = at once.
    pub fn batch_options(&self) -> Option<BatchOptions> {
        self.batch
    }

    /// Counts its deliveries. Call before the broadcast is shared.
    pub fn report_in(&mut self, receipt: Option<Arc<Receipt>>) {
        self.receipt = receipt;
    }

    /// Counts subscribers in the receipt that do not get it, by their filter or because they are excluded.
    pub(crate) fn leave_out(&self, subscribers: u64) {
        if let Some(receipt) = &self.receipt {
            receipt.leave_out(subscribers);
        }
    }

    /// The receipt in which shards count its deliveries, if one was asked for.
    pub fn receipt(&self) -> Option<&Arc<Receipt>> {
        self.receipt.as_ref()
    }

    /// The key that the publication sets or removes, else the value of the tag `delivery_key_tag`: only a publication with the same
    /// one takes the place of this one. "" for publications without key and tag.
    pub fn conflation_key(&self) -> &str {
        if !self.publication.key.is_empty() {
            return &self.publication.key;
        }
        let tag = self.latest().map_or("", |delivery| delivery.key_tag.as_str());
        self.publication.tags.get(tag).map_or("", String::as_str)
    }

    /// Attaches the prepared state. Call before the broadcast is shared.
    pub fn prepare(&mut self, prepare: &dyn Prepare) {
        self.prepared = Some(prepare.prepare(self));
    }
}

#[cfg(test)]
mod tests;
