//! The streams of one stripe of the memory broker: created by the first publication, removed when they expire.
//! In: channels, the time → out: live streams, and the memory that they use together.
//! Uses: a slab and a table of its indices. Never: locks, delivery.
//! Changed here: the order of eviction. A single stream lives in `stream.rs`, the epochs of channels without one in `epochs.rs`.

use std::time::Instant;

use hashbrown::HashTable;
use slab::Slab;

use super::HashedChannel;
use super::epochs::{EpochKey, Epochs};
use super::stream::Stream;
use crate::saved::{SAVED_ENTRIES, SnapshotClock, StreamsSection};

/// Streams by channel, with clock hands that walk over them: one for expiry, two for eviction (second chance).
#[derive(Default)]
pub(super) struct Streams {
    slab: Slab<NamedStream>,
    /// Indices into `slab`, by the hash of the channel.
    names: HashTable<u32>,
    /// Indices of the streams that have a position but no stored publication.
    empty: Vec<u32>,
    sweep_hand: usize,
    evict_hand: usize,
    /// Walks over `empty`.
    empty_hand: usize,
    /// The index that was used last.
    newest: usize,
    epochs: Epochs,
}

struct NamedStream {
    channel: Box<str>,
    hash: u64,
    /// Used again since it was created or the evicting hand passed it: the hand then skips it once.
    is_used: bool,
    /// Its index in `empty`.
    at_empty: Option<u32>,
    stream: Stream,
}

impl NamedStream {
    fn bytes(&self) -> usize {
        STREAM_BYTES + self.channel.len() + self.stream.bytes()
    }
}

impl Streams {
    pub(super) fn new(key: EpochKey) -> Self {
        Self { epochs: Epochs::new(key), ..Self::default() }
    }

    /// Calls `work` with the live stream of a channel, or with an empty stream that is kept only if `work` publishes to it.
    /// Returns the result and the change of memory in bytes.
    pub(super) fn with<T>(
        &mut self,
        channel: HashedChannel<'_>,
        now: Instant,
        work: impl FnOnce(&mut Stream) -> T,
    ) -> (T, isize) {
        let (found, freed) = match self.find(channel) {
            Some(index) if self.slab[index].stream.is_over(now) => (None, self.remove(index)),
            found => (found, 0),
        };
        let Some(index) = found else {
            let mut stream = Stream::new(self.epochs.of(channel));
            let done = work(&mut stream);
            let made = if stream.top().offset > 0 { self.insert(channel, stream) } else { 0 };
            return (done, made as isize - freed as isize);
        };
        self.newest = index;
        let named = &mut self.slab[index];
        named.is_used = true;
        let before = named.stream.bytes() as isize;
        named.stream.expire(now);
        let done = work(&mut named.stream);
        let grown = named.stream.bytes() as isize - before;
        self.update_empty(index);
        (done, grown)
    }

    /// Drops the stored publications of a channel, if it has a stream. Returns the bytes freed.
    pub(super) fn clear(&mut self, channel: HashedChannel<'_>) -> usize {
        let Some(index) = self.find(channel) else { return 0 };
        let stream = &mut self.slab[index].stream;
        let bytes = stream.bytes();
        stream.clear_history();
        let freed = bytes - stream.bytes();
        self.update_empty(index);
        freed
    }

    /// Visits the next `count` slots and removes expired entries. Returns the bytes freed.
    pub(super) fn sweep(&mut self, count: usize, now: Instant) -> usize {
        let mut freed = 0;
        for _ in 0..count.min(self.slab.capacity()) {
            let index = step(&mut self.sweep_hand, self.slab.capacity());
            let Some(named) = self.slab.get_mut(index) else { continue };
            if named.stream.is_over(now) {
                freed += self.remove(index);
            } else {
                let before = named.stream.bytes();
                named.stream.expire(now);
                freed += before - named.stream.bytes();
                self.update_empty(index);
            }
        }
        freed
    }

    /// Evicts: removes a stream without publications, or, if there is none, clears another stream. Returns the bytes freed;
    /// `None` when there is no stream.
    ///
    /// Takes the first stream that was not used since the hand passed it, or the next one after `SPARED_MAX` used ones. The
    /// stream used last is taken only if it is the only one. Each use costs one visit of the hand at most, so long walks
    /// are rare; free slots are visited too where the slab was larger before.
    pub(super) fn evict(&mut self) -> Option<usize> {
        if self.slab.is_empty() {
            return None;
        }
        let mut spared = 0;
        loop {
            let index = self.next_to_evict();
            if index == self.newest && self.slab.len() > 1 {
                continue;
            }
            let Some(named) = self.slab.get_mut(index) else { continue };
            if std::mem::take(&mut named.is_used) && spared < SPARED_MAX {
                spared += 1;
                continue;
            }
            let bytes = named.stream.bytes();
            if !named.stream.clear() {
                return Some(self.remove(index));
            }
            self.update_empty(index);
            return Some(bytes);
        }
    }

    /// Calls `visit` with each channel and its bytes.
    pub(super) fn visit(&self, visit: &mut dyn FnMut(&str, usize)) {
        self.slab.iter().for_each(|(_, named)| visit(&named.channel, named.bytes()));
    }

    /// Saves the streams from the slot `from` on. Returns the slot where the next call goes on; `None` at the end.
    pub(super) fn save(
        &self,
        from: usize,
        clock: &SnapshotClock,
    ) -> (StreamsSection, Option<usize>) {
        let mut section = StreamsSection::default();
        let mut entries = 0;
        for index in from..self.slab.capacity() {
            if entries >= SAVED_ENTRIES {
                return (section, Some(index));
            }
            if let Some(named) = self.slab.get(index) {
                let record = named.stream.save(&named.channel, clock);
                entries += record.stored.len();
                section.streams.push(record);
            }
            entries += 1;
        }
        (section, None)
    }

    /// Adds a stream of a snapshot. Returns its bytes.
    pub(super) fn restore(&mut self, channel: HashedChannel<'_>, stream: Stream) -> usize {
        if self.find(channel).is_some() {
            return 0;
        }
        let bytes = self.insert(channel, stream);
        self.update_empty(self.newest);
        bytes
    }

    pub(super) fn epochs(&mut self) -> &mut Epochs {
        &mut self.epochs
    }

    /// Number of streams.
    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.slab.len()
    }

    /// The index under the hand: in `empty` if it has one other than the newest, else in the slab.
    fn next_to_evict(&mut self) -> usize {
        match self.empty[..] {
            [] => {}
            [only] if only as usize == self.newest => {}
            _ => return self.empty[step(&mut self.empty_hand, self.empty.len())] as usize,
        }
        step(&mut self.evict_hand, self.slab.capacity())
    }

    fn find(&self, channel: HashedChannel<'_>) -> Option<usize> {
        let has_name = |index: &u32| self.slab[*index as usize].channel.as_ref() == channel.name;
        self.names.find(channel.hash, has_name).map(|index| *index as usize)
    }

    /// Adds a stream. Returns its bytes.
    fn insert(&mut self, channel: HashedChannel<'_>, stream: Stream) -> usize {
        let HashedChannel { hash, name } = channel;
        let channel = name.into();
        let named = NamedStream { channel, hash, is_used: false, at_empty: None, stream };
        let bytes = named.bytes();
        self.newest = self.slab.insert(named);
        let entry = u32::try_from(self.newest).expect("fewer than 2^32 channels in a stripe");
        let slab = &self.slab;
        self.names.insert_unique(hash, entry, |other| slab[*other as usize].hash);
        bytes
    }

    /// Adds a stream to `empty` or removes it from there, after it changed.
    fn update_empty(&mut self, index: usize) {
        let named = &mut self.slab[index];
        match (named.stream.is_empty(), named.at_empty) {
            (true, None) => {
                named.at_empty = Some(self.empty.len() as u32);
                self.empty.push(index as u32);
            }
            (false, Some(at)) => {
                named.at_empty = None;
                self.remove_empty(at);
            }
            _ => {}
        }
    }

    /// Removes an index from `empty`; the last one takes its place.
    fn remove_empty(&mut self, at: u32) {
        self.empty.swap_remove(at as usize);
        if let Some(moved) = self.empty.get(at as usize) {
            self.slab[*moved as usize].at_empty = Some(at);
        }
    }

    /// Removes a stream and its epoch. Returns the bytes freed.
    fn remove(&mut self, index: usize) -> usize {
        let named = self.slab.remove(index);
        let entry = self.names.find_entry(named.hash, |other| *other as usize == index);
        entry.expect("every stream has its name in the table").remove();
        if let Some(at) = named.at_empty {
            self.remove_empty(at);
        }
        self.epochs.end(named.hash);
        if self.slab.is_empty() {
            // Frees the memory of the slab and the tables.
            *self = Self { epochs: std::mem::take(&mut self.epochs), ..Self::default() };
        }
        named.bytes()
    }
}

/// Returns the index under a hand and moves the hand to the next one.
fn step(hand: &mut usize, len: usize) -> usize {
    let index = if *hand < len { *hand } else { 0 };
    *hand = index + 1;
    index
}

/// A slot of the slab, an entry of the table of names, and one of `empty`.
const STREAM_BYTES: usize = size_of::<NamedStream>() + 28;
/// Used streams that one eviction skips at most, so that a publisher does not wait for long.
const SPARED_MAX: usize = 64;

#[cfg(test)]
mod tests;
