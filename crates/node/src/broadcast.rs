//! One publication on its way to all shards: every encoding of it is made once, by whoever needs it first.
//! In: a publication with its channel → out: encoded pushes (one per encoding and shape), and what the shell prepared.
//! Uses: `fanwire_protocol` to encode, write-once cells. Never: sockets, frames, subscriber lists.
//! Change here: what all receivers share. Who gets a broadcast lives in `hub/notices.rs`; frames are made by the shell.

mod deltas;

use std::any::Any;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use bytes::Bytes;
use fanwire_broker::{ClientId, Delta, Epoch, Position};
use fanwire_protocol::{Encoding, Publication, encode_publication};

use crate::channel::NamespaceId;
use deltas::Deltas;

/// A publication shared by all its receivers; nothing in it changes except that empty slots are filled once.
#[derive(Debug)]
pub struct Broadcast {
    channel: Arc<str>,
    namespace: NamespaceId,
    publication: Publication,
    epoch: Epoch,
    accepted_at: Instant,
    /// Unix time; 0 = not told.
    published_ms: i64,
    messages: [OnceLock<Option<Bytes>>; 2],
    prepared: Option<Prepared>,
    excluded: Option<ClientId>,
    delta: Delta,
    /// Made when a subscriber is there that has agreed to deltas.
    deltas: OnceLock<Box<Deltas>>,
}

/// How much of a publication a subscriber is sent, and how its data is written (protocol §11). Together with the encoding
/// it decides about the bytes of the push.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum DeltaMode {
    /// For those who did not agree to deltas: in JSON, the data is part of the text.
    Plain,
    /// The whole data for those who did: in JSON a string. In Protobuf the same bytes as `Plain`.
    Full,
    /// What makes the data of the data before it: in JSON a string.
    Patch,
}

/// The shell's part of a broadcast. The node carries it and does not look inside.
pub type Prepared = Box<dyn Any + Send + Sync>;

/// Adds the shell's part to broadcasts, once for all shards.
///
/// For one channel the calls do not overlap and come in the order of its publications. A lock of the channel is held
/// meanwhile, so `prepare` must be short and never call back into the node.
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
        let messages = Default::default();
        let (prepared, excluded, delta, deltas) = Default::default();
        Self {
            channel,
            namespace,
            publication,
            epoch,
            accepted_at,
            published_ms,
            messages,
            prepared,
            excluded,
            delta,
            deltas,
        }
    }

    /// The channel, shared with the registry and the hubs.
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

    /// Where it stands in the stream of its channel; offset 0 when it has no place there.
    pub fn position(&self) -> Position {
        Position { offset: self.publication.offset, epoch: self.epoch }
    }

    /// When the node accepted the publication; the start of its latency.
    pub fn accepted_at(&self) -> Instant {
        self.accepted_at
    }

    /// How long it has been on its way at `unix_ms`, by the clocks of two nodes; `None` when it does not say.
    pub(crate) fn age(&self, unix_ms: u64) -> Option<Duration> {
        let published_ms = u64::try_from(self.published_ms).ok().filter(|ms| *ms > 0)?;
        Some(Duration::from_millis(unix_ms.saturating_sub(published_ms)))
    }

    /// The encoded push (Protobuf: with its length), made at the first call and shared afterwards.
    ///
    /// `None` for JSON when the data is not JSON: such a subscriber is disconnected with 3506 (protocol §3).
    pub fn message(&self, encoding: Encoding) -> Option<&Bytes> {
        self.messages[encoding.index()]
            .get_or_init(|| encode_publication(encoding, &self.channel, &self.publication))
            .as_ref()
    }

    /// [`message`](Self::message) in a shape. `None` also for a patch that is not to be had, and for `Full` in JSON when the
    /// data is empty: a string of nothing is no JSON text to those who look into it.
    pub fn shaped(&self, shape: DeltaMode, encoding: Encoding) -> Option<&Bytes> {
        match (shape, encoding) {
            (DeltaMode::Plain, _) | (DeltaMode::Full, Encoding::Protobuf) => self.message(encoding),
            (DeltaMode::Full, Encoding::Json) => self.deltas().text(self),
            (DeltaMode::Patch, _) => self.deltas().patched(self, encoding),
        }
    }

    /// Whether `Full` exists in JSON, and then `Patch` if there is one; says so without making either.
    pub fn is_json(&self) -> bool {
        self.deltas().is_json(self)
    }

    /// The patch, made at the first call and shared afterwards; `None` when there is no base, or it would not be shorter.
    pub fn patch(&self) -> Option<&Bytes> {
        self.deltas().patch(self)
    }

    /// Whether the patch is against the publication before it in the stream.
    pub(crate) fn follows_stream(&self) -> bool {
        matches!(self.delta, Delta::Against(_))
    }

    /// Whether the patch is against `latest`. Where the stream names no base, the first call does.
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

    /// Memory of payloads that it keeps alive, in bytes.
    pub fn payload_bytes(&self) -> usize {
        let previous = match &self.delta {
            Delta::Against(previous) => previous.len(),
            Delta::Off | Delta::Alone => 0,
        };
        self.publication.data.len() + previous
    }

    /// What the shell prepared, if it is a `T`.
    pub fn prepared<T: 'static>(&self) -> Option<&T> {
        self.prepared.as_ref()?.downcast_ref()
    }

    /// The one connection that does not get it, wherever it is.
    pub fn excluded(&self) -> Option<ClientId> {
        self.excluded
    }

    /// Before any shard sees the broadcast: leaves one connection out.
    pub fn exclude(&mut self, client: Option<ClientId>) {
        self.excluded = client;
    }

    /// Before any shard sees the broadcast: lets those who agreed have it as a delta.
    pub fn allow_delta(&mut self, delta: Delta) {
        self.delta = delta;
    }

    /// Before any shard sees the broadcast.
    pub fn prepare(&mut self, prepare: &dyn Prepare) {
        self.prepared = Some(prepare.prepare(self));
    }
}

#[cfg(test)]
mod tests;
