//! Bytes that a client's socket received, for tests.
//! In: the bytes of a stream → out: its WebSocket frames, their payloads inflated.
//! Uses flate2. Never: the frame reader or the inflater of the server.
//! Changed here: how a test reads a stream. Expectations live in the tests.

use flate2::{Decompress, FlushDecompress};

/// First byte and payload of each whole frame (RFC 6455 §5.2).
pub(super) fn frames(mut stream: &[u8]) -> impl Iterator<Item = (u8, &[u8])> {
    std::iter::from_fn(move || {
        let (head, rest) = stream.split_first_chunk::<2>()?;
        let (length, rest) = match head[1] {
            126 => {
                let (length, rest) = rest.split_first_chunk::<2>()?;
                (u16::from_be_bytes(*length) as usize, rest)
            }
            127 => {
                let (length, rest) = rest.split_first_chunk::<8>()?;
                (u64::from_be_bytes(*length) as usize, rest)
            }
            length => (usize::from(length), rest),
        };
        let (payload, rest) = rest.split_at_checked(length)?;
        stream = rest;
        Some((head[0], payload))
    })
}

/// Inflates the payload of one message with the window of the messages before it (RFC 7692 §7.2.2).
pub(super) fn inflate(zlib: &mut Decompress, payload: &[u8]) -> Vec<u8> {
    let mut input = payload.to_vec();
    input.extend_from_slice(&[0, 0, 0xff, 0xff]);
    let mut out = Vec::with_capacity(1 << 17);
    let start = zlib.total_in();
    while zlib.total_in() - start < input.len() as u64 {
        let rest = &input[(zlib.total_in() - start) as usize..];
        out.reserve(1 << 16);
        zlib.decompress_vec(rest, &mut out, FlushDecompress::Sync).expect("a good payload");
    }
    out
}
