//! A simulated channel: its history, its messages, and the frames for its clients.
//! Messages → publications, and for each distinct reference one frame.
//! Uses the crate's gap coder and its standalone compressor as a shard does.
//! Changed here: how a shard turns references into frames. `clients` and `fan_out` deliver them.

use std::collections::HashMap;
use std::ops::Range;

use fanwire_deflate::Compressor;
use fanwire_deflate::gap::{Depth, EmbeddedPart, History, Publication, Reference};

pub(crate) struct Channel {
    pub(crate) history: History,
    /// All messages that are or were in the history, oldest first.
    pub(crate) plaintexts: Vec<Vec<u8>>,
    resized: usize,
}

impl Channel {
    pub(crate) fn new(history: History) -> Self {
        Self { history, plaintexts: Vec::new(), resized: 0 }
    }

    /// `None` for a message that must be sent standalone to all clients.
    pub(crate) fn publish(&mut self, message: &[u8]) -> Option<SharedFrames> {
        let publication = self.history.publish(message)?;
        self.plaintexts.push(message.to_vec());
        let (index, resized) = (self.plaintexts.len() - 1, self.resized);
        // Publishers parse at the depths that their subscribers use.
        let is_ahead = index.is_multiple_of(2);
        if is_ahead {
            let offered = Depth::all().filter(|depth| publication.offers(*depth));
            assert_eq!(self.history.parse_all(&publication, |_| true), offered.count());
        }
        Some(SharedFrames { publication, index, resized, is_ahead, frames: HashMap::new() })
    }

    /// A message that embeds a part of the newest publication, and the part's position; `None` without one.
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

/// A publication with the frames that its clients share.
pub(crate) struct SharedFrames {
    pub(crate) publication: Publication,
    /// Index in the plaintexts of its channel.
    pub(crate) index: usize,
    /// How often the history had been resized.
    resized: usize,
    /// Parsed at all depths when it was published, from each other.
    is_ahead: bool,
    frames: HashMap<Reference, Vec<u8>>,
}

impl SharedFrames {
    /// The one frame for all clients with this reference.
    ///
    /// If the history no longer holds the publication, there is no parse; the message then stands alone.
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
