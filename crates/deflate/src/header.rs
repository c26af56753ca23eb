//! The description of the codes in front of a dynamic block (RFC 1951 §3.2.7).
//! Code lengths → the run-length coded list that a decoder rebuilds them from, and its cost.
//! Pure; allocates nothing.
//! Changed here: how runs of equal lengths are cut. The codes themselves are `huffman`.

use crate::bits::BitWriter;
use crate::huffman;
use crate::tables::{Code, DISTANCES, LITERALS};

/// The codes of a block, as sent to a decoder.
#[derive(Clone)]
pub(crate) struct DynamicHeader {
    /// Symbol in the low 8 bits, the value of its extra bits above.
    runs: [u16; LITERALS + DISTANCES],
    run_count: usize,
    literals: usize,
    distances: usize,
    codes: [Code; SYMBOLS],
    lengths: [u8; SYMBOLS],
    lengths_sent: usize,
    cost: u32,
}

impl DynamicHeader {
    /// Makes the header from the code lengths of all literals and distances.
    pub(crate) fn new(literals: &[u8; LITERALS], distances: &[u8; DISTANCES]) -> Self {
        let used = |lengths: &[u8], min: usize| {
            lengths.iter().rposition(|length| *length > 0).map_or(min, |at| min.max(at + 1))
        };
        let literal_count = used(literals, 257);
        let distance_count = used(distances, 1);
        let mut all = [0; LITERALS + DISTANCES];
        all[..literal_count].copy_from_slice(&literals[..literal_count]);
        let end = literal_count + distance_count;
        all[literal_count..end].copy_from_slice(&distances[..distance_count]);
        let mut header = Self {
            runs: [0; LITERALS + DISTANCES],
            run_count: 0,
            literals: literal_count,
            distances: distance_count,
            codes: [Code::default(); SYMBOLS],
            lengths: [0; SYMBOLS],
            lengths_sent: 0,
            cost: 0,
        };
        header.cut_runs(&all[..end]);
        header.plan();
        header
    }

    /// Bits of the whole header.
    pub(crate) fn cost(&self) -> u32 {
        self.cost
    }

    pub(crate) fn write(&self, writer: &mut BitWriter<'_>) {
        let counts =
            [self.literals - 257, (self.distances - 1) << 5, (self.lengths_sent - 4) << 10];
        writer.put(counts.iter().sum::<usize>() as u64, 14);
        for symbol in &ORDER[..self.lengths_sent] {
            writer.put(u64::from(self.lengths[*symbol]), 3);
        }
        for run in &self.runs[..self.run_count] {
            let symbol = usize::from(run & 0xff);
            let code = self.codes[symbol];
            let bits = code.bits() | u64::from(run >> 8) << code.count();
            writer.put(bits, code.count() + EXTRA_BITS[symbol]);
        }
    }

    fn cut_runs(&mut self, lengths: &[u8]) {
        let mut at = 0;
        while at < lengths.len() {
            let length = lengths[at];
            let run = lengths[at..].iter().take_while(|other| **other == length).count();
            at += run;
            if length == 0 {
                self.zeros(run);
            } else {
                self.push(length, 0);
                self.repeats(length, run - 1);
            }
        }
    }

    fn zeros(&mut self, mut run: usize) {
        while run >= 11 {
            let part = run.min(138);
            self.push(18, part - 11);
            run -= part;
        }
        if run >= 3 {
            self.push(17, run - 3);
            return;
        }
        (0..run).for_each(|_| self.push(0, 0));
    }

    fn repeats(&mut self, length: u8, mut run: usize) {
        while run >= 3 {
            let part = run.min(6);
            self.push(16, part - 3);
            run -= part;
        }
        (0..run).for_each(|_| self.push(length, 0));
    }

    fn push(&mut self, symbol: u8, extra: usize) {
        self.runs[self.run_count] = u16::from(symbol) | (extra as u16) << 8;
        self.run_count += 1;
    }

    fn plan(&mut self) {
        let mut counts = [0; SYMBOLS];
        for run in &self.runs[..self.run_count] {
            counts[usize::from(run & 0xff)] += 1;
        }
        huffman::build(&counts, 7, &mut self.lengths, &mut self.codes);
        let last = ORDER.iter().rposition(|symbol| self.lengths[*symbol] > 0);
        self.lengths_sent = last.map_or(4, |at| (at + 1).max(4));
        let runs = (0..SYMBOLS)
            .map(|symbol| counts[symbol] * (u32::from(self.lengths[symbol]) + EXTRA_BITS[symbol]));
        self.cost = 14 + 3 * self.lengths_sent as u32 + runs.sum::<u32>();
    }
}

/// Lengths 0 to 15, and three kinds of runs.
const SYMBOLS: usize = 19;
const EXTRA_BITS: [u32; SYMBOLS] = [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2, 3, 7];

/// The order in which the lengths of the codes of lengths are sent.
pub(crate) const ORDER: [usize; SYMBOLS] =
    [16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15];
