//! One publication on its way to all shards: every encoding of it is made once, by whoever needs it first.
//! In: a publication with its channel → out: encoded pushes (one per encoding), and what the shell prepared for its shards.
//! Uses: `fanwire_protocol` to encode, write-once cells. Never: sockets, frames, subscriber lists.
//! Change here: what all receivers share. Who gets a broadcast lives in `hub/notices.rs`; frames are made by the shell.

use std::any::Any;
use std::sync::{Arc, OnceLock};
use std::time::Instant;

use bytes::Bytes;
use fanwire_protocol::{Encoding, Publication, encode_publication};

use crate::broker::{Epoch, Position};
use crate::channel::NamespaceId;
use crate::session::ClientId;

/// A publication shared by all its receivers; nothing in it changes except that empty slots are filled once.
#[derive(Debug)]
pub struct Broadcast {
    channel: Arc<str>,
    namespace: NamespaceId,
    publication: Publication,
    epoch: Epoch,
    accepted_at: Instant,
    messages: [OnceLock<Option<Bytes>>; 2],
    prepared: Option<Prepared>,
    excluded: Option<ClientId>,
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
    /// Wraps a publication; encodes nothing.
    pub fn new(
        channel: Arc<str>,
        namespace: NamespaceId,
        publication: Publication,
        epoch: Epoch,
        accepted_at: Instant,
    ) -> Self {
        let messages = Default::default();
        let (prepared, excluded) = (None, None);
        Self { channel, namespace, publication, epoch, accepted_at, messages, prepared, excluded }
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

    /// The encoded push (Protobuf: with its length), made at the first call and shared afterwards.
    ///
    /// `None` for JSON when the data is not JSON: such a subscriber is disconnected with 3506 (protocol §3).
    pub fn message(&self, encoding: Encoding) -> Option<&Bytes> {
        self.messages[encoding.index()]
            .get_or_init(|| encode_publication(encoding, &self.channel, &self.publication))
            .as_ref()
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

    /// Before any shard sees the broadcast.
    pub fn prepare(&mut self, prepare: &dyn Prepare) {
        self.prepared = Some(prepare.prepare(self));
    }
}

#[cfg(test)]
mod tests;
