//! Making frames of messages: raw, or compressed so that many connections can share the bytes (RFC 7692 §7.2.1).
//! In: a message, and whether its receivers take compressed ones → out: one whole frame.
//! Uses `ws` for the header and `deflate` for the body; knows no connection.
//! Changed here: when compressing pays. Which connection gets which frame lives in the application.

use fanwire_deflate::Compressor;
use fanwire_ws::{Opcode, frame};

/// One shard's frame maker; its buffers are used again for each message.
pub struct Framer {
    compressor: Compressor,
    compression_min_bytes: usize,
    compressed: Vec<u8>,
    frame: Vec<u8>,
}

impl Framer {
    pub(super) fn new(level: u8, compression_min_bytes: usize) -> Self {
        Self {
            compressor: Compressor::new(level),
            compression_min_bytes,
            compressed: Vec::new(),
            frame: Vec::new(),
        }
    }

    /// The frame of `message`, valid until the next call; compressed only if its receivers can take that. A message that is small, or does not shrink, goes out raw, which
    /// every receiver accepts: compression is chosen per message (RFC 7692 §6).
    pub fn frame(&mut self, opcode: Opcode, may_compress: bool, message: &[u8]) -> &[u8] {
        self.frame.clear();
        self.frame.shrink_to(KEPT_BYTES);
        if may_compress && message.len() >= self.compression_min_bytes {
            self.compressed.clear();
            self.compressed.shrink_to(KEPT_BYTES);
            self.compressor.standalone(message, &mut self.compressed);
            if self.compressed.len() < message.len() {
                frame::encode(opcode, true, &self.compressed, &mut self.frame);
                return &self.frame;
            }
        }
        frame::encode(opcode, false, message, &mut self.frame);
        &self.frame
    }
}

/// A rare huge message does not leave its buffer behind.
const KEPT_BYTES: usize = 256 * 1024;

#[cfg(test)]
mod tests;
