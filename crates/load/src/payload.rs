//! Data of publications: each has its channel and number inside, so that a receiver knows what is missing.
//! In: a corpus, or a size and a share of random bytes → out: the data of each publication; the number in what arrives.
//! Pure. Never: sockets, files.
//! Changed here: the form of the data.

use anyhow::{Result, bail, ensure};

use crate::random::Random;

/// The data of all publications. The n-th of each channel has the n-th body, and begins again after the last.
#[derive(Clone, Debug)]
pub struct Payloads {
    bodies: Vec<Vec<u8>>,
    is_binary: bool,
    origin: String,
}

impl Payloads {
    /// JSON texts, or any bytes where `is_binary`; `origin` names them in the report.
    ///
    /// # Errors
    /// No message.
    pub fn corpus(bodies: Vec<Vec<u8>>, is_binary: bool, origin: String) -> Result<Self> {
        if bodies.is_empty() {
            bail!("{origin}: no message");
        }
        Ok(Self { bodies, is_binary, origin })
    }

    /// Texts (or bytes) of `bytes` bytes. The share `random` of their characters is random, from 0 to 1; the others
    /// repeat.
    ///
    /// # Errors
    /// A share beyond 0 to 1.
    pub fn synthetic(bytes: usize, random: f64, is_binary: bool) -> Result<Self> {
        ensure!(
            (0.0..=1.0).contains(&random),
            "a share of {random} random characters: expected 0 to 1"
        );
        let mut source = Random(1);
        let bodies = (0..SYNTHETIC_BODIES).map(|_| {
            let mut body: Vec<u8> = REPEATED.iter().copied().cycle().take(bytes).collect();
            for word in body.chunks_mut(WORD_BYTES) {
                if (source.below(1_000_000) as f64) < random * 1e6 {
                    word.iter_mut().for_each(|byte| *byte = ALPHABET[source.below(ALPHABET.len())]);
                }
            }
            if is_binary { body } else { [b"\"", &body[..], b"\""].concat() }
        });
        let origin = format!("synthetic, {bytes} bytes, {:.0} % random", random * 100.0);
        Ok(Self { bodies: bodies.collect(), is_binary, origin })
    }

    /// Returns the origin of the payloads, as text.
    pub fn origin(&self) -> &str {
        &self.origin
    }

    /// No JSON: for subscribers with Protobuf only.
    pub fn is_binary(&self) -> bool {
        self.is_binary
    }

    /// The data of a publication.
    pub fn data(&self, channel: u32, number: u64) -> Vec<u8> {
        let body = &self.bodies[(number % self.bodies.len() as u64) as usize];
        if self.is_binary {
            [&channel.to_le_bytes()[..], &number.to_le_bytes(), body].concat()
        } else {
            let head = format!("{{\"c\":{channel},\"n\":{number},\"p\":");
            [head.as_bytes(), body, b"}"].concat()
        }
    }

    /// Channel and number of data that a receiver has; `None` if the beginning was damaged or another published it.
    pub fn number(&self, data: &[u8]) -> Option<(u32, u64)> {
        if self.is_binary {
            let (channel, rest) = data.split_first_chunk()?;
            let (number, _) = rest.split_first_chunk()?;
            return Some((u32::from_le_bytes(*channel), u64::from_le_bytes(*number)));
        }
        let rest = data.strip_prefix(b"{\"c\":")?;
        let comma = rest.iter().position(|byte| *byte == b',')?;
        let (channel, rest) = rest.split_at(comma);
        let rest = rest.strip_prefix(b",\"n\":")?;
        let comma = rest.iter().position(|byte| *byte == b',')?;
        let digits = |text| std::str::from_utf8(text).ok();
        Some((digits(channel)?.parse().ok()?, digits(&rest[..comma])?.parse().ok()?))
    }

    /// Mean size of the data in bytes.
    pub fn mean_bytes(&self) -> f64 {
        let bytes: usize = self.first().map(|data| data.len()).sum();
        bytes as f64 / self.bodies.len() as f64
    }

    /// Entropy of single bytes (order 0) in bits per byte: 0 for one that repeats, 8 for random ones.
    pub fn bits_per_byte(&self) -> f64 {
        let mut counts = [0u64; 256];
        self.first().flatten().for_each(|byte| counts[usize::from(byte)] += 1);
        let total = counts.iter().sum::<u64>() as f64;
        let shares = counts.iter().filter(|count| **count > 0).map(|count| *count as f64 / total);
        -shares.map(|share| share * share.log2()).sum::<f64>()
    }

    /// Data of the first publications, one with each body.
    fn first(&self) -> impl Iterator<Item = Vec<u8>> {
        (0..self.bodies.len() as u64).map(|number| self.data(0, number))
    }
}

const SYNTHETIC_BODIES: usize = 256;
const WORD_BYTES: usize = 8;
const REPEATED: &[u8] = b"The price of one share of this company has not changed since. ";
const ALPHABET: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

#[cfg(test)]
mod tests;
