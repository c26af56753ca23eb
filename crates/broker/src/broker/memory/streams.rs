//! The streams of one stripe of the memory broker: found by name, made at need, forgotten when their time is over.
//! In: channels, the time → out: live streams, and how much memory they hold together.
//! Uses: a slab and a table of its indices. Never: locks, delivery.
//! Change here: who is forgotten first. What a stream holds lives in `stream.rs`.

use std::time::Instant;

use hashbrown::HashTable;
use slab::Slab;

use super::stream::Stream;

/// Streams by channel, and two hands that walk over them: one for what is over, one for when memory is short.
#[derive(Default)]
pub(super) struct Streams {
    slab: Slab<Named>,
    /// Indices into `slab`, by the hash of the channel.
    names: HashTable<u32>,
    sweep_hand: usize,
    evict_hand: usize,
    /// The place that was used last.
    newest: usize,
}

struct Named {
    channel: Box<str>,
    hash: u64,
    /// Again, since it was made or the evicting hand came by: then that goes on to the next one, once.
    is_used: bool,
    stream: Stream,
}

impl Named {
    fn bytes(&self) -> usize {
        NAMED_BYTES + self.channel.len() + self.stream.bytes()
    }
}

impl Streams {
    /// Does `work` with the living stream of a channel, which is made if there is none. Returns how many bytes more (or
    /// fewer) are held now.
    pub(super) fn with<T>(
        &mut self,
        (hash, channel): (u64, &str),
        now: Instant,
        work: impl FnOnce(&mut Stream) -> T,
    ) -> (T, isize) {
        let (index, made) = match self.find(hash, channel) {
            Some(index) => (index, 0),
            None => self.insert(hash, channel),
        };
        self.newest = index;
        let named = &mut self.slab[index];
        named.is_used = made == 0;
        let before = named.stream.bytes() as isize;
        if named.stream.is_over(now) {
            named.stream = Stream::new();
        }
        named.stream.expire(now);
        let done = work(&mut named.stream);
        (done, made + named.stream.bytes() as isize - before)
    }

    /// Drops the stored publications of a channel, if it has a stream. Returns the bytes freed.
    pub(super) fn clear(&mut self, (hash, channel): (u64, &str)) -> usize {
        let Some(index) = self.find(hash, channel) else { return 0 };
        let stream = &mut self.slab[index].stream;
        let bytes = stream.bytes();
        stream.clear();
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
            }
        }
        freed
    }

    /// Makes room: the next stream that nobody has used since the hand came by loses its publications, or, if it has none, is
    /// forgotten. Where too many are used, the next one; the one that was used last only if it is alone. Returns the bytes
    /// freed; `None` when there is no stream.
    ///
    /// Each use is paid for with one look at most, so that many looks are rare; where there were many more streams once, places
    /// that are free now are looked at, too.
    pub(super) fn evict(&mut self) -> Option<usize> {
        if self.slab.is_empty() {
            return None;
        }
        let mut spared = 0;
        loop {
            let index = step(&mut self.evict_hand, self.slab.capacity());
            if index == self.newest && self.slab.len() > 1 {
                continue;
            }
            let Some(named) = self.slab.get_mut(index) else { continue };
            if std::mem::take(&mut named.is_used) && spared < SPARED_MAX {
                spared += 1;
                continue;
            }
            let bytes = named.stream.bytes();
            return Some(if named.stream.clear() { bytes } else { self.remove(index) });
        }
    }

    fn find(&self, hash: u64, channel: &str) -> Option<usize> {
        let is_it = |index: &u32| self.slab[*index as usize].channel.as_ref() == channel;
        self.names.find(hash, is_it).map(|index| *index as usize)
    }

    /// Adds an empty stream. Returns its place and its bytes.
    fn insert(&mut self, hash: u64, channel: &str) -> (usize, isize) {
        let named = Named { channel: channel.into(), hash, is_used: false, stream: Stream::new() };
        let bytes = named.bytes() as isize;
        let index = self.slab.insert(named);
        let entry = u32::try_from(index).expect("fewer than 2^32 channels in a stripe");
        let slab = &self.slab;
        self.names.insert_unique(hash, entry, |other| slab[*other as usize].hash);
        (index, bytes)
    }

    /// Forgets a stream. Returns the bytes freed.
    fn remove(&mut self, index: usize) -> usize {
        let named = self.slab.remove(index);
        let entry = self.names.find_entry(named.hash, |other| *other as usize == index);
        entry.expect("every stream has its name in the table").remove();
        if self.slab.is_empty() {
            *self = Self::default(); // the room of a crowd that has left
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

/// A place in the slab and one in the table of names.
const NAMED_BYTES: usize = size_of::<Named>() + 24;
/// Streams in use that are passed over to free one, so that no publisher waits for long.
const SPARED_MAX: usize = 64;

#[cfg(test)]
mod tests;
