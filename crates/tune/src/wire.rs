//! Messages as on the wire: the push of a publication in a WebSocket frame.
//! In: payloads → out: whole messages; the bytes of a frame with a given payload (RFC 6455 §5.2).
//! Uses the protocol's writer, so that the envelope is the server's. Never: compresses.
//! Changed here: the envelope of a payload.

use bytes::Bytes;
use fanwire_protocol::{Encoding, Publication, encode_publication};

/// The push of a payload, the `at`-th of its channel from 0.
pub(crate) fn push(encoding: Encoding, channel: &str, at: usize, payload: &[u8]) -> Bytes {
    write(encoding, channel, at, payload.to_vec(), false)
}

/// The push of a payload, or of a delta, to a client that agreed to deltas (client protocol §11).
///
/// # Panics
/// When the encoding is JSON and `data` is not UTF-8: payloads were checked, and the delta of a text is a text.
pub(crate) fn delta_push(
    encoding: Encoding,
    channel: &str,
    at: usize,
    data: &[u8],
    is_delta: bool,
) -> Bytes {
    let data = match encoding {
        Encoding::Json => {
            let text = std::str::from_utf8(data).expect("a text, or the delta of one");
            serde_json::to_vec(text).expect("a string is JSON")
        }
        Encoding::Protobuf => data.to_vec(),
    };
    write(encoding, channel, at, data, is_delta)
}

fn write(encoding: Encoding, channel: &str, at: usize, data: Vec<u8>, delta: bool) -> Bytes {
    let offset = at as u64 + 1;
    let publication = Publication { data: data.into(), offset, delta, ..Publication::default() };
    encode_publication(encoding, channel, &publication).expect("payloads were checked for JSON")
}

/// A server's frame: payload and header.
pub(crate) fn frame_bytes(payload_bytes: usize) -> usize {
    payload_bytes
        + match payload_bytes {
            0..126 => 2,
            126..65_536 => 4,
            _ => 10,
        }
}

#[cfg(test)]
mod tests;
