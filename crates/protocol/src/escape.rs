//! JSON strings, escaped the HTML-safe way (client protocol §3, RFC 8259 §7).
//! In: text. Out: pieces to be written between quotes; a whole string.
//! Uses nothing but tables; allocates whole strings only.
//! Escapes change here; the fields they stand in are written by `json::writer`.

use bytes::Bytes;

/// The JSON string of a text, with its quotes: how payloads travel to subscribers that agreed to
/// deltas (client protocol §11). One allocation.
pub fn json_string(text: &str) -> Bytes {
    let length: usize = Escaped::new(text).map(<[u8]>::len).sum();
    let mut string = Vec::with_capacity(length + 2);
    put_string(text, |piece| string.extend_from_slice(piece));
    string.into()
}

/// Puts the JSON string of a text, with its quotes, piece by piece.
pub(crate) fn put_string(text: &str, mut put: impl FnMut(&[u8])) {
    put(b"\"");
    if text.bytes().any(|byte| IS_SUSPECT[usize::from(byte)]) {
        Escaped::new(text).for_each(&mut put);
    } else {
        put(text.as_bytes());
    }
    put(b"\"");
}

/// The pieces of an escaped text: runs copied as they are, and escapes. Same bytes as serde_json,
/// and also `<`, `>`, `&`, U+2028 and U+2029 as `\u` escapes.
pub(crate) struct Escaped<'a> {
    rest: &'a [u8],
}

impl<'a> Escaped<'a> {
    pub(crate) fn new(text: &'a str) -> Self {
        Self { rest: text.as_bytes() }
    }
}

impl<'a> Iterator for Escaped<'a> {
    type Item = &'a [u8];

    fn next(&mut self) -> Option<&'a [u8]> {
        if self.rest.is_empty() {
            return None;
        }
        if let Some((taken, escape)) = escape_in_front(self.rest) {
            self.rest = &self.rest[taken..];
            return Some(escape);
        }
        let (run, rest) = self.rest.split_at(run_bytes(self.rest));
        self.rest = rest;
        Some(run)
    }
}

/// Bytes until the next escape; at least one, because none stands in front.
fn run_bytes(text: &[u8]) -> usize {
    let mut at = 1;
    while let Some(distance) = text[at..].iter().position(|byte| IS_SUSPECT[usize::from(*byte)]) {
        at += distance;
        if escape_in_front(&text[at..]).is_some() {
            return at;
        }
        at += 1; // 0xE2 in front of another character
    }
    text.len()
}

/// The escape that the text must start with, and how many bytes it replaces.
fn escape_in_front(text: &[u8]) -> Option<(usize, &'static [u8])> {
    Some(match text {
        [b'"', ..] => (1, b"\\\""),
        [b'\\', ..] => (1, b"\\\\"),
        [b'<', ..] => (1, b"\\u003c"),
        [b'>', ..] => (1, b"\\u003e"),
        [b'&', ..] => (1, b"\\u0026"),
        [0xe2, 0x80, 0xa8, ..] => (3, b"\\u2028"),
        [0xe2, 0x80, 0xa9, ..] => (3, b"\\u2029"),
        [0x08, ..] => (1, b"\\b"),
        [b'\t', ..] => (1, b"\\t"),
        [b'\n', ..] => (1, b"\\n"),
        [0x0c, ..] => (1, b"\\f"),
        [b'\r', ..] => (1, b"\\r"),
        [control @ 0..0x20, ..] => (1, &CONTROL[usize::from(*control)]),
        _ => return None,
    })
}

/// Bytes that are escaped, or start a character that is.
const IS_SUSPECT: [bool; 256] = {
    let mut table = [false; 256];
    let mut byte = 0;
    while byte < 256 {
        table[byte] = byte < 0x20 || matches!(byte as u8, b'"' | b'\\' | b'<' | b'>' | b'&' | 0xe2);
        byte += 1;
    }
    table
};

/// `\u00` and two digits for each control character.
const CONTROL: [[u8; 6]; 32] = {
    let mut table = [*b"\\u0000"; 32];
    let mut byte = 0;
    while byte < 32 {
        table[byte][4] = b"0123456789abcdef"[byte >> 4];
        table[byte][5] = b"0123456789abcdef"[byte & 15];
        byte += 1;
    }
    table
};

#[cfg(test)]
mod tests;
