//! Reads and checks the header of one frame (RFC 6455 §5.2, §5.4, §5.5; RFC 7692 §6), of a client or of a server.
//! A frame's first bytes, and what may come now → a `FrameHeader`, need of more, or a `Failure`.
//! Uses `frame`'s bit names; never touches the payload, never allocates.
//! Changed here: a rule about headers. The effect of a header is `reader`.

use crate::frame::{
    CONTROL_BYTES_MAX, FIN, LENGTH_7, LENGTH_16, LENGTH_64, MASK, OPCODE, RSV1, RSV2_RSV3,
};
use crate::{Failure, Opcode};

/// A header that obeys every rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FrameHeader {
    pub(crate) fin: bool,
    pub(crate) rsv1: bool,
    pub(crate) opcode: Opcode,
    /// Zeros in a frame of a server, which has no mask.
    pub(crate) mask: [u8; 4],
    pub(crate) payload_bytes: usize,
    /// The header's own length: 6..=14 with a mask, 2..=10 without.
    pub(crate) header_bytes: usize,
}

/// The frames that the connection accepts at this point.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Allowed {
    /// permessage-deflate was agreed on, so RSV1 has a meaning.
    pub(crate) rsv1: bool,
    /// A fragmented message is open and needs continuation frames.
    pub(crate) continuation: bool,
    /// Payload bytes that the open message may still grow by.
    pub(crate) payload_bytes: usize,
    /// The limit that `payload_bytes` comes from, for the failure's text.
    pub(crate) message_bytes_max: usize,
}

/// Reads a header from the front of `bytes`; `None` if it is not complete (RFC 6455 §6.2a, §10.7a).
///
/// Each rule is checked as soon as its byte is there and in the order of the bytes, so the same
/// stream fails with the same failure however it is split. `FROM_CLIENT`: the frame needs a mask, otherwise it must not
/// have one.
pub(crate) fn parse<const FROM_CLIENT: bool>(
    bytes: &[u8],
    allowed: Allowed,
) -> Result<Option<FrameHeader>, Failure> {
    let Some((&first, bytes)) = bytes.split_first() else { return Ok(None) };
    let opcode = check_first(first, allowed)?;
    let Some((&second, bytes)) = bytes.split_first() else { return Ok(None) };
    let is_masked = second & MASK != 0;
    if FROM_CLIENT && !is_masked {
        return Err(Failure::Unmasked); // RFC 6455 §5.1a
    }
    if !FROM_CLIENT && is_masked {
        return Err(Failure::Masked);
    }
    let length_7 = second & LENGTH_7;
    if opcode.is_control() && usize::from(length_7) > CONTROL_BYTES_MAX {
        return Err(Failure::ControlTooLong); // RFC 6455 §5.5a
    }
    let Some((payload_bytes, bytes)) = length(length_7, bytes)? else { return Ok(None) };
    // RFC 6455 §10.4a
    if !opcode.is_control() && payload_bytes > allowed.payload_bytes as u64 {
        return Err(Failure::MessageTooBig { bytes_max: allowed.message_bytes_max });
    }
    let mask = if FROM_CLIENT {
        let Some(&mask) = bytes.first_chunk::<4>() else { return Ok(None) };
        mask
    } else {
        [0; 4]
    };
    let fixed_bytes = if FROM_CLIENT { 6 } else { 2 };
    Ok(Some(FrameHeader {
        fin: first & FIN != 0,
        rsv1: first & RSV1 != 0,
        opcode,
        mask,
        payload_bytes: payload_bytes as usize,
        header_bytes: fixed_bytes
            + match length_7 {
                LENGTH_16 => 2,
                LENGTH_64 => 8,
                _ => 0,
            },
    }))
}

/// Checks fin, RSV1–3 and the opcode.
fn check_first(first: u8, allowed: Allowed) -> Result<Opcode, Failure> {
    if first & RSV2_RSV3 != 0 || (first & RSV1 != 0 && !allowed.rsv1) {
        return Err(Failure::ReservedBits); // RFC 6455 §5.2b
    }
    let code = first & OPCODE;
    // RFC 6455 §5.2c
    let opcode = Opcode::of(code).ok_or(Failure::ReservedOpcode { opcode: code })?;
    if first & RSV1 != 0 && !matches!(opcode, Opcode::Text | Opcode::Binary) {
        return Err(Failure::MisplacedRsv1); // RFC 7692 §6.1b
    }
    match opcode {
        Opcode::Continuation if !allowed.continuation => Err(Failure::ContinuationWithoutStart),
        // RFC 6455 §5.4c
        Opcode::Text | Opcode::Binary if allowed.continuation => Err(Failure::MessageInterleaved),
        // RFC 6455 §5.4a
        Opcode::Close | Opcode::Ping | Opcode::Pong if first & FIN == 0 => {
            Err(Failure::FragmentedControl)
        }
        _ => Ok(opcode),
    }
}

/// Reads the extended length, if `length_7` announces one, and returns the bytes after it (RFC 6455 §5.2d, §5.2e).
fn length(length_7: u8, bytes: &[u8]) -> Result<Option<(u64, &[u8])>, Failure> {
    match length_7 {
        LENGTH_16 => {
            let Some((length, rest)) = bytes.split_first_chunk() else { return Ok(None) };
            match u16::from_be_bytes(*length) {
                0..=125 => Err(Failure::LengthNotMinimal),
                length => Ok(Some((length.into(), rest))),
            }
        }
        LENGTH_64 => {
            let Some((length, rest)) = bytes.split_first_chunk() else { return Ok(None) };
            match u64::from_be_bytes(*length) {
                0..=0xffff => Err(Failure::LengthNotMinimal),
                length if length >> 63 != 0 => Err(Failure::LengthHighBit),
                length => Ok(Some((length, rest))),
            }
        }
        length => Ok(Some((length.into(), bytes))),
    }
}

#[cfg(test)]
mod tests;
