//! The oracle: an independent DEFLATE decoder, small and slow, after the text of RFC 1951.
//! Bytes → plaintext, whether a final block was seen, and the bytes read; or `None` when invalid.
//! Uses nothing.
//! Changed here: only if it differs from RFC 1951.

/// Decodes a message payload with its flush tail appended again.
///
/// `None` when the data is invalid or ends inside a block.
pub(crate) fn inflate(data: &[u8]) -> Option<Plain> {
    inflate_within(data, &[], 1 << 15)
}

/// Inflates as [`inflate`] does, after the `window` of earlier messages, with distances of at most `distance_max`.
pub(crate) fn inflate_within(data: &[u8], window: &[u8], distance_max: usize) -> Option<Plain> {
    let mut puff = Puff { data, bit: 0, out: window.to_vec(), distance_max };
    let mut final_blocks = 0;
    let mut is_final = false;
    while puff.bit < data.len() * 8 {
        is_final = puff.bits(1)? == 1;
        puff.block()?;
        if is_final {
            final_blocks += 1;
            puff.bit = puff.bit.next_multiple_of(8);
        }
    }
    Some(Plain { bytes: puff.out.split_off(window.len()), final_blocks, is_final })
}

pub(crate) struct Plain {
    pub(crate) bytes: Vec<u8>,
    pub(crate) final_blocks: u32,
    /// Whether the last block is final.
    pub(crate) is_final: bool,
}

struct Puff<'a> {
    data: &'a [u8],
    bit: usize,
    out: Vec<u8>,
    distance_max: usize,
}

impl Puff<'_> {
    fn bits(&mut self, count: u32) -> Option<u32> {
        let mut value = 0;
        for place in 0..count {
            let byte = *self.data.get(self.bit / 8)?;
            value |= u32::from(byte >> (self.bit % 8) & 1) << place;
            self.bit += 1;
        }
        Some(value)
    }

    fn block(&mut self) -> Option<()> {
        match self.bits(2)? {
            0 => self.stored(),
            1 => {
                let mut lengths = [8; 288];
                lengths[144..256].fill(9);
                lengths[256..280].fill(7);
                self.codes(&Code::new(&lengths)?, &Code::new(&[5; 30])?)
            }
            2 => self.dynamic(),
            _ => None,
        }
    }

    fn stored(&mut self) -> Option<()> {
        self.bit = self.bit.next_multiple_of(8);
        let (len, complement) = (self.bits(16)?, self.bits(16)?);
        if len != !complement & 0xffff {
            return None;
        }
        let start = self.bit / 8;
        let end = start + len as usize;
        self.out.extend_from_slice(self.data.get(start..end)?);
        self.bit = end * 8;
        Some(())
    }

    fn dynamic(&mut self) -> Option<()> {
        const ORDER: [usize; 19] =
            [16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15];
        let literals = self.bits(5)? as usize + 257;
        let distances = self.bits(5)? as usize + 1;
        let count = self.bits(4)? as usize + 4;
        if literals > 286 || distances > 30 {
            return None;
        }
        let mut lengths = [0; 19];
        for &symbol in &ORDER[..count] {
            lengths[symbol] = self.bits(3)? as u8;
        }
        let code = Code::new(&lengths).filter(|code| code.left == 0)?;
        let mut lengths = Vec::new();
        while lengths.len() < literals + distances {
            let (repeat, value) = match self.symbol(&code)? {
                symbol @ 0..16 => (1, symbol as u8),
                16 => (3 + self.bits(2)?, *lengths.last()?),
                17 => (3 + self.bits(3)?, 0),
                _ => (11 + self.bits(7)?, 0),
            };
            lengths.extend(std::iter::repeat_n(value, repeat as usize));
        }
        if lengths.len() > literals + distances || lengths[256] == 0 {
            return None;
        }
        let (literals, distances) = lengths.split_at(literals);
        let single = |lengths: &[u8]| lengths.iter().all(|length| *length <= 1);
        let whole =
            |lengths: &[u8]| Code::new(lengths).filter(|code| code.left == 0 || single(lengths));
        self.codes(&whole(literals)?, &whole(distances)?)
    }

    fn codes(&mut self, literals: &Code, distances: &Code) -> Option<()> {
        loop {
            let symbol = self.symbol(literals)?;
            match symbol {
                0..256 => self.out.push(symbol as u8),
                256 => return Some(()),
                _ => {
                    let (base, extra) = *LENGTHS.get(symbol - 257)?;
                    let length = usize::from(base) + self.bits(extra)? as usize;
                    let symbol = self.symbol(distances)?;
                    let (base, extra) = *DISTANCES.get(symbol)?;
                    let distance = usize::from(base) + self.bits(extra)? as usize;
                    if distance > self.distance_max {
                        return None;
                    }
                    for _ in 0..length {
                        let from = self.out.len().checked_sub(distance)?;
                        self.out.push(self.out[from]);
                    }
                }
            }
        }
    }

    fn symbol(&mut self, code: &Code) -> Option<usize> {
        let (mut value, mut first, mut index) = (0, 0, 0);
        for length in 1..16 {
            value |= self.bits(1)? as usize;
            let count = code.counts[length];
            if value < first + count {
                return Some(code.symbols[index + value - first]);
            }
            index += count;
            first = (first + count) << 1;
            value <<= 1;
        }
        None
    }
}

/// A canonical Huffman code (RFC 1951 §3.2.2).
struct Code {
    counts: [usize; 16],
    symbols: Vec<usize>,
    /// Unused codes of 15 bits: 0 when the code is complete.
    left: i32,
}

impl Code {
    fn new(lengths: &[u8]) -> Option<Self> {
        let mut counts = [0; 16];
        for length in lengths {
            counts[usize::from(*length)] += 1;
        }
        counts[0] = 0;
        let mut left = 1;
        for count in &counts[1..] {
            left = left * 2 - *count as i32;
            if left < 0 {
                return None;
            }
        }
        let mut symbols: Vec<usize> = (0..lengths.len()).filter(|at| lengths[*at] != 0).collect();
        symbols.sort_by_key(|symbol| lengths[*symbol]);
        Some(Self { counts, symbols, left })
    }
}

/// Base and extra bits of the length codes from 257 (RFC 1951 §3.2.5).
#[rustfmt::skip]
const LENGTHS: [(u16, u32); 29] = [
    (3, 0), (4, 0), (5, 0), (6, 0), (7, 0), (8, 0), (9, 0), (10, 0), (11, 1), (13, 1),
    (15, 1), (17, 1), (19, 2), (23, 2), (27, 2), (31, 2), (35, 3), (43, 3), (51, 3), (59, 3),
    (67, 4), (83, 4), (99, 4), (115, 4), (131, 5), (163, 5), (195, 5), (227, 5), (258, 0),
];

/// Base and extra bits of the distance codes.
#[rustfmt::skip]
const DISTANCES: [(u16, u32); 30] = [
    (1, 0), (2, 0), (3, 0), (4, 0), (5, 1), (7, 1), (9, 2), (13, 2), (17, 3), (25, 3),
    (33, 4), (49, 4), (65, 5), (97, 5), (129, 6), (193, 6), (257, 7), (385, 7), (513, 8), (769, 8),
    (1025, 9), (1537, 9), (2049, 10), (3073, 10), (4097, 11), (6145, 11), (8193, 12), (12289, 12),
    (16385, 13), (24577, 13),
];
