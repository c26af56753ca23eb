//! Tests of the memory broker: the promises of every broker, and the lifetime and memory of its entries.
//! In: publish calls at virtual times → out: the number of deliveries, the stored entries.
//! Uses: the conformance suite; never a clock it does not set.
//! Promises that all brokers share live in `broker/conformance.rs`.

use std::time::Duration;

use super::*;
use crate::{AppendLimits, Fragment, conformance};

/// Counts deliveries.
#[derive(Default)]
struct DeliveryCounter(Mutex<usize>);

impl Deliver for DeliveryCounter {
    fn deliver(&self, _: &str, _: Publication, _: DeliverOptions) {
        *self.0.lock() += 1;
    }

    fn deliver_join_leave(&self, _: &str, _: Change, _: ClientInfo) {}
}

const MEGABYTE: usize = 1 << 20;

fn broker() -> (Arc<DeliveryCounter>, MemoryBroker) {
    let deliver = Arc::new(DeliveryCounter::default());
    (Arc::clone(&deliver), MemoryBroker::new(deliver, MEGABYTE))
}

fn publish(broker: &MemoryBroker, channel: &str, key: &str, now: Instant) {
    let options = PublishOptions { idempotency_key: key.into(), ..PublishOptions::default() };
    let none = Retention::default();
    let published = broker.publish(channel, Publication::default(), &options, none, now);
    assert_eq!(published.wait(), Ok(Position::default()));
}

const RETENTION: Retention =
    Retention { size: 10, ttl: Duration::from_secs(60), meta_ttl: Duration::from_secs(600) };

fn store(broker: &MemoryBroker, channel: &str, bytes: usize, now: Instant) -> Position {
    let publication = Publication { data: vec![b'1'; bytes].into(), ..Publication::default() };
    let options = PublishOptions::default();
    broker.publish(channel, publication, &options, RETENTION, now).wait().expect("never fails")
}

fn read(broker: &MemoryBroker, channel: &str, now: Instant) -> (usize, Position) {
    let slice =
        broker.history(channel, Query::default(), RETENTION, now).wait().expect("never fails");
    (slice.publications.len(), slice.top)
}

#[test]
fn the_memory_broker_keeps_the_promises_of_brokers() {
    conformance::broker::check(&|deliver| Arc::new(MemoryBroker::new(deliver, MEGABYTE)));
}

#[test]
fn an_idempotency_key_is_forgotten_after_five_minutes() {
    let (deliver, broker) = broker();
    let start = Instant::now();
    for (seconds, published) in [(0, 1), (299, 1), (300, 2), (599, 2), (600, 3)] {
        publish(&broker, "a", "key", start + Duration::from_secs(seconds));
        assert_eq!(*deliver.0.lock(), published, "after {seconds} s");
    }
}

fn publish_as(broker: &MemoryBroker, name: &str, key: &str, ttl: Duration, now: Instant) {
    let key_owner = Some(KeyOwner { name: name.into(), ttl });
    let options =
        PublishOptions { idempotency_key: key.into(), key_owner, ..PublishOptions::default() };
    let none = Retention::default();
    let published = broker.publish("a", Publication::default(), &options, none, now);
    assert_eq!(published.wait(), Ok(Position::default()));
}

#[test]
fn a_key_of_a_client_is_forgotten_at_its_end_also_behind_one_that_lasts_longer() {
    let (deliver, broker) = broker();
    let start = Instant::now();
    let day = Duration::from_secs(86_400);
    let hour = Duration::from_secs(3600);
    publish_as(&broker, "user 1", "long", day, start);
    for (seconds, published) in [(0, 2), (3599, 2), (3600, 3), (7199, 3), (7200, 4)] {
        publish_as(&broker, "user 1", "short", hour, start + Duration::from_secs(seconds));
        assert_eq!(*deliver.0.lock(), published, "after {seconds} s");
    }
    publish_as(&broker, "user 1", "long", day, start + day - hour);
    assert_eq!(*deliver.0.lock(), 4);
    broker.sweep(start + 2 * day);
    assert!(broker.stripes.iter().all(|stripe| stripe.lock().client_results.is_empty()));
    assert!(broker.client_results_memory.is_free());
}

#[test]
fn keys_of_clients_take_no_memory_of_those_of_backends() {
    let (deliver, broker) = broker();
    let now = Instant::now();
    let long = "k".repeat((results::SHARE_BYTES + results::BORROWED_BYTES_MAX) / 4);
    publish(&broker, "a", &long, now);
    for number in 0..9 {
        publish_as(&broker, "user 1", &format!("{number}{long}"), Duration::from_secs(900), now);
    }
    assert_eq!(broker.suppressed().keys_dropped, 6);
    publish(&broker, "a", &long, now);
    assert_eq!(*deliver.0.lock(), 10, "that of the backend is kept");
}

#[test]
fn idempotency_results_take_bounded_memory_and_the_oldest_are_removed_first() {
    let (deliver, broker) = broker();
    let now = Instant::now();
    let bytes_max = results::SHARE_BYTES + results::BORROWED_BYTES_MAX;
    let long = "k".repeat(bytes_max / 4);
    for number in 0..10 {
        publish(&broker, "a", &format!("{number}{long}"), now);
    }
    let held: usize = broker.stripes.iter().map(|stripe| stripe.lock().results.bytes).sum();
    assert!(held <= bytes_max, "{held}");
    assert_eq!(broker.suppressed().keys_dropped, 7);
    publish(&broker, "a", &format!("9{long}"), now);
    assert_eq!(*deliver.0.lock(), 10, "the newest is kept");
    publish(&broker, "a", &format!("0{long}"), now);
    assert_eq!(*deliver.0.lock(), 11, "the oldest is not");
}

#[test]
fn a_busy_channel_leaves_the_idempotency_keys_of_others_their_share() {
    let (deliver, broker) = broker();
    let now = Instant::now();
    let stripe = |name: &str| std::ptr::from_ref(broker.stripe(name).1);
    let names = (0..).map(|number| number.to_string());
    let other = names.into_iter().find(|name| stripe(name) != stripe("a")).expect("64 stripes");
    let long = "k".repeat(results::SHARE_BYTES / 5);
    for number in 0..400 {
        publish(&broker, "a", &format!("{number}{long}"), now);
    }
    for _ in 0..2 {
        (0..4).for_each(|number| publish(&broker, &other, &format!("{number}{long}"), now));
    }
    assert_eq!(*deliver.0.lock(), 404, "each of the others once");
    broker.sweep(now + results::TTL);
    let kept = broker.stripes.iter().any(|stripe| !stripe.lock().results.is_empty());
    assert!(!kept && broker.results_memory.is_free(), "all memory is given back");
}

#[test]
fn a_sweep_leaves_nothing_of_expired_results() {
    let (_, broker) = broker();
    let now = Instant::now();
    for number in 0..100 {
        publish(&broker, "a", &number.to_string(), now);
    }
    broker.sweep(now + results::TTL);
    assert!(broker.stripes.iter().all(|stripe| stripe.lock().results.is_empty()));
}

#[test]
fn publications_expire_together_and_the_position_stays() {
    let (_, broker) = broker();
    let start = Instant::now();
    let at = |seconds| start + Duration::from_secs(seconds);
    store(&broker, "a", 1, at(0));
    let top = store(&broker, "a", 1, at(30));
    assert_eq!(read(&broker, "a", at(89)), (2, top), "the second one kept the first alive");
    assert_eq!(read(&broker, "a", at(90)), (0, top));
    assert_eq!(store(&broker, "a", 1, at(91)), Position { offset: 3, ..top });
    assert_eq!(read(&broker, "a", at(91)).0, 1);
}

#[test]
fn an_unused_stream_gets_a_new_epoch_after_its_meta_ttl() {
    let (_, broker) = broker();
    let start = Instant::now();
    let at = |seconds| start + Duration::from_secs(seconds);
    let first = store(&broker, "a", 1, at(0));
    assert_eq!(read(&broker, "a", at(599)).1, first, "reading keeps it alive");
    assert_eq!(read(&broker, "a", at(1198)).1, first);
    let second = store(&broker, "a", 1, at(1798));
    assert_eq!(second.offset, 1);
    assert_ne!(second.epoch, first.epoch);
}

#[test]
fn a_version_is_forgotten_with_its_stream() {
    let (_, broker) = broker();
    let start = Instant::now();
    let publish = |now| {
        let options = PublishOptions { version: 7, ..PublishOptions::default() };
        broker.publish("a", Publication::default(), &options, RETENTION, now)
    };
    let offset =
        |seconds| publish(start + Duration::from_secs(seconds)).wait().expect("fine").offset;
    assert_eq!(
        [offset(0), offset(100), offset(699)],
        [1, 1, 1],
        "publications expire, it does not"
    );
    let first = publish(start + Duration::from_secs(1299)).wait().expect("fine");
    assert_eq!(read(&broker, "a", start + Duration::from_secs(1299)), (1, first));
}

#[test]
fn the_sweep_frees_the_memory_of_expired_entries() {
    let (_, broker) = broker();
    let now = Instant::now();
    for number in 0..1000 {
        store(&broker, &number.to_string(), 100, now);
    }
    let full = broker.history_bytes();
    broker.sweep(now + Duration::from_secs(59));
    assert_eq!(broker.history_bytes(), full, "nothing had expired");
    broker.sweep(now + Duration::from_secs(60));
    assert!(broker.history_bytes() < full - 1000 * 100);
    broker.sweep(now + Duration::from_secs(600));
    assert_eq!(broker.history_bytes(), 0);
}

#[test]
fn the_memory_of_histories_is_bounded_and_counted_correctly() {
    let (_, broker) = broker();
    let now = Instant::now();
    for number in 0..3000 {
        store(&broker, &format!("channel {number}"), 1000, now);
        assert!(broker.history_bytes() <= MEGABYTE + 2000, "{}", broker.history_bytes());
    }
    assert!(broker.history_bytes() > MEGABYTE / 2);
    broker.sweep(now + Duration::from_secs(600));
    assert_eq!(broker.history_bytes(), 0);
}

#[test]
fn channels_that_are_only_read_take_no_memory() {
    let (_, broker) = broker();
    let now = Instant::now();
    store(&broker, "full", MEGABYTE / 2, now);
    let before = broker.history_bytes();
    for number in 0..20_000 {
        read(&broker, &format!("a channel without publications {number}"), now);
    }
    assert_eq!(broker.history_bytes(), before);
    assert_eq!(broker.stripes.iter().map(|stripe| stripe.lock().streams.len()).sum::<usize>(), 1);
    assert_eq!(read(&broker, "full", now).0, 1);
}

#[test]
fn a_channel_keeps_its_epoch_until_its_first_publication() {
    let (_, broker) = broker();
    let start = Instant::now();
    let at = |seconds| start + Duration::from_secs(seconds);
    let (_, first) = read(&broker, "a", at(0));
    broker.sweep(at(10_000));
    assert_eq!(read(&broker, "a", at(10_000)), (0, first));
    assert_ne!(read(&broker, "b", at(10_000)).1, first);
    assert_eq!(store(&broker, "a", 1, at(20_000)), Position { offset: 1, ..first });
}

#[test]
fn two_streams_of_a_channel_never_have_the_same_epoch() {
    let (_, broker) = broker();
    let mut now = Instant::now();
    let mut epochs = Vec::new();
    for round in 0..100 {
        let read_before = (round % 2 == 0).then(|| read(&broker, "a", now).1.epoch);
        let top = store(&broker, "a", 1, now);
        assert_eq!((top.offset, read_before.unwrap_or(top.epoch)), (1, top.epoch), "round {round}");
        assert!(!epochs.contains(&top.epoch), "round {round}");
        epochs.push(top.epoch);
        let end = now + RETENTION.meta_ttl;
        match round % 3 {
            0 => broker.sweep(end),
            1 => drop(read(&broker, "a", end)),
            _ => while broker.stripe("a").1.lock().streams.evict().is_some() {},
        }
        assert_eq!(read(&broker, "a", end).1.offset, 0, "round {round}");
        now = end;
    }
    let other = MemoryBroker::new(Arc::new(DeliveryCounter::default()), MEGABYTE);
    assert!(!epochs.contains(&store(&other, "a", 1, now).epoch), "nor those of another process");
}

#[test]
fn large_publications_evict_many_streams_that_hold_only_a_position() {
    let (_, broker) = broker();
    let now = Instant::now();
    let mut names = (0..).map(|number| format!("small {number}"));
    assert_eq!(broker.history_evictions(), 0);
    while broker.history_bytes() < MEGABYTE - 1000 {
        let name = names.next().expect("without end");
        store(&broker, &name, 1, now);
        broker.remove_history(&name, now).wait().expect("never fails");
    }
    for number in 0..40 {
        store(&broker, &format!("large {number}"), 8000, now);
        let held = broker.history_bytes();
        assert!(held <= MEGABYTE + 20_000, "{number}: {held}");
    }
    assert!(broker.history_evictions() > 40, "{}", broker.history_evictions());
}

/// Appends to a message whose publications do not wait. Returns whether it was accepted.
fn append(broker: &MemoryBroker, channel: &str, key: usize, is_final: bool, now: Instant) -> bool {
    let limits =
        AppendLimits { interval: Duration::ZERO, messages_max: 3, ..AppendLimits::default() };
    let text = "a piece of an answer ".into();
    let fragment = Fragment { text, head: "\"".into(), is_final, ..Fragment::default() };
    let (key, fragment) = (key.to_string(), Some(fragment));
    let append = Append { key, fragment, limits, ..Append::default() };
    broker.append(channel, append, RETENTION, now).wait().expect("never fails").is_ok()
}

#[test]
fn growing_messages_take_bounded_memory_and_are_forgotten_with_their_stream() {
    let (_, broker) = broker();
    let start = Instant::now();
    for number in 0..20_000 {
        let now = start + Duration::from_millis(number);
        let channel = format!("channel {}", number % 100);
        append(&broker, &channel, number as usize / 500, number % 3 == 0, now);
        assert!(broker.history_bytes() <= MEGABYTE, "{number}");
    }
    assert!(broker.history_bytes() > 0);
    let end = start + Duration::from_secs(700);
    (0..100).for_each(|_| broker.sweep(end));
    assert_eq!(broker.history_bytes(), 0);
}

#[test]
fn a_message_without_pieces_makes_room_after_the_time_of_its_history() {
    let (_, broker) = broker();
    let after = |seconds| Instant::now() + Duration::from_secs(seconds);
    assert!((0..3).all(|key| append(&broker, "a", key, false, after(0))));
    assert!(!append(&broker, "a", 3, false, after(50)));
    assert!(append(&broker, "a", 0, false, after(50)), "it grows on");
    assert!((3..5).all(|key| append(&broker, "a", key, false, after(65))));
    assert!(!append(&broker, "a", 5, false, after(65)), "the first one is still there");
    assert!(append(&broker, "a", 0, true, after(65)));
    assert!(append(&broker, "a", 5, true, after(65)));
    assert!(!append(&broker, "a", 5, false, after(100)), "it is final");
    assert!(append(&broker, "a", 6, false, after(100)));
}
