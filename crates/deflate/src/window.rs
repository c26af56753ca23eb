//! The bytes that a decoder may still have, and where each four of them occurred before.
//! Bytes appended → a chain of earlier places for every position; each position is hashed once.
//! Pure; allocates only when it grows to its size. The table is never cleared: entries are numbered
//! through, and a number from before the window is no entry. Choosing a copy is `matcher`.

/// A sliding window with hash chains.
pub(crate) struct Window {
    bytes: Vec<u8>,
    /// For each byte, how far back the same four bytes began before; 0 for nowhere.
    links: Vec<u16>,
    /// By hash, the number of the newest position.
    heads: Box<[u32]>,
    /// The number of `bytes[0]`, at least 1.
    base: u32,
    /// Positions from here on are not in the chains yet.
    hashed: usize,
    shift: u32,
}

impl Window {
    /// An empty window; `table_bits` (1 to 16) is the binary logarithm of the chains' number.
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

    /// Takes the memory for `bytes` bytes at once and exactly.
    pub(crate) fn reserve(&mut self, bytes: usize) {
        self.bytes.reserve_exact(bytes.saturating_sub(self.bytes.len()));
        self.links.reserve_exact(bytes.saturating_sub(self.links.len()));
    }

    /// Forgets all bytes, in the time of nothing; the next ones are about `bytes` many.
    ///
    /// Few bytes use a part of the table only, which stays in the cache.
    pub(crate) fn reset(&mut self, bytes: usize) {
        self.slide(self.bytes.len());
        let table_bits = self.heads.len().trailing_zeros();
        let wanted = (usize::BITS - bytes.leading_zeros() + 1).max(8);
        self.shift = 32 - wanted.min(table_bits);
    }

    /// Forgets the oldest `count` bytes.
    pub(crate) fn slide(&mut self, count: usize) {
        self.bytes.drain(..count);
        self.links.drain(..count);
        self.hashed = self.hashed.saturating_sub(count);
        self.base += count as u32;
        if self.base > NUMBER_MAX {
            self.renumber();
        }
    }

    /// Appends `piece`; with it the window holds at most 65535 bytes.
    pub(crate) fn append(&mut self, piece: &[u8]) {
        self.bytes.extend_from_slice(piece);
        debug_assert!(self.bytes.len() <= BYTES_MAX);
        self.links.resize(self.bytes.len(), 0);
        let (base, shift) = (self.base, self.shift);
        let heads = &mut self.heads[..];
        let mask = heads.len() - 1;
        let numbers = base + self.hashed as u32..;
        let quads = self.bytes[self.hashed..].array_windows::<HASHED_BYTES>();
        let links = &mut self.links[self.hashed..][..quads.len()];
        self.hashed += quads.len();
        for ((quad, link), number) in quads.zip(links).zip(numbers) {
            let hash = u32::from_le_bytes(*quad).wrapping_mul(MULTIPLIER) >> shift;
            let head = &mut heads[hash as usize & mask];
            // Less than 65536 if both are numbers of bytes in the window; else masked out, because
            // a branch could not be foretold.
            let known = u16::from(*head >= base).wrapping_neg();
            *link = number.wrapping_sub(*head) as u16 & known;
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
        self.bytes.capacity() + self.links.capacity() * 2 + self.heads.len() * 4
    }

    /// Starts numbering anew, once in gigabytes.
    fn renumber(&mut self) {
        let shift = self.base - 1;
        self.heads.iter_mut().for_each(|head| *head = head.saturating_sub(shift));
        self.base = 1;
    }
}

/// As many bytes as a link reaches back.
pub(crate) const BYTES_MAX: usize = u16::MAX as usize;

/// The shortest copy that is looked for.
pub(crate) const HASHED_BYTES: usize = 4;

/// 2³² divided by the golden ratio, as a prime; mixes four bytes into the high bits.
const MULTIPLIER: u32 = 2_654_435_761;

const NUMBER_MAX: u32 = u32::MAX / 2;

#[cfg(test)]
mod tests;
