//! The output of the parser (RFC 1951 §3.2.5): runs of literals, each with a copy after it.
//! A copy inside the stream, or out of an earlier publication ↔ a number; sequences of them.
//! Pure; allocates only where the list of sequences grows; uses nothing but `tables`.
//! Changed here: the form of a token. The matcher is `matcher`, the bits are `block`.

use crate::tables::{END_OF_BLOCK, LENGTH_MIN, LENGTHS};

/// Either a copy of 3 to 258 bytes, or the end of the block.
///
/// A copy has a distance, or a position in an earlier publication of the channel, whose distance from the message
/// (the gap) differs by connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Token(u32);

impl Token {
    /// The end of the block.
    pub(crate) const END: Self = Self(0);

    /// A copy from `distance` (1..=32768) bytes back in the decoder's output.
    pub(crate) const fn copy(length: usize, distance: usize) -> Self {
        Self(COPY | ((length - LENGTH_MIN) as u32) << LENGTH_AT | (distance - 1) as u32)
    }

    /// A copy from `offset` in publication `source` (0 is the newest) to `position` in the message.
    ///
    /// Both are less than 32768, so that their difference fits.
    pub(crate) const fn copy_from(
        length: usize,
        source: usize,
        position: usize,
        offset: usize,
    ) -> Self {
        let value = (position + BIAS as usize - offset) as u32;
        let length = (length - LENGTH_MIN) as u32;
        Self(COPY | (source as u32 + 1) << SOURCE_AT | length << LENGTH_AT | value)
    }

    #[inline]
    pub(crate) const fn is_copy(self) -> bool {
        self.0 & COPY != 0
    }

    /// Whether this is a copy whose distance depends on the gaps.
    #[inline]
    pub(crate) const fn names_source(self) -> bool {
        self.0 >> SOURCE_AT & (SOURCES_MAX as u32 - 1) != 0
    }

    /// The number of bytes of the copy.
    #[inline]
    pub(crate) const fn bytes(self) -> usize {
        if self.is_copy() { (self.0 >> LENGTH_AT & 0xff) as usize + LENGTH_MIN } else { 0 }
    }

    /// The publication that a copy names, 0 for the newest.
    #[inline]
    pub(crate) fn source(self) -> Option<usize> {
        (self.0 >> SOURCE_AT & (SOURCES_MAX as u32 - 1))
            .checked_sub(1)
            .map(|source| source as usize)
    }

    /// The symbol and its extra bits, packed as in [`LENGTHS`].
    #[inline]
    pub(crate) fn entry(self) -> u32 {
        let length = LENGTHS[usize::from((self.0 >> LENGTH_AT) as u8)];
        if self.is_copy() { length } else { END_OF_BLOCK as u32 }
    }

    /// A copy from the same position, but of the shortest length.
    pub(crate) const fn shortest(self) -> Self {
        Self(self.0 & !(0xff << LENGTH_AT))
    }

    /// Returns at least five bits that differ for most copies from different positions.
    #[inline]
    pub(crate) fn hash(self) -> usize {
        (self.0.wrapping_mul(0x9e37_79b1) >> 27) as usize
    }

    /// The distance of a copy for a connection with these gaps.
    #[inline]
    pub(crate) fn distance(self, gaps: &Gaps) -> u32 {
        let base = gaps.0[(self.0 >> SOURCE_AT) as usize & (SOURCES_MAX - 1)];
        (self.0 & 0xffff).wrapping_add(base)
    }
}

/// A run of literal bytes, perhaps empty, and the token after it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Sequence {
    pub(crate) literals: u32,
    pub(crate) token: Token,
}

/// The sequences of a block, made one after the other.
#[derive(Default)]
pub(crate) struct Sequences {
    list: Vec<Sequence>,
    /// Literals after the last copy.
    literals: u32,
}

impl Sequences {
    /// Creates an empty list with memory for about `count` sequences.
    pub(crate) fn with_capacity(count: usize) -> Self {
        Self { list: Vec::with_capacity(count), literals: 0 }
    }

    /// Begins another block in the same memory.
    pub(crate) fn clear(&mut self) {
        *self = Self { list: std::mem::take(&mut self.list), literals: 0 };
        self.list.clear();
    }

    /// Adds `count` literals.
    #[inline]
    pub(crate) fn literals(&mut self, count: usize) {
        self.literals += count as u32;
    }

    /// Adds a copy.
    #[inline]
    pub(crate) fn copy(&mut self, token: Token) {
        self.list.push(Sequence { literals: self.literals, token });
        self.literals = 0;
    }

    /// All sequences; only the last one ends the block.
    pub(crate) fn end(&mut self) -> &[Sequence] {
        self.copy(Token::END);
        &self.list
    }

    /// Ends the list as [`end`](Self::end) does, and returns it.
    pub(crate) fn into_list(mut self) -> Vec<Sequence> {
        self.copy(Token::END);
        self.list
    }
}

/// The literals of each sequence out of `message`, its plaintext, and the token after them.
#[inline(always)] // a loop over each block
pub(crate) fn runs<'a>(
    sequences: &'a [Sequence],
    message: &'a [u8],
) -> impl Iterator<Item = (&'a [u8], Token)> {
    let mut rest = message;
    sequences.iter().map(move |sequence| {
        let (literals, after) = rest.split_at(sequence.literals as usize);
        rest = &after[sequence.token.bytes()..];
        (literals, sequence.token)
    })
}

/// The distances from the starts of earlier publications to the start of a message.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Gaps([u32; SOURCES_MAX]);

impl Gaps {
    /// Gaps for tokens that only have distances.
    pub(crate) const NONE: Self = {
        let mut bases = [0; SOURCES_MAX];
        bases[0] = 1;
        Self(bases)
    };

    /// `gaps[i]` is the number of plaintext bytes from the start of the publication `i` + 1 before
    /// the message to the start of the message; at most fifteen of them.
    pub(crate) fn new(gaps: &[u32]) -> Self {
        let mut bases = Self::NONE;
        for (base, gap) in bases.0[1..].iter_mut().zip(gaps) {
            *base = gap.wrapping_sub(BIAS);
        }
        bases
    }
}

/// The message itself, and the publications that a token can name.
pub(crate) const SOURCES_MAX: usize = 16;
const COPY: u32 = 1 << 31;
const SOURCE_AT: u32 = 24;
const LENGTH_AT: u32 = 16;
const BIAS: u32 = 1 << 15;

#[cfg(test)]
mod tests;
