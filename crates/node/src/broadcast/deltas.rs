//! Deltas of one broadcast, shared by its subscribers: one patch, and the pushes of each delta mode (protocol §11).
//! In: a broadcast with its base → out: write-once slots, filled when the first subscriber needs them.
//! Uses: `delta` for patches, `fanwire_protocol` to encode. Never: subscribers; the hub decides which of them gets a patch.
//! Changed here: what is made once. `delta.rs` decides when a patch pays.

use std::sync::OnceLock;

use bytes::Bytes;
use fanwire_broker::Delta;
use fanwire_protocol::{Encoding, Publication, has_json};

use super::Broadcast;
use crate::delta::{self};

/// One patch serves both encodings: patches of text end at character boundaries, and data that is not text has no JSON
/// form.
#[derive(Debug, Default)]
pub(super) struct Deltas {
    /// The base of a broadcast without a stream: the publication that the first shard delivered last.
    proposed: OnceLock<Bytes>,
    patch: OnceLock<Option<Bytes>>,
    is_json: OnceLock<bool>,
    text: OnceLock<Option<Bytes>>,
    patched: [OnceLock<Option<Bytes>>; 2],
}

impl Deltas {
    /// The base of a broadcast without a stream: `latest`, unless another shard was first.
    pub(super) fn propose(&self, latest: &Bytes) -> &Bytes {
        self.proposed.get_or_init(|| latest.clone())
    }

    pub(super) fn patch(&self, of: &Broadcast) -> Option<&Bytes> {
        let base = match &of.delta {
            Delta::Off => None,
            Delta::Alone => self.proposed.get(),
            Delta::Against(previous) => Some(previous),
        };
        let make = |base: &Bytes| delta::patch(&mut delta::differ(), base, &of.publication.data);
        // Without a base nothing is cached, because a base may be proposed later.
        base.and_then(|base| self.patch.get_or_init(|| make(base)).as_ref())
    }

    pub(super) fn is_json(&self, of: &Broadcast) -> bool {
        let publication = &of.publication;
        let has_data = publication.removed || !publication.data.is_empty();
        *self.is_json.get_or_init(|| has_data && has_json(publication))
    }

    /// The push with the whole data as a JSON string.
    pub(super) fn text(&self, of: &Broadcast) -> Option<&Bytes> {
        let encode = || {
            let publication = &of.publication;
            let data = delta::whole(Encoding::Json, publication);
            let with_text = || delta::with_data(Encoding::Json, publication, &data);
            self.is_json(of).then(|| of.encode(Encoding::Json, &with_text()))?
        };
        self.text.get_or_init(encode).as_ref()
    }

    /// The push with the patch.
    pub(super) fn patched(&self, of: &Broadcast, encoding: Encoding) -> Option<&Bytes> {
        let patch = self.patch(of)?;
        let encode = || {
            let exists = encoding == Encoding::Protobuf || self.is_json(of);
            let publication = || Publication { delta: true, ..of.publication.clone() };
            let with_patch = || delta::with_data(encoding, &publication(), patch);
            exists.then(|| of.encode(encoding, &with_patch()))?
        };
        self.patched[encoding.index()].get_or_init(encode).as_ref()
    }
}
