//! Writes bits, lowest first, into bytes (RFC 1951 §3.1.1).
//! Bit patterns of up to 56 bits → bytes in a slice that is long enough.
//! Pure; allocates nothing; knows nothing of codes.
//! Changed here: how bits become bytes. The bits are chosen in `block`.

/// Writes into a slice; the caller provides enough space and [`SLACK_BYTES`] in addition.
pub(crate) struct BitWriter<'a> {
    bytes: &'a mut [u8],
    at: usize,
    held: u64,
    count: u32,
}

impl<'a> BitWriter<'a> {
    pub(crate) fn new(bytes: &'a mut [u8]) -> Self {
        Self { bytes, at: 0, held: 0, count: 0 }
    }

    /// Appends the lowest `count` ≤ [`BITS_MAX`] bits of `bits`, all others being zero.
    #[inline]
    pub(crate) fn put(&mut self, bits: u64, count: u32) {
        self.put_all([(bits, count)].into_iter());
    }

    /// Appends patterns one after the other, with all state in registers.
    #[inline(always)]
    pub(crate) fn put_all(&mut self, patterns: impl Iterator<Item = (u64, u32)>) {
        let bytes = &mut *self.bytes;
        let mut at = self.at;
        let mut held = self.held;
        let mut held_count = self.count;
        patterns.for_each(|(bits, count)| {
            debug_assert!(count <= BITS_MAX && bits >> count == 0);
            held |= bits << held_count;
            held_count += count;
            bytes[at..at + 8].copy_from_slice(&held.to_le_bytes());
            at += (held_count >> 3) as usize;
            held >>= held_count & !7;
            held_count &= 7;
        });
        self.at = at;
        self.held = held;
        self.count = held_count;
    }

    /// Fills the byte up with zeros.
    pub(crate) fn align(&mut self) {
        self.put(0, self.count.wrapping_neg() & 7);
    }

    /// Appends whole bytes; the writer is aligned.
    pub(crate) fn bytes(&mut self, bytes: &[u8]) {
        debug_assert_eq!(self.count, 0);
        self.bytes[self.at..self.at + bytes.len()].copy_from_slice(bytes);
        self.at += bytes.len();
    }

    /// The number of bytes written; the writer is aligned.
    pub(crate) fn finish(self) -> usize {
        debug_assert_eq!(self.count, 0);
        self.at
    }
}

/// The largest pattern that fits after seven bits of an incomplete byte.
pub(crate) const BITS_MAX: u32 = 56;

/// Bytes beyond the last one written that the slice must have.
pub(crate) const SLACK_BYTES: usize = 8;

#[cfg(test)]
mod tests;
