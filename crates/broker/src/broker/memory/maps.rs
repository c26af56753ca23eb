//! Map channels of the memory broker: entries and changes under the lock of the channel's stripe, which gives the order.
//! In: calls of `MapBroker` on any thread → out: calls of `Deliver`, in one order per channel; pages.
//! Uses: the stripes of the memory broker, with their results of idempotency keys. Never: clocks (time is a parameter).
//! Changed here: what happens under the lock, and how memory is shared with streams. A channel's map lives in `maps/map.rs`, the maps
//! of a stripe in `maps/channels.rs`; the promises are in `map.rs` of `broker`.

mod channels;
mod map;

use std::mem;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Instant;

use super::results::{IdempotencyKey, TTL};
use super::streams::Streams;
use super::{HashedChannel, MemoryBroker, Stripe};
use crate::broker::Suppression;
use crate::map::{
    ChangesQuery, MapBroker, MapChannel, MapError, MapOutcome, MapPublish, MapRemoval, MapStats,
    MapSuppression, PositionLost, StatePage, StateQuery,
};
use crate::{Answer, DeliverOptions, Position, StreamSlice};
pub(super) use channels::Maps;
use map::Applied;
pub(super) use map::{Map, MapBytes};

impl MemoryBroker {
    /// Applies a change, unless its idempotency key was used before. `apply` gets the map, and how much the entries of all channels may
    /// still grow.
    fn change(
        &self,
        channel: MapChannel<'_>,
        idempotency_key: &str,
        now: Instant,
        apply: impl FnOnce(&mut Map, usize) -> Result<Applied, MapError>,
    ) -> Result<MapOutcome, MapError> {
        let (hashed, stripe) = self.stripe(channel.name);
        let Stripe { results, streams, maps, marks, .. } = &mut *stripe.lock();
        results.remove_expired(now, &self.results_memory);
        let key = IdempotencyKey::new(channel.name, None, idempotency_key);
        if let Some(position) = key.as_ref().and_then(|key| results.find(key, now)) {
            self.suppressed.add(Suppression::RepeatedKey, 0);
            let suppression = Some(MapSuppression::Idempotency);
            return Ok(MapOutcome { position, suppression });
        }
        let free = self.history_bytes_max.saturating_sub(self.map_entries_bytes.load(Relaxed));
        let before = maps.bytes();
        let (applied, epoch) = maps.with(hashed, channel.retention, now, |map| {
            let applied = apply(map, free);
            (applied, map.top().epoch)
        });
        self.count_maps(before, maps, streams);
        if self.history_bytes.load(Relaxed) > self.history_bytes_max {
            self.drop_changes(hashed, maps, now);
        }
        let (publication, delta) = match applied? {
            Applied::Changed(publication, delta) => (publication, delta),
            Applied::Suppressed(outcome) => {
                if outcome.suppression == Some(MapSuppression::Version) {
                    self.suppressed.add(Suppression::OldVersion, 0);
                }
                return Ok(outcome);
            }
        };
        marks.change(hashed.hash);
        let position = Position { offset: publication.offset, epoch };
        let options = DeliverOptions { epoch, delta, ..DeliverOptions::new(now) };
        // Under the lock, as publications are.
        self.deliver.deliver(channel.name, *publication, options);
        if let Some(key) = key {
            results.insert(key, position, now + TTL, &self.results_memory);
        }
        Ok(MapOutcome { position, suppression: None })
    }

    /// Calls `read` with the map of a channel, which is kept alive by that.
    fn read<T>(&self, channel: MapChannel<'_>, now: Instant, read: impl FnOnce(&Map) -> T) -> T {
        let (hashed, stripe) = self.stripe(channel.name);
        let Stripe { streams, maps, .. } = &mut *stripe.lock();
        let before = maps.bytes();
        let result = maps.with(hashed, channel.retention, now, |map| read(map));
        self.count_maps(before, maps, streams);
        result
    }

    /// Adds the change of the memory of maps since `before` to the totals. Streams of the stripe are evicted if the total is too large.
    fn count_maps(&self, before: MapBytes, maps: &Maps, streams: &mut Streams) {
        let after = maps.bytes();
        let entries = after.entries.wrapping_sub(before.entries);
        let grown = entries.wrapping_add(after.changes).wrapping_sub(before.changes);
        self.map_entries_bytes.fetch_add(entries, Relaxed); // negative numbers wrap around
        self.count(grown as isize, streams);
    }

    /// Frees the memory of a channel's changes.
    fn drop_changes(&self, channel: HashedChannel<'_>, maps: &mut Maps, now: Instant) {
        let before = maps.bytes().changes;
        maps.drop_changes(channel, now);
        self.history_bytes.fetch_sub(before - maps.bytes().changes, Relaxed);
    }

    /// Removes entries and changes that have expired, in each stripe at most `SWEEP_TURNS` times `SWEEP_STEPS`. Holds the lock for
    /// `SWEEP_STEPS` removals with their deliveries.
    pub(super) fn sweep_maps(&self, now: Instant) {
        for stripe in &self.stripes {
            for _ in 0..SWEEP_TURNS {
                let Stripe { streams, maps, marks, .. } = &mut *stripe.lock();
                let before = maps.bytes();
                let has_more = maps.expire(SWEEP_STEPS, now, |channel, removal, epoch| {
                    marks.change(self.hash(channel));
                    let options = DeliverOptions { epoch, ..DeliverOptions::new(now) };
                    self.deliver.deliver(channel, removal, options);
                });
                self.count_maps(before, maps, streams);
                if !has_more {
                    break;
                }
            }
        }
    }
}

impl MapBroker for MemoryBroker {
    fn publish(
        &self,
        channel: MapChannel<'_>,
        mut publish: MapPublish,
        now: Instant,
    ) -> Answer<Result<MapOutcome, MapError>> {
        let idempotency_key = mem::take(&mut publish.idempotency_key);
        let apply = |map: &mut Map, free| map.publish(publish, free, now);
        Answer::now(Ok(self.change(channel, &idempotency_key, now, apply)))
    }

    fn remove(
        &self,
        channel: MapChannel<'_>,
        mut removal: MapRemoval,
        now: Instant,
    ) -> Answer<Result<MapOutcome, MapError>> {
        let idempotency_key = mem::take(&mut removal.idempotency_key);
        let apply = |map: &mut Map, _| map.remove(removal, now);
        Answer::now(Ok(self.change(channel, &idempotency_key, now, apply)))
    }

    fn read_state(
        &self,
        channel: MapChannel<'_>,
        query: &StateQuery,
        now: Instant,
    ) -> Answer<Result<StatePage, PositionLost>> {
        Answer::now(Ok(self.read(channel, now, |map| map.read_state(query))))
    }

    fn read_stream(
        &self,
        channel: MapChannel<'_>,
        query: ChangesQuery,
        now: Instant,
    ) -> Answer<Result<StreamSlice, PositionLost>> {
        Answer::now(Ok(self.read(channel, now, |map| map.read_stream(query))))
    }

    /// Ready at once: `Deliver` looks the channel up in the registry at each change.
    fn follow(
        &self,
        channel: MapChannel<'_>,
        query: Option<ChangesQuery>,
        now: Instant,
    ) -> Answer<Result<StreamSlice, PositionLost>> {
        match query {
            Some(query) => self.read_stream(channel, query, now),
            None => Answer::now(Ok(Ok(StreamSlice::default()))),
        }
    }

    fn stats(&self, channel: MapChannel<'_>, now: Instant) -> Answer<MapStats> {
        Answer::now(Ok(self.read(channel, now, |map| MapStats { entries: map.len() })))
    }

    fn clear(&self, channel: MapChannel<'_>, now: Instant) -> Answer<()> {
        let (hashed, stripe) = self.stripe(channel.name);
        let Stripe { results, streams, maps, marks, .. } = &mut *stripe.lock();
        marks.change(hashed.hash);
        results.remove_channel(channel.name, &self.results_memory);
        let before = maps.bytes();
        maps.clear(hashed, now);
        self.count_maps(before, maps, streams);
        self.deliver.report_possible_gap(channel.name);
        Answer::now(Ok(()))
    }
}

/// Steps of a sweep under one lock: entries that are removed, channels that are looked at.
const SWEEP_STEPS: usize = 1024;
/// How often a sweep locks a stripe at most: 16,384 entries a second expire in time, also when they are all of one channel.
const SWEEP_TURNS: usize = 16;

#[cfg(test)]
mod tests;
