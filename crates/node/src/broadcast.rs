//! One publication on its way to all shards: every encoding and every frame of it is made once, by whoever needs it first.
//! In: a publication with its channel → out: encoded pushes (one per encoding) and shell-made frames (one per `Form`).
//! Uses: `fanwire_protocol` to encode, write-once cells. Never: sockets, subscriber lists.
//! Change here: which forms are shared. Who gets a broadcast lives in `hub/notices.rs`; ws frames are made by the server.

use std::sync::{Arc, OnceLock};
use std::time::Instant;

use bytes::Bytes;
use fanwire_protocol::{Encoding, Publication, encode_publication};

/// A publication shared by all its receivers; nothing in it changes except that empty slots are filled once.
#[derive(Debug)]
pub struct Broadcast {
    channel: Arc<str>,
    publication: Publication,
    accepted_at: Instant,
    messages: [OnceLock<Option<Bytes>>; 2],
    frames: [OnceLock<Bytes>; Form::COUNT],
}

impl Broadcast {
    /// Wraps a publication; encodes nothing.
    pub fn new(channel: Arc<str>, publication: Publication, accepted_at: Instant) -> Self {
        Self {
            channel,
            publication,
            accepted_at,
            messages: Default::default(),
            frames: Default::default(),
        }
    }

    /// The channel, shared with the registry and the hubs.
    pub fn channel(&self) -> &Arc<str> {
        &self.channel
    }

    /// The publication itself.
    pub fn publication(&self) -> &Publication {
        &self.publication
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

    /// The frame of one form, made by `make` from the encoded push at the first call and shared afterwards.
    ///
    /// # Panics
    /// When [`message`](Self::message) of that encoding is `None`: the hub never delivers such a broadcast.
    pub fn frame(&self, form: Form, make: impl FnOnce(&Bytes) -> Bytes) -> &Bytes {
        self.frames[form.index()].get_or_init(|| {
            make(
                self.message(form.encoding)
                    .expect("a broadcast is delivered only in encodings it has"),
            )
        })
    }
}

/// What decides about the bytes of a shared frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Form {
    pub encoding: Encoding,
    pub compressed: bool,
}

impl Form {
    /// How many forms there are.
    pub const COUNT: usize = 4;

    /// Dense index below [`COUNT`](Self::COUNT).
    pub fn index(self) -> usize {
        self.encoding.index() * 2 + usize::from(self.compressed)
    }
}

#[cfg(test)]
mod tests;
