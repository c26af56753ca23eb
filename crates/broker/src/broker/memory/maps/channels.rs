//! The map channels of one stripe: created by the first change, removed when nothing of them is left.
//! In: channels, the time → out: maps, the memory that they use together, removals of entries whose time is over.
//! Uses: a hash table, and an ordered tree of the times at which something expires. Never: locks, delivery.
//! Changed here: when a map is looked at again. A single one lives in `map.rs`.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Instant;

use fanwire_protocol::Publication;
use hashbrown::HashMap;

use super::map::{Map, MapBytes};
use crate::Epoch;
use crate::broker::memory::HashedChannel;
use crate::broker::memory::epochs::{EpochKey, Epochs};
use crate::map::MapRetention;
use crate::saved::{MapsSection, SAVED_ENTRIES, SnapshotClock};

/// The maps of one stripe.
#[derive(Default)]
pub(in crate::broker::memory) struct Maps {
    maps: HashMap<Arc<str>, Box<NamedMap>>,
    /// Channels by a time at which something of them may expire. It may be earlier than that: a refresh does not move it.
    wakes: BTreeSet<(Instant, Arc<str>)>,
    epochs: Epochs,
    bytes: MapBytes,
}

struct NamedMap {
    name: Arc<str>,
    hash: u64,
    /// Its time in `wakes`.
    wake_at: Option<Instant>,
    map: Map,
}

impl NamedMap {
    fn bytes(&self) -> MapBytes {
        let MapBytes { entries, changes } = self.map.bytes();
        MapBytes { entries: entries + MAP_BYTES + self.name.len(), changes }
    }
}

impl Maps {
    pub(in crate::broker::memory) fn new(key: EpochKey) -> Self {
        Self { epochs: Epochs::new(key), ..Self::default() }
    }

    /// Calls `work` with the map of a channel, or with an empty one that is kept only if `work` changes it.
    pub(super) fn with<T>(
        &mut self,
        channel: HashedChannel<'_>,
        retention: MapRetention,
        now: Instant,
        work: impl FnOnce(&mut Map) -> T,
    ) -> T {
        let mut named = self.take(channel, now);
        let had_stream = named.map.top().epoch != Epoch::NONE;
        let epoch = match (had_stream, retention.has_stream()) {
            (false, true) => self.epochs.of(channel),
            (true, false) => {
                self.epochs.end(channel.hash);
                Epoch::NONE
            }
            _ => Epoch::NONE,
        };
        named.map.begin(retention, epoch, now);
        let done = work(&mut named.map);
        self.put(named);
        done
    }

    /// Forgets a channel, and its epoch.
    pub(super) fn clear(&mut self, channel: HashedChannel<'_>, now: Instant) {
        let named = self.take(channel, now);
        self.forget_wake(&named);
        self.epochs.end(channel.hash);
    }

    /// Drops the changes of a channel.
    pub(super) fn drop_changes(&mut self, channel: HashedChannel<'_>, now: Instant) {
        let mut named = self.take(channel, now);
        named.map.drop_changes();
        self.put(named);
    }

    /// Removes what has expired, in at most `count` steps, and calls `deliver` with each removal. Returns whether there is more.
    pub(super) fn expire(
        &mut self,
        count: usize,
        now: Instant,
        mut deliver: impl FnMut(&str, Publication, Epoch),
    ) -> bool {
        for _ in 0..count {
            let is_due = |(at, _): &&(Instant, Arc<str>)| *at <= now;
            let Some((_, name)) = self.wakes.first().filter(is_due).cloned() else { return false };
            self.wakes.pop_first();
            let Some(mut named) = self.maps.remove(&name) else { continue };
            self.subtract(&named);
            named.wake_at = None;
            named.map.expire_changes(now);
            if let Some(removal) = named.map.expire_entry(now) {
                deliver(&name, removal, named.map.top().epoch);
            }
            if named.map.is_over(now) {
                self.epochs.end(named.hash);
            } else {
                self.put(named);
            }
        }
        true
    }

    pub(in crate::broker::memory) fn bytes(&self) -> MapBytes {
        self.bytes
    }

    /// The channels of the stripe, for [`save`](Self::save).
    pub(in crate::broker::memory) fn names(&self) -> Vec<Arc<str>> {
        self.maps.keys().map(Arc::clone).collect()
    }

    /// Saves maps from the end of `names` on, which it removes there, until they are many.
    pub(in crate::broker::memory) fn save(
        &self,
        names: &mut Vec<Arc<str>>,
        clock: &SnapshotClock,
    ) -> MapsSection {
        let mut section = MapsSection::default();
        let mut entries = 0;
        while entries < SAVED_ENTRIES
            && let Some(name) = names.pop()
        {
            if let Some(named) = self.maps.get(&name) {
                let record = named.map.save(&name, clock);
                entries += record.entries.len() + record.changes.len();
                section.maps.push(record);
            }
            entries += 1;
        }
        section
    }

    /// Adds a map of a snapshot.
    pub(in crate::broker::memory) fn restore(&mut self, channel: HashedChannel<'_>, map: Map) {
        let HashedChannel { hash, name } = channel;
        if !self.maps.contains_key(name) {
            self.put(Box::new(NamedMap { name: name.into(), hash, wake_at: None, map }));
        }
    }

    pub(in crate::broker::memory) fn epochs(&mut self) -> &mut Epochs {
        &mut self.epochs
    }

    /// Calls `visit` with each channel and its bytes.
    pub(in crate::broker::memory) fn visit(&self, visit: &mut dyn FnMut(&str, usize)) {
        for (name, named) in &self.maps {
            let MapBytes { entries, changes } = named.bytes();
            visit(name, entries + changes);
        }
    }

    /// Takes a map out of the table, or makes an empty one.
    fn take(&mut self, channel: HashedChannel<'_>, now: Instant) -> Box<NamedMap> {
        let HashedChannel { hash, name } = channel;
        if let Some(named) = self.maps.remove(name) {
            self.subtract(&named);
            if !named.map.is_over(now) {
                return named;
            }
            self.forget_wake(&named);
            self.epochs.end(hash);
        }
        Box::new(NamedMap { name: name.into(), hash, wake_at: None, map: Map::new() })
    }

    /// Puts a map into the table, unless it is blank.
    fn put(&mut self, mut named: Box<NamedMap>) {
        if named.map.is_blank() {
            self.forget_wake(&named);
            return;
        }
        let next = named.map.next_deadline();
        if let Some(next) = next
            && named.wake_at.is_none_or(|wake_at| next < wake_at)
        {
            self.forget_wake(&named);
            self.wakes.insert((next, Arc::clone(&named.name)));
            named.wake_at = Some(next);
        }
        let MapBytes { entries, changes } = named.bytes();
        self.bytes.entries += entries;
        self.bytes.changes += changes;
        self.maps.insert(Arc::clone(&named.name), named);
    }

    fn subtract(&mut self, named: &NamedMap) {
        let MapBytes { entries, changes } = named.bytes();
        self.bytes.entries -= entries;
        self.bytes.changes -= changes;
    }

    fn forget_wake(&mut self, named: &NamedMap) {
        if let Some(at) = named.wake_at {
            self.wakes.remove(&(at, Arc::clone(&named.name)));
        }
    }
}

/// A map, its places in the table and in the tree of wakes, and the counters of its name.
const MAP_BYTES: usize = size_of::<NamedMap>() + 3 * size_of::<Arc<str>>() + 64;
