//! One connection as bytes for another program; its socket goes with them.
//! In: the parts of a connection that it needs to go on → out: a record of version 1, and back.
//! Pure. Never: a socket, the history of compression, which begins again; what the application's part means.
//! Changed here: the fields, with a new version. Who makes and takes records is `turn::frozen`.

use std::net::SocketAddr;

use fanwire_deflate::Checksum;
use fanwire_ws::{Compression, InboundCompression};

use crate::transport::Transport;

/// An open connection of a shard.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct SavedConnection {
    pub(crate) transport: Transport,
    pub(crate) is_binary: bool,
    pub(crate) compression: Compression,
    /// Agreed compression of the client's messages.
    pub(crate) inbound: InboundCompression,
    /// The plaintext that the client's next message may refer to.
    pub(crate) client_window: Vec<u8>,
    /// Address of the peer, if that of the socket is another one.
    pub(crate) address: Option<SocketAddr>,
    /// The kernel's send buffer has a small limit.
    pub(crate) has_small_buffer: bool,
    /// Bytes that the reader receives first: what has begun to arrive, then what was read and not executed.
    pub(crate) input: Vec<u8>,
    /// The rest of the frame that was begun to be written.
    pub(crate) begun: Vec<u8>,
    /// Whole frames behind it.
    pub(crate) queued: Vec<u8>,
    /// Of a response body that is compressed as a whole.
    pub(crate) stream: Option<StreamState>,
    /// The application's own record.
    pub(crate) application: Vec<u8>,
}

/// The plaintext of a compressed response body so far.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct StreamState {
    pub(crate) checksum: Checksum,
    pub(crate) plaintext_bytes: u64,
}

impl SavedConnection {
    /// Appends the record behind its length.
    pub(crate) fn append(&self, out: &mut Vec<u8>) {
        let start = out.len();
        out.extend([0; LENGTH_BYTES]);
        self.encode(out);
        let length = length_of(&out[start + LENGTH_BYTES..]);
        out[start..start + LENGTH_BYTES].copy_from_slice(&length);
    }

    fn encode(&self, out: &mut Vec<u8>) {
        out.extend([CONNECTION_VERSION, self.transport as u8, self.is_binary.into()]);
        out.extend([compression_byte(self.compression), inbound_byte(self.inbound)]);
        put_bytes(&self.client_window, out);
        let address = self.address.map_or_else(String::new, |address| address.to_string());
        put_bytes(address.as_bytes(), out);
        out.push(self.has_small_buffer.into());
        put_bytes(&self.input, out);
        put_bytes(&self.begun, out);
        put_bytes(&self.queued, out);
        put_stream(self.stream, out);
        put_bytes(&self.application, out);
    }

    /// The next of records that were [appended](Self::append); `None` if it is of another version, or none is there. `records` are then
    /// those behind it.
    pub(crate) fn take_first(records: &mut &[u8]) -> Option<Self> {
        let mut fields = RecordFields(records);
        let record = fields.bytes()?;
        *records = fields.0;
        Self::decode(record)
    }

    /// The record in these bytes; `None` if they are of another version, or no record.
    pub(crate) fn decode(bytes: &[u8]) -> Option<Self> {
        let mut fields = RecordFields(bytes);
        if fields.byte()? != CONNECTION_VERSION {
            return None;
        }
        let record = Self {
            transport: *Transport::ALL.get(usize::from(fields.byte()?))?,
            is_binary: fields.flag()?,
            compression: compression(fields.byte()?)?,
            inbound: inbound(fields.byte()?)?,
            client_window: fields.bytes()?.to_vec(),
            address: fields.address()?,
            has_small_buffer: fields.flag()?,
            input: fields.bytes()?.to_vec(),
            begun: fields.bytes()?.to_vec(),
            queued: fields.bytes()?.to_vec(),
            stream: fields.stream()?,
            application: fields.bytes()?.to_vec(),
        };
        fields.0.is_empty().then_some(record)
    }
}

fn put_bytes(bytes: &[u8], out: &mut Vec<u8>) {
    out.extend(length_of(bytes));
    out.extend_from_slice(bytes);
}

fn length_of(bytes: &[u8]) -> [u8; LENGTH_BYTES] {
    let length = u32::try_from(bytes.len()).expect("a part of a connection is far below 4 GiB");
    length.to_le_bytes()
}

fn put_stream(stream: Option<StreamState>, out: &mut Vec<u8>) {
    let Some(StreamState { checksum, plaintext_bytes }) = stream else { return out.push(0) };
    match checksum {
        Checksum::Crc32(sum) => {
            out.push(1);
            out.extend(sum.to_le_bytes());
        }
        Checksum::Adler32(sum) => {
            out.push(2);
            out.extend(sum.to_le_bytes());
        }
    }
    out.extend(plaintext_bytes.to_le_bytes());
}

/// The kind in the high bits, the window in the low ones.
fn compression_byte(compression: Compression) -> u8 {
    match compression {
        Compression::Raw => 0,
        Compression::Standalone { window_bits } => 1 << 4 | window_bits,
        Compression::Context { window_bits } => 2 << 4 | window_bits,
        Compression::Dedicated { window_bits } => 3 << 4 | window_bits,
    }
}

fn compression(byte: u8) -> Option<Compression> {
    let window_bits = byte & 0xf;
    match byte >> 4 {
        0 if window_bits == 0 => Some(Compression::Raw),
        1 if window_bits >= 8 => Some(Compression::Standalone { window_bits }),
        2 if window_bits >= 8 => Some(Compression::Context { window_bits }),
        3 if window_bits >= 8 => Some(Compression::Dedicated { window_bits }),
        _ => None,
    }
}

/// As [`compression_byte`], for the client's messages.
fn inbound_byte(inbound: InboundCompression) -> u8 {
    match inbound {
        InboundCompression::Raw => 0,
        InboundCompression::Standalone => 1 << 4,
        InboundCompression::Takeover { window_bits } => 2 << 4 | window_bits,
    }
}

fn inbound(byte: u8) -> Option<InboundCompression> {
    let window_bits = byte & 0xf;
    match byte >> 4 {
        0 if window_bits == 0 => Some(InboundCompression::Raw),
        1 if window_bits == 0 => Some(InboundCompression::Standalone),
        2 if window_bits >= 8 => Some(InboundCompression::Takeover { window_bits }),
        _ => None,
    }
}

/// The fields that were not read yet.
struct RecordFields<'a>(&'a [u8]);

impl<'a> RecordFields<'a> {
    fn byte(&mut self) -> Option<u8> {
        self.array::<1>().map(|[byte]| byte)
    }

    fn flag(&mut self) -> Option<bool> {
        match self.byte()? {
            0 => Some(false),
            1 => Some(true),
            _ => None,
        }
    }

    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (array, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(*array)
    }

    fn bytes(&mut self) -> Option<&'a [u8]> {
        let length = u32::from_le_bytes(self.array()?) as usize;
        let (bytes, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(bytes)
    }

    fn address(&mut self) -> Option<Option<SocketAddr>> {
        match str::from_utf8(self.bytes()?).ok()? {
            "" => Some(None),
            text => text.parse().ok().map(Some),
        }
    }

    fn stream(&mut self) -> Option<Option<StreamState>> {
        let kind = self.byte()?;
        if kind == 0 {
            return Some(None);
        }
        let sum = u32::from_le_bytes(self.array()?);
        let checksum = match kind {
            1 => Checksum::Crc32(sum),
            2 => Checksum::Adler32(sum),
            _ => return None,
        };
        let plaintext_bytes = u64::from_le_bytes(self.array()?);
        Some(Some(StreamState { checksum, plaintext_bytes }))
    }
}

/// The version of the record. A program that takes over names its own first.
pub const CONNECTION_VERSION: u8 = 1;

/// Before each field of bytes, and before each record.
const LENGTH_BYTES: usize = 4;

#[cfg(test)]
mod tests;
