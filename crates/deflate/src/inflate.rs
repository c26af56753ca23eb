//! Decompresses one message at a time (RFC 7692 §7.2.2) within a limit of output bytes.
//! Pieces of compressed payload → plaintext appended to a buffer, or `Corrupt`, or `TooLarge`.
//! Uses zlib-rs; keeps nothing from one message to the next, other than in a window of the caller; knows nothing of frames.
//! Changed here: limits, BFINAL handling, output growth. Encoding is `standalone`.

mod sender_window;

use std::fmt;

use zlib_rs::{Inflate, InflateFlush, Status};

pub use self::sender_window::SenderWindow;
use crate::FLUSH_TAIL;

/// One reusable raw DEFLATE decoder with a 32 KiB window, about 48 KB; one serves a whole shard.
///
/// Per message that stands alone (`client_no_context_takeover`, RFC 7692 §7.1.1.2): [`reset`](Self::reset), any number
/// of [`push`](Self::push), then [`finish`](Self::finish). A reset drops all state. Messages of a sender with context
/// takeover are decoded with [`message`](Self::message).
pub struct Inflater {
    inflate: Inflate,
    /// The last block had BFINAL=1 and `inflate` takes no more until it is restarted.
    ended: bool,
    final_blocks: u64,
    /// Bytes of the message before the restarted stream.
    bytes_in: u64,
}

impl Inflater {
    /// A decoder ready for its first message.
    pub fn new() -> Self {
        let inflate = Inflate::new(false, WINDOW_BITS);
        Self { inflate, ended: false, final_blocks: 0, bytes_in: 0 }
    }

    /// Starts a message and drops the state of the one before. Allocates nothing.
    pub fn reset(&mut self) {
        // This resets zlib-rs to its default configuration, which has the 15 window bits of `new`.
        self.inflate.reset(false);
        self.ended = false;
        self.final_blocks = 0;
        self.bytes_in = 0;
    }

    /// Decodes one whole message of a sender with context takeover into `out`, which must be empty, and adds its
    /// plaintext to `window`, to which the message may refer (RFC 7692 §7.2.2).
    ///
    /// The message costs a copy of the window into the decoder, besides its own bytes.
    ///
    /// # Errors
    /// As [`push`](Self::push) and [`finish`](Self::finish); `window` is unchanged then.
    pub fn message(
        &mut self,
        payload: &[u8],
        window: &mut SenderWindow,
        out: &mut Vec<u8>,
        bytes_max: usize,
    ) -> Result<(), InflateError> {
        self.reset();
        self.load(window.parts())?;
        self.push_after(window.parts(), payload, out, bytes_max)?;
        self.finish(out, bytes_max)?;
        window.append(out);
        Ok(())
    }

    /// Appends the plaintext of the next `piece` to `out`, which must hold nothing but this message.
    ///
    /// `out` never gets longer than `bytes_max`, nor does its capacity grow beyond `bytes_max + 1`.
    ///
    /// # Errors
    /// `Corrupt` when the bytes are not DEFLATE (RFC 1951 §3.2), `TooLarge` at the first byte
    /// beyond `bytes_max`. After an error call only `reset`.
    pub fn push(
        &mut self,
        piece: &[u8],
        out: &mut Vec<u8>,
        bytes_max: usize,
    ) -> Result<(), InflateError> {
        self.push_after([&[]; 2], piece, out, bytes_max)
    }

    /// Inflates as [`push`](Self::push) does, for a message that comes after the bytes of `window`.
    fn push_after(
        &mut self,
        window: [&[u8]; 2],
        piece: &[u8],
        out: &mut Vec<u8>,
        bytes_max: usize,
    ) -> Result<(), InflateError> {
        let mut rest = piece;
        while !rest.is_empty() {
            if self.ended {
                self.restart(window, out)?;
            }
            let read = self.decode(rest, out, bytes_max)?;
            rest = &rest[read..];
        }
        Ok(())
    }

    /// Ends the message: appends the flush tail that the sender cut off (RFC 7692 §7.2.2).
    ///
    /// # Errors
    /// As [`push`](Self::push); also `Corrupt` when the payload stops in the middle of a block.
    pub fn finish(&mut self, out: &mut Vec<u8>, bytes_max: usize) -> Result<(), InflateError> {
        let untouched = self.inflate.total_in() == 0 && self.final_blocks == 0;
        if self.ended || untouched {
            // zlib makes two forms that its users send, although the RFC asks for a 00 byte: a
            // finished stream without it (RFC 7692 §7.2.3.4), and nothing at all for an empty
            // message (§7.2.3.6).
            return Ok(());
        }
        // Valid if the tail ends the last block, which may be final itself, and nothing else.
        let read = self.decode(&TAIL_AND_PROBE, out, bytes_max)?;
        if self.ended && [FLUSH_TAIL.len(), TAIL_AND_PROBE.len()].contains(&read) {
            return Ok(());
        }
        // If the payload stops inside a block, the decoder reads the tail or the probe as data.
        Err(InflateError::Corrupt)
    }

    /// Continues after a block with BFINAL=1 (RFC 7692 §7.2.3.4) with the same window.
    fn restart(&mut self, window: [&[u8]; 2], out: &[u8]) -> Result<(), InflateError> {
        self.final_blocks += 1;
        self.bytes_in += self.inflate.total_in();
        if self.final_blocks > FINAL_BLOCKS_FREE + self.bytes_in / FINAL_BLOCK_BYTES {
            return Err(InflateError::Corrupt);
        }
        self.inflate.reset(false);
        self.ended = false;
        self.load(window)?;
        self.load([&out[out.len().saturating_sub(1 << WINDOW_BITS)..]])
    }

    /// Appends `parts` to the window of the decoder, which is between two blocks.
    fn load<const N: usize>(&mut self, parts: [&[u8]; N]) -> Result<(), InflateError> {
        let mut parts = parts.into_iter().filter(|part| !part.is_empty());
        parts.try_for_each(|part| match self.inflate.set_dictionary(part) {
            Ok(_) => Ok(()),
            Err(_) => Err(InflateError::Corrupt),
        })
    }

    /// Decodes until `input` is used up or a final block has ended; returns the bytes read.
    fn decode(
        &mut self,
        input: &[u8],
        out: &mut Vec<u8>,
        bytes_max: usize,
    ) -> Result<usize, InflateError> {
        let mut read = 0;
        let mut room = input.len().saturating_mul(4).clamp(ROOM_BYTES_MIN, ROOM_BYTES_MAX);
        loop {
            let start = out.len();
            grow(out, room, bytes_max);
            let read_before = self.inflate.total_in();
            let written_before = self.inflate.total_out();
            let status =
                self.inflate.decompress(&input[read..], &mut out[start..], InflateFlush::NoFlush);
            read += (self.inflate.total_in() - read_before) as usize;
            let end = start + (self.inflate.total_out() - written_before) as usize;
            let full = end == out.len();
            out.truncate(end.min(bytes_max));
            if end > bytes_max {
                // The limit was exceeded first; the same call may have found corrupt data after it.
                return Err(InflateError::TooLarge { bytes_max });
            }
            let status = status.map_err(|_| InflateError::Corrupt)?;
            if status == Status::StreamEnd {
                self.ended = true;
                return Ok(read);
            }
            if !full {
                return Ok(read);
            }
            room = room.saturating_mul(2).min(ROOM_BYTES_MAX);
        }
    }
}

impl Default for Inflater {
    fn default() -> Self {
        Self::new()
    }
}

/// The reason why a compressed message was not delivered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum InflateError {
    /// The payload is not DEFLATE (RFC 1951) or ends in the middle of a block.
    Corrupt,
    /// The plaintext would be longer than `bytes_max` bytes.
    TooLarge { bytes_max: usize },
}

impl fmt::Display for InflateError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Corrupt => f.write_str("the compressed payload is not valid DEFLATE data"),
            Self::TooLarge { bytes_max } => {
                write!(f, "the message inflates to more than {bytes_max} bytes")
            }
        }
    }
}

impl std::error::Error for InflateError {}

/// Lengthens `out` by up to `room` zero bytes, but never beyond one byte more than `bytes_max`.
///
/// The additional byte detects an output that is too long.
fn grow(out: &mut Vec<u8>, room: usize, bytes_max: usize) {
    let len_max = bytes_max.saturating_add(1).max(out.len());
    let len = out.len().saturating_add(room).min(len_max);
    if len > out.capacity() {
        let capacity = out.capacity().saturating_mul(2).clamp(len, len_max);
        out.reserve_exact(capacity - out.len());
    }
    out.resize(len, 0);
}

const WINDOW_BITS: u8 = 15;

/// The cut-off tail, then an empty final block, at whose end a decoder between two blocks stops.
const TAIL_AND_PROBE: [u8; 9] = {
    let [a, b, c, d] = FLUSH_TAIL;
    [a, b, c, d, 0x01, a, b, c, d]
};

/// Blocks with BFINAL=1 that one message may hold, and one more per number of bytes. Each costs a restart with a
/// window of up to 32 KiB, and as much of earlier messages, some µs, for two bytes of input; real senders make one per
/// message or per flush.
const FINAL_BLOCKS_FREE: u64 = 16;
const FINAL_BLOCK_BYTES: u64 = 256;

/// Output grows in steps of four times the input within these bounds.
const ROOM_BYTES_MIN: usize = 256;
const ROOM_BYTES_MAX: usize = 65_536;

#[cfg(test)]
mod tests;
