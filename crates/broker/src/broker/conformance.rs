//! The tests every broker has to pass, whatever it is made of: the promises of `broker.rs`, one function each.
//! In: a way to make a broker in front of a door → out: a panic that says which promise is broken.
//! Uses: threads and a door that records. Never: sleeps; it waits until enough has arrived, or too long has passed.
//! Change here: the promises all brokers share. What one broker adds is tested beside it.

mod deltas;
mod streams;

use std::sync::{Arc, Condvar, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use fanwire_protocol::{ClientInfo, Publication};

use super::{Broker, Epoch, Position, PublishOptions, Retention, StreamSlice};
use crate::Change;
use crate::ClientId;
use crate::Deliver;
use crate::Delta;

/// Makes a fresh broker in front of a door. Called once per promise.
pub type Make<'a> = &'a dyn Fn(Arc<dyn Deliver>) -> Arc<dyn Broker>;

/// Every promise, one after the other.
///
/// # Panics
/// When the broker breaks one.
pub fn check(make: Make<'_>) {
    a_publication_arrives_whole(make);
    an_exclusion_travels_with_its_publication_only(make);
    publications_of_one_thread_keep_their_order(make);
    publications_of_a_channel_never_overlap(make);
    an_idempotency_key_publishes_once(make);
    an_idempotency_key_counts_per_channel(make);
    an_idempotency_key_publishes_once_from_many_threads(make);
    subscribing_again_goes_on(make);
    announcements_keep_their_place_among_publications(make);
    streams::check(make);
    deltas::check(make);
}

fn a_publication_arrives_whole(make: Make<'_>) {
    let (door, broker) = start(make, &["a"]);
    let publication = Publication {
        data: "\u{0}binary \u{fffd}".into(),
        info: Some(ClientInfo { user: "42".into(), client: "c".into(), ..ClientInfo::default() }),
        tags: [("k".to_owned(), "v".to_owned())].into(),
        ..Publication::default()
    };
    publish(&*broker, "a", publication.clone(), "");
    let arrived = door.wait_for(1);
    assert_eq!(arrived[0].0, "a");
    assert_eq!(Publication { offset: 0, ..arrived[0].1.clone() }, publication, "arrives whole");
}

fn an_exclusion_travels_with_its_publication_only(make: Make<'_>) {
    let (door, broker) = start(make, &["a"]);
    let someone = ClientId::parse("5f1b0f4c-3a8e-4b52-9d1c-0c1f7d1f4a11");
    for exclude_client in [None, someone, None] {
        let options = PublishOptions { exclude_client, ..PublishOptions::default() };
        let none = Retention::default();
        let published = broker.publish("a", Publication::default(), &options, none, Instant::now());
        assert_eq!(published.wait(), Ok(Position::default()));
    }
    door.wait_for(3);
    let excluded = &door.record.lock().expect("no panic inside").excluded;
    assert!(someone.is_some());
    assert_eq!(*excluded, [None, someone, None], "who is excluded from what");
}

fn publications_of_one_thread_keep_their_order(make: Make<'_>) {
    let (door, broker) = start(make, &["a", "b"]);
    for number in 0..200 {
        publish(&*broker, if number % 3 == 0 { "b" } else { "a" }, numbered(0, number), "");
    }
    let arrived = door.wait_for(200);
    for channel in ["a", "b"] {
        assert!(numbers(&arrived, channel).is_sorted(), "order within {channel}");
    }
}

fn publications_of_a_channel_never_overlap(make: Make<'_>) {
    let (door, broker) = start(make, &["a"]);
    in_threads(|thread| {
        for number in 0..100 {
            publish(&*broker, "a", numbered(thread, number), "");
        }
    });
    let arrived = numbers(&door.wait_for(THREADS * 100), "a");
    assert!(!door.has_overlapped(), "two publications of a channel were delivered at once");
    for thread in 0..THREADS {
        let own = arrived.iter().filter(|(by, _)| *by == thread);
        let expected: Vec<_> = (0..100).map(|number| (thread, number)).collect();
        assert!(own.eq(&expected), "thread {thread}: each once, in its order");
    }
}

fn an_idempotency_key_publishes_once(make: Make<'_>) {
    let (door, broker) = start(make, &["a"]);
    let first = publish(&*broker, "a", numbered(0, 0), "key");
    let second = publish(&*broker, "a", numbered(0, 1), "key");
    assert_eq!(first, second, "the first position is returned again");
    publish(&*broker, "a", numbered(0, 2), "other");
    publish(&*broker, "a", numbered(0, 3), "");
    publish(&*broker, "a", numbered(0, 4), "");
    assert_eq!(numbers(&door.wait_for(4), "a"), [(0, 0), (0, 2), (0, 3), (0, 4)]);
}

fn an_idempotency_key_counts_per_channel(make: Make<'_>) {
    let (door, broker) = start(make, &["a", "b", "ab"]);
    publish(&*broker, "a", numbered(0, 0), "bc");
    publish(&*broker, "b", numbered(0, 1), "bc");
    publish(&*broker, "ab", numbered(0, 2), "c");
    assert_eq!(door.wait_for(3).len(), 3);
}

fn an_idempotency_key_publishes_once_from_many_threads(make: Make<'_>) {
    let (door, broker) = start(make, &["a"]);
    in_threads(|_| {
        for number in 0..50 {
            publish(&*broker, "a", numbered(0, number), &format!("key {number}"));
        }
    });
    publish(&*broker, "a", numbered(1, 0), "");
    let mut arrived = numbers(&door.wait_for(51), "a");
    assert_eq!(arrived.len(), 51, "each key published once");
    arrived.sort_unstable();
    arrived.dedup();
    assert_eq!(arrived.len(), 51, "each key published once");
}

fn subscribing_again_goes_on(make: Make<'_>) {
    let (door, broker) = start(make, &["a"]);
    broker.unsubscribe("a");
    subscribe(&*broker, "a");
    publish(&*broker, "a", numbered(0, 7), "");
    let arrived = door.wait_for(1);
    assert_eq!(numbers(&arrived, "a"), [(0, 7)]);
}

fn announcements_keep_their_place_among_publications(make: Make<'_>) {
    let (door, broker) = start(make, &["a"]);
    let info = ClientInfo { user: "42".into(), client: "c".into(), ..ClientInfo::default() };
    for number in 0..20 {
        publish(&*broker, "a", numbered(0, number), "");
        let change = if number % 2 == 0 { Change::Join } else { Change::Leave };
        broker.announce("a", change, info.clone()).wait().expect("the broker is available");
    }
    for (at, (channel, arrived)) in door.wait_for(40).into_iter().enumerate() {
        let expected = match at % 4 {
            1 => announced(Change::Join, info.clone()),
            3 => announced(Change::Leave, info.clone()),
            _ => numbered(0, at / 2),
        };
        assert_eq!((channel.as_str(), arrived), ("a", expected), "{at}");
    }
}

/// How the recorder writes an announcement down.
fn announced(change: Change, info: ClientInfo) -> Publication {
    Publication { data: format!("{change:?}").into(), info: Some(info), ..Publication::default() }
}

fn start(make: Make<'_>, channels: &[&str]) -> (Arc<Recorder>, Arc<dyn Broker>) {
    let door = Arc::new(Recorder::default());
    let broker = make(Arc::clone(&door) as _);
    channels.iter().for_each(|channel| subscribe(&*broker, channel));
    (door, broker)
}

/// Subscribes and waits until that has taken effect.
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

fn in_threads(work: impl Fn(usize) + Sync) {
    thread::scope(|scope| {
        for number in 0..THREADS {
            let work = &work;
            scope.spawn(move || work(number));
        }
    });
}

/// A door that writes down what came through.
#[derive(Default)]
struct Recorder {
    record: Mutex<Record>,
    grown: Condvar,
}

#[derive(Default)]
struct Record {
    arrived: Vec<(String, Publication)>,
    /// Of each that arrived.
    epochs: Vec<Epoch>,
    /// Of each that arrived.
    deltas: Vec<Delta>,
    /// Of each that arrived.
    excluded: Vec<Option<ClientId>>,
    /// Channels that are being delivered at this moment.
    busy: Vec<String>,
    has_overlapped: bool,
}

impl Recorder {
    /// What has arrived, once it is this much.
    fn wait_for(&self, count: usize) -> Vec<(String, Publication)> {
        let record = self.record.lock().expect("no panic inside");
        let (record, timeout) = (self.grown)
            .wait_timeout_while(record, PATIENCE, |record| record.arrived.len() < count)
            .expect("no panic inside");
        assert!(!timeout.timed_out(), "{} of {count} arrived", record.arrived.len());
        record.arrived.clone()
    }

    /// The positions of all that has arrived.
    fn positions(&self) -> Vec<Position> {
        let record = self.record.lock().expect("no panic inside");
        let both = record.arrived.iter().zip(&record.epochs);
        both.map(|((_, publication), epoch)| Position { offset: publication.offset, epoch: *epoch })
            .collect()
    }

    /// What the deltas of all that has arrived can be made against.
    fn deltas(&self) -> Vec<Delta> {
        self.record.lock().expect("no panic inside").deltas.clone()
    }

    fn has_overlapped(&self) -> bool {
        self.record.lock().expect("no panic inside").has_overlapped
    }
}

impl Deliver for Recorder {
    fn deliver(
        &self,
        channel: &str,
        publication: Publication,
        epoch: Epoch,
        delta: Delta,
        exclude: Option<ClientId>,
        _: Instant,
    ) {
        let mut record = self.record.lock().expect("no panic inside");
        record.has_overlapped |= record.busy.iter().any(|busy| busy == channel);
        record.busy.push(channel.to_owned());
        drop(record);
        thread::yield_now(); // an invitation for others to come in between
        let mut record = self.record.lock().expect("no panic inside");
        record.busy.retain(|busy| busy != channel);
        record.arrived.push((channel.to_owned(), publication));
        record.epochs.push(epoch);
        record.deltas.push(delta);
        record.excluded.push(exclude);
        self.grown.notify_all();
    }

    fn announce(&self, channel: &str, change: Change, info: ClientInfo) {
        let announced = announced(change, info);
        self.deliver(channel, announced, Epoch::NONE, Delta::Off, None, Instant::now());
    }
}

const THREADS: usize = 4;
/// For brokers over a network. A broker that keeps its promises never waits this long.
const PATIENCE: Duration = Duration::from_secs(10);
