//! The streams of one stripe of the memory broker: made by the first publication, forgotten when their time is over.
//! In: channels, the time → out: live streams, and how much memory they hold together.
//! Uses: a slab and a table of its indices. Never: locks, delivery.
//! Change here: who is forgotten first. What a stream holds lives in `stream.rs`, the epochs of channels without in `epochs.rs`.

use std::time::Instant;

use hashbrown::HashTable;
use slab::Slab;

use super::epochs::Epochs;
use super::stream::Stream;

/// Streams by channel, and hands that walk over them: one for what is over, two for when memory is short.
#[derive(Default)]
pub(super) struct Streams {
    slab: Slab<Named>,
    /// Indices into `slab`, by the hash of the channel.
    names: HashTable<u32>,
    /// Indices of the streams that hold no publication, but a position.
    empty: Vec<u32>,
    sweep_hand: usize,
    evict_hand: usize,
    /// Over `empty`.
    empty_hand: usize,
    /// The place that was used last.
    newest: usize,
    epochs: Epochs,
}

struct Named {
    channel: Box<str>,
    hash: u64,
    /// Again, since it was made or the evicting hand came by: then that goes on to the next one, once.
    is_used: bool,
    /// Its place in `empty`.
    at_empty: Option<u32>,
    stream: Stream,
}

impl Named {
    fn bytes(&self) -> usize {
        NAMED_BYTES + self.channel.len() + self.stream.bytes()
    }
}

impl Streams {
    /// Does `work` with the living stream of a channel. Where there is none it gets an empty one, which is kept only if it
    /// was published to. Returns how many bytes more (or fewer) are held now.
    pub(super) fn with<T>(
        &mut self,
        place: (u64, &str),
        now: Instant,
        work: impl FnOnce(&mut Stream) -> T,
    ) -> (T, isize) {
        let (found, freed) = match self.find(place) {
            Some(index) if self.slab[index].stream.is_over(now) => (None, self.remove(index)),
            found => (found, 0),
        };
        let Some(index) = found else {
            let mut stream = Stream::new(self.epochs.of(place));
            let done = work(&mut stream);
            let made = if stream.top().offset > 0 { self.insert(place, stream) } else { 0 };
            return (done, made as isize - freed as isize);
        };
        self.newest = index;
        let named = &mut self.slab[index];
        named.is_used = true;
        let before = named.stream.bytes() as isize;
        named.stream.expire(now);
        let done = work(&mut named.stream);
        let grown = named.stream.bytes() as isize - before;
        self.list(index);
        (done, grown)
    }

    /// Drops the stored publications of a channel, if it has a stream. Returns the bytes freed.
    pub(super) fn clear(&mut self, place: (u64, &str)) -> usize {
        let Some(index) = self.find(place) else { return 0 };
        let stream = &mut self.slab[index].stream;
        let bytes = stream.bytes();
        stream.clear();
        self.list(index);
        bytes
    }

    /// Looks at the next `count` places for what is over. Returns the bytes freed.
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
                self.list(index);
            }
        }
        freed
    }

    /// Makes room: of the streams that hold no publication one is forgotten; where there is none, another one loses its
    /// publications. It is the next one that nobody has used since the hand came by. Where too many are used, the next
    /// one; the one that was used last only if it is alone. Returns the bytes freed; `None` when there is no stream.
    ///
    /// Each use is paid for with one look at most, so that many looks are rare; where there were many more streams once, places
    /// that are free now are looked at, too.
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
            self.list(index);
            return Some(bytes);
        }
    }

    /// How many there are.
    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.slab.len()
    }

    /// The place under the hand: among those that hold no publication, if there is one beside the newest.
    fn next_to_evict(&mut self) -> usize {
        match self.empty[..] {
            [] => {}
            [only] if only as usize == self.newest => {}
            _ => return self.empty[step(&mut self.empty_hand, self.empty.len())] as usize,
        }
        step(&mut self.evict_hand, self.slab.capacity())
    }

    fn find(&self, (hash, channel): (u64, &str)) -> Option<usize> {
        let is_it = |index: &u32| self.slab[*index as usize].channel.as_ref() == channel;
        self.names.find(hash, is_it).map(|index| *index as usize)
    }

    /// Adds a stream. Returns its bytes.
    fn insert(&mut self, (hash, channel): (u64, &str), stream: Stream) -> usize {
        let channel = channel.into();
        let named = Named { channel, hash, is_used: false, at_empty: None, stream };
        let bytes = named.bytes();
        self.newest = self.slab.insert(named);
        let entry = u32::try_from(self.newest).expect("fewer than 2^32 channels in a stripe");
        let slab = &self.slab;
        self.names.insert_unique(hash, entry, |other| slab[*other as usize].hash);
        bytes
    }

    /// Keeps the list of those that hold no publication right, after one has changed.
    fn list(&mut self, index: usize) {
        let named = &mut self.slab[index];
        match (named.stream.is_empty(), named.at_empty) {
            (true, None) => {
                named.at_empty = Some(self.empty.len() as u32);
                self.empty.push(index as u32);
            }
            (false, Some(at)) => {
                named.at_empty = None;
                self.unlist(at);
            }
            _ => {}
        }
    }

    /// Fills a place in the list with the last one.
    fn unlist(&mut self, at: u32) {
        self.empty.swap_remove(at as usize);
        if let Some(moved) = self.empty.get(at as usize) {
            self.slab[*moved as usize].at_empty = Some(at);
        }
    }

    /// Forgets a stream and its epoch. Returns the bytes freed.
    fn remove(&mut self, index: usize) -> usize {
        let named = self.slab.remove(index);
        let entry = self.names.find_entry(named.hash, |other| *other as usize == index);
        entry.expect("every stream has its name in the table").remove();
        if let Some(at) = named.at_empty {
            self.unlist(at);
        }
        self.epochs.end(named.hash);
        if self.slab.is_empty() {
            // The room of a channel_members that has left.
            *self = Self { epochs: std::mem::take(&mut self.epochs), ..Self::default() };
        }
        named.bytes()
    }
}

/// The place under a hand, which goes on to the next one.
fn step(hand: &mut usize, places: usize) -> usize {
    let place = if *hand < places { *hand } else { 0 };
    *hand = place + 1;
    place
}

/// A place in the slab, one in the table of names, and one in the list of those that hold no publication.
const NAMED_BYTES: usize = size_of::<Named>() + 28;
/// Streams in use that are passed over to free one, so that no publisher waits for long.
const SPARED_MAX: usize = 64;

#[cfg(test)]
mod tests;
