//! Looking for a channel's newest publication in a reply that told a subscriber what it had missed.
//! In: a reply, and a publication as its push holds it → out: where in the reply the same bytes are.
//! Uses nothing; compares bytes, so whatever is said to be there is there.
//! Changed here: how hard it looks. What is done with the place is decided in `deflate::gap`.

/// Where `publication` stands last in `reply`.
///
/// Only what the peer's window can hold is searched, for the end of the publication, and few places with the same end are
/// compared: it takes a microsecond or less where the publication is, and some 10 µs at most where it is not.
pub(super) fn find(reply: &[u8], publication: &[u8]) -> Option<usize> {
    let tail = publication.last_chunk::<TAIL_BYTES>()?;
    let first = reply.len().saturating_sub(WINDOW_BYTES);
    let ends = reply[first..].array_windows().enumerate().rev();
    ends.filter(|(_, bytes)| *bytes == tail)
        .map(|(at, _)| first + at + TAIL_BYTES)
        .take(CANDIDATES)
        .find(|end| reply[first..*end].ends_with(publication))
        .map(|end| end - publication.len())
}

/// Compared at every place; a publication that is shorter is not worth looking for.
const TAIL_BYTES: usize = 8;

/// Of the largest window of a decoder (RFC 7692 §7.1.2.1).
const WINDOW_BYTES: usize = 1 << 15;

/// Recovered publications end alike but for their offsets; the newest one is the last.
const CANDIDATES: usize = 16;

#[cfg(test)]
mod tests;
