//! The last publications of one channel in one encoding, as every peer in context has them.
//! A plaintext → its place in the stream, hashed once; a publication and a depth → a parse.
//! Pure; bounded in bytes; reading it needs no exclusive access.
//! Change here: how much is kept and which depths are offered. Parsing is `matcher`.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};

use super::publication::{RUN_DEPTHS, Rung};
use super::{DEPTH_MAX, Depth, Parse, Publication};
use crate::level::Effort;
use crate::matcher::Parser;
use crate::window::Window;

/// The plaintexts of a channel's last publications, with the places of equal bytes in them.
///
/// Holds up to a quarter more than `bytes_max`, for shards that are a little behind.
pub struct History {
    window: Window,
    /// Where the window begins in the stream of all publications.
    origin: u64,
    /// Where publications begin in that stream, oldest first.
    starts: VecDeque<u64>,
    /// Of the newest publication; see [`Publication`].
    sequence: u64,
    bytes_max: usize,
    depth: usize,
    effort: Effort,
}

impl History {
    /// For `bytes_max` (up to 32 KiB) bytes of plaintext; parses with the effort of `level`.
    ///
    /// Peers that have other traffic between the publications are served with the last `depth`
    /// (up to [`DEPTH_MAX`]) of them, peers with an unbroken run with all.
    pub fn new(bytes_max: usize, depth: usize, level: u8) -> Self {
        let bytes_max = bytes_max.clamp(BYTES_MIN, WINDOW_BYTES);
        // No two histories may share a number: a peer remembers the last one it has got, and a
        // channel whose history was freed starts with another one.
        static NEXT: AtomicU64 = AtomicU64::new(1);
        Self {
            window: Window::new(bytes_max.ilog2() - 1),
            origin: 0,
            starts: VecDeque::new(),
            sequence: NEXT.fetch_add(1, Ordering::Relaxed) << 32,
            bytes_max,
            depth: depth.clamp(1, DEPTH_MAX),
            effort: Effort::of(level),
        }
    }

    /// Adds a message as the channel's newest publication.
    ///
    /// `None` for a message that cannot be one, because it is empty or longer than
    /// [`MESSAGE_BYTES_MAX`](Self::MESSAGE_BYTES_MAX): it is to be sent raw or standalone, to
    /// everybody, and the history stays as it is.
    pub fn publish(&mut self, message: &[u8]) -> Option<Publication> {
        if message.is_empty() || message.len() > Self::MESSAGE_BYTES_MAX {
            return None;
        }
        self.slide();
        let start = self.origin + self.window.len() as u64;
        self.sequence += 1;
        let mut publication = Publication::new(self.sequence, start, message.len() as u32);
        self.offer_depths(&mut publication);
        self.window.append(message);
        self.starts.push_back(start);
        Some(publication)
    }

    /// The publication parsed against those before it; `None` when the history has gone on too far.
    pub fn parse(&self, publication: &Publication, depth: Depth) -> Option<Parse> {
        let start = usize::try_from(publication.start.checked_sub(self.origin)?).ok()?;
        let end = start + publication.bytes();
        let message = &self.window.bytes()[start..end];
        let mut tokens = Vec::with_capacity(message.len() / 2);
        let delta = publication.previous_bytes as usize;
        let count = publication.depth(depth);
        match depth {
            Depth::Alone | Depth::AloneWithin(_) => {
                let parser = Parser::new(&self.window, start, start, self.effort);
                parser.within(depth.window_bits()).parse(end, 0, &mut tokens);
                Some(Parse::exact(&tokens, message))
            }
            Depth::Run(_) => {
                let floor = self.sources(publication, count)?.last()?;
                let parser = Parser::new(&self.window, floor, start, self.effort);
                parser.parse(end, delta, &mut tokens);
                Some(Parse::exact(&tokens, message))
            }
            Depth::Newest | Depth::Several => {
                let mut sources = [0; DEPTH_MAX];
                let sources = &mut sources[..count];
                let places = self.sources(publication, count)?;
                sources.iter_mut().zip(places).for_each(|(source, place)| *source = place);
                let parser = Parser::with_sources(&self.window, sources, start, self.effort);
                parser.parse(end, delta, &mut tokens);
                let gaps = std::array::from_fn::<_, DEPTH_MAX, _>(|at| {
                    sources.get(at).map_or(0, |source| (start - source) as u32)
                });
                Some(Parse::for_any_gaps(&tokens, message, &gaps[..count]))
            }
        }
    }

    /// Bytes of memory taken.
    pub fn memory(&self) -> usize {
        size_of::<Self>() + self.window.memory() + self.starts.capacity() * 8
    }

    /// The longest message that may be a publication.
    pub const MESSAGE_BYTES_MAX: usize = 16 << 10;

    /// Where the `count` publications before this one begin in the window, newest first.
    fn sources(
        &self,
        publication: &Publication,
        count: usize,
    ) -> Option<impl Iterator<Item = usize>> {
        let index = self.starts.binary_search(&publication.start).ok()?;
        let first = index.checked_sub(count)?;
        let places = self.starts.range(first..index).rev();
        Some(places.map(|start| (start - self.origin) as usize))
    }

    /// Forgets what is beyond the limit once it is a quarter more.
    fn slide(&mut self) {
        if self.window.len() < self.bytes_max + self.bytes_max / 4 {
            return;
        }
        let count = self.window.len() - self.bytes_max;
        self.window.slide(count);
        self.origin += count as u64;
        while self.starts.front().is_some_and(|start| *start < self.origin) {
            self.starts.pop_front();
        }
    }

    /// Notes which depths there are for a publication that is about to be appended.
    fn offer_depths(&self, publication: &mut Publication) {
        let room = self.bytes_max.min(WINDOW_BYTES - publication.bytes()) as u64;
        let first = self.starts.partition_point(|start| start + room < publication.start);
        let held = self.starts.len() - first;
        let bytes = |depth: usize| match depth {
            0 => 0,
            _ => (publication.start - self.starts[self.starts.len() - depth]) as u32,
        };
        publication.previous_bytes = bytes(held.min(1));
        publication.depth = held.min(self.depth) as u8;
        for (rung, depth) in publication.rungs.iter_mut().zip(RUN_DEPTHS) {
            let depth = held.min(usize::from(depth));
            *rung = Rung { depth: depth as u16, bytes: bytes(depth) };
        }
    }
}

/// What the largest window of a decoder holds (RFC 7692 §7.1.2.1).
const WINDOW_BYTES: usize = 1 << 15;

/// Less would not hold a single publication of the usual size.
const BYTES_MIN: usize = 1 << 9;

#[cfg(test)]
mod tests;
