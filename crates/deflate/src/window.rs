//! The bytes that a decoder may still have, and the earlier positions of each four of them.
//! Bytes appended → a chain of earlier positions for every position, hashed once at most.
//! Pure; allocates only when it grows to its size. The table is never cleared: positions are numbered
//! consecutively, and a number from before the window means no entry. Choosing a copy is `matcher`.

use crate::prefix::common;

/// A sliding window with hash chains.
pub(crate) struct Window {
    bytes: Vec<u8>,
    /// Distance from each byte to the last start of the same four bytes; larger than the window for none.
    links: Vec<u16>,
    /// Number of the newest position, by hash.
    heads: Box<[u16]>,
    /// The number of `bytes[0]`, at least 1.
    base: usize,
    /// Positions from here on are not in the chains yet.
    hashed: usize,
    shift: u32,
}

impl Window {
    /// An empty window; `table_bits` (1 to 17) is the binary logarithm of the chains' number.
    pub(crate) fn new(table_bits: u32) -> Self {
        Self {
            bytes: Vec::new(),
            links: Vec::new(),
            heads: vec![0; 1 << table_bits].into(),
            base: 1,
            hashed: 0,
            shift: 32 - table_bits,
        }
    }

    /// Allocates memory for `bytes` bytes at once and exactly.
    pub(crate) fn reserve(&mut self, bytes: usize) {
        self.bytes.reserve_exact(bytes.saturating_sub(self.bytes.len()));
        self.links.reserve_exact(bytes.saturating_sub(self.links.len()));
    }

    /// Reserves `bytes` more, doubling the capacity, but never for more than `most` in all.
    pub(crate) fn reserve_within(&mut self, bytes: usize, most: usize) {
        grow(&mut self.bytes, bytes, most);
        grow(&mut self.links, bytes, most);
    }

    /// Removes all bytes in constant time; about `bytes` are expected next.
    ///
    /// Few bytes use only a part of the table, which stays in the cache.
    pub(crate) fn reset(&mut self, bytes: usize) {
        self.slide(self.bytes.len());
        let table_bits = self.heads.len().trailing_zeros();
        let wanted = (usize::BITS - bytes.leading_zeros() + 1).max(8);
        self.shift = 32 - wanted.min(table_bits);
    }

    /// Removes the oldest `count` bytes.
    pub(crate) fn slide(&mut self, count: usize) {
        self.bytes.drain(..count);
        self.links.drain(..count);
        self.hashed = self.hashed.saturating_sub(count);
        self.base += count;
    }

    /// Appends `piece`; with it the window holds at most 65535 bytes.
    pub(crate) fn append(&mut self, piece: &[u8]) {
        self.hold(piece);
        self.hash(self.bytes.len());
    }

    /// Appends as [`append`](Self::append) does, for a piece that may begin like the last `delta` bytes.
    ///
    /// The common part is linked without being hashed: its newest entry in a chain stays the
    /// one before, which a search along that alignment does not need.
    pub(crate) fn append_like(&mut self, piece: &[u8], delta: usize) {
        let start = self.bytes.len();
        let before = &self.bytes[start - delta..];
        let same = common(piece, &before[..delta.min(piece.len())]);
        self.hold(piece);
        let linked = same.saturating_sub(HASHED_AGAIN);
        if linked > 0 {
            self.hash(start + HASHED_BYTES - 1);
            self.links[self.hashed..][..linked].fill(delta as u16);
            self.hashed += linked;
        }
        self.hash(self.bytes.len());
    }

    /// Appends `piece` without adding it to the chains.
    fn hold(&mut self, piece: &[u8]) {
        self.bytes.extend_from_slice(piece);
        debug_assert!(self.bytes.len() <= BYTES_MAX);
        if self.base + self.bytes.len() > NUMBERS {
            self.renumber();
        }
        self.links.resize(self.bytes.len(), u16::MAX);
    }

    /// Adds positions to the chains, up to the last one whose four bytes are before `end`.
    fn hash(&mut self, end: usize) {
        let shift = self.shift;
        let heads = &mut self.heads[..];
        let first = self.base + self.hashed;
        let quads = self.bytes[self.hashed..end].array_windows::<HASHED_BYTES>();
        let links = &mut self.links[self.hashed..][..quads.len()];
        self.hashed += quads.len();
        for ((quad, link), number) in quads.zip(links).zip(first..) {
            let number = number as u16;
            let hash = u32::from_le_bytes(*quad).wrapping_mul(MULTIPLIER) >> shift;
            let head = &mut heads[hash as usize];
            // Farther than the window if the number is from before it.
            *link = number - *head;
            *head = number;
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.bytes.len()
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    pub(crate) fn links(&self) -> &[u16] {
        &self.links
    }

    /// Bytes of memory taken.
    pub(crate) fn memory(&self) -> usize {
        self.bytes.capacity() + self.links.capacity() * 2 + self.heads.len() * 2
    }

    /// The memory of a window of `bytes` bytes, without the struct itself.
    pub(crate) fn memory_for(table_bits: u32, bytes: usize) -> usize {
        bytes * 3 + (2 << table_bits)
    }

    /// Starts the numbers again: one pass over the table, each time the numbers are used up.
    fn renumber(&mut self) {
        let shift = (self.base - 1) as u16;
        self.heads.iter_mut().for_each(|head| *head = head.saturating_sub(shift));
        self.base = 1;
    }
}

/// Reserves `more` elements, doubling the capacity, but never for more than `most` in all.
pub(crate) fn grow<T>(list: &mut Vec<T>, more: usize, most: usize) {
    let len = list.len() + more;
    if len > list.capacity() {
        let capacity = (list.capacity() * 2).clamp(len, most.max(len));
        list.reserve_exact(capacity - list.len());
    }
}

/// The farthest distance of a link, in bytes.
pub(crate) const BYTES_MAX: usize = u16::MAX as usize;

/// The shortest copy that is searched for.
pub(crate) const HASHED_BYTES: usize = 4;

/// This many bytes at the end of the common part of two pieces are hashed nevertheless, because the rest
/// of a message repeats them: with 3 or 12 bytes, publications with one source take 0.3 or 0.2 % more
/// (example `encoder`, since removed).
const HASHED_AGAIN: usize = 20;

/// 2³² divided by the golden ratio, as a prime; mixes four bytes into the high bits.
const MULTIPLIER: u32 = 2_654_435_761;

/// Number of position numbers, including 0, which means none.
const NUMBERS: usize = 1 << 16;

#[cfg(test)]
mod tests;
