//! WebSocket frames as a client sees them (RFC 6455 §5.2).
//! In: the front of a read buffer → out: one unmasked frame borrowed from it; or a payload → a masked frame.
//! Pure. Never touches a socket and never looks into a payload.
//! Changed here: what a frame looks like on the wire; what frames mean lives in `connection`.

use anyhow::{Result, bail, ensure};

/// One whole frame from the server; the payload is borrowed from the read buffer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ServerFrame<'a> {
    pub opcode: u8,
    pub rsv1: bool,
    pub payload: &'a [u8],
}

pub const TEXT: u8 = 1;
pub const BINARY: u8 = 2;
pub const CLOSE: u8 = 8;
pub const PING: u8 = 9;
pub const PONG: u8 = 10;

/// The frame at the front of `bytes` and its whole length, `None` when more bytes are needed.
///
/// # Errors
/// A masked or fragmented frame, a reserved bit, or more than 64 MiB: the server has no reason to send one.
pub fn front(bytes: &[u8]) -> Result<Option<(ServerFrame<'_>, usize)>> {
    let [first, second, ..] = *bytes else { return Ok(None) };
    if first & 0x80 == 0 || first & 0x30 != 0 || second & 0x80 != 0 {
        bail!(
            "unexpected frame header {first:02x} {second:02x}: fragmented, reserved bits or masked"
        );
    }
    let (header, length): (usize, usize) = match second {
        126 if bytes.len() < 4 => return Ok(None),
        126 => (4, usize::from(u16::from_be_bytes([bytes[2], bytes[3]]))),
        127 if bytes.len() < 10 => return Ok(None),
        127 => {
            let length = u64::from_be_bytes(bytes[2..10].try_into().expect("eight bytes"));
            (10, usize::try_from(length)?)
        }
        length => (2, usize::from(length)),
    };
    ensure!(length <= PAYLOAD_BYTES_MAX, "a frame of {length} bytes");
    let Some(payload) = bytes.get(header..header.saturating_add(length)) else { return Ok(None) };
    let frame = ServerFrame { opcode: first & 0x0f, rsv1: first & 0x40 != 0, payload };
    Ok(Some((frame, header + length)))
}

/// Appends one final frame, masked as RFC 6455 §5.3 wants it from a client (with a fixed key: this is no browser).
pub fn encode_masked(opcode: u8, payload: &[u8], out: &mut Vec<u8>) {
    out.push(0x80 | opcode);
    push_length(0x80, payload.len(), out);
    out.extend_from_slice(&MASK);
    out.extend(payload.iter().zip(MASK.iter().cycle()).map(|(byte, mask)| byte ^ mask));
}

/// Appends one final unmasked text frame, as a server sends it. The bare loop sends such frames.
pub fn encode_text(payload: &[u8], out: &mut Vec<u8>) {
    out.push(0x80 | TEXT);
    push_length(0, payload.len(), out);
    out.extend_from_slice(payload);
}

fn push_length(mask_bit: u8, length: usize, out: &mut Vec<u8>) {
    match length {
        0..=125 => out.push(mask_bit | length as u8),
        126..=0xffff => {
            out.push(mask_bit | 126);
            out.extend_from_slice(&(length as u16).to_be_bytes());
        }
        _ => {
            out.push(mask_bit | 127);
            out.extend_from_slice(&(length as u64).to_be_bytes());
        }
    }
}

/// Larger frames and messages are an error: a server must not fill the generator's memory.
pub const PAYLOAD_BYTES_MAX: usize = 64 << 20;
const MASK: [u8; 4] = [0x37, 0xfa, 0x21, 0x3d];

#[cfg(test)]
mod tests;
