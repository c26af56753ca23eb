//! The tests that every broker must pass: the promises of `broker.rs`, one function each.
//! In: a function that makes a broker in front of a recorder → out: a panic that names the broken promise.
//! Uses: threads and a `Deliver` that records. Never: sleeps; it waits until enough has arrived or a timeout has passed.
//! Changed here: the promises that all brokers share. What one broker adds is tested next to it.

mod deltas;
mod growing;
mod streams;

use std::sync::{Arc, Condvar, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use fanwire_protocol::{ClientInfo, Publication};
use fanwire_testing::yield_to_others;

use super::{
    Broker, KeyOwner, PublishOptions, Retention, StreamSlice, SuppressedCounts, Suppression,
};
use crate::{Change, ClientId, Deliver, DeliverOptions, DeliveryClass, Delta, Epoch, Position};

/// Makes a broker that delivers to a recorder. Called for each promise.
pub type MakeBroker<'a> = &'a dyn Fn(Arc<dyn Deliver>) -> Arc<dyn Broker>;

/// Tests every promise.
///
/// # Panics
/// When the broker breaks a promise.
pub fn check(make: MakeBroker<'_>) {
    check_without_growing_messages(make);
    growing::check(make);
}

/// Tests every promise to a broker that need not store growing messages.
///
/// # Panics
/// When the broker breaks a promise.
pub fn check_without_growing_messages(make: MakeBroker<'_>) {
    a_publication_arrives_complete(make);
    exclusion_and_class_travel_with_their_publication_only(make);
    publications_of_one_thread_keep_their_order(make);
    publications_of_a_channel_never_overlap(make);
    an_idempotency_key_publishes_once(make);
    an_idempotency_key_counts_per_channel(make);
    an_idempotency_key_counts_per_owner(make);
    what_was_not_published_is_known_by_its_receipt(make);
    an_idempotency_key_publishes_once_from_many_threads(make);
    publications_arrive_after_subscribing_again(make);
    joins_and_leaves_keep_their_order_among_publications(make);
    streams::check(make);
    deltas::check(make);
}

fn a_publication_arrives_complete(make: MakeBroker<'_>) {
    let (recorder, broker) = start(make, &["a"]);
    let publication = Publication {
        data: "\u{0}binary \u{fffd}".into(),
        info: Some(ClientInfo { user: "42".into(), client: "c".into(), ..ClientInfo::default() }),
        tags: [("k".to_owned(), "v".to_owned())].into(),
        ..Publication::default()
    };
    publish(&*broker, "a", publication.clone(), "");
    let arrived = recorder.wait_for(1);
    assert_eq!(arrived[0].0, "a");
    assert_eq!(Publication { offset: 0, ..arrived[0].1.clone() }, publication, "arrives complete");
}

fn exclusion_and_class_travel_with_their_publication_only(make: MakeBroker<'_>) {
    let (recorder, broker) = start(make, &["a"]);
    let client = ClientId::parse("5f1b0f4c-3a8e-4b52-9d1c-0c1f7d1f4a11");
    let classes = [Some(DeliveryClass::Latest), None, Some(DeliveryClass::Reliable)];
    let addressed = Vec::from_iter([None, client, None].into_iter().zip(classes));
    for (exclude_client, delivery) in addressed.clone() {
        let options = PublishOptions { exclude_client, delivery, ..PublishOptions::default() };
        let none = Retention::default();
        let published = broker.publish("a", Publication::default(), &options, none, Instant::now());
        assert_eq!(published.wait(), Ok(Position::default()));
    }
    recorder.wait_for(3);
    assert!(client.is_some());
    assert_eq!(recorder.record.lock().expect("no panic inside").addressed, addressed);
}

fn publications_of_one_thread_keep_their_order(make: MakeBroker<'_>) {
    let (recorder, broker) = start(make, &["a", "b"]);
    for number in 0..200 {
        publish(&*broker, if number % 3 == 0 { "b" } else { "a" }, numbered(0, number), "");
    }
    let arrived = recorder.wait_for(200);
    for channel in ["a", "b"] {
        assert!(numbers(&arrived, channel).is_sorted(), "order within {channel}");
    }
}

fn publications_of_a_channel_never_overlap(make: MakeBroker<'_>) {
    let (recorder, broker) = start(make, &["a"]);
    in_threads(|thread| {
        for number in 0..100 {
            publish(&*broker, "a", numbered(thread, number), "");
        }
    });
    let arrived = numbers(&recorder.wait_for(THREADS * 100), "a");
    assert!(!recorder.has_overlapped(), "two publications of a channel were delivered at once");
    for thread in 0..THREADS {
        let own = arrived.iter().filter(|(by, _)| *by == thread);
        let expected: Vec<_> = (0..100).map(|number| (thread, number)).collect();
        assert!(own.eq(&expected), "thread {thread}: each once, in its order");
    }
}

fn an_idempotency_key_publishes_once(make: MakeBroker<'_>) {
    let (recorder, broker) = start(make, &["a"]);
    let first = publish(&*broker, "a", numbered(0, 0), "key");
    let second = publish(&*broker, "a", numbered(0, 1), "key");
    assert_eq!(first, second, "the first position is returned again");
    publish(&*broker, "a", numbered(0, 2), "other");
    publish(&*broker, "a", numbered(0, 3), "");
    publish(&*broker, "a", numbered(0, 4), "");
    assert_eq!(numbers(&recorder.wait_for(4), "a"), [(0, 0), (0, 2), (0, 3), (0, 4)]);
    assert_eq!(
        broker.suppressed(),
        SuppressedCounts { idempotency: 1, ..SuppressedCounts::default() }
    );
}

fn what_was_not_published_is_known_by_its_receipt(make: MakeBroker<'_>) {
    let (_, broker) = start(make, &["a"]);
    let retention = Retention { size: 5, ttl: Duration::from_secs(60), ..Retention::default() };
    let put = |options: PublishOptions| {
        let now = Instant::now();
        let published = broker.publish("a", Publication::default(), &options, retention, now);
        assert!(published.wait().is_ok());
    };
    let keyed = |receipt| PublishOptions {
        idempotency_key: "key".to_owned(),
        receipt,
        ..PublishOptions::default()
    };
    let versioned =
        |version, receipt| PublishOptions { version, receipt, ..PublishOptions::default() };
    [keyed(1), keyed(2), versioned(9, 3), versioned(9, 4), versioned(8, 4)]
        .into_iter()
        .for_each(put);
    let found = [1, 2, 3, 4, 0].map(|receipt| broker.suppressed_of(receipt));
    let old = Suppression::OldVersion;
    assert_eq!(found, [vec![], vec![Suppression::RepeatedKey], vec![], vec![old, old], vec![]]);
}

fn an_idempotency_key_counts_per_channel(make: MakeBroker<'_>) {
    let (recorder, broker) = start(make, &["a", "b", "ab"]);
    publish(&*broker, "a", numbered(0, 0), "bc");
    publish(&*broker, "b", numbered(0, 1), "bc");
    publish(&*broker, "ab", numbered(0, 2), "c");
    assert_eq!(recorder.wait_for(3).len(), 3);
}

fn an_idempotency_key_counts_per_owner(make: MakeBroker<'_>) {
    let (recorder, broker) = start(make, &["a"]);
    let owners = [None, Some("user 1"), Some("user 1.k"), Some("user 2")];
    for round in 0..2 {
        for (number, owner) in owners.iter().enumerate() {
            let ttl = Duration::from_secs(900);
            let key_owner = owner.map(|name| KeyOwner { name: name.to_owned(), ttl });
            let idempotency_key = "k".to_owned();
            let options =
                PublishOptions { idempotency_key, key_owner, ..PublishOptions::default() };
            let publication = numbered(round, number);
            let retention = Retention::default();
            let published = broker.publish("a", publication, &options, retention, Instant::now());
            published.wait().expect("the broker is available");
        }
    }
    publish(&*broker, "a", numbered(2, 0), "");
    let arrived = numbers(&recorder.wait_for(5), "a");
    assert_eq!(arrived, [(0, 0), (0, 1), (0, 2), (0, 3), (2, 0)], "each owner's key once");
    assert_eq!(broker.suppressed().idempotency, 4);
}

fn an_idempotency_key_publishes_once_from_many_threads(make: MakeBroker<'_>) {
    let (recorder, broker) = start(make, &["a"]);
    in_threads(|_| {
        for number in 0..50 {
            publish(&*broker, "a", numbered(0, number), &format!("key {number}"));
        }
    });
    publish(&*broker, "a", numbered(1, 0), "");
    let mut arrived = numbers(&recorder.wait_for(51), "a");
    assert_eq!(arrived.len(), 51, "each key published once");
    arrived.sort_unstable();
    arrived.dedup();
    assert_eq!(arrived.len(), 51, "each key published once");
}

fn publications_arrive_after_subscribing_again(make: MakeBroker<'_>) {
    let (recorder, broker) = start(make, &["a"]);
    broker.unsubscribe("a");
    subscribe(&*broker, "a");
    publish(&*broker, "a", numbered(0, 7), "");
    let arrived = recorder.wait_for(1);
    assert_eq!(numbers(&arrived, "a"), [(0, 7)]);
}

fn joins_and_leaves_keep_their_order_among_publications(make: MakeBroker<'_>) {
    let (recorder, broker) = start(make, &["a"]);
    let info = ClientInfo { user: "42".into(), client: "c".into(), ..ClientInfo::default() };
    for number in 0..20 {
        publish(&*broker, "a", numbered(0, number), "");
        let change = if number % 2 == 0 { Change::Join } else { Change::Leave };
        broker
            .publish_join_leave("a", change, info.clone())
            .wait()
            .expect("the broker is available");
    }
    for (at, (channel, arrived)) in recorder.wait_for(40).into_iter().enumerate() {
        let expected = match at % 4 {
            1 => recorded(Change::Join, info.clone()),
            3 => recorded(Change::Leave, info.clone()),
            _ => numbered(0, at / 2),
        };
        assert_eq!((channel.as_str(), arrived), ("a", expected), "{at}");
    }
}

/// The form in which the recorder stores a join or leave.
fn recorded(change: Change, info: ClientInfo) -> Publication {
    Publication { data: format!("{change:?}").into(), info: Some(info), ..Publication::default() }
}

pub(crate) fn start(make: MakeBroker<'_>, channels: &[&str]) -> (Arc<Recorder>, Arc<dyn Broker>) {
    let recorder = Arc::new(Recorder::default());
    let broker = make(Arc::clone(&recorder) as _);
    channels.iter().for_each(|channel| subscribe(&*broker, channel));
    (recorder, broker)
}

/// Subscribes and waits until the subscription is active.
fn subscribe(broker: &dyn Broker, channel: &str) {
    broker.subscribe(channel);
    let followed = broker.follow(channel, None, Retention::default(), Instant::now());
    assert_eq!(followed.wait(), Ok(StreamSlice::default()));
}

fn publish(broker: &dyn Broker, channel: &str, publication: Publication, key: &str) -> Position {
    let options = PublishOptions { idempotency_key: key.to_owned(), ..PublishOptions::default() };
    let retention = Retention::default();
    let published = broker.publish(channel, publication, &options, retention, Instant::now());
    published.wait().expect("the broker is available")
}

fn numbered(thread: usize, number: usize) -> Publication {
    Publication { data: format!("{thread} {number}").into(), ..Publication::default() }
}

/// The (thread, number) of the publications of a channel, as they arrived.
fn numbers(arrived: &[(String, Publication)], channel: &str) -> Vec<(usize, usize)> {
    let of_channel = arrived.iter().filter(|(of, _)| of == channel);
    of_channel.map(|(_, publication)| pair(&publication.data).expect("made by numbered")).collect()
}

fn pair(data: &[u8]) -> Option<(usize, usize)> {
    let (thread, number) = std::str::from_utf8(data).ok()?.split_once(' ')?;
    Some((thread.parse().ok()?, number.parse().ok()?))
}

pub(crate) fn in_threads(work: impl Fn(usize) + Sync) {
    thread::scope(|scope| {
        for number in 0..THREADS {
            let work = &work;
            scope.spawn(move || work(number));
        }
    });
}

/// Records every delivery.
#[derive(Default)]
pub(crate) struct Recorder {
    record: Mutex<Record>,
    grown: Condvar,
}

#[derive(Default)]
struct Record {
    arrived: Vec<(String, Publication)>,
    /// One per entry of `arrived`, as are the next two.
    epochs: Vec<Epoch>,
    deltas: Vec<Delta>,
    addressed: Vec<(Option<ClientId>, Option<DeliveryClass>)>,
    /// Channels with a call in progress.
    busy: Vec<String>,
    has_overlapped: bool,
}

impl Recorder {
    /// Waits for `count` deliveries and returns all of them.
    pub(crate) fn wait_for(&self, count: usize) -> Vec<(String, Publication)> {
        let record = self.record.lock().expect("no panic inside");
        let (record, timeout) = (self.grown)
            .wait_timeout_while(record, WAIT_MAX, |record| record.arrived.len() < count)
            .expect("no panic inside");
        assert!(!timeout.timed_out(), "{} of {count} arrived", record.arrived.len());
        record.arrived.clone()
    }

    /// The positions of all recorded publications.
    pub(crate) fn positions(&self) -> Vec<Position> {
        let record = self.record.lock().expect("no panic inside");
        let both = record.arrived.iter().zip(&record.epochs);
        both.map(|((_, publication), epoch)| Position { offset: publication.offset, epoch: *epoch })
            .collect()
    }

    /// The delta bases of all recorded publications.
    pub(crate) fn deltas(&self) -> Vec<Delta> {
        self.record.lock().expect("no panic inside").deltas.clone()
    }

    fn has_overlapped(&self) -> bool {
        self.record.lock().expect("no panic inside").has_overlapped
    }
}

impl Deliver for Recorder {
    fn deliver(&self, channel: &str, publication: Publication, options: DeliverOptions) {
        let mut record = self.record.lock().expect("no panic inside");
        record.has_overlapped |= record.busy.iter().any(|busy| busy == channel);
        record.busy.push(channel.to_owned());
        drop(record);
        yield_to_others();
        let mut record = self.record.lock().expect("no panic inside");
        record.busy.retain(|busy| busy != channel);
        record.arrived.push((channel.to_owned(), publication));
        record.epochs.push(options.epoch);
        record.deltas.push(options.delta);
        record.addressed.push((options.exclude, options.class));
        self.grown.notify_all();
    }

    fn deliver_join_leave(&self, channel: &str, change: Change, info: ClientInfo) {
        let recorded = recorded(change, info);
        self.deliver(channel, recorded, DeliverOptions::new(Instant::now()));
    }
}

pub(crate) const THREADS: usize = 4;
/// Only a broken broker makes a test wait this long.
const WAIT_MAX: Duration = Duration::from_secs(10);
