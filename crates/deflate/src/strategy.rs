//! The strategies of zlib for a compressor of one connection.
//! A strategy and a range of a window → sequences, for strategies without a search by hash.
//! Pure; uses `window` and `token`.
//! Changed here: how a strategy parses. Which codes a block gets is `block`, hash chains are `matcher`.

use crate::block::{Histogram, Plan};
use crate::level::Effort;
use crate::matcher::Parser;
use crate::prefix::common;
use crate::tables::LENGTH_MAX;
use crate::token::{Sequences, Token};
use crate::window::Window;

/// The strategies of zlib's `deflateInit2`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Strategy {
    /// The strategy for texts and most other data.
    #[default]
    Default,
    /// The strategy for values with a somewhat random distribution, such as the output of a filter: only copies of at least six bytes.
    Filtered,
    /// No copies at all.
    HuffmanOnly,
    /// Only runs of one byte.
    Rle,
    /// The same as `Default`, but with the static codes only, which are simpler to decode.
    Fixed,
}

impl Strategy {
    /// The names in the configuration, as [`named`](Self::named) reads them.
    pub const NAMES: [&'static str; 5] = ["default", "filtered", "huffman_only", "rle", "fixed"];

    /// The strategy of a name; `None` for anything not in [`NAMES`](Self::NAMES).
    pub fn named(name: &str) -> Option<Self> {
        let all = [Self::Default, Self::Filtered, Self::HuffmanOnly, Self::Rle, Self::Fixed];
        Self::NAMES.iter().zip(all).find_map(|(known, one)| (*known == name).then_some(one))
    }

    /// Adds the range from `start` to the end of the window, with distances of at most `1 << window_bits`.
    pub(crate) fn parse(
        self,
        window: &Window,
        start: usize,
        window_bits: u8,
        effort: Effort,
        sequences: &mut Sequences,
    ) {
        match self {
            Self::Default | Self::Filtered | Self::Fixed => {
                let parser = Parser::new(window, 0, start, effort).within(window_bits);
                let least = if self == Self::Filtered { FILTERED_LENGTH_MIN } else { 0 };
                parser.of_at_least(least).parse(window.len(), 0, sequences);
            }
            Self::HuffmanOnly => sequences.literals(window.len() - start),
            Self::Rle => parse_runs(window.bytes(), start, sequences),
        }
    }

    pub(crate) fn plan(self, block: &Histogram, bytes: usize) -> Plan {
        if self == Self::Fixed { Plan::fixed(block, bytes) } else { Plan::new(block, bytes) }
    }
}

fn parse_runs(bytes: &[u8], start: usize, sequences: &mut Sequences) {
    let mut at = start;
    while at < bytes.len() {
        let end = bytes.len().min(at + LENGTH_MAX);
        let run = if at > 0 { common(&bytes[at - 1..], &bytes[at..end]) } else { 0 };
        if run < RUN_LENGTH_MIN {
            sequences.literals(1);
            at += 1;
        } else {
            sequences.copy(Token::copy(run, 1));
            at += run;
        }
    }
}

const FILTERED_LENGTH_MIN: usize = 6;
const RUN_LENGTH_MIN: usize = 3;

#[cfg(test)]
mod tests;
