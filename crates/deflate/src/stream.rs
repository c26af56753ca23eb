//! A body that is one compressed stream (RFC 1952, RFC 1950): its beginning, messages without compression, its end.
//! A coding → header and trailer; a message → DEFLATE blocks that end with a whole sync flush.
//! Pure; uses `bits` and `block`; allocates only where `out` grows.
//! Changed here: the bytes around the blocks. Compressed messages are `standalone` and `gap`, checksums `checksum`.

use crate::FLUSH_TAIL;
use crate::bits::{BitWriter, SLACK_BYTES};
use crate::block::{
    write_fixed, write_fixed_end, write_fixed_head, write_stored, write_sync_flush,
};
use crate::checksum::Checksum;

/// The format around the DEFLATE blocks of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Coding {
    /// `gzip` (RFC 1952).
    Gzip,
    /// `deflate`, which is zlib (RFC 1950; RFC 9110 §8.4.1.2).
    Deflate,
}

impl Coding {
    /// The name in `Accept-Encoding` and `Content-Encoding`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Gzip => "gzip",
            Self::Deflate => "deflate",
        }
    }

    /// The first bytes of a stream. The window is 32 KiB; a gzip file has no name, no time and an unknown system.
    pub const fn header(self) -> &'static [u8] {
        match self {
            Self::Gzip => &[0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 0xff],
            Self::Deflate => &[0x78, 0x9c],
        }
    }

    /// The checksum of no plaintext.
    pub const fn checksum(self) -> Checksum {
        match self {
            Self::Gzip => Checksum::Crc32(0),
            Self::Deflate => Checksum::Adler32(1),
        }
    }
}

/// The bytes around each message of a stream, as in `data: …\n\n`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Envelope {
    pub prefix: &'static [u8],
    pub suffix: &'static [u8],
}

impl Envelope {
    pub const NONE: Self = Self { prefix: &[], suffix: &[] };

    /// Bytes of plaintext around a message.
    pub const fn bytes(self) -> usize {
        self.prefix.len() + self.suffix.len()
    }
}

/// Appends the end of a stream whose plaintext has this checksum and number of bytes: an empty final block and the
/// trailer. The stream is behind a sync flush.
pub fn end_stream(checksum: Checksum, plaintext_bytes: u64, out: &mut Vec<u8>) {
    out.extend_from_slice(&FINAL_BLOCK);
    match checksum {
        Checksum::Crc32(sum) => {
            out.extend_from_slice(&sum.to_le_bytes());
            // Modulo 2³² (RFC 1952 §2.3.1).
            out.extend_from_slice(&(plaintext_bytes as u32).to_le_bytes());
        }
        Checksum::Adler32(sum) => out.extend_from_slice(&sum.to_be_bytes()),
    }
}

/// Appends `message` without compression, and a sync flush. It refers to nothing and takes a microsecond per ten kilobytes.
///
/// A short text is a block with the static codes, which take eight bits for ASCII and three and a half bytes less around
/// it; all else is stored.
pub fn write_uncompressed(message: &[u8], out: &mut Vec<u8>) {
    let start = out.len();
    out.resize(start + uncompressed_bytes_max(message.len()), 0);
    let mut writer = BitWriter::new(&mut out[start..]);
    if message.len() <= FIXED_BYTES_MAX && message.is_ascii() {
        write_fixed_head(&mut writer);
        write_fixed(message, &mut writer);
        write_fixed_end(&mut writer);
    } else {
        for block in message.chunks(STORED_BYTES_MAX) {
            write_stored(block, &mut writer);
        }
    }
    write_sync_flush(&mut writer);
    let len = writer.finish();
    out.truncate(start + len);
}

const fn uncompressed_bytes_max(bytes: usize) -> usize {
    // Head, alignment and length of each block; one for the static codes.
    bytes + (bytes / STORED_BYTES_MAX + 1) * 5 + 3 + FLUSH_TAIL.len() + SLACK_BYTES
}

/// An empty block with BFINAL=1 and the static codes.
const FINAL_BLOCK: [u8; 2] = [0b011, 0];

/// Longer messages are copied, because three bytes less would not be worth the time of the codes.
const FIXED_BYTES_MAX: usize = 256;

/// The largest stored block (RFC 1951 §3.2.4).
const STORED_BYTES_MAX: usize = u16::MAX as usize;

#[cfg(test)]
mod tests;
