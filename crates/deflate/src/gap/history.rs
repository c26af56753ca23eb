//! The last publications of one channel in one encoding, the same for every peer in context.
//! A plaintext → its position in the window, hashed once; a publication and a depth → a parse.
//! Pure; bounded in bytes; reading it needs no exclusive access.
//! Changed here: how much is kept and which depths are offered. Parsing is `matcher`, the savings of a depth
//! are `trial`.

use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};

use super::publication::{RUN_DEPTHS, RunLength};
use super::{DEPTH_MAX, Depth, EmbeddedPart, Parse, Publication};
use crate::block::Plan;
use crate::level::Effort;
use crate::matcher::Parser;
use crate::token::{Sequence, Sequences};
use crate::window::{Window, grow};

/// The plaintexts of a channel's last publications, with an index of equal bytes in them.
///
/// Holds up to half more than `bytes_max`, for shards that lag a little.
pub struct History {
    /// Whole publications, perhaps after the end of an older one.
    window: Window,
    /// Starts of the publications in the window, oldest first.
    starts: Vec<u16>,
    /// Sequence number of the newest publication; see [`Publication`].
    sequence: u64,
    /// The part of the newest publication that some peers got embedded in another message.
    embedded: Option<Range<u16>>,
    bytes_max: usize,
    /// Publications were removed because of the limit.
    is_full: bool,
    /// Index of the oldest publication that the newest one may refer to.
    oldest: usize,
    depth: usize,
    effort: Effort,
}

impl History {
    /// A history of up to `bytes_max` (512 bytes to 32 KiB) of plaintext; parses with the effort of `level`.
    ///
    /// For peers with other messages in between, the next publication may refer to the last `depth`
    /// (up to [`DEPTH_MAX`]) ones; for peers with an unbroken run, to all.
    pub fn new(bytes_max: usize, depth: usize, level: u8) -> Self {
        let bytes_max = bytes_max.clamp(Self::BYTES_MIN, WINDOW_BYTES);
        // No two histories may share a number: the server stores the last one of each peer, and a
        // channel whose history was freed starts with another one.
        static NEXT: AtomicU64 = AtomicU64::new(1);
        Self {
            window: Window::new(table_bits(bytes_max)),
            starts: Vec::new(),
            sequence: NEXT.fetch_add(1, Ordering::Relaxed) << 32,
            embedded: None,
            bytes_max,
            is_full: false,
            oldest: 0,
            depth: depth.clamp(1, DEPTH_MAX),
            effort: Effort::of(level),
        }
    }

    /// Adds a message as the channel's newest publication.
    ///
    /// `None` for a message that is empty or longer than
    /// [`message_bytes_max`](Self::message_bytes_max): it must be sent raw or standalone to all
    /// peers, and the history stays unchanged.
    pub fn publish(&mut self, message: &[u8]) -> Option<Publication> {
        if message.is_empty() || message.len() > self.message_bytes_max() {
            return None;
        }
        self.make_room(message.len());
        let start = self.window.len();
        self.sequence += 1;
        let mut publication = Publication::new(self.sequence, message.len() as u32);
        self.offer_depths(&mut publication);
        let embedded = self.embedded.take().filter(|_| !self.starts.is_empty());
        publication.embedded = embedded.unwrap_or_default();
        self.window.append_like(message, publication.previous_bytes as usize);
        self.starts.push(start as u16);
        Some(publication)
    }

    /// The publication parsed against those before it; `None` if they are no longer held.
    pub fn parse(&self, publication: &Publication, depth: Depth) -> Option<Parse> {
        let place = self.place(publication)?;
        match depth {
            Depth::Alone => Some(self.parse_alone(place, 15)),
            Depth::AloneWithin(window_bits) => Some(self.parse_alone(place, window_bits)),
            Depth::Run(_) => self.parse_run(place, publication.depth(depth)),
            Depth::Embedded => self.parse_embedded(place, &publication.embedded),
            Depth::Far | Depth::Newest | Depth::Half | Depth::Most | Depth::Several => {
                let count = publication.depth(depth);
                let shift = publication.shift_max(depth);
                self.parse_several(place, count, shift, None).map(|(parse, ..)| parse)
            }
        }
    }

    /// Parses the publication at all depths that it offers and for which `wants` is true, as
    /// [`parse`](Self::parse) does at each; returns the number of these depths.
    ///
    /// Depths with a gap for each publication have most in common: a deeper one is parsed first, and
    /// the next reuses its copies and codes where possible.
    pub fn parse_all(&self, publication: &Publication, wants: impl Fn(Depth) -> bool) -> usize {
        let Some(place) = self.place(publication) else { return 0 };
        let mut deeper = None;
        let is_wanted = |depth: &Depth| wants(*depth) && publication.offers(*depth);
        for depth in Depth::SCATTERED.into_iter().filter(is_wanted) {
            publication.parse(depth, || {
                let count = publication.depth(depth);
                let shift = publication.shift_max(depth);
                let (parse, _, copies) = self.parse_several(place, count, shift, deeper.take())?;
                deeper = Some(copies);
                Some(parse)
            });
        }
        let mut count = 0;
        for depth in Depth::all().filter(is_wanted) {
            publication.parse(depth, || self.parse(publication, depth));
            count += 1;
        }
        count
    }

    /// The message of the newest publication.
    pub fn newest(&self) -> Option<&[u8]> {
        Some(&self.window.bytes()[usize::from(*self.starts.last()?)..])
    }

    /// Records that some peers get `part` of the newest publication's message inside another message,
    /// such as the reply to a subscribe: the next publication may refer to it.
    ///
    /// `None` if the message has no such part, or if other peers got another part of it.
    pub fn embed(&mut self, part: Range<usize>) -> Option<EmbeddedPart> {
        let is_there = !part.is_empty() && part.end <= self.newest()?.len();
        let part = Some(part.start as u16..part.end as u16).filter(|_| is_there);
        if self.embedded.is_none() {
            self.embedded.clone_from(&part);
        }
        (part.is_some() && part == self.embedded)
            .then_some(EmbeddedPart { sequence: self.sequence })
    }

    /// Sets the depth (1 to [`DEPTH_MAX`]) for peers with other messages in between, from the next publication on.
    pub fn set_depth(&mut self, depth: usize) {
        self.depth = depth.clamp(1, DEPTH_MAX);
    }

    /// The depth for peers with other messages in between.
    pub fn depth(&self) -> usize {
        self.depth
    }

    /// Keeps up to `bytes_max` (512 bytes to 32 KiB) from now on.
    ///
    /// The newest publications that fit stay, so peers keep their context. Hashes all kept bytes;
    /// a smaller history frees the rest of its memory.
    pub fn resize(&mut self, bytes_max: usize) {
        let bytes_max = bytes_max.clamp(Self::BYTES_MIN, WINDOW_BYTES);
        self.is_full &= bytes_max <= self.bytes_max;
        self.bytes_max = bytes_max;
        self.keep(bytes_max);
        let mut window = Window::new(table_bits(bytes_max));
        window.reserve(self.window.len());
        window.append(self.window.bytes());
        self.window = window;
        self.starts.shrink_to_fit();
    }

    /// The present limit.
    pub fn bytes_max(&self) -> usize {
        self.bytes_max
    }

    /// Whether publications were removed because of the limit.
    pub(super) fn is_full(&self) -> bool {
        self.is_full
    }

    /// The longest message that may be a publication: three quarters of `bytes_max`, so that the
    /// one before it is always held too, and at most [`MESSAGE_BYTES_MAX`](Self::MESSAGE_BYTES_MAX).
    pub fn message_bytes_max(&self) -> usize {
        (self.bytes_max / 4 * 3).min(Self::MESSAGE_BYTES_MAX)
    }

    /// Bytes of memory taken, itself included.
    pub fn memory(&self) -> usize {
        size_of::<Self>() + self.window.memory() + self.starts.capacity() * size_of::<u16>()
    }

    /// The largest memory of a history of this `bytes_max`, whatever is published.
    pub fn memory_for(bytes_max: usize) -> usize {
        let bytes_max = bytes_max.clamp(Self::BYTES_MIN, WINDOW_BYTES);
        let window = Window::memory_for(table_bits(bytes_max), window_bytes(bytes_max));
        size_of::<Self>() + window + count_max(bytes_max) * size_of::<u16>()
    }

    /// The longest message that may be a publication of the largest history.
    pub const MESSAGE_BYTES_MAX: usize = 16 << 10;

    /// A smaller history would not hold a single publication of the usual size.
    pub const BYTES_MIN: usize = 1 << 9;

    /// The position of a publication; `None` if it is no longer held.
    pub(super) fn place(&self, publication: &Publication) -> Option<PublicationRange> {
        // It belongs to another history, or is no longer held.
        let later = self.sequence.checked_sub(publication.sequence)?;
        let index = self.starts.len().checked_sub(1 + later as usize)?;
        let start = usize::from(self.starts[index]);
        Some(PublicationRange { index, start, end: start + publication.bytes() })
    }

    pub(super) fn parse_alone(&self, place: PublicationRange, window_bits: u8) -> Parse {
        let parser = Parser::new(&self.window, place.start, place.start, self.effort);
        self.exact(parser.within(window_bits), place, 0)
    }

    /// Refers to the unbroken run of the `count` publications before it.
    pub(super) fn parse_run(&self, place: PublicationRange, count: usize) -> Option<Parse> {
        let floor = self.sources(place, count)?.last()?;
        let parser = Parser::new(&self.window, floor, place.start, self.effort);
        Some(self.exact(parser, place, self.previous_bytes(place)))
    }

    /// Refers to the `count` publications before it at any positions. Returns the parse, the smallest gaps that a peer
    /// can have, newest first, and the part that a parse against fewer publications may reuse. No copy begins more than
    /// `shift` bytes farther back than its publication's gap. `deeper` comes from a parse against more publications.
    pub(super) fn parse_several(
        &self,
        place: PublicationRange,
        count: usize,
        shift: usize,
        deeper: Option<ReusableParse>,
    ) -> Option<(Parse, [u32; DEPTH_MAX], ReusableParse)> {
        let mut sources = [0; DEPTH_MAX];
        let mut gaps = [0; DEPTH_MAX];
        let slots = sources.iter_mut().zip(&mut gaps);
        for ((source, gap), start) in slots.zip(self.sources(place, count)?) {
            *source = start;
            *gap = (place.start - start) as u32;
        }
        let sources = &sources[..count];
        let message = self.message(place);
        let least = &gaps[..count];
        let unlimited = Parser::with_sources(&self.window, sources, place.start, self.effort);
        let parser = unlimited.no_farther_than(least[count - 1] as usize + shift);
        let (sequences, plan) = if let Some(ReusableParse { sequences: known, plan }) = deeper {
            let mut sequences = Sequences::with_capacity(known.len());
            parser.parse_like(&known, place.end, &mut sequences);
            let sequences = sequences.into_list();
            // With fewer sources in the window they are farther away than codes made for these copies assume. The
            // deeper parse's codes take no more bytes, and a third less time.
            let does = plan.has_codes_for(&sequences, message, least);
            (sequences, does.then_some(plan))
        } else {
            (sequences_of(&parser, place, self.previous_bytes(place)), None)
        };
        let plan = plan.unwrap_or_else(|| Plan::for_gaps_from(least, &sequences, message));
        let parse = Parse::for_any_gaps(&plan, &sequences, message);
        Some((parse, gaps, ReusableParse { sequences, plan }))
    }

    /// Refers to the part of the publication before it that some peers got embedded. Gaps are measured to the start of
    /// the part.
    fn parse_embedded(&self, place: PublicationRange, part: &Range<u16>) -> Option<Parse> {
        let previous = self.sources(place, 1)?.next()?;
        let [start, end] = [part.start, part.end].map(|at| previous + usize::from(at));
        let sources = &[start];
        let parser = Parser::with_sources(&self.window, sources, place.start, self.effort);
        let delta = self.previous_bytes(place);
        let sequences = sequences_of(&parser.with_sources_to(end), place, delta);
        let message = self.message(place);
        let plan = Plan::for_gaps_from(&[(end - start) as u32], &sequences, message);
        Some(Parse::for_any_gaps(&plan, &sequences, message))
    }

    /// The number of publications that begin at most `bytes` bytes before this one.
    pub(super) fn held(&self, place: PublicationRange, bytes: usize) -> usize {
        let from = place.start.saturating_sub(bytes);
        place.index - self.starts[..place.index].partition_point(|at| usize::from(*at) < from)
    }

    /// Counts as [`held`](Self::held) does, for a publication that is about to be appended. It starts from the result
    /// for the previous one, which is a step or two away.
    fn held_by_next(&mut self, bytes: usize) -> usize {
        let from = self.window.len().saturating_sub(bytes);
        let is_before = |start: &&u16| usize::from(**start) < from;
        let (left, kept) = self.starts.split_at(self.oldest);
        let back = left.iter().rev().take_while(|start| !is_before(start)).count();
        let on = kept.iter().take_while(is_before).count();
        self.oldest = self.oldest + on - back;
        self.starts.len() - self.oldest
    }

    /// Bytes of the `count` publications before this one, all of which are held.
    pub(super) fn run_bytes(&self, place: PublicationRange, count: usize) -> usize {
        place.start - usize::from(self.starts[place.index - count])
    }

    fn message(&self, place: PublicationRange) -> &[u8] {
        &self.window.bytes()[place.start..place.end]
    }

    fn exact(&self, parser: Parser<'_>, place: PublicationRange, delta: usize) -> Parse {
        Parse::exact(&sequences_of(&parser, place, delta), self.message(place))
    }

    /// Returns the starts in the window of the `count` publications before this one, newest first.
    fn sources(
        &self,
        place: PublicationRange,
        count: usize,
    ) -> Option<impl Iterator<Item = usize>> {
        let first = place.index.checked_sub(count)?;
        Some(self.starts[first..place.index].iter().rev().map(|start| usize::from(*start)))
    }

    /// Length of the previous publication, or 0.
    fn previous_bytes(&self, place: PublicationRange) -> usize {
        if place.index == 0 { 0 } else { self.run_bytes(place, 1) }
    }

    /// Drops the oldest publications if another one does not fit.
    fn make_room(&mut self, bytes: usize) {
        let most = window_bytes(self.bytes_max);
        let count_max = count_max(self.bytes_max);
        if self.window.len() + bytes > most || self.starts.len() == count_max {
            self.keep(self.bytes_max.min(most - bytes));
            self.is_full = true;
        }
        self.window.reserve_within(bytes, most);
        grow(&mut self.starts, 1, count_max);
    }

    /// Drops all but the newest publications of at most `bytes` bytes together.
    fn keep(&mut self, bytes: usize) {
        let len = self.window.len();
        let count = count_max(self.bytes_max) / 3 * 2;
        let first = self
            .starts
            .partition_point(|start| usize::from(*start) + bytes < len)
            .max(self.starts.len().saturating_sub(count));
        let cut = self.starts.get(first).map_or(len, |start| usize::from(*start));
        let line = cut / LINE_BYTES * LINE_BYTES;
        let cut = if bytes >= LONG_BYTES && len - line <= bytes { line } else { cut };
        self.window.slide(cut);
        self.starts.drain(..first);
        self.oldest = self.oldest.saturating_sub(first);
        self.starts.iter_mut().for_each(|start| *start -= cut as u16);
    }

    /// Sets the depths of a publication that is about to be appended.
    fn offer_depths(&mut self, publication: &mut Publication) {
        let bytes_max = self.room(publication);
        let index = self.starts.len();
        let start = self.window.len();
        let place = PublicationRange { index, start, end: start };
        let held = self.held_by_next(bytes_max);
        let bytes = |depth| if depth == 0 { 0 } else { self.run_bytes(place, depth) as u32 };
        publication.previous_bytes = bytes(held.min(1));
        publication.depth = held.min(self.depth) as u8;
        for (run, depth) in publication.runs.iter_mut().zip(RUN_DEPTHS) {
            let depth = held.min(usize::from(depth));
            *run = RunLength { depth: depth as u16, bytes: bytes(depth) };
        }
    }

    /// How far back from a publication's start it may refer.
    pub(super) fn room(&self, publication: &Publication) -> usize {
        self.bytes_max.min(WINDOW_BYTES - publication.bytes())
    }
}

/// The part of a parse that a parse against fewer publications can reuse.
pub(super) struct ReusableParse {
    sequences: Vec<Sequence>,
    plan: Plan,
}

/// A publication in the window.
#[derive(Clone, Copy)]
pub(super) struct PublicationRange {
    /// Index in the list of starts.
    index: usize,
    start: usize,
    end: usize,
}

/// The publication parsed; `delta` is an estimate of how far back the same bytes are.
fn sequences_of(parser: &Parser<'_>, place: PublicationRange, delta: usize) -> Vec<Sequence> {
    let mut sequences = Sequences::with_capacity((place.end - place.start) / 8 + 1);
    parser.parse(place.end, delta, &mut sequences);
    sequences.into_list()
}

/// The largest window of a history, in bytes.
fn window_bytes(bytes_max: usize) -> usize {
    bytes_max / 2 * 3
}

/// The largest number of publications of a history: shorter ones than these 32 bytes save little.
fn count_max(bytes_max: usize) -> usize {
    window_bytes(bytes_max) / 32
}

/// Half as many chains as bytes: a larger table costs more memory than it saves time.
fn table_bits(bytes_max: usize) -> u32 {
    bytes_max.ilog2() - 1
}

/// A cache line. Moves by whole lines keep the alignment and are faster: a tick with
/// one source takes 1 % less time (example `encoder`, since removed).
const LINE_BYTES: usize = 64;

/// Smaller histories do not align moves to cache lines, because they have no bytes to spare.
const LONG_BYTES: usize = 8 << 10;

/// The largest window of a decoder (RFC 7692 §7.1.2.1).
pub(super) const WINDOW_BYTES: usize = 1 << 15;

#[cfg(test)]
mod tests;
