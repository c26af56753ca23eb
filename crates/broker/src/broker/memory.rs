//! The broker of a node without cluster: one lock per stripe of channels gives the order; streams and results are in memory.
//! In: `publish` and `history` on any thread → out: calls of `Deliver`, in one order per channel; stored publications.
//! Uses: striped locks. Never: clocks (time is a parameter), files; a snapshot is bytes (`memory/snapshot.rs`).
//! Changed here: what happens under the lock. A channel's stream lives in `memory/stream.rs`, eviction in `memory/streams.rs`,
//! epochs without a stream in `memory/epochs.rs`, idempotency in `memory/results.rs`, map channels in `memory/maps.rs`; the promises are
//! in `broker.rs`.

mod epochs;
mod growth;
mod maps;
mod marks;
mod results;
mod snapshot;
mod stream;
mod streams;

use std::hash::BuildHasher;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::time::Instant;

use fanwire_protocol::{ClientInfo, Publication};
use foldhash::fast::FixedState;
use parking_lot::Mutex;

use super::{
    Broker, KeyOwner, PublishOptions, Query, Retention, StreamSlice, SuppressedCounters,
    SuppressedCounts, Suppression,
};
use crate::map;
use crate::{
    Answer, Append, AppendError, Appended, Chance, Change, Deliver, DeliverOptions, Delta,
    Position, SystemChance,
};
use epochs::EpochKey;
use maps::{MapBytes, Maps};
use marks::Marks;
use results::{IdempotencyKey, Results, ResultsMemory};
use streams::Streams;

pub use marks::{Bucket, ChangeMarks};
pub use snapshot::{
    ChangesSince, RestoreOptions, SNAPSHOT_VERSION, Snapshot, SnapshotError, SnapshotHead,
    Totals as SnapshotTotals,
};

/// Calls `Deliver` while it holds the lock of the channel's stripe, so the order of the lock is the order of the channel.
pub struct MemoryBroker {
    deliver: Arc<dyn Deliver>,
    seeds: Mutex<Seeds>,
    /// That of the hashes of channels, for those who do not have the lock.
    table_seed: AtomicU64,
    stripes: Box<[Mutex<Stripe>]>,
    /// Approximate memory of all streams and maps.
    history_bytes: AtomicUsize,
    /// That of the entries of all maps, which are never evicted.
    map_entries_bytes: AtomicUsize,
    history_bytes_max: usize,
    evictions: AtomicU64,
    results_memory: ResultsMemory,
    client_results_memory: ResultsMemory,
    suppressed: SuppressedCounters,
}

struct Stripe {
    results: Results,
    /// Results of publishes with keys of clients.
    client_results: Results,
    streams: Streams,
    maps: Maps,
    marks: Marks,
}

impl Stripe {
    fn new(of_streams: EpochKey, of_maps: EpochKey) -> Self {
        let streams = Streams::new(of_streams);
        let maps = Maps::new(of_maps);
        let marks = Marks::default();
        let results = Results::default();
        Self { results, client_results: Results::default(), streams, maps, marks }
    }
}

/// The random numbers behind the hashes and epochs of channels.
#[derive(Clone, Copy)]
struct Seeds {
    table: u64,
    streams: EpochKey,
    maps: EpochKey,
}

impl Seeds {
    fn random(chance: &dyn Chance) -> Self {
        let streams = EpochKey::random(chance);
        let maps = EpochKey::random(chance);
        Self { table: chance.bits(), streams, maps }
    }

    fn hash(&self, name: &str) -> u64 {
        hash_of(self.table, name)
    }

    /// A channel and the index of its stripe.
    fn channel<'a>(&self, name: &'a str) -> (HashedChannel<'a>, usize) {
        let hash = self.hash(name);
        (HashedChannel { hash, name }, marks::stripe_of(hash))
    }
}

fn hash_of(seed: u64, name: &str) -> u64 {
    FixedState::with_seed(seed).hash_one(name)
}

/// The content of a broker.
pub struct MemoryState {
    seeds: Seeds,
    stripes: Vec<Stripe>,
    streams_bytes: usize,
    results_memory: ResultsMemory,
    client_results_memory: ResultsMemory,
}

impl MemoryState {
    fn map_bytes(&self) -> MapBytes {
        let mut maps = MapBytes::default();
        for stripe in &self.stripes {
            let of_stripe = stripe.maps.bytes();
            maps.entries += of_stripe.entries;
            maps.changes += of_stripe.changes;
        }
        maps
    }
}

/// A channel name with its hash.
#[derive(Clone, Copy)]
struct HashedChannel<'a> {
    hash: u64,
    name: &'a str,
}

impl MemoryBroker {
    /// A broker whose streams and maps together take about `history_bytes_max` bytes; beyond that it evicts stored publications.
    pub fn new(deliver: Arc<dyn Deliver>, history_bytes_max: usize) -> Self {
        Self::with_chance(deliver, history_bytes_max, &SystemChance)
    }

    /// [`new`](Self::new) with another source of epochs.
    pub fn with_chance(
        deliver: Arc<dyn Deliver>,
        history_bytes_max: usize,
        chance: &dyn Chance,
    ) -> Self {
        Self::with_state(deliver, history_bytes_max, MemoryState::new(Seeds::random(chance)))
    }

    /// [`new`](Self::new) with the state that a snapshot has restored.
    pub fn with_state(
        deliver: Arc<dyn Deliver>,
        history_bytes_max: usize,
        state: MemoryState,
    ) -> Self {
        let maps = state.map_bytes();
        Self {
            deliver,
            seeds: Mutex::new(state.seeds),
            table_seed: AtomicU64::new(state.seeds.table),
            stripes: state.stripes.into_iter().map(Mutex::new).collect(),
            history_bytes: AtomicUsize::new(state.streams_bytes + maps.entries + maps.changes),
            map_entries_bytes: AtomicUsize::new(maps.entries),
            history_bytes_max,
            evictions: AtomicU64::new(0),
            results_memory: state.results_memory,
            client_results_memory: state.client_results_memory,
            suppressed: SuppressedCounters::default(),
        }
    }

    /// Goes on with a state in place of its own, before anything uses it.
    pub(crate) fn replace(&self, state: MemoryState) {
        let maps = state.map_bytes();
        for (stripe, saved) in self.stripes.iter().zip(state.stripes) {
            let mut stripe = stripe.lock();
            let marks = std::mem::take(&mut stripe.marks);
            *stripe = Stripe { marks, ..saved };
        }
        *self.seeds.lock() = state.seeds;
        self.table_seed.store(state.seeds.table, Relaxed);
        self.history_bytes.store(state.streams_bytes + maps.entries + maps.changes, Relaxed);
        self.map_entries_bytes.store(maps.entries, Relaxed);
        self.results_memory.replace(&state.results_memory);
        self.client_results_memory.replace(&state.client_results_memory);
    }

    /// The memory that the results of publishes with keys of this owner take.
    fn results_memory_of(&self, owner: Option<&KeyOwner>) -> &ResultsMemory {
        if owner.is_some() { &self.client_results_memory } else { &self.results_memory }
    }

    fn stripe<'a>(&self, name: &'a str) -> (HashedChannel<'a>, &Mutex<Stripe>) {
        let hash = self.hash(name);
        (HashedChannel { hash, name }, &self.stripes[marks::stripe_of(hash)])
    }

    fn hash(&self, name: &str) -> u64 {
        hash_of(self.table_seed.load(Relaxed), name)
    }

    /// Adds `grown` bytes to the total. While the total is above its limit, evicts from the streams of this stripe:
    /// `EVICTIONS_MAX` times, and then until `grown` bytes are free.
    fn count(&self, grown: isize, streams: &mut Streams) {
        self.history_bytes.fetch_add(grown as usize, Relaxed); // a negative number wraps around
        let mut evicted = 0_u64;
        let mut freed_all = 0;
        while self.history_bytes() > self.history_bytes_max
            && (evicted < EVICTIONS_MAX || freed_all < grown)
        {
            let Some(freed) = streams.evict() else { break };
            self.history_bytes.fetch_sub(freed, Relaxed);
            evicted += 1;
            freed_all += freed as isize;
        }
        if evicted > 0 {
            self.evictions.fetch_add(evicted, Relaxed);
        }
    }

    /// Stores a publication; returns its position and the base for its delta.
    ///
    /// # Errors
    /// The top of the stream when it has the same or a newer version.
    fn store(
        &self,
        streams: &mut Streams,
        channel: HashedChannel<'_>,
        publication: &Publication,
        options: &PublishOptions,
        retention: Retention,
        now: Instant,
    ) -> Result<(Position, Delta), Position> {
        let (stored, grown) = streams.with(channel, now, |stream| {
            stream.touch(retention, now);
            if stream.supersedes(options) {
                return Err(stream.top());
            }
            let delta = Delta::candidate(options.delta, stream.newest());
            Ok((stream.append(publication, options, retention, now), delta))
        });
        self.count(grown, streams);
        stored
    }
}

impl Broker for MemoryBroker {
    fn publish(
        &self,
        channel: &str,
        mut publication: Publication,
        options: &PublishOptions,
        retention: Retention,
        now: Instant,
    ) -> Answer<Position> {
        let (hashed, stripe) = self.stripe(channel);
        let Stripe { results, client_results, streams, marks, .. } = &mut *stripe.lock();
        let owner = options.key_owner.as_ref();
        let results = if owner.is_some() { client_results } else { results };
        let memory = self.results_memory_of(owner);
        results.remove_expired(now, memory);
        let key = IdempotencyKey::new(channel, owner, &options.idempotency_key);
        if let Some(first) = key.as_ref().and_then(|key| results.find(key, now)) {
            self.suppressed.add(Suppression::RepeatedKey, options.receipt);
            return Answer::now(Ok(first));
        }
        let (mut position, mut delta) =
            (Position::default(), Delta::candidate(options.delta, None));
        if retention.keeps_history() && !options.skip_history {
            match self.store(streams, hashed, &publication, options, retention, now) {
                Ok(stored) => (position, delta) = stored,
                Err(top) => {
                    self.suppressed.add(Suppression::OldVersion, options.receipt);
                    return Answer::now(Ok(top));
                }
            }
        }
        if position.offset > 0 {
            marks.change(hashed.hash);
        }
        publication.offset = position.offset;
        let deliver_options = DeliverOptions {
            epoch: position.epoch,
            delta,
            exclude: options.exclude_client,
            class: options.delivery,
            receipt: options.receipt,
            accepted_at: now,
        };
        // Under the lock, with the LZ parse inside: 1 to 3 µs, or 5 to 30 µs if the channel has a history. Publications must
        // enter the history in the channel's order (docs/decisions/0004).
        self.deliver.deliver(channel, publication, deliver_options);
        if let Some(key) = key {
            let ttl = owner.map_or(results::TTL, |owner| owner.ttl);
            results.insert(key, position, now + ttl, memory);
        }
        Answer::now(Ok(position))
    }

    fn append(
        &self,
        channel: &str,
        append: Append,
        retention: Retention,
        now: Instant,
    ) -> Answer<Result<Appended, AppendError>> {
        let (hashed, stripe) = self.stripe(channel);
        let Stripe { streams, marks, .. } = &mut *stripe.lock();
        let (grown, bytes) = streams.with(hashed, now, |stream| {
            stream.touch(retention, now);
            stream.grow(&append, retention, now)
        });
        self.count(bytes, streams);
        let result = grown.map(|(appended, publication)| {
            marks.change(hashed.hash);
            if let Some((publication, delta)) = publication {
                let epoch = appended.position.epoch;
                let options = DeliverOptions { epoch, delta, ..DeliverOptions::new(now) };
                self.deliver.deliver(channel, publication, options);
            }
            appended
        });
        Answer::now(Ok(result))
    }

    fn history(
        &self,
        channel: &str,
        query: Query,
        retention: Retention,
        now: Instant,
    ) -> Answer<StreamSlice> {
        if !retention.keeps_history() {
            return Answer::now(Ok(StreamSlice::default()));
        }
        let (hashed, stripe) = self.stripe(channel);
        let streams = &mut stripe.lock().streams;
        let (slice, grown) = streams.with(hashed, now, |stream| {
            stream.touch(retention, now);
            stream.read(query)
        });
        self.count(grown, streams);
        Answer::now(Ok(slice))
    }

    /// Ready at once: `Deliver` looks the channel up in the registry at each publication.
    fn follow(
        &self,
        channel: &str,
        query: Option<Query>,
        retention: Retention,
        now: Instant,
    ) -> Answer<StreamSlice> {
        match query {
            Some(query) => self.history(channel, query, retention, now),
            None => Answer::now(Ok(StreamSlice::default())),
        }
    }

    fn publish_join_leave(&self, channel: &str, change: Change, info: ClientInfo) -> Answer<()> {
        let (_, stripe) = self.stripe(channel);
        let _order = stripe.lock();
        self.deliver.deliver_join_leave(channel, change, info);
        Answer::now(Ok(()))
    }

    fn remove_history(&self, channel: &str, _now: Instant) -> Answer<()> {
        let (hashed, stripe) = self.stripe(channel);
        let Stripe { streams, marks, .. } = &mut *stripe.lock();
        marks.change(hashed.hash);
        let freed = streams.clear(hashed);
        self.history_bytes.fetch_sub(freed, Relaxed);
        Answer::now(Ok(()))
    }

    fn maps(self: Arc<Self>) -> Option<Arc<dyn map::MapBroker>> {
        Some(self)
    }

    fn subscribe(&self, _channel: &str) {}

    fn unsubscribe(&self, _channel: &str) {}

    /// Visits 65,536 streams per call and holds each stripe's lock for 1,024 of them.
    fn sweep(&self, now: Instant) {
        for stripe in &self.stripes {
            let mut stripe = stripe.lock();
            stripe.results.remove_expired(now, &self.results_memory);
            stripe.client_results.remove_expired(now, &self.client_results_memory);
            let freed = stripe.streams.sweep(SWEEP_SLOTS, now);
            self.history_bytes.fetch_sub(freed, Relaxed);
            self.count(0, &mut stripe.streams); // for what entries of maps have grown
        }
        self.sweep_maps(now);
    }

    fn history_bytes(&self) -> usize {
        self.history_bytes.load(Relaxed)
    }

    fn visit_histories(&self, visit: &mut dyn FnMut(&str, usize)) {
        for stripe in &self.stripes {
            let stripe = stripe.lock();
            stripe.streams.visit(visit);
            stripe.maps.visit(visit);
        }
    }

    fn suppressed_of(&self, receipt: u64) -> Vec<Suppression> {
        self.suppressed.of_receipt(receipt)
    }

    fn suppressed(&self) -> SuppressedCounts {
        let keys_dropped = self.results_memory.dropped() + self.client_results_memory.dropped();
        SuppressedCounts { keys_dropped, ..self.suppressed.counts() }
    }

    fn history_evictions(&self) -> u64 {
        self.evictions.load(Relaxed)
    }
}

/// Number of locks; publications to channels of one stripe wait for each other.
const STRIPES: usize = 64;
/// Evictions per call, or more until the bytes of its publication are free: a publisher does not wait for long, and a
/// large publication cannot add more than the evicted streams free.
const EVICTIONS_MAX: u64 = 16;
/// Slots per stripe that one sweep visits.
const SWEEP_SLOTS: usize = 1024;

#[cfg(test)]
mod tests;
