//! The checksums at the end of a gzip or zlib stream (RFC 1952 §2.3.1, RFC 1950 §2.2), for streams that share their parts.
//! A part of a plaintext, read once → what appends it to the checksum of any plaintext before it, in a few nanoseconds.
//! Pure; zlib-rs reads the bytes; never allocates.
//! Changed here: how checksums are combined. Where they are written is `stream`.

use zlib_rs::{adler32, crc32};

/// A part of a plaintext that many streams contain, and its effect on their checksums.
#[derive(Clone, Debug)]
pub struct Segment {
    bytes: u64,
    crc32: u32,
    adler32: u32,
    /// Effect of each bit of a CRC when this many bytes follow, lowest bit first.
    ///
    /// Four tables of 256 entries would be a little faster to use, but take a thousand steps to fill instead of 32: that
    /// pays from some hundred streams on.
    columns: [u32; 32],
}

impl Segment {
    /// The segment of these pieces, one after the other.
    pub fn new(pieces: &[&[u8]]) -> Self {
        let bytes = pieces.iter().map(|piece| piece.len() as u64).sum();
        Self {
            bytes,
            crc32: pieces.iter().fold(0, |sum, piece| crc32::crc32(sum, piece)),
            adler32: pieces.iter().fold(1, |sum, piece| adler32::adler32(sum, piece)),
            columns: columns(bytes),
        }
    }

    /// Bytes of plaintext.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }
}

/// The checksum of all plaintext of a stream so far.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Checksum {
    /// The checksum of gzip.
    Crc32(u32),
    /// The checksum of zlib.
    Adler32(u32),
}

impl Checksum {
    /// The checksum with `bytes` appended. Reads them.
    pub fn with(self, bytes: &[u8]) -> Self {
        match self {
            Self::Crc32(sum) => Self::Crc32(crc32::crc32(sum, bytes)),
            Self::Adler32(sum) => Self::Adler32(adler32::adler32(sum, bytes)),
        }
    }

    /// The checksum with `segment` appended. Reads none of its bytes.
    #[inline]
    pub fn with_segment(self, segment: &Segment) -> Self {
        match self {
            Self::Crc32(sum) => Self::Crc32(product(&segment.columns, sum) ^ segment.crc32),
            Self::Adler32(sum) => {
                Self::Adler32(adler32::adler32_combine(sum, segment.adler32, segment.bytes))
            }
        }
    }
}

/// The product of a CRC and the number that the columns were made of, modulo the polynomial.
///
/// Every column takes part in it, so that there is no branch and vector instructions serve.
#[inline]
fn product(columns: &[u32; 32], sum: u32) -> u32 {
    let mut product = 0;
    for (bit, column) in columns.iter().enumerate() {
        product ^= if sum & 1 << bit == 0 { 0 } else { *column };
    }
    product
}

/// The products of each bit of a CRC and x^(8 · `bytes`).
fn columns(bytes: u64) -> [u32; 32] {
    let mut columns = [0; 32];
    let mut column = power(bytes);
    for slot in columns.iter_mut().rev() {
        *slot = column;
        column = times_x(column);
    }
    columns
}

/// x^(8 · `bytes`) modulo the polynomial, by squaring.
fn power(bytes: u64) -> u32 {
    let mut power = ONE;
    let mut left = bytes;
    let mut square = 3; // 8 bits for each byte
    while left > 0 {
        if left & 1 == 1 {
            power = times(power, SQUARES[square % SQUARES.len()]);
        }
        left >>= 1;
        square += 1;
    }
    power
}

/// The product of two polynomials modulo the polynomial of the CRC.
const fn times(a: u32, mut b: u32) -> u32 {
    let mut product = 0;
    let mut bit = 0;
    while bit < 32 {
        if a & ONE >> bit != 0 {
            product ^= b;
        }
        b = times_x(b);
        bit += 1;
    }
    product
}

const fn times_x(a: u32) -> u32 {
    (a >> 1) ^ if a & 1 == 0 { 0 } else { POLYNOMIAL }
}

/// x^(2^i). After 32 squarings it is x again, because the polynomial is primitive.
const SQUARES: [u32; 32] = {
    let mut squares = [ONE >> 1; 32];
    let mut at = 1;
    while at < 32 {
        squares[at] = times(squares[at - 1], squares[at - 1]);
        at += 1;
    }
    squares
};

/// The highest bit is the coefficient of x⁰.
const ONE: u32 = 1 << 31;

/// The coefficients of x⁰ to x³¹ in the polynomial of RFC 1952 §8.
const POLYNOMIAL: u32 = 0xedb8_8320;

#[cfg(test)]
mod tests;
