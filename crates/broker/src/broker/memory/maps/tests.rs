//! Tests of maps in memory: the promises of every engine, expiry, memory; a model of a map.
//! In: calls at virtual times → out: deliveries, states, bytes.
//! Uses: the conformance suite, proptest. Never: a clock it does not set.
//! Changed here: what is only true in memory. Promises that all engines share are in `map/conformance.rs`.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use fanwire_protocol::{ClientInfo, Publication};
use parking_lot::Mutex;

use super::*;
use crate::map::{KeyMode, MapRetention};
use crate::{Broker, Change, Deliver, Epoch, Retention, conformance};

mod expiry;
mod memory;
mod model;

#[test]
fn the_memory_broker_keeps_the_promises_of_maps() {
    conformance::map::check(&|deliver| Arc::new(MemoryBroker::new(deliver, 1 << 30)));
}

/// Keeps what is delivered.
#[derive(Default)]
struct Delivered(Mutex<Vec<(Publication, Epoch)>>);

impl Deliver for Delivered {
    fn deliver(&self, _: &str, publication: Publication, options: DeliverOptions) {
        self.0.lock().push((publication, options.epoch));
    }

    fn deliver_join_leave(&self, _: &str, _: Change, _: ClientInfo) {}
}

/// An engine with a channel, and a clock that the test moves.
struct Subject {
    delivered: Arc<Delivered>,
    broker: MemoryBroker,
    retention: MapRetention,
    start: Instant,
}

const SECOND: Duration = Duration::from_secs(1);

impl Subject {
    /// Entries live for 60 s, changes for 30 s and the epoch for 300 s.
    fn new(history_bytes_max: usize) -> Self {
        let delivered = Arc::<Delivered>::default();
        let broker = MemoryBroker::new(Arc::clone(&delivered) as _, history_bytes_max);
        let stream = Retention { size: 100, ttl: 30 * SECOND, meta_ttl: 300 * SECOND };
        let limits = (1 << 20, 1 << 30);
        let (entries_max, bytes_max) = limits;
        let retention = MapRetention { key_ttl: 60 * SECOND, stream, entries_max, bytes_max };
        Self { delivered, broker, retention, start: Instant::now() }
    }

    fn at(&self, seconds: u64) -> Instant {
        self.start + Duration::from_secs(seconds)
    }

    fn channel<'a>(&self, name: &'a str) -> MapChannel<'a> {
        MapChannel { name, retention: self.retention }
    }

    fn set(&self, key: &str, at: u64) -> Position {
        self.publish(value(key, key), at).expect("nothing to refuse").position
    }

    fn publish(&self, publish: MapPublish, at: u64) -> Result<MapOutcome, MapError> {
        let answer = MapBroker::publish(&self.broker, self.channel("board"), publish, self.at(at));
        answer.wait().expect("memory is available")
    }

    fn page(&self, at: u64) -> StatePage {
        let query = StateQuery::default();
        let page = self.broker.read_state(self.channel("board"), &query, self.at(at));
        page.wait().expect("memory is available").expect("any epoch")
    }

    fn keys(&self, at: u64) -> Vec<String> {
        self.page(at).entries.into_iter().map(|entry| entry.key).collect()
    }

    fn changes(&self, since: Position, at: u64) -> Result<StreamSlice, PositionLost> {
        let query = ChangesQuery { since: Some(since), ..ChangesQuery::default() };
        let slice = self.broker.read_stream(self.channel("board"), query, self.at(at));
        slice.wait().expect("memory is available")
    }

    /// The keys that were removed so far, by expiry or not.
    fn removed(&self) -> Vec<String> {
        let delivered = self.delivered.0.lock();
        let removals = delivered.iter().filter(|(publication, _)| publication.removed);
        removals.map(|(publication, _)| publication.key.clone()).collect()
    }
}

fn value(key: &str, data: &str) -> MapPublish {
    let key = key.to_owned();
    let data = data.to_owned().into();
    let publication = Publication { key, data, ..Publication::default() };
    MapPublish { publication, ..MapPublish::default() }
}
