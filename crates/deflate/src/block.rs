//! One block (RFC 1951 §3.2.3): the choice of the shortest of its three forms, and its bits.
//! Sequences → a plan (form, codes, exact cost), and sequences with a plan → bits.
//! Pure; never sets BFINAL; allocates only in a planner that has never been used.
//! Changed here: the choice of the form. Code lengths on the wire are `header`, codes `huffman`.

use std::ops::Range;

use crate::FLUSH_TAIL;
use crate::bits::{BitWriter, SLACK_BYTES};
use crate::header::DynamicHeader;
use crate::huffman;
use crate::tables::{
    Code, Codes, DISTANCES, END_OF_BLOCK, LITERALS, STATIC, distance_extra, distance_symbol,
    length_extra,
};
use crate::token::{Gaps, SOURCES_MAX, Sequence, Token, runs};

/// The form and codes of a block. Stays valid for any gaps if it was made for them.
#[derive(Clone)]
pub(crate) enum Plan {
    /// Plain bytes, because no code makes them shorter (§3.2.4).
    Stored,
    /// The static codes (§3.2.6).
    Fixed,
    /// Codes made for the block, at its start (§3.2.7).
    Dynamic(Box<Dynamic>),
}

/// Codes and their description on the wire.
#[derive(Clone)]
pub(crate) struct Dynamic {
    codes: Codes,
    header: DynamicHeader,
    /// First distance symbol from which on every distance symbol has a code.
    farther: usize,
}

/// How often each symbol occurs in a block.
pub(crate) struct Histogram {
    literals: [u32; LITERALS],
    /// Counts by distance symbol, summed over `gap_count` different gaps.
    distances: [u32; DISTANCES],
    gap_count: u32,
    /// 1 for each distance symbol that needs a code whether it was counted or not.
    possible: u32,
    /// Bits of all symbols with the static codes, without extra bits.
    fixed: u32,
    extra: u32,
}

impl Histogram {
    /// Counts a message whose distances are the same for all peers.
    pub(crate) fn new(sequences: &[Sequence], message: &[u8]) -> Self {
        Self::count(sequences, message, &Gaps::NONE).0
    }

    /// Counts a message for connections with different gaps, none below `least`.
    ///
    /// Other messages in between make gaps wider, so each distance is also counted for gaps two to eight times as
    /// wide, or up to six times between long messages, where the same traffic adds relatively less. The code
    /// therefore has a word for every distance that a wider gap can cause.
    pub(crate) fn for_gaps_from(sequences: &[Sequence], message: &[u8], least: &[u32]) -> Self {
        let mut wider = [0; SOURCES_MAX];
        wider.iter_mut().zip(least).for_each(|(wide, gap)| *wide = (gap * 2).min(GAP_MAX));
        let gaps = Gaps::new(&wider[..least.len()]);
        let (mut histogram, of_sources) = Self::count(sequences, message, &gaps);
        let widths =
            if least.first().is_some_and(|gap| *gap >= LONG) { WIDTHS - 1 } else { WIDTHS };
        histogram.gap_count = widths as u32;
        histogram.distances.iter_mut().for_each(|count| *count *= widths as u32);
        for (symbol, count) in (0..).zip(of_sources) {
            for wider in symbol..symbol + widths {
                histogram.distances[wider.min(29)] += count;
            }
        }
        let least = Gaps::new(least);
        let copies = sequences.iter().map(|sequence| sequence.token);
        let distances = copies.filter(|copy| copy.names_source()).map(|copy| copy.distance(&least));
        if let Some(nearest) = distances.min() {
            histogram.possible = POSSIBLE & !0 << distance_symbol(nearest).0;
        }
        histogram
    }

    /// Returns the histogram, and separately the distances of copies that name their source.
    fn count(sequences: &[Sequence], message: &[u8], gaps: &Gaps) -> (Self, [u32; DISTANCES]) {
        let mut literals = [0; LITERALS];
        // Copies with a distance, and copies with a source.
        let mut counts = [[0u32; DISTANCES]; 2];
        for (run, token) in runs(sequences, message) {
            run.iter().for_each(|byte| literals[usize::from(*byte)] += 1);
            literals[token.entry() as usize & 0x1ff] += 1;
            if token.is_copy() {
                let (symbol, _, _) = distance_symbol(token.distance(gaps));
                counts[usize::from(token.names_source())][symbol % DISTANCES] += 1;
            }
        }
        let [distances, of_sources] = counts;
        let mut fixed = 0;
        let mut extra = 0;
        for (symbol, (a, b)) in distances.iter().zip(&of_sources).enumerate() {
            fixed += 5 * (a + b);
            extra += (a + b) * distance_extra(symbol);
        }
        for (symbol, count) in literals[END_OF_BLOCK + 1..].iter().enumerate() {
            extra += count * length_extra(symbol);
        }
        let sum = |range: Range<usize>| literals[range].iter().sum::<u32>();
        fixed += 8 * sum(0..LITERALS) + sum(144..256) - sum(256..280);
        (Self { literals, distances, gap_count: 1, possible: 0, fixed, extra }, of_sources)
    }

    /// Bits of the symbols with codes of these lengths, without extra bits.
    fn cost(&self, codes: &Codes) -> u32 {
        let sum = |counts: &[u32], codes: &[Code]| -> u32 {
            counts.iter().zip(codes).map(|(count, code)| count * code.count()).sum()
        };
        let distances = sum(&self.distances, &codes.distances);
        sum(&self.literals, &codes.literals) + distances / self.gap_count
    }

    /// Whether a dynamic block is likely to take less than `most` bits.
    ///
    /// Building codes takes a microsecond or two, which is most of the time of a short block that
    /// does not use them.
    fn is_dynamic_likely(&self, most: u32) -> bool {
        let (literals, literal_count) = entropy(&self.literals);
        let (distances, distance_count) = entropy(&self.distances);
        let quarters = 3 * literal_count + 13 * distance_count.max(self.possible.count_ones());
        let least = literals + distances / self.gap_count + self.extra + HEADER_BITS + quarters / 4;
        // There are at most two steps for each symbol.
        least + STEP_BITS * 2 * (literal_count + distance_count) < most
            || least < most
                && least + STEP_BITS * (steps(&self.literals) + steps(&self.distances)) < most
    }
}

impl Plan {
    /// The plan with the fewest bits for a block of `bytes` bytes of plaintext.
    pub(crate) fn new(histogram: &Histogram, bytes: usize) -> Self {
        let fixed = histogram.fixed + histogram.extra;
        let most = fixed.min(stored_cost(bytes));
        if histogram.is_dynamic_likely(most) {
            let dynamic = Box::new(Dynamic::new(histogram));
            let cost = histogram.cost(&dynamic.codes) + dynamic.header.cost() + histogram.extra;
            if cost < most {
                return Self::Dynamic(dynamic);
            }
        }
        Self::fixed(histogram, bytes)
    }

    /// Makes a plan as [`new`](Self::new) does, for connections whose gaps differ, but are never smaller than `least`.
    pub(crate) fn for_gaps_from(least: &[u32], sequences: &[Sequence], message: &[u8]) -> Self {
        let copies = sequences.len() as u32 - 1;
        let literals = sequences.iter().map(|sequence| sequence.literals).sum::<u32>();
        // Static codes take up to 9 and up to 8 + 5 + 5 + 13 bits.
        let is_short = (literals + 1) * 9 + copies * 31 <= stored_cost(message.len());
        if literals * 4 + copies * 6 < FEW && is_short {
            return Self::Fixed;
        }
        Self::new(&Histogram::for_gaps_from(sequences, message, least), message.len())
    }

    /// The plan with the fewest bits without codes made for the block.
    pub(crate) fn fixed(histogram: &Histogram, bytes: usize) -> Self {
        let fixed = histogram.fixed + histogram.extra;
        if stored_cost(bytes) < fixed { Self::Stored } else { Self::Fixed }
    }

    /// The codes of the block; `None` if it is stored.
    pub(crate) fn codes(&self) -> Option<&Codes> {
        match self {
            Self::Stored => None,
            Self::Fixed => Some(&STATIC),
            Self::Dynamic(dynamic) => Some(&dynamic.codes),
        }
    }

    /// The largest number of bits of a distance.
    pub(crate) fn distance_bits_max(&self) -> u32 {
        match self {
            Self::Stored => 0,
            Self::Fixed => 5 + distance_extra(29),
            Self::Dynamic(dynamic) => {
                let codes = dynamic.codes.distances.iter().enumerate();
                let used = codes.filter(|(_, code)| code.count() > 0);
                let bits = used.map(|(symbol, code)| code.count() + distance_extra(symbol));
                bits.max().unwrap_or(0)
            }
        }
    }

    /// Whether the codes were made for a block and cover every symbol of another block of
    /// the same kind and every distance that wider gaps than `least` can cause.
    pub(crate) fn has_codes_for(
        &self,
        sequences: &[Sequence],
        message: &[u8],
        least: &[u32],
    ) -> bool {
        let Self::Dynamic(dynamic) = self else { return false };
        let codes = &dynamic.codes;
        let least = Gaps::new(least);
        runs(sequences, message).all(|(literals, token)| {
            let (symbol, _, _) = distance_symbol(token.distance(&least));
            let has_distance = if token.names_source() {
                symbol >= dynamic.farther
            } else {
                !token.is_copy() || codes.distances[symbol].count() > 0
            };
            has_distance
                && codes.literals[token.entry() as usize & 0x1ff].count() > 0
                && literals.iter().all(|byte| codes.literals[usize::from(*byte)].count() > 0)
        })
    }

    /// The number of bits before the first symbol.
    pub(crate) fn head_bits(&self) -> u32 {
        if let Self::Dynamic(dynamic) = self {
            HEAD_BITS + dynamic.header.cost()
        } else {
            HEAD_BITS
        }
    }

    /// Writes the bits before the first symbol of a block that has codes.
    pub(crate) fn write_head(&self, writer: &mut BitWriter<'_>) {
        match self {
            Self::Stored => writer.put(STORED_HEAD, HEAD_BITS),
            Self::Fixed => writer.put(FIXED_HEAD, HEAD_BITS),
            Self::Dynamic(dynamic) => {
                writer.put(DYNAMIC_HEAD, HEAD_BITS);
                dynamic.header.write(writer);
            }
        }
    }

    /// Writes the block; `message` is the plaintext of `sequences`.
    pub(crate) fn write(
        &self,
        sequences: &[Sequence],
        message: &[u8],
        gaps: &Gaps,
        writer: &mut BitWriter<'_>,
    ) {
        self.write_head(writer);
        match self.codes() {
            Some(codes) => write_sequences(sequences, message, codes, gaps, writer),
            None => write_stored_rest(message, writer),
        }
    }
}

impl Dynamic {
    fn new(histogram: &Histogram) -> Self {
        let mut weighted = histogram.distances;
        for (symbol, weight) in weighted.iter_mut().enumerate() {
            *weight += histogram.possible >> symbol & 1;
        }
        let mut counts = histogram.literals;
        smooth(&mut counts[..286]);
        smooth(&mut weighted[..30]);
        let mut literals = [0; LITERALS];
        let mut distances = [0; DISTANCES];
        let mut codes = Codes::default();
        huffman::build(&counts[..286], 15, &mut literals, &mut codes.literals);
        huffman::build(&weighted[..30], 15, &mut distances, &mut codes.distances);
        let farther = histogram.possible.trailing_zeros() as usize;
        Self { codes, header: DynamicHeader::new(&literals, &distances), farther }
    }
}

/// Makes counts of neighbours that hardly differ equal: codes of the same length take few bits to
/// describe, and in a short block the differences save less than they take. Zopfli and brotli do the same. A symbol
/// that occurs keeps a code, and unused symbols between used ones get one.
fn smooth(counts: &mut [u32]) {
    let end = counts.iter().rposition(|count| *count > 0).map_or(0, |last| last + 1);
    let mut at = 0;
    while at < end {
        let to = at + alike(&counts[at..end]);
        if to == at {
            at += counts[at..end].iter().take_while(|count| **count == 0).count();
            continue;
        }
        let neighbours = &mut counts[at..to];
        let sum = neighbours.iter().sum::<u32>();
        let number = neighbours.len() as u32;
        if number >= ALIKE && sum > 0 {
            neighbours.fill(((sum + number / 2) / number).max(1));
        }
        at = to;
    }
}

/// The number of first counts that hardly differ; 0 if many zeros begin, which already take few
/// bits.
fn alike(counts: &[u32]) -> usize {
    let level =
        counts.first_chunk::<4>().map_or(counts[0], |next| (next.iter().sum::<u32>() + 2) / 4);
    let mut zeros = 0;
    for (at, count) in counts.iter().enumerate() {
        if at > 0 && count.abs_diff(level) >= NEAR {
            return at;
        }
        zeros = if *count == 0 { zeros + 1 } else { 0 };
        if zeros == ZEROS {
            return at + 1 - ZEROS;
        }
    }
    counts.len()
}

/// Writes the end of a message: an empty stored block up to its cut-off tail (RFC 7692 §7.2.1).
pub(crate) fn write_flush(writer: &mut BitWriter<'_>) {
    writer.put(0, 3);
    writer.align();
}

/// The largest size of a message of `bytes` bytes, with blocks of at least `block` bytes.
pub(crate) fn room(bytes: usize, block: usize) -> usize {
    // A stored block costs a byte for its bits and four for its length, and no form costs more.
    bytes + (bytes / block + 1) * 6 + 2 + SLACK_BYTES
}

/// Writes a sync flush with its tail, as streams contain it.
pub(crate) fn write_sync_flush(writer: &mut BitWriter<'_>) {
    write_flush(writer);
    writer.bytes(&FLUSH_TAIL);
}

/// Begins a block with the static codes.
pub(crate) fn write_fixed_head(writer: &mut BitWriter<'_>) {
    writer.put(FIXED_HEAD, HEAD_BITS);
}

/// Writes literals with the static codes.
pub(crate) fn write_fixed(literals: &[u8], writer: &mut BitWriter<'_>) {
    let codes = literals.iter().map(|byte| STATIC.literals[usize::from(*byte)]);
    writer.put_all(codes.map(|code| (code.bits(), code.count())));
}

/// Writes a copy of 3 to 258 bytes with the static codes.
pub(crate) fn write_fixed_copy(length: usize, distance: usize, writer: &mut BitWriter<'_>) {
    let copy = Token::copy(length, distance);
    writer.put_all(std::iter::once(token_bits(copy, &STATIC, &Gaps::NONE)));
}

/// Ends a block with the static codes.
pub(crate) fn write_fixed_end(writer: &mut BitWriter<'_>) {
    let end = STATIC.literals[END_OF_BLOCK];
    writer.put(end.bits(), end.count());
}

/// Writes the rest of a stored block, after its head.
fn write_stored_rest(plaintext: &[u8], writer: &mut BitWriter<'_>) {
    writer.align();
    let len = plaintext.len() as u16;
    writer.put(u64::from(len) | u64::from(!len) << 16, 32);
    writer.bytes(plaintext);
}

/// Writes a stored block of at most 65535 bytes.
pub(crate) fn write_stored(plaintext: &[u8], writer: &mut BitWriter<'_>) {
    writer.put(STORED_HEAD, HEAD_BITS);
    write_stored_rest(plaintext, writer);
}

/// Header and alignment, seven bits in the worst case.
fn stored_cost(bytes: usize) -> u32 {
    (bytes as u32 + 4) * 8 + 7
}

fn write_sequences(
    sequences: &[Sequence],
    message: &[u8],
    codes: &Codes,
    gaps: &Gaps,
    writer: &mut BitWriter<'_>,
) {
    writer.put_all(runs(sequences, message).flat_map(|(literals, token)| {
        let literals = literals.iter().map(|byte| {
            let code = codes.literals[usize::from(*byte)];
            (code.bits(), code.count())
        });
        literals.chain([token_bits(token, codes, gaps)])
    }));
}

/// The bits of a token and their number, at most 48.
#[inline(always)] // once per token
fn token_bits(token: Token, codes: &Codes, gaps: &Gaps) -> (u64, u32) {
    let entry = token.entry();
    let code = codes.literals[entry as usize & 0x1ff];
    let mut bits = code.bits() | u64::from(entry >> 24) << code.count();
    let mut count = code.count() + (entry >> 16 & 0xff);
    if token.is_copy() {
        let (symbol, extra, value) = distance_symbol(token.distance(gaps));
        let code = codes.distances[symbol];
        bits |= code.bits() << count | value << (count + code.count());
        count += code.count() + extra;
    }
    (bits, count)
}

/// The lower bound of bits for any code, rounded down, and the number of symbols that occur.
fn entropy(counts: &[u32]) -> (u32, u32) {
    let mut total = 0;
    let mut sum = 0;
    let mut symbols = 0;
    for counts in counts.as_chunks::<8>().0 {
        // Texts do not use whole ranges of bytes.
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

/// How often neighbours differ in order of magnitude, and so get codes of different lengths.
#[inline(never)] // of few blocks
fn steps(counts: &[u32]) -> u32 {
    let mut steps = 0;
    let mut last = 0;
    for counts in counts.as_chunks::<8>().0 {
        if *counts == [0; 8] {
            steps += u32::from(last > 0);
            last = 0;
            continue;
        }
        for count in counts {
            let magnitude = u32::BITS - count.leading_zeros();
            steps += u32::from(magnitude != last);
            last = magnitude;
        }
    }
    steps
}

/// The logarithm to base 2, in units of 2⁻⁸, rounded down; 0 for 0.
const fn log2(number: u32) -> u32 {
    if number == 0 {
        return 0;
    }
    let whole = number.ilog2();
    // Squaring a number between 1 and 2 doubles its logarithm: each time gives one more bit of it.
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

/// The bits of BFINAL, which is 0, and BTYPE (RFC 1951 §3.2.3).
pub(crate) const HEAD_BITS: u32 = 3;
const STORED_HEAD: u64 = 0b00 << 1;
pub(crate) const FIXED_HEAD: u64 = 0b01 << 1;
const DYNAMIC_HEAD: u64 = 0b10 << 1;

/// The valid distance symbols.
const POSSIBLE: u32 = (1 << 30) - 1;

/// Dynamic codes save some four bits per literal and six per copy, and their description
/// takes more than this many bits when distances are not known. Of 36,000 publications (example
/// `encoder`) seven below the limit would have been a few bits shorter.
const FEW: u32 = 300;

/// Gaps whose distances are counted; each but the first is about 1.4 times as wide as the one before,
/// because a power of two has two symbols.
const WIDTHS: usize = 5;

/// Smallest gap (the length of the previous publication) for which one width less is counted. That saves 0.2 to 0.3 %
/// on events and game snapshots of 1.6 KB, and takes 0.2 % more on chat of 0.5 KB (example `encoder`, since removed).
const LONG: u32 = 1 << 10;

/// Wide enough that no distance in a message at this gap exceeds the largest window.
const GAP_MAX: u32 = 16 << 10;

/// Bits of a dynamic block beyond the entropy of its symbols: counts, code lengths of
/// code lengths, and the loss of whole bits; with three quarters of a bit for each literal symbol and
/// thirteen for each distance symbol. With the steps, this avoids seven of eight needless trials of ticks in context
/// and half of those of chat, and no corpus takes 0.1 % more bytes (example `encoder`, since removed).
const HEADER_BITS: u32 = 92;
/// Bits that a change of the code length takes in the description.
const STEP_BITS: u32 = 2;

/// Counts in a row of at least this many that differ by less than this from the first four are made equal: with 3 or
/// 6 instead either game snapshots or chat take up to 0.4 % more bytes (example `encoder`, since removed).
const NEAR: u32 = 4;
const ALIKE: u32 = 4;
/// This many zeros stay unchanged.
const ZEROS: usize = 5;

#[cfg(test)]
mod tests;
