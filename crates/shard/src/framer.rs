//! Makes frames of messages: raw, or compressed so that many connections can share the bytes (RFC 7692 §7.2.1).
//! In: a message or its payload, and whether its receivers take compressed ones → out: one whole frame.
//! Uses `ws` for the header and `deflate` for the body; knows no connection.
//! Changed here: which messages are compressed. The application decides which connection gets which frame.

use fanwire_deflate::{Compressor, Dedicated, FLUSH_TAIL, Scratch, write_uncompressed};
use fanwire_ws::{Opcode, frame};

use super::transport::Transport;

/// The frame encoder of one shard; its buffers are used again for each message.
pub struct Framer {
    compressor: Compressor,
    scratch: Scratch,
    compression_min_bytes: usize,
    compressed: Vec<u8>,
    frame: Vec<u8>,
    plaintext: Vec<u8>,
}

impl Framer {
    pub(super) fn new(level: u8, compression_min_bytes: usize) -> Self {
        Self {
            compressor: Compressor::new(level),
            scratch: Scratch::default(),
            compression_min_bytes,
            compressed: Vec::new(),
            frame: Vec::new(),
            plaintext: Vec::new(),
        }
    }

    /// Whether a message is long enough to be compressed.
    pub fn compresses(&self, message: &[u8]) -> bool {
        message.len() >= self.compression_min_bytes
    }

    /// Whether a message to one connection is short enough to be compressed: the shard serves no other connection
    /// during that time.
    pub(super) fn compresses_for_one(&self, message: &[u8]) -> bool {
        self.compresses(message) && message.len() <= FOR_ONE_BYTES_MAX
    }

    /// The frame of `message`, valid until the next call; compressed only if `may_compress`. A message that is small,
    /// or does not shrink, is sent raw, which every receiver accepts: compression is chosen per message (RFC 7692 §6).
    pub fn frame(&mut self, opcode: Opcode, may_compress: bool, message: &[u8]) -> &[u8] {
        if may_compress && self.compresses(message) {
            self.clear();
            self.compressor.standalone(message, &mut self.compressed);
            if self.compressed.len() < message.len() {
                return self.header(opcode);
            }
        }
        self.clear();
        frame::encode(opcode, false, message, &mut self.frame);
        &self.frame
    }

    /// The bytes of `message` in a response body, valid until the next call.
    pub fn in_body(&mut self, transport: Transport, is_binary: bool, message: &[u8]) -> &[u8] {
        self.clear();
        transport.encode(is_binary, message, &mut self.frame);
        &self.frame
    }

    /// The bytes of `message` in a compressed stream, valid until the next call; without compression if it is short or
    /// not `may_compress`.
    pub fn in_stream(
        &mut self,
        transport: Transport,
        is_binary: bool,
        may_compress: bool,
        message: &[u8],
    ) -> &[u8] {
        self.clear();
        transport.encode(is_binary, message, &mut self.plaintext);
        if may_compress && self.compresses(message) {
            self.compressor.standalone(&self.plaintext, &mut self.frame);
            self.frame.extend_from_slice(&FLUSH_TAIL);
        } else {
            write_uncompressed(&self.plaintext, &mut self.frame);
        }
        &self.frame
    }

    /// The content of the result of [`in_stream`](Self::in_stream): the message and the bytes around it.
    pub(super) fn plaintext(&self) -> &[u8] {
        &self.plaintext
    }

    /// The frame of `message` in the context of `dedicated`, which then contains the message, whatever its size.
    pub(super) fn dedicated(
        &mut self,
        opcode: Opcode,
        dedicated: &mut Dedicated,
        message: &[u8],
    ) -> &[u8] {
        self.clear();
        dedicated.compress(message, &mut self.scratch, &mut self.compressed);
        self.header(opcode)
    }

    fn clear(&mut self) {
        for buffer in [&mut self.compressed, &mut self.frame, &mut self.plaintext] {
            buffer.clear();
            buffer.shrink_to(KEPT_BYTES);
        }
    }

    fn header(&mut self, opcode: Opcode) -> &[u8] {
        frame::encode(opcode, true, &self.compressed, &mut self.frame);
        &self.frame
    }
}

/// The presence of 10,000 members is 1 MB and takes 15 ms to compress, more than twice as long as the rest of the
/// reply; no delivery leaves the shard during that time. This limit is a quarter of it. Larger messages are sent raw.
const FOR_ONE_BYTES_MAX: usize = 256 * 1024;

/// The buffer shrinks to this size after a rare huge message.
const KEPT_BYTES: usize = 256 * 1024;

#[cfg(test)]
mod tests;
