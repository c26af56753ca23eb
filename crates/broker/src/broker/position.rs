//! Where a publication stands: the offset in its channel's stream, and the epoch of that stream (protocol §9).
//! In: offsets, random numbers, texts of clients → out: 16 bytes that are copied, compared and written out as text.
//! Uses: rand, for new epochs. Never: streams; offsets are counted in the brokers.
//! Change here: the shape of a position.

use std::fmt;

/// Where a publication stands in the stream of its channel.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Position {
    /// 1 for the first publication; 0 before it, and without history.
    pub offset: u64,
    /// Changes when the stream is lost and made anew; none without history.
    pub epoch: Epoch,
}

/// Names one life of a stream: eight letters, or none ("").
///
/// Inline, because every subscriber list of a channel with positions holds one, and every broadcast.
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct Epoch([u8; Epoch::LETTERS]);

impl Epoch {
    const LETTERS: usize = 8;

    /// No stream.
    pub const NONE: Self = Self([0; Self::LETTERS]);

    /// A new one: two equal ones are as likely as guessing one of 5 · 10¹³.
    pub fn random() -> Self {
        Self::from_hash(rand::random())
    }

    /// The one that belongs to a hash of 64 random bits.
    pub(crate) fn from_hash(mut hash: u64) -> Self {
        let letters = ALPHABET.len() as u64;
        Self(std::array::from_fn(|_| {
            let letter = ALPHABET[(hash % letters) as usize];
            hash /= letters;
            letter
        }))
    }

    /// Reads what [`as_str`](Self::as_str) wrote; `None` for anything that no epoch looks like.
    pub fn parse(text: &str) -> Option<Self> {
        if text.is_empty() {
            return Some(Self::NONE);
        }
        let letters: [u8; Self::LETTERS] = text.as_bytes().try_into().ok()?;
        letters.iter().all(u8::is_ascii_alphabetic).then_some(Self(letters))
    }

    /// The text of it; "" for none.
    pub fn as_str(&self) -> &str {
        if *self == Self::NONE {
            return "";
        }
        std::str::from_utf8(&self.0).expect("letters are ASCII")
    }
}

impl fmt::Display for Epoch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl fmt::Debug for Epoch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Epoch({:?})", self.as_str())
    }
}

const ALPHABET: &[u8; 52] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

#[cfg(test)]
mod tests;
