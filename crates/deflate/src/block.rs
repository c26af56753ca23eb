//! One block (RFC 1951 §3.2.3): which of its three forms is the shortest, and its bits.
//! Tokens → a plan (form, codes, exact cost), and tokens with a plan → bits.
//! Pure; never sets BFINAL; allocates only in a planner that has never been used.
//! Change here: the choice of the form. Code lengths on the wire are `header`, codes `huffman`.

use crate::bits::{BitWriter, SLACK_BYTES};
use crate::header::Header;
use crate::huffman;
use crate::tables::{Code, Codes, DISTANCES, END_OF_BLOCK, LITERALS, STATIC, distance_symbol};
use crate::token::{Gaps, Token};

/// How a block is to be written. Stays valid for any gaps if it was made for them.
#[derive(Clone)]
pub(crate) enum Plan {
    /// As plain bytes, because no code makes them fewer (§3.2.4).
    Stored,
    /// With the static codes (§3.2.6).
    Fixed,
    /// With codes made for it, which are in front of it (§3.2.7).
    Dynamic(Box<Dynamic>),
}

/// Codes and what describes them on the wire.
#[derive(Clone)]
pub(crate) struct Dynamic {
    codes: Codes,
    header: Header,
}

/// How often each symbol occurs in a block.
pub(crate) struct Histogram {
    literals: [u32; LITERALS],
    distances: [u32; DISTANCES],
    /// Bits of all symbols with the static codes, without extra bits.
    fixed: u32,
    extra: u32,
}

impl Histogram {
    /// Counts `tokens`, the distances as a connection with these gaps sees them.
    pub(crate) fn new(tokens: &[Token], gaps: &Gaps) -> Self {
        let mut histogram =
            Self { literals: [0; LITERALS], distances: [0; DISTANCES], fixed: 7, extra: 0 };
        histogram.literals[END_OF_BLOCK] = 1;
        // Without a branch, because literals and copies alternate as they like.
        for token in tokens {
            let entry = token.entry();
            let literal = entry as usize & 0x1ff;
            histogram.literals[literal] += 1;
            let (symbol, extra, _) = distance_symbol(token.distance(gaps));
            let is_copy = u32::from(token.is_literal()).wrapping_sub(1);
            histogram.distances[symbol | (!is_copy as usize & NO_DISTANCE)] += 1;
            histogram.fixed += STATIC.literals[literal].count() + (5 & is_copy);
            histogram.extra += (entry >> 16 & 0xff) + (extra & is_copy);
        }
        histogram.distances[NO_DISTANCE] = 0;
        histogram
    }

    /// Bits of the symbols with codes of these lengths, without extra bits.
    fn cost(&self, codes: &Codes) -> u32 {
        let sum = |counts: &[u32], codes: &[Code]| -> u32 {
            counts.iter().zip(codes).map(|(count, code)| count * code.count()).sum()
        };
        sum(&self.literals, &codes.literals) + sum(&self.distances, &codes.distances)
    }

    /// Few bits for a dynamic block: the entropy of the symbols and a small header. Building codes
    /// takes a microsecond or two, which is most of the time of a short block that does not use
    /// them.
    fn dynamic_cost_likely(&self, distance_weight: u32) -> u32 {
        let (literals, literal_count) = entropy(&self.literals);
        let (distances, distance_count) = entropy(&self.distances);
        let symbols = literal_count + if distance_weight > 0 { 30 } else { distance_count };
        literals + distances + HEADER_BITS + symbols * 3
    }
}

impl Plan {
    /// The plan with the fewest bits for a block of `bytes` bytes of plaintext.
    pub(crate) fn new(histogram: &Histogram, bytes: usize) -> Self {
        Self::choose(histogram, bytes, 0)
    }

    /// The same, with a code for each distance there can be, because they differ by connection.
    pub(crate) fn for_any_gaps(histogram: &Histogram, bytes: usize) -> Self {
        Self::choose(histogram, bytes, 1)
    }

    /// The same without codes made for it.
    pub(crate) fn fixed(histogram: &Histogram, bytes: usize) -> Self {
        let fixed = histogram.fixed + histogram.extra;
        if stored_cost(bytes) < fixed { Self::Stored } else { Self::Fixed }
    }

    fn choose(histogram: &Histogram, bytes: usize, distance_weight: u32) -> Self {
        let fixed = histogram.fixed + histogram.extra;
        let stored = stored_cost(bytes);
        if histogram.dynamic_cost_likely(distance_weight) + histogram.extra < fixed.min(stored) {
            let dynamic = Box::new(Dynamic::new(histogram, distance_weight));
            let cost = histogram.cost(&dynamic.codes) + dynamic.header.cost() + histogram.extra;
            if cost < fixed.min(stored) {
                return Self::Dynamic(dynamic);
            }
        }
        Self::fixed(histogram, bytes)
    }

    /// The codes of a block that has any.
    pub(crate) fn codes(&self) -> Option<&Codes> {
        match self {
            Self::Stored => None,
            Self::Fixed => Some(&STATIC),
            Self::Dynamic(dynamic) => Some(&dynamic.codes),
        }
    }

    /// The number of bits in front of the first symbol.
    pub(crate) fn head_bits(&self) -> u32 {
        if let Self::Dynamic(dynamic) = self { 3 + dynamic.header.cost() } else { 3 }
    }

    /// Writes what is in front of the first symbol of a block that has codes.
    pub(crate) fn write_head(&self, writer: &mut BitWriter<'_>) {
        match self {
            Self::Stored => writer.put(0, 3),
            Self::Fixed => writer.put(0b01 << 1, 3),
            Self::Dynamic(dynamic) => {
                writer.put(0b10 << 1, 3);
                dynamic.header.write(writer);
            }
        }
    }

    /// Writes the block; `plaintext` is what `tokens` stand for.
    pub(crate) fn write(
        &self,
        tokens: &[Token],
        plaintext: &[u8],
        gaps: &Gaps,
        writer: &mut BitWriter<'_>,
    ) {
        self.write_head(writer);
        match self.codes() {
            Some(codes) => write_tokens(tokens, codes, gaps, writer),
            None => write_stored(plaintext, writer),
        }
    }
}

impl Dynamic {
    fn new(histogram: &Histogram, distance_weight: u32) -> Self {
        let weighted = histogram.distances.map(|count| count + distance_weight);
        let mut literals = [0; LITERALS];
        let mut distances = [0; DISTANCES];
        let mut codes = Codes::default();
        huffman::build(&histogram.literals[..286], 15, &mut literals, &mut codes.literals);
        huffman::build(&weighted[..30], 15, &mut distances, &mut codes.distances);
        Self { codes, header: Header::new(&literals, &distances) }
    }
}

/// Writes the end of a message: an empty stored block up to its cut-off tail (RFC 7692 §7.2.1).
pub(crate) fn write_flush(writer: &mut BitWriter<'_>) {
    writer.put(0, 3);
    writer.align();
}

/// Bytes that any message of `bytes` bytes fits in, with blocks of at least `block` bytes.
pub(crate) fn room(bytes: usize, block: usize) -> usize {
    // A stored block costs a byte for its bits and four for its length, and no form costs more.
    bytes + (bytes / block + 1) * 6 + 2 + SLACK_BYTES
}

/// Behind the three bits of its head.
fn write_stored(plaintext: &[u8], writer: &mut BitWriter<'_>) {
    writer.align();
    let len = plaintext.len() as u16;
    writer.put(u64::from(len) | u64::from(!len) << 16, 32);
    writer.bytes(plaintext);
}

/// Header and alignment, seven bits in the worst case.
fn stored_cost(bytes: usize) -> u32 {
    (bytes as u32 + 4) * 8 + 7
}

#[inline]
fn write_tokens(tokens: &[Token], codes: &Codes, gaps: &Gaps, writer: &mut BitWriter<'_>) {
    writer.put_all(tokens.iter().map(|token| {
        let entry = token.entry();
        let code = codes.literals[entry as usize & 0x1ff];
        let mut bits = code.bits() | u64::from(entry >> 24) << code.count();
        let mut count = code.count() + (entry >> 16 & 0xff);
        if !token.is_literal() {
            let (symbol, extra, value) = distance_symbol(token.distance(gaps));
            let code = codes.distances[symbol];
            bits |= code.bits() << count | value << (count + code.count());
            count += code.count() + extra;
        }
        (bits, count)
    }));
    let code = codes.literals[END_OF_BLOCK];
    writer.put(code.bits(), code.count());
}

/// The bits that no code can go below, rounded down, and how many symbols occur.
fn entropy(counts: &[u32]) -> (u32, u32) {
    let (mut total, mut sum, mut symbols) = (0, 0, 0);
    for counts in counts.as_chunks::<8>().0 {
        // Texts leave whole ranges of bytes out.
        if *counts == [0; 8] {
            continue;
        }
        for &count in counts {
            let few = (count as usize) < LOGARITHMS;
            let log2 = if few { LOG2[count as usize % LOGARITHMS] } else { log2(count) };
            total += count;
            symbols += u32::from(count > 0);
            sum += count * (log2 + 1);
        }
    }
    ((total * log2(total)).saturating_sub(sum) >> LOG_BITS, symbols)
}

/// The logarithm to base 2, in units of 2⁻⁸, rounded down; 0 for 0.
const fn log2(number: u32) -> u32 {
    if number == 0 {
        return 0;
    }
    let whole = number.ilog2();
    // Squaring a number between 1 and 2 doubles its logarithm: each time one more bit of it.
    let mut fraction = (number as u64) << (31 - whole);
    let mut bits = whole;
    let mut at = 0;
    while at < LOG_BITS {
        fraction = (fraction * fraction) >> 31;
        let bit = (fraction >> 32) as u32;
        fraction >>= bit;
        bits = (bits << 1) | bit;
        at += 1;
    }
    bits
}

const LOG2: [u32; LOGARITHMS] = {
    let mut table = [0; LOGARITHMS];
    let mut number = 0;
    while number < LOGARITHMS {
        table[number] = log2(number as u32);
        number += 1;
    }
    table
};

const LOGARITHMS: usize = 128;
const LOG_BITS: u32 = 8;

/// A distance symbol that does not exist, where literals are counted.
const NO_DISTANCE: usize = 31;

/// The counts in front of a header and a handful of code lengths (§3.2.7). Each symbol that occurs
/// takes three bits more or so, unless many neighbours have codes of one length.
const HEADER_BITS: u32 = 14 + 3 * 8;

#[cfg(test)]
mod tests;
