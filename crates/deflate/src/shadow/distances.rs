//! The largest distance that a payload refers to (RFC 1951 §3.2.5), read without decompressing it.
//! Payload with its flush tail → the distance, or nothing when it is corrupt.
//! Pure; allocates nothing; made to be short and plain, not fast.
//! Changed here: only if it differs from RFC 1951. Which distance is too large is decided in `shadow`.

use crate::header::ORDER;
use crate::tables::{DISTANCES, END_OF_BLOCK, LITERALS};

/// The largest distance of all copies, 0 if there are none; `None` if `payload` is not a sequence of
/// whole blocks.
pub(super) fn largest(payload: &[u8]) -> Option<usize> {
    let mut reader = BitReader { payload, bit: 0, largest: 0 };
    while reader.bit < payload.len() * 8 {
        reader.bits(1)?; // BFINAL
        match reader.bits(2)? {
            0 => reader.stored()?,
            1 => {
                let lengths = std::array::from_fn(|symbol| match symbol {
                    0..144 | 280.. => 8,
                    144..256 => 9,
                    _ => 7,
                });
                reader.symbols(&Code::new(&lengths), &Code::new(&[5; DISTANCES]))?;
            }
            2 => reader.dynamic()?,
            _ => return None,
        }
    }
    Some(reader.largest)
}

struct BitReader<'a> {
    payload: &'a [u8],
    bit: usize,
    largest: usize,
}

impl BitReader<'_> {
    fn bits(&mut self, count: usize) -> Option<usize> {
        let mut value = 0;
        for place in 0..count {
            let byte = usize::from(*self.payload.get(self.bit / 8)?);
            value |= (byte >> (self.bit % 8) & 1) << place;
            self.bit += 1;
        }
        Some(value)
    }

    fn stored(&mut self) -> Option<()> {
        self.bit = self.bit.next_multiple_of(8);
        let bytes = self.bits(16)?;
        self.bits(16)?;
        self.bit += bytes * 8;
        (self.bit <= self.payload.len() * 8).then_some(())
    }

    fn dynamic(&mut self) -> Option<()> {
        let literals = 257 + self.bits(5)?;
        let distances = 1 + self.bits(5)?;
        let count = 4 + self.bits(4)?;
        let mut lengths = [0; ORDER.len()];
        for symbol in &ORDER[..count] {
            lengths[*symbol] = self.bits(3)? as u8;
        }
        let code = Code::new(&lengths);
        let mut lengths = [0; LITERALS + DISTANCES];
        let mut at = 0;
        while at < literals + distances {
            let (repeat, length) = match self.symbol(&code)? {
                16 => (3 + self.bits(2)?, lengths[at.checked_sub(1)?]),
                17 => (3 + self.bits(3)?, 0),
                18 => (11 + self.bits(7)?, 0),
                length => (1, length as u8),
            };
            lengths.get_mut(at..at + repeat)?.fill(length);
            at += repeat;
        }
        let (literal_lengths, rest) = lengths.split_at(literals.min(LITERALS));
        let mut of_literals = [0; LITERALS];
        of_literals[..literal_lengths.len()].copy_from_slice(literal_lengths);
        let mut of_distances = [0; DISTANCES];
        of_distances[..distances].copy_from_slice(rest.get(..distances)?);
        self.symbols(&Code::new(&of_literals), &Code::new(&of_distances))
    }

    /// Reads symbols up to the end of the block.
    fn symbols(&mut self, literals: &Code<LITERALS>, distances: &Code<DISTANCES>) -> Option<()> {
        loop {
            let symbol = self.symbol(literals)?;
            if symbol < END_OF_BLOCK {
                continue;
            }
            if symbol == END_OF_BLOCK {
                return Some(());
            }
            // Four symbols for each number of extra bits, except the first eight and the last.
            let extra = match symbol - 257 {
                0..8 | 28.. => 0,
                length => length / 4 - 1,
            };
            self.bits(extra)?;
            let distance = self.distance(distances)?;
            self.largest = self.largest.max(distance);
        }
    }

    fn distance(&mut self, distances: &Code<DISTANCES>) -> Option<usize> {
        let symbol = self.symbol(distances)?;
        // Two symbols for each number of extra bits, except the first two.
        let extra = (symbol / 2).saturating_sub(1);
        let base = if symbol < 2 { symbol } else { (2 + symbol % 2) << extra };
        Some(1 + base + self.bits(extra)?)
    }

    fn symbol<const SYMBOLS: usize>(&mut self, code: &Code<SYMBOLS>) -> Option<usize> {
        let mut bits = 0;
        let mut first = 0;
        let mut index = 0;
        for count in &code.counts[1..] {
            bits |= self.bits(1)?;
            let count = usize::from(*count);
            if bits < first + count {
                return code.symbols.get(index + bits - first).map(|symbol| usize::from(*symbol));
            }
            index += count;
            first = (first + count) << 1;
            bits <<= 1;
        }
        None
    }
}

/// A canonical code (§3.2.2).
struct Code<const SYMBOLS: usize> {
    /// Number of codes by length.
    counts: [u16; 16],
    /// Symbols in the order of their codes.
    symbols: [u16; SYMBOLS],
}

impl<const SYMBOLS: usize> Code<SYMBOLS> {
    fn new(lengths: &[u8; SYMBOLS]) -> Self {
        let mut code = Self { counts: [0; 16], symbols: [0; SYMBOLS] };
        let mut at = 0;
        for length in 1..16u8 {
            for symbol in (0..SYMBOLS).filter(|symbol| lengths[*symbol] == length) {
                code.symbols[at] = symbol as u16;
                code.counts[usize::from(length)] += 1;
                at += 1;
            }
        }
        code
    }
}
