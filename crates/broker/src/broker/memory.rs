//! The broker of a node that stands alone: order by a lock per channel stripe; streams and results in memory.
//! In: `publish` and `history` on any thread → out: publications at the door, in one order per channel; stored ones.
//! Uses: striped locks. Never: clocks (time is a parameter).
//! Change here: what holds one lock together. A channel's stream lives in `memory/stream.rs`, what is forgotten first in
//! `memory/streams.rs`, epochs without a stream in `memory/epochs.rs`, idempotency in `memory/results.rs`; the promises stand in `broker.rs`.

mod epochs;
mod results;
mod stream;
mod streams;

use std::hash::BuildHasher;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::Instant;

use fanwire_protocol::{ClientInfo, Publication};
use hashbrown::DefaultHashBuilder;
use parking_lot::Mutex;

use super::{Broker, Position, PublishOptions, Query, Retention, StreamSlice};
use crate::Answer;
use crate::Change;
use crate::Deliver;
use crate::Delta;
use results::{Key, Results};
use streams::Streams;

/// Publishes by calling the door while it holds the lock of the channel's stripe: that is the order of the channel.
pub struct MemoryBroker {
    door: Arc<dyn Deliver>,
    hasher: DefaultHashBuilder,
    stripes: Box<[Mutex<Stripe>]>,
    /// Roughly the memory of all streams.
    history_bytes: AtomicUsize,
    history_bytes_max: usize,
}

#[derive(Default)]
struct Stripe {
    results: Results,
    streams: Streams,
}

/// A channel with its hash.
type Place<'a> = (u64, &'a str);

impl MemoryBroker {
    /// A broker whose streams together take about `history_bytes_max`; beyond it some lose what they stored.
    pub fn new(door: Arc<dyn Deliver>, history_bytes_max: usize) -> Self {
        Self {
            door,
            hasher: DefaultHashBuilder::default(),
            stripes: (0..STRIPES).map(|_| Mutex::default()).collect(),
            history_bytes: AtomicUsize::new(0),
            history_bytes_max,
        }
    }

    fn place<'a>(&self, channel: &'a str) -> (Place<'a>, &Mutex<Stripe>) {
        let hash = self.hasher.hash_one(channel);
        // Not the lowest and not the highest bits: tables of a stripe tell their entries apart by those.
        ((hash, channel), &self.stripes[(hash >> 32) as usize % STRIPES])
    }

    /// Counts what streams took, and takes from the streams of this stripe when all of them hold too much: at least what was
    /// added, if they have it.
    fn count(&self, grown: isize, streams: &mut Streams) {
        self.history_bytes.fetch_add(grown as usize, Relaxed); // wraps around for what is negative
        let (mut evicted, mut freed_all) = (0, 0);
        while self.history_bytes() > self.history_bytes_max
            && (evicted < EVICTIONS_MAX || freed_all < grown)
        {
            let Some(freed) = streams.evict() else { return };
            self.history_bytes.fetch_sub(freed, Relaxed);
            evicted += 1;
            freed_all += freed as isize;
        }
    }

    /// Stores a publication and says what its delta can be made against. `Err` with the top when the stream has a newer
    /// version.
    fn store(
        &self,
        streams: &mut Streams,
        place: Place<'_>,
        publication: &Publication,
        (options, retention): (&PublishOptions, Retention),
        now: Instant,
    ) -> Result<(Position, Delta), Position> {
        let (stored, grown) = streams.with(place, now, |stream| {
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
        let (place, stripe) = self.place(channel);
        let Stripe { results, streams } = &mut *stripe.lock();
        results.forget_expired(now);
        let key = Key::new(channel, &options.idempotency_key);
        if let Some(first) = key.as_ref().and_then(|key| results.find(key)) {
            return Answer::now(Ok(first));
        }
        let (mut position, mut delta) =
            (Position::default(), Delta::candidate(options.delta, None));
        if retention.keeps_history() && !options.skip_history {
            match self.store(streams, place, &publication, (options, retention), now) {
                Ok(stored) => (position, delta) = stored,
                Err(top) => return Answer::now(Ok(top)),
            }
        }
        publication.offset = position.offset;
        let (epoch, exclude) = (position.epoch, options.exclude_client);
        self.door.deliver(channel, publication, epoch, delta, exclude, now);
        if let Some(key) = key {
            results.remember(key, position, now, IDEMPOTENCY_BYTES_MAX / STRIPES);
        }
        Answer::now(Ok(position))
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
        let (place, stripe) = self.place(channel);
        let streams = &mut stripe.lock().streams;
        let (stretch, grown) = streams.with(place, now, |stream| {
            stream.touch(retention, now);
            stream.read(query)
        });
        self.count(grown, streams);
        Answer::now(Ok(stretch))
    }

    /// Nothing has to take effect first: the door asks the registry at each publication.
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

    fn announce(&self, channel: &str, change: Change, info: ClientInfo) -> Answer<()> {
        let (_, stripe) = self.place(channel);
        let _order = stripe.lock();
        self.door.announce(channel, change, info);
        Answer::now(Ok(()))
    }

    fn remove_history(&self, channel: &str, _now: Instant) -> Answer<()> {
        let (place, stripe) = self.place(channel);
        let freed = stripe.lock().streams.clear(place);
        self.history_bytes.fetch_sub(freed, Relaxed);
        Answer::now(Ok(()))
    }

    fn subscribe(&self, _channel: &str) {}

    fn unsubscribe(&self, _channel: &str) {}

    /// Looks at 65,536 streams per call, each stripe's lock being held for 1,024 of them.
    fn sweep(&self, now: Instant) {
        for stripe in &self.stripes {
            let mut stripe = stripe.lock();
            stripe.results.forget_expired(now);
            let freed = stripe.streams.sweep(SWEEP_PLACES, now);
            self.history_bytes.fetch_sub(freed, Relaxed);
        }
    }

    fn history_bytes(&self) -> usize {
        self.history_bytes.load(Relaxed)
    }
}

/// Memory for idempotency results of the node; beyond it the oldest are forgotten before their time.
const IDEMPOTENCY_BYTES_MAX: usize = 64 * 1024 * 1024;
/// Locks; publications of channels of one stripe wait for each other.
const STRIPES: usize = 64;
/// Streams that one call takes from to make room, or as many as it takes to free what its publication needs: so no publisher
/// waits for long, and a large publication cannot add more than small streams give back.
const EVICTIONS_MAX: usize = 16;
/// Streams per stripe that one sweep looks at.
const SWEEP_PLACES: usize = 1024;

#[cfg(test)]
mod tests;
