//! The position of a publication: its offset in the channel's stream, and the epoch of that stream (protocol §9).
//! In: offsets, random numbers, texts of clients → out: 16 bytes that are copied, compared and written as text.
//! Uses: rand, for new epochs. Never: streams; the brokers count offsets.
//! Changed here: the form of a position.

use std::fmt;

/// The position of a publication in the stream of its channel.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Position {
    /// 1 for the first publication; 0 before it, and without history.
    pub offset: u64,
    /// Changes when the stream is lost and created again; [`Epoch::NONE`] without history.
    pub epoch: Epoch,
}

/// Names one lifetime of a stream: eight ASCII letters, or none ("").
///
/// Stored inline, because every broadcast and every subscriber list of a channel with positions holds one.
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct Epoch([u8; Epoch::LETTERS]);

impl Epoch {
    const LETTERS: usize = 8;

    /// No stream.
    pub const NONE: Self = Self([0; Self::LETTERS]);

    /// A new epoch, one of 5 · 10¹³.
    pub fn random() -> Self {
        Self::from_hash(rand::random())
    }

    /// Derives an epoch from a hash of 64 random bits.
    pub(crate) fn from_hash(mut hash: u64) -> Self {
        let letters = ALPHABET.len() as u64;
        Self(std::array::from_fn(|_| {
            let letter = ALPHABET[(hash % letters) as usize];
            hash /= letters;
            letter
        }))
    }

    /// Parses the result of [`as_str`](Self::as_str); `None` for any other text.
    pub fn parse(text: &str) -> Option<Self> {
        if text.is_empty() {
            return Some(Self::NONE);
        }
        let letters: [u8; Self::LETTERS] = text.as_bytes().try_into().ok()?;
        if letters.iter().all(u8::is_ascii_alphabetic) { Some(Self(letters)) } else { None }
    }

    /// The letters; "" for [`Epoch::NONE`].
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
