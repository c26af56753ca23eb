//! The server's record of a peer's window: its position, and the positions of publications in it.
//! A publication → which depth fits this peer and with what gaps; a queued frame → moved positions.
//! Pure: 8 bytes per connection, 32 per subscription; never refers to bytes that may be gone.
//! Changed here: the choice of the depth. Which depths a publication has is `publication`.

use std::hash::{Hash, Hasher};

use super::Depth;
use super::publication::{DEPTH_MAX, Publication};

/// Plaintext bytes of all compressed messages queued to one connection so far.
///
/// Advances for every message with RSV1=1 and for no other (RFC 7692 §7.2.1), in the order in which
/// they are queued. A queued frame is never replaced or reordered, nor dropped unless the connection ends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WindowCounter(u64);

impl WindowCounter {
    /// Records a queued compressed message that is not a publication in context: a reply, or a
    /// publication that stands alone and is in no history.
    pub fn advance(&mut self, message_bytes: usize) {
        self.0 += message_bytes as u64;
    }

    /// Plaintext bytes so far.
    pub fn bytes(self) -> u64 {
        self.0
    }
}

/// A part of a channel's newest publication, embedded in another message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EmbeddedPart {
    /// Sequence number of the publication.
    pub(super) sequence: u64,
}

/// Positions of the last publications of one channel in the window of one connection.
///
/// Starts empty, or with an embedded part, at every subscribe. Then every publication of the channel is either queued
/// or leaves it unchanged; a gap in the sequence numbers shows a missing one.
#[derive(Clone, Copy, Debug, Default)]
pub struct SubscriptionWindow {
    /// The counter at the start of the newest publication, or of its embedded part.
    newest: u64,
    /// Its sequence number; 0 before the first one.
    sequence: u64,
    /// Distances from its start back to the starts of the ones before; from the first 0 on they are unknown.
    behind: [u16; DEPTH_MAX - 1],
    /// Publications without a break up to the newest; 0 when the newest is an embedded part.
    run: u16,
}

/// The reference of a connection's frame; connections with equal references share it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reference {
    depth: Depth,
    gaps: [u32; DEPTH_MAX],
    count: u8,
}

impl Reference {
    /// No reference: for a connection without context takeover, with a window of 15 bits.
    pub const ALONE: Self = Self { depth: Depth::Alone, gaps: [0; DEPTH_MAX], count: 0 };

    pub fn depth(&self) -> Depth {
        self.depth
    }

    /// The gaps for [`Parse::emit`](super::Parse::emit).
    pub fn gaps(&self) -> &[u32] {
        &self.gaps[..usize::from(self.count)]
    }
}

impl Hash for Reference {
    /// Hashes one word, because a frame is looked up for each delivery: different gaps nearly always differ in
    /// the first or in the last one.
    fn hash<H: Hasher>(&self, state: &mut H) {
        let last = self.gaps().last().copied().unwrap_or(0);
        let gaps = u64::from(self.gaps[0]) << 16 | u64::from(last) << 32;
        state.write_u64(self.depth.index() as u64 | u64::from(self.count) << 8 | gaps);
    }
}

impl SubscriptionWindow {
    /// The deepest reference that a decoder with this window (8 to 15 bits) can decode.
    pub fn reference(
        &self,
        publication: &Publication,
        counter: WindowCounter,
        window_bits: u8,
    ) -> Reference {
        if publication.bytes() > 1 << window_bits {
            let depth = Depth::AloneWithin(window_bits);
            return Reference { depth, ..Reference::ALONE };
        }
        if !self.precedes(publication) {
            return Reference::ALONE;
        }
        let room = (1u64 << window_bits).saturating_sub(publication.bytes.into());
        let gap = counter.0 - self.newest;
        if self.run == 0 {
            return Self::quotation(publication, gap, room);
        }
        let scattered = self.scattered(publication, gap, 1 << window_bits);
        if gap != u64::from(publication.previous_bytes) {
            return scattered;
        }
        let fitting = publication
            .runs
            .iter()
            .position(|run| run.depth > 0 && run.depth <= self.run && u64::from(run.bytes) <= room);
        match fitting {
            Some(run) if usize::from(publication.runs[run].depth) >= scattered.gaps().len() => {
                Reference { depth: Depth::Run(run as u8), ..Reference::ALONE }
            }
            _ => scattered,
        }
    }

    /// Records a publication queued in a compressed frame of any depth: advances both positions.
    pub fn queued(&mut self, publication: &Publication, counter: &mut WindowCounter) {
        let mut next =
            Self { newest: counter.0, sequence: publication.sequence, run: 1, ..Self::default() };
        if self.precedes(publication) && self.run > 0 {
            let shift = counter.0 - self.newest;
            if shift == u64::from(publication.previous_bytes) {
                next.run = self.run.saturating_add(1);
            }
            let behind = std::iter::once(0).chain(self.behind);
            for (at, (behind, slot)) in behind.zip(&mut next.behind).enumerate() {
                let known = at == 0 || behind > 0;
                let place = u16::try_from(shift + u64::from(behind)).ok();
                let Some(place) = place.filter(|_| known) else { break };
                *slot = place;
            }
        }
        *self = next;
        counter.advance(publication.bytes());
    }

    /// Records a queued compressed message that embeds the newest publication, `at` bytes from its start;
    /// `counter` is the position before that message.
    pub fn embedded(&mut self, embedded_part: EmbeddedPart, at: usize, counter: WindowCounter) {
        let EmbeddedPart { sequence } = embedded_part;
        *self = Self { newest: counter.0 + at as u64, sequence, ..Self::default() };
    }

    fn precedes(&self, publication: &Publication) -> bool {
        self.sequence > 0 && self.sequence + 1 == publication.sequence
    }

    fn quotation(publication: &Publication, gap: u64, room: u64) -> Reference {
        if !publication.offers(Depth::Embedded) || gap > room {
            return Reference::ALONE;
        }
        let mut reference = Reference { depth: Depth::Embedded, count: 1, ..Reference::ALONE };
        reference.gaps[0] = gap as u32; // within the window, so that it fits
        reference
    }

    /// The deepest reference with a gap for each publication, within a window of `window` bytes.
    fn scattered(&self, publication: &Publication, gap: u64, window: u64) -> Reference {
        let known = 1 + self.behind.iter().take_while(|behind| **behind > 0).count();
        let gaps = |at: usize| if at == 0 { gap } else { gap + u64::from(self.behind[at - 1]) };
        for depth in Depth::SCATTERED {
            let count = publication.depth(depth).min(usize::from(publication.depth));
            if count == 0 || count > known {
                continue;
            }
            if gaps(count - 1) + publication.shift_max(depth) as u64 > window {
                continue;
            }
            let mut reference = Reference { depth, count: count as u8, ..Reference::ALONE };
            // Gaps within the window fit 32 bits.
            (0..count).for_each(|at| reference.gaps[at] = gaps(at) as u32);
            return reference;
        }
        Reference::ALONE
    }
}

#[cfg(test)]
mod tests;
