//! One publication, and the parses that its peers share.
//! Made by `history`; a shard requests a depth → a parse, made once per depth.
//! Immutable except for write-once slots; holds no plaintext.
//! Changed here: which depths there are. Which one fits a peer is decided in `window`.

use std::ops::Range;
use std::sync::OnceLock;

use super::Parse;

/// The part of one publication in one encoding that all shards share.
pub struct Publication {
    /// Numbers of one history are consecutive; no two histories share one.
    pub(super) sequence: u64,
    pub(super) bytes: u32,
    /// Length of the previous publication.
    pub(super) previous_bytes: u32,
    /// Deepest first; unused ones have depth 0.
    pub(super) runs: [RunLength; RUN_LENGTHS],
    /// Depth for peers with other messages in between, at most [`DEPTH_MAX`].
    pub(super) depth: u8,
    /// The part of the previous publication that some peers got embedded; empty for none.
    pub(super) embedded: Range<u16>,
    parses: [OnceLock<Option<Parse>>; Depth::COUNT],
}

/// A number of earlier publications that lie without a break before the message.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct RunLength {
    pub(super) depth: u16,
    pub(super) bytes: u32,
}

/// The earlier publications to which a parse refers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Depth {
    /// None: the frame stands alone.
    Alone,
    /// None, and distances stay within a window of this many bits (8 to 14), because the message
    /// itself is longer.
    AloneWithin(u8),
    /// The newest one, wherever it is in the window.
    Newest,
    /// The newest one, for large messages: each copy comes from about the same position in that one, which may
    /// therefore be at the very end of the window.
    Far,
    /// The number that the history offers to peers with several channels.
    Several,
    /// Three quarters as many, at least three, for peers that have no more in their window.
    Most,
    /// Half as many, at least two, for peers that have no more in their window.
    Half,
    /// An unbroken run of publications; the index of one of the lengths offered.
    Run(u8),
    /// The embedded part of the newest one.
    Embedded,
}

impl Depth {
    /// Number of depths.
    pub const COUNT: usize = 7 + RUN_LENGTHS + WINDOWS;

    /// Depths with a gap for each publication, deepest first.
    pub(super) const SCATTERED: [Self; 5] =
        [Self::Several, Self::Most, Self::Half, Self::Newest, Self::Far];

    /// All depths, in the order of their indices.
    pub fn all() -> impl Iterator<Item = Self> {
        let runs = (0..RUN_LENGTHS as u8).map(Self::Run);
        let windows = (8..8 + WINDOWS as u8).map(Self::AloneWithin);
        [Self::Alone, Self::Newest, Self::Several, Self::Most, Self::Half]
            .into_iter()
            .chain(runs)
            .chain(windows)
            .chain([Self::Embedded, Self::Far])
    }

    /// Dense index below [`COUNT`](Self::COUNT).
    pub fn index(self) -> usize {
        match self {
            Self::Alone => 0,
            Self::Newest => 1,
            Self::Several => 2,
            Self::Most => 3,
            Self::Half => 4,
            Self::Run(run) => 5 + usize::from(run),
            Self::AloneWithin(window_bits) => 5 + RUN_LENGTHS + usize::from(window_bits - 8),
            Self::Embedded => 5 + RUN_LENGTHS + WINDOWS,
            Self::Far => 6 + RUN_LENGTHS + WINDOWS,
        }
    }
}

impl Publication {
    pub(super) fn new(sequence: u64, bytes: u32) -> Self {
        let parses = std::array::from_fn(|_| OnceLock::new());
        let runs = [RunLength::default(); RUN_LENGTHS];
        Self { sequence, bytes, previous_bytes: 0, runs, depth: 0, embedded: 0..0, parses }
    }

    /// Bytes of plaintext.
    pub fn bytes(&self) -> usize {
        self.bytes as usize
    }

    /// The parse of this depth; the first call makes it with `make`.
    ///
    /// `make` uses the history, which may no longer hold the publication. Then this returns `None`, now and later, and
    /// the message must be sent standalone.
    pub fn parse(&self, depth: Depth, make: impl FnOnce() -> Option<Parse>) -> Option<&Parse> {
        self.parses[depth.index()].get_or_init(make).as_ref()
    }

    /// Whether some peer may get a frame of this depth.
    pub fn offers(&self, depth: Depth) -> bool {
        match depth {
            Depth::Alone => true,
            Depth::AloneWithin(window_bits) => self.bytes() > 1 << window_bits,
            _ => self.depth(depth) > 0,
        }
    }

    /// How many bytes farther back than its gap a copy may begin.
    pub(super) fn shift_max(&self, depth: Depth) -> usize {
        if depth == Depth::Far { self.bytes() / FAR_SHARE } else { self.bytes() }
    }

    /// The number of earlier publications at this depth.
    pub fn depth(&self, depth: Depth) -> usize {
        match depth {
            Depth::Alone | Depth::AloneWithin(_) => 0,
            Depth::Newest => 1,
            Depth::Far => usize::from(self.depth > 0 && self.bytes() >= LARGE_BYTES),
            Depth::Embedded => usize::from(!self.embedded.is_empty()),
            Depth::Several => usize::from(self.depth),
            Depth::Most if self.depth >= 4 => usize::from(self.depth / 4 * 3),
            Depth::Half if self.depth >= 4 => usize::from(self.depth / 2),
            Depth::Most | Depth::Half => 0,
            Depth::Run(run) => usize::from(self.runs[usize::from(run)].depth),
        }
    }
}

/// Publications that a frame for peers with several channels may refer to, each with its own gap.
pub const DEPTH_MAX: usize = 8;

/// Smallest message for [`Depth::Far`], in bytes. With smaller messages a window hardly ever ends earlier.
const LARGE_BYTES: usize = 1 << 10;

/// States that change slowly take no more bytes with a shift of an eighth (example `encoder`, since removed).
const FAR_SHARE: usize = 8;

/// Window bits from 8 to 14.
const WINDOWS: usize = 7;

/// Lengths of runs that are offered: `RUN_DEPTHS`.
pub(super) const RUN_LENGTHS: usize = 4;
/// Largest number of publications in each offered run: all that the window holds, and three shorter ones for peers that
/// joined recently.
pub const RUN_DEPTHS: [u16; RUN_LENGTHS] = [u16::MAX, 16, 4, 1];
