//! Looking for a channel's newest publication in a reply that told a subscriber what it had missed.
//! In: a reply, and a publication as its push holds it → out: where in the reply the same bytes are.
//! Uses nothing; compares bytes, so whatever is said to be there is there.
//! Changed here: how hard it looks. What is done with the place is decided in `deflate::gap`.

/// Where `publication` stands last in `reply`.
///
/// Only what the peer's window can hold is searched, for the end of the publication, and few places with the same end are
/// compared: it takes 0.1 µs where the publication is near the end, and some 10 µs where it is not and the reply is long.
pub(super) fn find(reply: &[u8], publication: &[u8]) -> Option<usize> {
    let tail = publication.last_chunk()?;
    let first = reply.len().saturating_sub(WINDOW_BYTES);
    let bytes = &reply[first..];
    let places = (bytes.len() + 1).checked_sub(TAIL_BYTES)?;
    let blocks = (0..places.div_ceil(BLOCK_BYTES)).rev();
    blocks
        .map(|block| block * BLOCK_BYTES..places.min((block + 1) * BLOCK_BYTES))
        .filter(|block| may_hold(&bytes[block.start..block.end + TAIL_BYTES - 1], tail))
        .flat_map(Iterator::rev)
        .filter(|at| bytes[*at..].starts_with(tail))
        .map(|at| at + TAIL_BYTES)
        .take(CANDIDATES)
        .find(|end| bytes[..*end].ends_with(publication))
        .map(|end| first + end - publication.len())
}

/// Whether three bytes of the tail are somewhere at their distances; without a branch, for many places at a time.
fn may_hold(block: &[u8], tail: &[u8; TAIL_BYTES]) -> bool {
    let from = |place: usize| block[place..].iter().map(move |byte| *byte == tail[place]);
    let places = from(TAIL_BYTES - 1).zip(from(TAIL_BYTES - 2)).zip(from(0));
    places.fold(false, |found, ((last, before), first)| found | (last & before & first))
}

/// Compared at every place; a publication that is shorter is not worth looking for.
const TAIL_BYTES: usize = 8;

const BLOCK_BYTES: usize = 64;

/// Of the largest window of a decoder (RFC 7692 §7.1.2.1).
const WINDOW_BYTES: usize = 1 << 15;

/// Recovered publications end last_plain but for their offsets; the newest one is the last.
const CANDIDATES: usize = 16;

#[cfg(test)]
mod tests;
