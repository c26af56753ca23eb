//! Writes frames (RFC 6455 §5.2): one message, one frame, fin = 1, unmasked by a server and masked by a client.
//! Opcode, RSV1 and payload → header and payload, contiguous in one buffer.
//! Uses nothing; never compresses (the payload comes compressed when RSV1 is set) and never sends.
//! Changed here: how a frame is laid out. Reading a header is `header`.

use crate::mask;

/// Appends one whole frame to `out`. `rsv1` says whether `payload` is a compressed message (RFC 7692 §6.1c, §6.1d).
///
/// Allocates at most once. A control frame's payload is at most [`CONTROL_BYTES_MAX`] bytes (RFC 6455 §5.5a), and its
/// `rsv1` is false (RFC 7692 §6.1a).
pub fn encode(opcode: Opcode, rsv1: bool, payload: &[u8], out: &mut Vec<u8>) {
    debug_assert!(!opcode.is_control() || !rsv1 && payload.len() <= CONTROL_BYTES_MAX);
    out.reserve(HEADER_BYTES_MAX + payload.len());
    let (header, header_bytes) = header(opcode, rsv1, payload.len());
    out.extend_from_slice(&header[..header_bytes]);
    out.extend_from_slice(payload);
}

/// Appends one whole frame of a client to `out`, masked with `key`, which must be a fresh one that the application that
/// chose `payload` cannot foresee (RFC 6455 §5.3, §10.3). The other parameters are those of [`encode`].
pub fn encode_masked(opcode: Opcode, rsv1: bool, payload: &[u8], key: [u8; 4], out: &mut Vec<u8>) {
    debug_assert!(!opcode.is_control() || !rsv1 && payload.len() <= CONTROL_BYTES_MAX);
    out.reserve(HEADER_BYTES_MAX + key.len() + payload.len());
    let (mut header, header_bytes) = header(opcode, rsv1, payload.len());
    header[1] |= MASK;
    out.extend_from_slice(&header[..header_bytes]);
    out.extend_from_slice(&key);
    mask::unmask_onto(payload, key, out);
}

/// Writes the header of a payload that is in `out` already, from `payload_at` on, and returns where the frame begins.
/// At least [`HEADER_BYTES_MAX`] bytes before the payload are free for it; the other parameters are those of
/// [`encode`].
pub fn encode_before(opcode: Opcode, rsv1: bool, payload_at: usize, out: &mut [u8]) -> usize {
    let (header, header_bytes) = header(opcode, rsv1, out.len() - payload_at);
    let start = payload_at - header_bytes;
    out[start..payload_at].copy_from_slice(&header[..header_bytes]);
    start
}

/// The header of a payload of this many bytes, and the header's length.
///
/// It has FIN and the opcode of its message (RFC 6455 §6.1b, §6.1c, §6.1d), no mask (RFC 6455 §5.1b), RSV1 only for an
/// extension (RFC 6455 §5.2a), and the shortest form of the length (RFC 6455 §5.2e).
#[inline]
pub(crate) fn header(
    opcode: Opcode,
    rsv1: bool,
    payload_bytes: usize,
) -> ([u8; HEADER_BYTES_MAX], usize) {
    let mut header = [0; HEADER_BYTES_MAX];
    header[0] = FIN | if rsv1 { RSV1 } else { 0 } | opcode as u8;
    match payload_bytes {
        len @ 0..=125 => {
            header[1] = len as u8;
            (header, 2)
        }
        len @ 126..=0xffff => {
            header[1] = LENGTH_16;
            header[2..4].copy_from_slice(&(len as u16).to_be_bytes());
            (header, 4)
        }
        len => {
            header[1] = LENGTH_64;
            header[2..].copy_from_slice(&(len as u64).to_be_bytes());
            (header, HEADER_BYTES_MAX)
        }
    }
}

/// Appends a close frame (RFC 6455 §5.5.1a); `reason` is cut at 123 bytes, on a character boundary.
///
/// 1005, 1006 and 1015 must not be sent (RFC 6455 §7.4.1a); they give a close frame without payload.
pub fn encode_close(code: u16, reason: &str, out: &mut Vec<u8>) {
    if matches!(code, 1005 | 1006 | 1015) {
        return encode(Opcode::Close, false, &[], out);
    }
    let reason = &reason[..reason.floor_char_boundary(CONTROL_BYTES_MAX - 2)];
    let mut payload = [0; CONTROL_BYTES_MAX];
    payload[..2].copy_from_slice(&code.to_be_bytes());
    payload[2..2 + reason.len()].copy_from_slice(reason.as_bytes());
    encode(Opcode::Close, false, &payload[..2 + reason.len()], out);
}

/// Whether a frame that [`encode`] made holds a compressed message (RFC 7692 §6).
pub fn is_compressed(frame: &[u8]) -> bool {
    frame.first().is_some_and(|head| head & RSV1 != 0)
}

/// The opcode of a frame that [`encode`] made.
pub fn opcode(frame: &[u8]) -> Option<Opcode> {
    frame.first().and_then(|head| Opcode::of(head & OPCODE))
}

/// The payload of a frame that [`encode`] made.
pub fn payload(frame: &[u8]) -> &[u8] {
    let header_bytes = match frame.get(1) {
        Some(&LENGTH_16) => 4,
        Some(&LENGTH_64) => 10,
        _ => 2,
    };
    frame.get(header_bytes..).unwrap_or_default()
}

/// The type of a frame (RFC 6455 §5.2); the values are those on the wire.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum Opcode {
    Continuation = 0x0,
    Text = 0x1,
    Binary = 0x2,
    Close = 0x8,
    Ping = 0x9,
    Pong = 0xa,
}

impl Opcode {
    /// Whether frames with this opcode may occur between the fragments of a message (RFC 6455 §5.5).
    pub fn is_control(self) -> bool {
        self as u8 & 0x8 != 0
    }

    /// The opcode of a header's low four bits, unless reserved.
    pub(crate) fn of(nibble: u8) -> Option<Self> {
        match nibble {
            0x0 => Some(Self::Continuation),
            0x1 => Some(Self::Text),
            0x2 => Some(Self::Binary),
            0x8 => Some(Self::Close),
            0x9 => Some(Self::Ping),
            0xa => Some(Self::Pong),
            _ => None,
        }
    }
}

/// The longest header of an unmasked frame, in bytes.
pub const HEADER_BYTES_MAX: usize = 10;

/// The longest payload of a control frame, in bytes (RFC 6455 §5.5).
pub const CONTROL_BYTES_MAX: usize = 125;

// The first two bytes of a frame (RFC 6455 §5.2).
pub(crate) const FIN: u8 = 0x80;
pub(crate) const RSV1: u8 = 0x40;
pub(crate) const RSV2_RSV3: u8 = 0x30;
pub(crate) const OPCODE: u8 = 0x0f;
pub(crate) const MASK: u8 = 0x80;
pub(crate) const LENGTH_7: u8 = 0x7f;
pub(crate) const LENGTH_16: u8 = 126;
pub(crate) const LENGTH_64: u8 = 127;

#[cfg(test)]
mod tests;
