//! Compresses one message so that it stands alone (RFC 7692 §7.2.1), without earlier messages.
//! Plaintext → DEFLATE blocks with the sync-flush tail cut off; BFINAL is never set.
//! Uses the encoder's own modules; never allocates per message beyond growing its buffers and `out`.
//! Changed here: how a message is cut into blocks. The content of a block is `matcher` and `block`.

use crate::bits::BitWriter;
use crate::block::{Histogram, Plan, room, write_flush};
use crate::level::Effort;
use crate::matcher::Parser;
use crate::token::{Gaps, Sequences};
use crate::window::Window;

/// One reusable raw DEFLATE encoder with a 32 KiB window, at most 400 KB; one serves a whole shard.
pub struct Compressor {
    window: Window,
    sequences: Sequences,
    effort: Effort,
}

impl Compressor {
    /// An encoder of `level` 1 (fastest) to 9 (smallest); other values are limited to that range.
    pub fn new(level: u8) -> Self {
        let window = Window::new(TABLE_BITS);
        let sequences = Sequences::default();
        Self { window, sequences, effort: Effort::of(level) }
    }

    /// Appends `message` to `out` as the payload of one message (RFC 7692 §7.2.1).
    ///
    /// Any decoder can decode it in any state: it refers to nothing before itself, its distances are
    /// smaller than `message`, and it ends on a byte boundary with BFINAL=0.
    pub fn standalone(&mut self, message: &[u8], out: &mut Vec<u8>) {
        self.standalone_within(15, message, out);
    }

    /// Appends `message` as [`standalone`](Self::standalone) does, for a decoder that agreed to a window of
    /// `window_bits` (RFC 7692 §7.1.2.1), 8 to 15: no distance is larger than `1 << window_bits`.
    pub fn standalone_within(&mut self, window_bits: u8, message: &[u8], out: &mut Vec<u8>) {
        self.window.reset(message.len());
        let start = out.len();
        out.resize(start + room(message.len(), BLOCK_BYTES), 0);
        let mut writer = BitWriter::new(&mut out[start..]);
        for block in message.chunks(BLOCK_BYTES) {
            self.block(window_bits, block, &mut writer);
        }
        write_flush(&mut writer);
        let len = writer.finish();
        out.truncate(start + len);
    }

    fn block(&mut self, window_bits: u8, block: &[u8], writer: &mut BitWriter<'_>) {
        self.window.slide(self.window.len().saturating_sub(WINDOW_BYTES));
        let start = self.window.len();
        self.window.append(block);
        self.sequences.clear();
        let parser = Parser::new(&self.window, 0, start, self.effort).within(window_bits);
        parser.parse(start + block.len(), 0, &mut self.sequences);
        let sequences = self.sequences.end();
        let plan = Plan::new(&Histogram::new(sequences, block), block.len());
        plan.write(sequences, block, &Gaps::NONE, writer);
    }
}

const TABLE_BITS: u32 = 15;
const WINDOW_BYTES: usize = 1 << 15;

/// A longer block has codes that fit worse; a shorter one more headers.
const BLOCK_BYTES: usize = 24 << 10;

#[cfg(test)]
mod tests;
