//! The newest plaintext of a sender with context takeover (RFC 7692 §7.1.1, §7.2.3.2).
//! The plaintext of each compressed message, in order → the bytes that the next one may refer to.
//! Uses one buffer that grows with what came; never the state of a decoder, never more than the agreed window.
//! Changed here: how the window is kept between messages. `inflate` gives it to the decoder.

/// The last plaintext of one sender: up to 2^window_bits bytes of its compressed messages.
///
/// This is all that a decoder has to know of earlier messages, so one [`Inflater`](super::Inflater) can serve many
/// senders. The buffer is allocated with the first bytes and at most doubles, up to the size of the window.
#[derive(Debug)]
pub struct SenderWindow {
    window_bits: u8,
    /// The oldest byte of a full buffer; 0 until then.
    oldest: usize,
    bytes: Vec<u8>,
}

impl SenderWindow {
    /// A window of 2^`window_bits` bytes, 8 to 15, in which nothing is yet. Allocates nothing.
    ///
    /// 8 is kept as 9, because old versions of zlib compress with 512 bytes when they are asked for 256
    /// (madler/zlib#171).
    pub fn new(window_bits: u8) -> Self {
        Self { window_bits: window_bits.clamp(WINDOW_BITS_MIN, 15), oldest: 0, bytes: Vec::new() }
    }

    /// A window with the newest plaintext of a sender, oldest byte first.
    pub fn with_bytes(window_bits: u8, bytes: &[u8]) -> Self {
        let mut window = Self::new(window_bits);
        window.append(bytes);
        window
    }

    /// The bytes in the window, oldest first.
    pub fn to_bytes(&self) -> Vec<u8> {
        self.parts().concat()
    }

    /// The memory that a window of 2^`window_bits` bytes takes at most, itself included.
    pub fn memory_for(window_bits: u8) -> usize {
        Self::new(window_bits).size() + size_of::<Self>()
    }

    /// Bytes of the buffer at the moment.
    pub fn heap_bytes(&self) -> usize {
        self.bytes.capacity()
    }

    /// The bytes in the window in two parts, the older part first.
    pub(super) fn parts(&self) -> [&[u8]; 2] {
        let (newer, older) = self.bytes.split_at(self.oldest);
        [older, newer]
    }

    /// Adds the plaintext of the next message, in place of the oldest bytes where the window is full.
    pub(super) fn append(&mut self, message: &[u8]) {
        let size = self.size();
        let message = &message[message.len().saturating_sub(size)..];
        let (added, replacing) = message.split_at(message.len().min(size - self.bytes.len()));
        let needed = self.bytes.len() + added.len();
        let capacity = self.bytes.capacity();
        if needed > capacity {
            self.bytes.reserve_exact((capacity * 2).clamp(needed, size) - self.bytes.len());
        }
        self.bytes.extend_from_slice(added);
        // What replaces the oldest bytes goes up to the end of the buffer, then to its start.
        let (to_end, from_start) = replacing.split_at(replacing.len().min(size - self.oldest));
        self.bytes[self.oldest..][..to_end.len()].copy_from_slice(to_end);
        self.bytes[..from_start.len()].copy_from_slice(from_start);
        self.oldest = (self.oldest + replacing.len()) % size;
    }

    fn size(&self) -> usize {
        1 << self.window_bits
    }
}

const WINDOW_BITS_MIN: u8 = 9;

#[cfg(test)]
mod tests;
