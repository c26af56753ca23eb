//! A simulated channel: its history, what was published, and the frames for its clients.
//! Messages → publications, and for each distinct reference one frame.
//! Uses the crate's gap coder and its standalone compressor as a shard does.
//! Change here: how a shard turns references into frames. Who gets them is `clients` and `fan_out`.

use std::collections::HashMap;
use std::ops::Range;

use fanwire_deflate::Compressor;
use fanwire_deflate::gap::{Depth, EmbeddedPart, History, Publication, Reference};

pub(crate) struct Channel {
    pub(crate) history: History,
    /// All that are in the history or were, oldest first.
    pub(crate) plaintexts: Vec<Vec<u8>>,
    resized: usize,
}

impl Channel {
    pub(crate) fn new(history: History) -> Self {
        Self { history, plaintexts: Vec::new(), resized: 0 }
    }

    /// `None` for a message that must go standalone to everybody.
    pub(crate) fn publish(&mut self, message: &[u8]) -> Option<SharedFrames> {
        let publication = self.history.publish(message)?;
        self.plaintexts.push(message.to_vec());
        let (index, resized) = (self.plaintexts.len() - 1, self.resized);
        // As publishers do, which know what their subscribers need.
        let is_ahead = index.is_multiple_of(2);
        if is_ahead {
            let offered = Depth::all().filter(|depth| publication.offers(*depth));
            assert_eq!(self.history.parse_all(&publication, |_| true), offered.count());
        }
        Some(SharedFrames { publication, index, resized, is_ahead, frames: HashMap::new() })
    }

    /// A message that embeds the newest publication, and where; `None` without one.
    pub(crate) fn reply(&mut self) -> Option<(Vec<u8>, Range<usize>, EmbeddedPart)> {
        let newest = self.history.newest()?;
        assert_eq!(Some(newest), self.plaintexts.last().map(Vec::as_slice));
        let part = part(newest.len());
        let reply = [b"a reply: [", &newest[part.clone()], b"], done"].concat();
        let embedded_part = self.history.embed(part.clone()).expect("always the same part");
        Some((reply, 10..10 + part.len(), embedded_part))
    }

    pub(crate) fn resize(&mut self, bytes_max: usize) {
        self.resized += 1;
        self.history.resize(bytes_max);
        assert!(self.history.memory() <= History::memory_for(bytes_max));
    }
}

/// The part of a message of `len` bytes, at least 1, that replies hold.
pub(crate) fn part(len: usize) -> Range<usize> {
    len / 8..len - len / 9
}

/// A publication on its way to clients, with the frames that they share.
pub(crate) struct SharedFrames {
    pub(crate) publication: Publication,
    /// In the plaintexts of its channel.
    pub(crate) index: usize,
    /// How often the history had been resized.
    resized: usize,
    /// Parsed at all depths when it was published, from each other.
    is_ahead: bool,
    frames: HashMap<Reference, Vec<u8>>,
}

impl SharedFrames {
    /// The one frame for everybody with this reference.
    ///
    /// A history that has gone on too far has no parse any more; the message stands alone then.
    pub(crate) fn frame(
        &mut self,
        reference: Reference,
        channel: &Channel,
        compressor: &mut Compressor,
    ) -> &[u8] {
        let publication = &self.publication;
        self.frames.entry(reference).or_insert_with(|| {
            let mut frame = Vec::new();
            let make = || channel.history.parse(publication, reference.depth());
            match publication.parse(reference.depth(), make) {
                Some(parse) => {
                    parse.emit(reference.gaps(), &mut frame);
                    let again = channel.history.parse(publication, reference.depth());
                    let mut other = Vec::new();
                    again.iter().for_each(|parse| parse.emit(reference.gaps(), &mut other));
                    let is_equal = self.is_ahead || again.is_none() || frame == other;
                    assert!(is_equal, "I5: equal keys, equal bytes");
                }
                None => {
                    let newest = self.index + 1 == channel.plaintexts.len();
                    let resized = self.resized < channel.resized;
                    assert!(!newest || resized, "I6: the newest one has all that it offers");
                    let message = &channel.plaintexts[self.index];
                    compressor.standalone_within(8, message, &mut frame);
                }
            }
            frame
        })
    }
}
