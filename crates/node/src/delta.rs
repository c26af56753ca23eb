//! Deltas of publications (protocol §11): what a broker says about them, patches, and the strings in which JSON has them.
//! In: payloads and the payloads before them → out: patches that pay, publications as those who agreed to deltas get them.
//! Uses: `fanwire_protocol::fossil`. Never: subscribers; who holds which base is known in `subscribers/deltas.rs`.
//! Change here: when a patch pays and what it may cost. What a live publication shares is in `broadcast/deltas.rs`.

use std::str;

use bytes::Bytes;
use fanwire_protocol::fossil::Differ;
use fanwire_protocol::{Encoding, Publication, is_json, json_string};

/// What deltas saved.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Saved {
    pub(crate) deltas: u64,
    pub(crate) bytes: u64,
}

/// Makes the patches of one publication.
pub(crate) fn differ() -> Differ {
    Differ::within(EFFORT_BYTES)
}

/// The patch that makes `target` of `source`, if it is shorter. One of text is text, so that it fits into JSON.
pub(crate) fn patch(differ: &mut Differ, source: &[u8], target: &[u8]) -> Option<Bytes> {
    if source.len().max(target.len()) > PAYLOAD_BYTES_MAX {
        return None;
    }
    let mut patch = Vec::with_capacity(target.len() + ROOM);
    match str::from_utf8(target) {
        Ok(text) => differ.create_text(source, text, &mut patch),
        Err(_) => differ.create(source, target, &mut patch),
    }
    (patch.len() < target.len()).then(|| Bytes::copy_from_slice(&patch))
}

/// `publication` with other `data`, which in JSON is a string, whatever it is.
///
/// # Panics
/// When the encoding is JSON and the data is not UTF-8; it has no form in JSON then.
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

/// Makes of publications that follow one another in a stream what a recovering subscriber gets: the first in full, the
/// others as deltas where that pays.
pub(crate) fn shape_missed(encoding: Encoding, publications: &mut [Publication]) -> Saved {
    let mut saved = Saved::default();
    let bytes = payload_bytes(publications);
    let effort = EFFORT_BYTES.min(bytes.saturating_mul(MISSED_EFFORT));
    let (mut budget, mut differ) = (MISSED_BYTES_MAX, Differ::within(effort));
    let mut previous: Option<Bytes> = None;
    for publication in publications {
        let whole = publication.data.clone();
        let patch = (previous.filter(|_| whole.len() <= budget))
            .and_then(|previous| patch(&mut differ, &previous, &whole));
        budget = budget.saturating_sub(whole.len());
        previous = Some(whole.clone());
        if encoding == Encoding::Json && !is_json(&whole) {
            // The reply fails (3506), as with any payload that is not JSON; here an empty one is not either.
            publication.data = Bytes::from_static(NOT_JSON);
            continue;
        }
        if let Some(patch) = &patch {
            saved.deltas += 1;
            saved.bytes += (whole.len() - patch.len()) as u64;
        }
        publication.delta = patch.is_some();
        *publication = with_data(encoding, publication, patch.as_ref().unwrap_or(&whole));
    }
    saved
}

/// Memory of the payloads of publications, in bytes.
pub(crate) fn payload_bytes(publications: &[Publication]) -> usize {
    publications.iter().map(|publication| publication.data.len()).sum()
}

/// Longer payloads go out in full: a patch is made on a shard, which looks at every byte of both.
pub(crate) const PAYLOAD_BYTES_MAX: usize = 1 << 20;
/// Bytes compared in search of patches, at one to two nanoseconds each. Payloads of the corpora need at most two for each
/// of theirs; those that were made to be slow could keep a shard busy for seconds.
const EFFORT_BYTES: usize = 1 << 22;
/// The same for each byte of what a subscriber missed, which is shaped while other commands wait for their turn.
const MISSED_EFFORT: usize = 16;
/// Payloads of one recovery that are looked at for patches; what comes after them is sent in full.
const MISSED_BYTES_MAX: usize = 1 << 20;
/// A patch may be so much longer than its target.
const ROOM: usize = 24;
const NOT_JSON: &[u8] = b"\0";

#[cfg(test)]
mod tests;
