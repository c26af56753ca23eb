//! One connection's own compressor with context takeover (RFC 7692 §7.1.1), for streams that are
//! not broadcast. Plaintext → payloads that refer to earlier messages; memory obeys the bits.
//! Uses the encoder's own modules; allocates once; working memory without state is shared (`Scratch`).
//! Changed here: how memory is divided. Messages without context are `standalone`.

use crate::bits::BitWriter;
use crate::block::{Histogram, room, write_flush};
use crate::level::Effort;
use crate::strategy::Strategy;
use crate::token::{Gaps, Sequences};
use crate::window::Window;

/// A raw DEFLATE encoder whose messages may refer to those before them.
///
/// Takes at most `(1 << (window_bits + 2)) + (1 << (memory_level + 9))` bytes, as zlib promises,
/// itself included.
pub struct Dedicated {
    window: Window,
    window_bits: u8,
    strategy: Strategy,
    effort: Effort,
}

/// Working memory that compressors share, one at a time; empty between messages.
#[derive(Default)]
pub struct Scratch {
    sequences: Sequences,
}

impl Dedicated {
    /// Creates an encoder for a decoder's window of `window_bits` (9 to 15, RFC 7692 §7.1.2.1), with a table for
    /// `memory_level` (1 to 9) and the effort of `level` (1 to 9). Other values are brought into range.
    pub fn new(window_bits: u8, memory_level: u8, level: u8) -> Self {
        let window_bits = window_bits.clamp(9, 15);
        let mut window = Window::new(u32::from(memory_level.clamp(1, 9)) + 8);
        window.reserve((1 << window_bits) + piece_bytes(window_bits));
        Self { window, window_bits, strategy: Strategy::Default, effort: Effort::of(level) }
    }

    /// Sets another strategy than [`Strategy::Default`].
    pub fn with_strategy(self, strategy: Strategy) -> Self {
        Self { strategy, ..self }
    }

    /// Starts over without the earlier messages, in the same memory.
    pub fn reset(&mut self) {
        self.window.slide(self.window.len());
    }

    /// Appends `message` to `out` as the payload of one message (RFC 7692 §7.2.1).
    ///
    /// The decoder must get every message since the last reset, in this order.
    pub fn compress(&mut self, message: &[u8], scratch: &mut Scratch, out: &mut Vec<u8>) {
        let start = out.len();
        out.resize(start + room(message.len(), BLOCK_BYTES), 0);
        let mut writer = BitWriter::new(&mut out[start..]);
        for block in message.chunks(BLOCK_BYTES) {
            scratch.sequences.clear();
            for piece in block.chunks(piece_bytes(self.window_bits)) {
                self.parse(piece, &mut scratch.sequences);
            }
            let sequences = scratch.sequences.end();
            let plan = self.strategy.plan(&Histogram::new(sequences, block), block.len());
            plan.write(sequences, block, &Gaps::NONE, &mut writer);
        }
        write_flush(&mut writer);
        let len = writer.finish();
        out.truncate(start + len);
    }

    /// Bytes of memory taken, itself included.
    pub fn memory(&self) -> usize {
        size_of::<Self>() + self.window.memory()
    }

    fn parse(&mut self, piece: &[u8], sequences: &mut Sequences) {
        let window_bytes = 1 << self.window_bits;
        if self.window.len() + piece.len() > window_bytes + piece_bytes(self.window_bits) {
            self.window.slide(self.window.len() - window_bytes);
        }
        let start = self.window.len();
        self.window.append(piece);
        self.strategy.parse(&self.window, start, self.window_bits, self.effort, sequences);
    }
}

/// Space in front of a full window: with two bytes of link for each byte, a quarter of the window
/// makes three and three quarters of it in all.
fn piece_bytes(window_bits: u8) -> usize {
    1 << (window_bits - 2)
}

/// Plaintext bytes of a block, as in `standalone`.
const BLOCK_BYTES: usize = 24 << 10;

#[cfg(test)]
mod tests;
