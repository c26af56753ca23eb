//! Parses bytes into literals and copies (RFC 1951 §4): hash chains and lazy matching.
//! A window, a range of it, and the allowed sources of copies → sequences.
//! Pure; allocates only where the list of sequences grows.
//! Changed here: which copy is taken. The effort is `level`, the chains are `window`.

use crate::level::Effort;
use crate::prefix::common;
use crate::tables::LENGTH_MAX;
use crate::token::{Gaps, SOURCES_MAX, Sequence, Sequences, Token};
use crate::window::{HASHED_BYTES, Window};

/// One parse of one range of a window.
pub(crate) struct Parser<'a> {
    bytes: &'a [u8],
    links: &'a [u16],
    /// Copies start at this position or later.
    floor: usize,
    /// Start of the range.
    start: usize,
    /// Starts of the publications before `start`, the newest first. It is empty unless copies name publications.
    sources: &'a [usize],
    /// End of the newest source.
    sources_end: usize,
    distance_max: usize,
    /// Shorter copies are not taken.
    length_min: usize,
    effort: Effort,
}

#[derive(Clone, Copy)]
struct Match {
    length: usize,
    delta: usize,
}

impl<'a> Parser<'a> {
    /// A parser of the bytes from `start`, with copies from `floor` on and at most 32768 bytes back.
    pub(crate) fn new(window: &'a Window, floor: usize, start: usize, effort: Effort) -> Self {
        Self {
            bytes: window.bytes(),
            links: window.links(),
            floor,
            start,
            sources: &[],
            sources_end: start,
            distance_max: DISTANCE_MAX,
            length_min: HASHED_BYTES,
            effort,
        }
    }

    /// Limits distances to a decoder's window of `1 << window_bits` bytes (RFC 7692 §7.1.2.1).
    pub(crate) fn within(self, window_bits: u8) -> Self {
        Self { distance_max: DISTANCE_MAX.min(1 << window_bits), ..self }
    }

    /// Limits distances to `distance_max` bytes.
    pub(crate) fn no_farther_than(self, distance_max: usize) -> Self {
        Self { distance_max: distance_max.min(self.distance_max), ..self }
    }

    /// Takes only copies of at least `length_min` bytes, and never of less than four.
    pub(crate) fn of_at_least(self, length_min: usize) -> Self {
        Self { length_min: length_min.max(HASHED_BYTES), ..self }
    }

    /// Keeps each copy within the range or within one of `sources`, and names the source.
    ///
    /// `sources` are starts of publications, newest first; each ends where the next newer begins.
    pub(crate) fn with_sources(
        window: &'a Window,
        sources: &'a [usize],
        start: usize,
        effort: Effort,
    ) -> Self {
        let floor = sources.last().copied().unwrap_or(start);
        Self { sources, ..Self::new(window, floor, start, effort) }
    }

    /// Ends the newest source at `end` already.
    pub(crate) fn with_sources_to(self, end: usize) -> Self {
        Self { sources_end: end, ..self }
    }

    /// Adds the range from `start` to `end`; `delta` is an estimate of how far back the same bytes are.
    pub(crate) fn parse(&self, end: usize, delta: usize, sequences: &mut Sequences) {
        self.parse_on(self.start, end, end, delta, sequences);
    }

    /// Parses as [`parse`](Self::parse) does, but reuses `known`, a parse of the range with more sources. Only copies
    /// from the sources that this parser does not have are searched again.
    pub(crate) fn parse_like(&self, known: &[Sequence], end: usize, sequences: &mut Sequences) {
        let mut gaps = [0; SOURCES_MAX - 1];
        let of_sources = self.sources.iter().map(|source| (self.start - source) as u32);
        gaps.iter_mut().zip(of_sources).for_each(|(slot, gap)| *slot = gap);
        let gaps = Gaps::new(&gaps);
        let mut at = self.start;
        let mut known_to = self.start;
        let mut followed = 0;
        for &Sequence { literals, token } in known {
            known_to += literals as usize;
            if at < known_to {
                sequences.literals(known_to - at);
                at = known_to;
            }
            if !token.is_copy() {
                break; // the end
            }
            let is_next = at == known_to;
            known_to += token.bytes();
            let distance = token.distance(&gaps) as usize;
            let is_here = token.source().is_none_or(|source| source < self.sources.len());
            if is_next && is_here && distance <= self.distance_max {
                sequences.copy(token);
                followed = distance;
                at = known_to;
            } else if at < known_to {
                at = self.parse_on(at, known_to, end, followed, sequences);
                followed = 0;
            }
        }
    }

    /// Adds the bytes from `at` at least up to `to` and at most up to `end`; returns where it ends.
    fn parse_on(
        &self,
        at: usize,
        to: usize,
        end: usize,
        delta: usize,
        sequences: &mut Sequences,
    ) -> usize {
        let mut at = at;
        let mut delta = delta;
        while at < to {
            let next = self.next(at, to, end, delta);
            sequences.literals(next - at);
            at = next;
            if at == to {
                break;
            }
            let copy_here = self.longest(at, end, HASHED_BYTES - 1, delta);
            if copy_here.length < self.length_min {
                sequences.literals(1);
                at += 1;
                continue;
            }
            let (copy_at, copy) = self.later(at, end, copy_here);
            sequences.literals(copy_at - at);
            sequences.copy(self.token(copy_at, copy));
            at = copy_at + copy.length;
            // Without earlier messages there is no earlier version of this one to align with.
            delta = if self.floor < self.start { copy.delta } else { 0 };
        }
        at
    }

    /// Whether the four bytes at `at` may occur within the window.
    #[inline]
    fn is_known(&self, at: usize) -> bool {
        usize::from(self.links[at]) <= at - self.floor
    }

    /// The first position from `at` on, and before `to`, whose next bytes may occur within the window or
    /// equal those `delta` bytes before; otherwise `to`.
    #[inline]
    fn next(&self, at: usize, to: usize, end: usize, delta: usize) -> usize {
        let is_known = |(link, window): (&u16, usize)| usize::from(*link) <= window;
        let links = self.links[at..to].iter().zip(at - self.floor..);
        let place = if delta == 0 {
            links.map(is_known).position(|is_known| is_known)
        } else {
            let ahead = self.bytes[at..end].array_windows::<HASHED_BYTES>();
            let behind = self.bytes[at - delta..].array_windows::<HASHED_BYTES>();
            let repeats = ahead.zip(behind).map(|(ahead, behind)| ahead == behind);
            links.map(is_known).zip(repeats).position(|(is_known, repeats)| is_known || repeats)
        };
        place.map_or(to, |place| at + place)
    }

    /// The better of `found` and a copy that begins a little later (lazy matching), with its position.
    fn later(&self, at: usize, end: usize, copy: Match) -> (usize, Match) {
        let mut at = at;
        let mut copy = copy;
        while copy.length < self.effort.lazy
            && at + 1 + HASHED_BYTES <= end
            && self.is_known(at + 1)
            && !self.goes_on(at + 1, copy)
        {
            let next = self.longest(at + 1, end, copy.length - 1, 0);
            if next.length < copy.length || gain(copy, next) <= 2 {
                break;
            }
            at += 1;
            copy = next;
        }
        (at, copy)
    }

    /// Whether a better copy at `at` than the aligned one is unlikely: with one source, when that copy is long, or is
    /// not short and the bytes at `at` occurred last in it.
    #[inline]
    fn goes_on(&self, at: usize, copy: Match) -> bool {
        let is_nearest = usize::from(self.links[at]) == copy.delta;
        self.sources.len() == 1 && (copy.length > ALIGNED || (copy.length >= LIKELY && is_nearest))
    }

    /// The longest copy of more than `length` bytes (at least three) for the bytes at `at`, the nearest of
    /// equally long ones; or one of `length` bytes if there is none.
    #[inline(always)] // called once per position
    fn longest(&self, at: usize, end: usize, length: usize, delta: usize) -> Match {
        let longest = LENGTH_MAX.min(end - at);
        let mut best = Match { length, delta: 0 };
        if longest <= length {
            return best;
        }
        let window = self.distance_max.min(at - self.floor);
        if delta > 0 && delta <= window {
            best = self.better(best, at, delta, longest);
        }
        let nice = self.effort.nice.min(longest);
        if best.length >= ALIGNED && self.sources.len() == 1 {
            return best;
        }
        let mut from = at;
        let mut chain = self.effort.chain;
        let floor = at - window;
        while best.length < nice && chain > 0 {
            let link = usize::from(self.links[from]);
            if link > from - floor {
                break;
            }
            from -= link;
            chain -= 1;
            let tail = best.length + 1 - HASHED_BYTES;
            if word(self.bytes, at + tail) == word(self.bytes, from + tail) {
                let length = self.length(at, at - from, longest);
                if length > best.length {
                    best = Match { length, delta: at - from };
                }
            }
        }
        best
    }

    /// The copy from `delta` bytes back if it is longer than the best one so far, otherwise the best one.
    #[inline(always)] // two callers, one of which is the innermost loop
    fn better(&self, best: Match, at: usize, delta: usize, longest: usize) -> Match {
        // The last four bytes of a longer copy differ most often, so they are compared first.
        let tail = at + best.length + 1 - HASHED_BYTES;
        if word(self.bytes, tail) != word(self.bytes, tail - delta) {
            return best;
        }
        let length = self.length(at, delta, longest);
        if length > best.length { Match { length, delta } } else { best }
    }

    /// The length of the copy from `delta` bytes back, at most `longest`.
    fn length(&self, at: usize, delta: usize, longest: usize) -> usize {
        let from = at - delta;
        let limit = if from < self.start { self.limit(from, longest) } else { longest };
        common(&self.bytes[from..], &self.bytes[at..at + limit])
    }

    /// The largest length of a copy from `from`, which is before the range.
    fn limit(&self, from: usize, longest: usize) -> usize {
        if self.sources.is_empty() {
            return longest;
        }
        let (_, end) = self.source(from);
        longest.min(end.saturating_sub(from))
    }

    /// The index and the end of the publication that holds `from`, or ended just before it.
    fn source(&self, from: usize) -> (usize, usize) {
        let mut end = self.sources_end;
        if let [_] = self.sources {
            return (0, end); // which is what happens most often
        }
        for (index, &start) in self.sources.iter().enumerate() {
            if from >= start {
                return (index, end);
            }
            end = start;
        }
        unreachable!("copies come from the floor or later, which is the start of the last source")
    }

    fn token(&self, at: usize, copy: Match) -> Token {
        let from = at - copy.delta;
        if from >= self.start || self.sources.is_empty() {
            return Token::copy(copy.length, copy.delta);
        }
        let (index, _) = self.source(from);
        Token::copy_from(copy.length, index, at - self.start, from - self.sources[index])
    }
}

/// Quarter bits that taking `next` one byte later saves, roughly: length against distance.
fn gain(copy: Match, next: Match) -> isize {
    let length = 4 * (next.length as isize - copy.length as isize);
    length + copy.delta.ilog2() as isize - next.delta.ilog2() as isize
}

#[inline]
fn word(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(bytes[at..at + 4].try_into().expect("four bytes"))
}

/// Length of a copy that is taken without further search if it continues the alignment of the last one. Only with one
/// source: 0.2 % more bytes at most. With four sources it would take 1 % more (example `encoder`, since removed).
const ALIGNED: usize = 16;

/// Length of a copy that is taken without lazy matching if its nearest candidate is the copy itself. Only with one
/// source: 0.15 % more bytes at most (example `encoder`, since removed).
const LIKELY: usize = 8;

/// The largest window of a sender (RFC 7692 §7.2.1e).
const DISTANCE_MAX: usize = 1 << 15;
