//! Removes the mask of a client's payload (RFC 6455 §5.3).
//! Masked bytes and the key → plain bytes, in place or in one pass with the copy into a buffer.
//! Uses whole words, which the compiler turns into vector instructions; never looks at a header.
//! Changed here: how bytes are unmasked. `reader` decides which bytes have which key.

/// XORs `bytes` with `key`, whose first byte belongs to the first byte (RFC 6455 §6.2e).
pub(crate) fn unmask(bytes: &mut [u8], key: [u8; 4]) {
    let word = word(key);
    let (words, rest) = bytes.as_chunks_mut::<8>();
    for bytes in words {
        *bytes = (u64::from_ne_bytes(*bytes) ^ word).to_ne_bytes();
    }
    for (byte, key) in rest.iter_mut().zip(word.to_ne_bytes()) {
        *byte ^= key;
    }
}

/// Appends `masked`, XORed with `key`, to `out`: each byte is read once and written once.
pub(crate) fn unmask_onto(masked: &[u8], key: [u8; 4], out: &mut Vec<u8>) {
    out.reserve(masked.len());
    let (blocks, rest) = masked.as_chunks::<BLOCK_BYTES>();
    for block in blocks {
        let mut block = *block;
        unmask(&mut block, key);
        out.extend_from_slice(&block);
    }
    let mut bytes = [0; BLOCK_BYTES];
    let block = &mut bytes[..rest.len()];
    block.copy_from_slice(rest);
    unmask(block, key);
    out.extend_from_slice(block);
}

/// The key for the bytes that follow the first `bytes` ones.
pub(crate) fn advance(key: [u8; 4], bytes: usize) -> [u8; 4] {
    let mut key = key;
    key.rotate_left(bytes % 4);
    key
}

fn word([a, b, c, d]: [u8; 4]) -> u64 {
    u64::from_ne_bytes([a, b, c, d, a, b, c, d])
}

/// A block fits the vector registers and is a multiple of the key.
const BLOCK_BYTES: usize = 64;

#[cfg(test)]
mod tests;
