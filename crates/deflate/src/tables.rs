//! The fixed numbers of DEFLATE (RFC 1951 §3.2.5, §3.2.6): symbols of lengths and distances.
//! A length or a distance → its symbol, its extra bits and their value; the static codes.
//! Constants and pure functions; uses nothing.
//! Changed here: only if it differs from RFC 1951. Dynamic codes are `huffman`.

/// A bit pattern ready for the writer: the code, lowest bit first, and its bit count above it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Code(u32);

impl Code {
    /// `bits` is already reversed, as RFC 1951 §3.1.1 packs Huffman codes; at most 15 of them.
    pub(crate) const fn new(bits: u16, count: u8) -> Self {
        Self(bits as u32 | (count as u32) << 16)
    }

    #[inline]
    pub(crate) const fn bits(self) -> u64 {
        (self.0 & 0xffff) as u64
    }

    /// Number of bits; 0 when the symbol is not in use.
    #[inline]
    pub(crate) const fn count(self) -> u32 {
        self.0 >> 16
    }
}

/// The code of every literal, length and distance symbol in one block.
#[derive(Clone)]
pub(crate) struct Codes {
    pub(crate) literals: [Code; LITERALS],
    pub(crate) distances: [Code; DISTANCES],
}

impl Default for Codes {
    fn default() -> Self {
        Self { literals: [Code(0); LITERALS], distances: [Code(0); DISTANCES] }
    }
}

/// Literal and length symbols, with the two that never occur (RFC 1951 §3.2.6).
pub(crate) const LITERALS: usize = 288;

/// Distance symbols, with the two that never occur, so that five bits always are an index.
pub(crate) const DISTANCES: usize = 32;

pub(crate) const END_OF_BLOCK: usize = 256;

pub(crate) const LENGTH_MIN: usize = 3;
pub(crate) const LENGTH_MAX: usize = 258;

/// The symbol, the extra bits and their value for `distance` (1..=32768).
#[inline]
pub(crate) const fn distance_symbol(distance: u32) -> (usize, u32, u64) {
    let value = distance.wrapping_sub(1) & 0x7fff;
    // Two symbols for each power of two: the bit below the highest one selects the symbol.
    let extra = 30 - (value | 2).leading_zeros();
    let symbol = 2 * extra + (value >> extra);
    (symbol as usize, extra, (value & ((1 << extra) - 1)) as u64)
}

/// Extra bits of a distance symbol.
pub(crate) const fn distance_extra(symbol: usize) -> u32 {
    (symbol as u32 / 2).saturating_sub(1)
}

/// Extra bits of a length symbol less 257.
pub(crate) const fn length_extra(symbol: usize) -> u32 {
    if symbol < 28 { (symbol as u32 / 4).saturating_sub(1) } else { 0 }
}

/// The parts of a length, by length − 3: symbol in the low 16 bits, then 8 bits with the number
/// of extra bits, then 8 bits with their value.
pub(crate) const LENGTHS: [u32; 256] = {
    let mut table = [0; 256];
    let mut at = 0;
    while at < 256 {
        table[at] = length_entry(at as u32);
        at += 1;
    }
    table
};

const fn length_entry(value: u32) -> u32 {
    if value == 255 {
        return 285; // 258 has a symbol of its own, without extra bits.
    }
    if value < 8 {
        return 257 + value;
    }
    // Four symbols for each power of two.
    let extra = 29 - value.leading_zeros();
    let symbol = 257 + 4 * extra + (value >> extra);
    symbol | extra << 16 | (value & ((1 << extra) - 1)) << 24
}

/// The static codes (RFC 1951 §3.2.6).
pub(crate) static STATIC: Codes = {
    let mut literals = [Code(0); LITERALS];
    let mut symbol = 0;
    while symbol < LITERALS {
        let (code, count) = match symbol as u16 {
            0..144 => (0x30 + symbol as u16, 8),
            144..256 => (0x190 + symbol as u16 - 144, 9),
            256..280 => (symbol as u16 - 256, 7),
            _ => (0xc0 + symbol as u16 - 280, 8),
        };
        literals[symbol] = Code::new(code.reverse_bits() >> (16 - count), count as u8);
        symbol += 1;
    }
    let mut distances = [Code(0); DISTANCES];
    let mut symbol = 0;
    while symbol < DISTANCES {
        distances[symbol] = Code::new((symbol as u16).reverse_bits() >> 11, 5);
        symbol += 1;
    }
    Codes { literals, distances }
};

#[cfg(test)]
mod tests;
