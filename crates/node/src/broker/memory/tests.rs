//! Tests of the memory broker: the promises of every broker, and what it remembers for how long.
//! In: publish calls at virtual times → out: how often the door was passed, how much is held.
//! Uses: the conformance suite; never a clock it does not set.
//! Promises that all brokers share live in `broker/conformance.rs`.

use super::*;
use crate::broker::conformance;

/// A door that counts.
#[derive(Default)]
struct Count(Mutex<usize>);

impl Deliver for Count {
    fn deliver(&self, _channel: &str, _publication: Publication, _accepted_at: Instant) {
        *self.0.lock() += 1;
    }
}

fn publish(broker: &MemoryBroker, channel: &str, key: &str, now: Instant) {
    let options = PublishOptions { idempotency_key: key.into(), ..PublishOptions::default() };
    let published = broker.publish(channel, Publication::default(), &options, now);
    assert_eq!(published, Ok(Position::default()));
}

#[test]
fn the_memory_broker_keeps_the_promises_of_brokers() {
    conformance::check(&|door| Arc::new(MemoryBroker::new(door)));
}

#[test]
fn an_idempotency_key_is_forgotten_after_five_minutes() {
    let door = Arc::new(Count::default());
    let broker = MemoryBroker::new(Arc::clone(&door) as _);
    let start = Instant::now();
    for (seconds, published) in [(0, 1), (299, 1), (300, 2), (599, 2), (600, 3)] {
        publish(&broker, "a", "key", start + Duration::from_secs(seconds));
        assert_eq!(*door.0.lock(), published, "after {seconds} s");
    }
}

#[test]
fn idempotency_results_take_bounded_memory_and_the_oldest_go_first() {
    let door = Arc::new(Count::default());
    let broker = MemoryBroker::new(Arc::clone(&door) as _);
    let now = Instant::now();
    let long = "k".repeat(IDEMPOTENCY_BYTES_MAX / STRIPES / 4);
    for number in 0..10 {
        publish(&broker, "a", &format!("{number}{long}"), now);
    }
    let held: usize = broker.stripes.iter().map(|stripe| stripe.lock().bytes).sum();
    assert!(held <= IDEMPOTENCY_BYTES_MAX / STRIPES, "{held}");
    publish(&broker, "a", &format!("9{long}"), now);
    assert_eq!(*door.0.lock(), 10, "the newest is remembered");
    publish(&broker, "a", &format!("0{long}"), now);
    assert_eq!(*door.0.lock(), 11, "the oldest is not");
}

#[test]
fn expired_results_leave_no_memory_behind() {
    let broker = MemoryBroker::new(Arc::new(Count::default()));
    let now = Instant::now();
    for number in 0..100 {
        publish(&broker, "a", &number.to_string(), now);
    }
    publish(&broker, "a", "", now + IDEMPOTENCY_TTL);
    for stripe in &broker.stripes {
        let results = stripe.lock();
        assert!(results.positions.is_empty() && results.queue.is_empty() && results.bytes == 0);
    }
}
