//! Checks the payloads for a peer with context takeover (RFC 7692 §7.2.2), as the peer would decode them.
//! Payloads in the order of their queueing, and the expected plaintext → agreement, or the difference.
//! Uses zlib-rs, so nothing of our encoder but tables; about 50 KB per connection, for tests and for verify mode.
//! Changed here: what is a mismatch. The server decides what follows from one.

mod distances;

use std::fmt;

use zlib_rs::{Inflate, InflateFlush, Status};

use crate::FLUSH_TAIL;

/// A decoder that has read all compressed messages of one connection.
pub struct Shadow {
    inflate: Inflate,
    window_bits: u8,
    plaintext: Vec<u8>,
}

impl Shadow {
    /// Creates the window of a peer that agreed to `server_max_window_bits` of `window_bits` (8 to 15; others are
    /// limited to that range), at the beginning of its stream.
    pub fn new(window_bits: u8) -> Self {
        let window_bits = window_bits.clamp(8, 15);
        let inflate = Inflate::new(false, window_bits);
        Self { inflate, window_bits, plaintext: Vec::new() }
    }

    /// Decodes the payload of the next message with RSV1=1, without its flush tail, and compares.
    ///
    /// # Errors
    /// The reason why a peer could not decode the message. After an error further results are undefined.
    pub fn check(&mut self, payload: &[u8], expected: &[u8]) -> Result<(), Mismatch> {
        // One additional byte detects a message that is too long.
        self.plaintext.resize(expected.len() + 1, 0);
        let mut len = 0;
        for piece in [payload, &FLUSH_TAIL, &EMPTY_BLOCK] {
            len = self.decode(piece, len)?;
        }
        self.plaintext.truncate(len);
        if self.plaintext != expected {
            let pairs = self.plaintext.iter().zip(expected);
            return Err(Mismatch::Differs { at: pairs.take_while(|(a, b)| a == b).count() });
        }
        self.check_distances(payload)
    }

    /// Decodes `input` after the `len` bytes already in `plaintext`; returns the new length.
    fn decode(&mut self, input: &[u8], len: usize) -> Result<usize, Mismatch> {
        let read_before = self.inflate.total_in();
        let written_before = self.inflate.total_out();
        let out = &mut self.plaintext[len..];
        let status = self.inflate.decompress(input, out, InflateFlush::SyncFlush);
        let read = (self.inflate.total_in() - read_before) as usize;
        let len = len + (self.inflate.total_out() - written_before) as usize;
        match status {
            Err(_) => Err(Mismatch::Corrupt { at: len }),
            Ok(Status::StreamEnd) => Err(Mismatch::Final),
            Ok(_) if len == self.plaintext.len() || read < input.len() => {
                Err(Mismatch::Differs { at: len - 1 })
            }
            Ok(_) => Ok(len),
        }
    }

    /// zlib-rs has a window of 15 bits, whatever was agreed.
    fn check_distances(&self, payload: &[u8]) -> Result<(), Mismatch> {
        if self.window_bits == 15 {
            return Ok(());
        }
        let blocks = [payload, &FLUSH_TAIL].concat();
        match distances::largest(&blocks) {
            Some(distance) if distance <= 1 << self.window_bits => Ok(()),
            Some(distance) => Err(Mismatch::TooFar { distance }),
            None => Err(Mismatch::Corrupt { at: self.plaintext.len() }),
        }
    }
}

/// The reason why a peer would not get the intended message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Mismatch {
    /// After `at` bytes of plaintext the payload is not DEFLATE, or refers to bytes that were never sent.
    Corrupt { at: usize },
    /// A copy comes from farther back than the agreed window.
    TooFar { distance: usize },
    /// A block has BFINAL=1, after which some peers read no further.
    Final,
    /// The plaintext differs from byte `at` on, or one of the two ends there.
    Differs { at: usize },
}

impl fmt::Display for Mismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Corrupt { at } => {
                write!(f, "after {at} bytes of plaintext the payload is corrupt")
            }
            Self::TooFar { distance } => write!(f, "a copy comes from {distance} bytes back"),
            Self::Final => f.write_str("the payload has a final block"),
            Self::Differs { at } => write!(f, "the plaintext differs at byte {at}"),
        }
    }
}

impl std::error::Error for Mismatch {}

/// An empty stored block (RFC 1951 §3.2.4): no output if the decoder is between two blocks; an error or
/// plaintext if the payload ended inside a block.
const EMPTY_BLOCK: [u8; 5] = [0x00, 0x00, 0x00, 0xff, 0xff];

#[cfg(test)]
mod tests;
