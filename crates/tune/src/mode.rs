//! The ways to send a message that are compared, in the order of the table.
//! In: the settings → out: modes with their names.
//! Uses the limits of the DEFLATE engine. Never: measures.
//! A mode is a variant here and a codec in `codec`.

use std::fmt;

use fanwire_deflate::gap::DEPTH_MAX;

/// One row of the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    Raw,
    Standalone {
        level: u8,
    },
    /// A compressor of its own for each connection.
    Dedicated {
        window_bits: u8,
        memory_level: u8,
    },
    /// Fossil's, perhaps compressed standalone.
    Delta {
        is_compressed: bool,
    },
    /// Gap coding for clients with this number of channels.
    Context {
        depth: ContextDepth,
        channels: usize,
    },
}

/// How many earlier publications a frame may refer to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ContextDepth {
    Publications(usize),
    /// The number that a decoder's window holds.
    Window,
}

/// Common part of rows; a heading of the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Group {
    Raw,
    Standalone,
    Dedicated,
    Delta,
    OneChannel,
    Interleaved,
}

impl Mode {
    pub(crate) fn group(self) -> Group {
        match self {
            Self::Raw => Group::Raw,
            Self::Standalone { .. } => Group::Standalone,
            Self::Dedicated { .. } => Group::Dedicated,
            Self::Delta { .. } => Group::Delta,
            Self::Context { channels: 1, .. } => Group::OneChannel,
            Self::Context { .. } => Group::Interleaved,
        }
    }

    /// The name of the mode where no heading stands above it.
    pub fn title(self) -> String {
        match self.group() {
            Group::Raw => self.to_string(),
            Group::Standalone => format!("standalone, {self}"),
            Group::Dedicated => format!("a compressor per connection, {self}"),
            Group::Delta => format!("Fossil delta, {self}"),
            Group::OneChannel => format!("gap coding, one channel, {self}"),
            Group::Interleaved => format!("gap coding, interleaved, {self}"),
        }
    }
}

/// All modes; `channels` is how many a client of the last group has.
pub(crate) fn all(channels: usize) -> Vec<Mode> {
    let standalone = (1..=9).map(|level| Mode::Standalone { level });
    let dedicated =
        CONTEXTS.map(|(window_bits, memory_level)| Mode::Dedicated { window_bits, memory_level });
    let delta = [false, true].map(|is_compressed| Mode::Delta { is_compressed });
    let context_depths =
        DEPTHS.map(ContextDepth::Publications).into_iter().chain([ContextDepth::Window]);
    let one = context_depths.map(|depth| Mode::Context { depth, channels: 1 });
    // Runs reach deeper, but other channels' messages lie between those of a run.
    let reachable = DEPTHS.into_iter().filter(|depth| *depth <= DEPTH_MAX && channels > 1);
    let several =
        reachable.map(|depth| Mode::Context { depth: ContextDepth::Publications(depth), channels });
    [Mode::Raw]
        .into_iter()
        .chain(standalone)
        .chain(dedicated)
        .chain(delta)
        .chain(one)
        .chain(several)
        .collect()
}

/// Every depth from 0 on, with the channels of the clients that it is for.
pub fn depths(channels: usize) -> impl Iterator<Item = (Mode, usize)> {
    let mode =
        |depth, channels| Mode::Context { depth: ContextDepth::Publications(depth), channels };
    let one = (0..=DEPTHS[DEPTHS.len() - 1]).map(move |depth| (mode(depth, 1), 1));
    let several = (0..=DEPTH_MAX).filter(move |_| channels > 1);
    one.chain(several.map(move |depth| (mode(depth, channels), channels)))
}

/// How many modes that makes.
pub fn count(channels: usize) -> usize {
    all(channels).len()
}

impl fmt::Display for Mode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Raw => f.write_str("raw"),
            Self::Standalone { level } => write!(f, "level {level}"),
            Self::Dedicated { window_bits, memory_level } => {
                write!(f, "window {window_bits}, memory {memory_level}")
            }
            Self::Delta { is_compressed: false } => f.write_str("alone"),
            Self::Delta { is_compressed: true } => f.write_str("and standalone"),
            Self::Context { depth: ContextDepth::Publications(depth), .. } => {
                write!(f, "K = {depth}")
            }
            Self::Context { depth: ContextDepth::Window, .. } => f.write_str("whole window"),
        }
    }
}

/// Window bits and memory levels that go together.
const CONTEXTS: [(u8, u8); 9] =
    [(9, 1), (9, 2), (10, 3), (11, 4), (12, 5), (13, 6), (14, 7), (15, 8), (15, 9)];

const DEPTHS: [usize; 6] = [0, 1, 2, 4, 8, 16];

#[cfg(test)]
mod tests;
