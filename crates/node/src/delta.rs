//! Deltas of publications (protocol §11): patches, and their form in JSON.
//! In: payloads and the previous payloads → out: patches that pay, publications in the form for subscribers with deltas.
//! Uses: `fanwire_protocol::fossil`. Never: subscribers; `subscribers/deltas.rs` tracks which of them has which base.
//! Changed here: when a patch pays and what it may cost. What a live publication shares is in `broadcast/deltas.rs`.

use std::str;

use bytes::Bytes;
use fanwire_protocol::fossil::Differ;
use fanwire_protocol::{Encoding, Publication, is_json, json_string};

/// How much deltas saved.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Saved {
    pub(crate) deltas: u64,
    pub(crate) bytes: u64,
}

/// Makes the patches of one publication.
pub(crate) fn differ() -> Differ {
    Differ::within(EFFORT_BYTES)
}

/// The patch from `source` to `target`, if it is shorter than `target`. A patch of text is valid UTF-8, so that JSON
/// can contain it.
pub(crate) fn patch(differ: &mut Differ, source: &[u8], target: &[u8]) -> Option<Bytes> {
    if source.len().max(target.len()) > PAYLOAD_BYTES_MAX {
        return None;
    }
    let mut patch = Vec::with_capacity(target.len() + MARGIN);
    match str::from_utf8(target) {
        Ok(text) => differ.create_text(source, text, &mut patch),
        Err(_) => differ.create(source, target, &mut patch),
    }
    (patch.len() < target.len()).then(|| Bytes::copy_from_slice(&patch))
}

/// `publication` with other `data`, which JSON contains as a string.
///
/// # Panics
/// When the encoding is JSON and the data is not UTF-8.
pub(crate) fn with_data(
    encoding: Encoding,
    publication: &Publication,
    data: &Bytes,
) -> Publication {
    let data = match encoding {
        Encoding::Json => json_string(str::from_utf8(data).expect("data with a form in JSON")),
        Encoding::Protobuf => data.clone(),
    };
    Publication { data, ..publication.clone() }
}

/// Converts successive publications for a recovering subscriber: the first in full, the others as deltas where that
/// pays.
pub(crate) fn shape_missed(encoding: Encoding, publications: &mut [Publication]) -> Saved {
    let mut patches = PatchMaker::new(encoding, publications);
    let mut previous: Option<Bytes> = None;
    for publication in publications {
        let whole = publication.data.clone();
        patches.convert(publication, previous);
        previous = Some(whole);
    }
    patches.saved()
}

/// Converts the publications of one reply, within limits of their effort.
pub(crate) struct PatchMaker {
    encoding: Encoding,
    differ: Differ,
    /// Bytes that may still be searched for patches.
    budget: usize,
    saved: Saved,
}

impl PatchMaker {
    /// Converts what a reply with these publications contains.
    pub(crate) fn new(encoding: Encoding, publications: &[Publication]) -> Self {
        let bytes = payload_bytes(publications);
        let effort = EFFORT_BYTES.min(bytes.saturating_mul(MISSED_EFFORT));
        let differ = Differ::within(effort);
        Self { encoding, differ, budget: MISSED_BYTES_MAX, saved: Saved::default() }
    }

    /// Converts one publication: a patch against `base` if that pays, else in full.
    pub(crate) fn convert(&mut self, publication: &mut Publication, base: Option<Bytes>) {
        let whole = whole(self.encoding, publication);
        let patch = (base.filter(|_| whole.len() <= self.budget))
            .and_then(|base| patch(&mut self.differ, &base, &whole));
        self.budget = self.budget.saturating_sub(whole.len());
        if self.encoding == Encoding::Json && !is_json(&whole) {
            // The reply fails with 3506, as with any payload that is not JSON; in this form empty data is not JSON
            // either.
            publication.data = Bytes::from_static(NOT_JSON);
            return;
        }
        if let Some(patch) = &patch {
            self.saved.deltas += 1;
            self.saved.bytes += (whole.len() - patch.len()) as u64;
        }
        publication.delta = patch.is_some();
        let data = patch.as_ref().unwrap_or(&whole);
        *publication = with_data(self.encoding, publication, data);
    }

    /// The bytes that the patches saved.
    pub(crate) fn saved(self) -> Saved {
        self.saved
    }
}

/// The data that a subscriber with deltas parses, also where a publication removes a key and has none.
pub(crate) fn whole(encoding: Encoding, publication: &Publication) -> Bytes {
    if publication.removed && encoding == Encoding::Json {
        Bytes::from_static(b"null")
    } else {
        publication.data.clone()
    }
}

/// Bytes of the payloads.
pub(crate) fn payload_bytes(publications: &[Publication]) -> usize {
    publications.iter().map(|publication| publication.data.len()).sum()
}

/// Longer payloads are sent in full: the shard makes the patch, and reads every byte of both payloads for it.
pub(crate) const PAYLOAD_BYTES_MAX: usize = 1 << 20;
/// Bytes compared in search of a patch, at one to two nanoseconds each. Payloads of the corpora need at most two per
/// byte;
/// crafted ones could keep a shard busy for seconds.
const EFFORT_BYTES: usize = 1 << 22;
/// The same limit per byte of a recovery, which is converted while other commands wait.
const MISSED_EFFORT: usize = 16;
/// Bytes of one recovery that are searched for patches; later publications are sent in full.
const MISSED_BYTES_MAX: usize = 1 << 20;
/// A patch may be this much longer than its target before it is dropped.
const MARGIN: usize = 24;
const NOT_JSON: &[u8] = b"\0";

#[cfg(test)]
mod tests;
