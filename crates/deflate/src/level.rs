//! The meaning of levels 1 (fastest) to 9 (smallest).
//! A level → the effort of the parser's search for copies.
//! A table; uses nothing.
//! Changed here: the figures, after a run of `cargo bench -p fanwire-bench --bench deflate`.

/// The effort of the search for copies.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Effort {
    /// Earlier positions compared for one position.
    pub(crate) chain: u32,
    /// A copy of this many bytes or more is taken without further search.
    pub(crate) nice: usize,
    /// A shorter copy is taken only if the next positions have no better one; 0: always taken.
    pub(crate) lazy: usize,
}

impl Effort {
    /// The effort of a level; levels outside 1 to 9 are limited to that range.
    pub(crate) fn of(level: u8) -> Self {
        EFFORTS[usize::from(level.clamp(1, 9)) - 1]
    }
}

const EFFORTS: [Effort; 9] = [
    Effort { chain: 2, nice: 16, lazy: 0 },
    Effort { chain: 4, nice: 24, lazy: 0 },
    Effort { chain: 8, nice: 32, lazy: 0 },
    Effort { chain: 8, nice: 32, lazy: 8 },
    Effort { chain: 16, nice: 48, lazy: 16 },
    Effort { chain: 32, nice: 64, lazy: 32 },
    Effort { chain: 64, nice: 96, lazy: 64 },
    Effort { chain: 256, nice: 160, lazy: 130 },
    Effort { chain: 1024, nice: 258, lazy: 258 },
];
