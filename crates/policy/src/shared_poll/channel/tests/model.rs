//! Random runs of a channel against a backend and clients that are simple enough to be right.
//! In: seeds → out: a panic that names what a client has, and what the backend has.
//! Uses virtual times. Never: a clock.
//! Changed here: what backends, networks and clients do.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;
use crate::shared_poll::{TrackedItem, TrackedKeys};

/// What happens next.
#[derive(Clone, Debug)]
enum Step {
    /// Milliseconds pass.
    Wait(u64),
    Track {
        client: usize,
        key: usize,
    },
    Untrack {
        client: usize,
        key: usize,
    },
    /// A client loses its connection, and tracks the same keys again with its versions.
    Reconnect(usize),
    /// The value of a key changes in the backend, and may be published.
    Change {
        key: usize,
        is_published: bool,
    },
    Remove(usize),
    /// The backend begins another epoch.
    Flip,
    /// The backend reads its data for a request.
    Read(usize),
    /// An answer arrives; of those that were read, in any order.
    Answer(usize),
    /// A request is lost.
    Fail(usize),
}

const CLIENTS: usize = 4;
const KEYS: usize = 5;

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let key = 0..KEYS;
    let client = 0..CLIENTS;
    let step = prop_oneof![
        3 => (0_u64..4000).prop_map(Step::Wait),
        4 => (client.clone(), key.clone()).prop_map(|(client, key)| Step::Track { client, key }),
        2 => (client.clone(), key.clone()).prop_map(|(client, key)| Step::Untrack { client, key }),
        1 => client.prop_map(Step::Reconnect),
        4 => (key.clone(), any::<bool>()).prop_map(|(key, is_published)| Step::Change { key, is_published }),
        1 => key.prop_map(Step::Remove),
        1 => Just(Step::Flip),
        4 => (0_usize..3).prop_map(Step::Read),
        4 => (0_usize..3).prop_map(Step::Answer),
        1 => (0_usize..3).prop_map(Step::Fail),
    ];
    proptest::collection::vec(step, 0..120)
}

/// The data of the backend.
#[derive(Default)]
struct Backend {
    epoch: u64,
    /// Version of each key; it exists if there is one.
    versions: [Option<u64>; KEYS],
    /// The highest version of each key, which a key that comes back continues.
    highest: [u64; KEYS],
}

impl Backend {
    fn epoch(&self) -> String {
        if self.epoch == 0 { String::new() } else { self.epoch.to_string() }
    }

    fn change(&mut self, key: usize) -> u64 {
        self.highest[key] += 1;
        self.versions[key] = Some(self.highest[key]);
        self.highest[key]
    }

    /// Answers as the protocol of backends says: only what is newer than the version of the request.
    fn answer(&self, request: &PollRequest) -> PollAnswer {
        let item = |(name, version): &(Arc<str>, u64)| {
            let key: usize = name.parse().expect("a number");
            match self.versions[key] {
                None => Some(removed(name, 0)),
                Some(newest) if newest > *version => Some(PollItem {
                    data: value(&self.epoch(), name, newest),
                    ..item(name, newest)
                }),
                Some(_) => None,
            }
        };
        PollAnswer { items: request.keys.iter().filter_map(item).collect(), epoch: self.epoch() }
    }
}

fn value(epoch: &str, key: &str, version: u64) -> Bytes {
    format!("{epoch}/{key}/{version}").into()
}

/// A client as the SDK acts.
#[derive(Default)]
struct Client {
    tracked: TrackedKeys,
    /// Epoch of its versions.
    epoch: String,
    values: BTreeMap<String, (u64, Bytes)>,
}

struct World {
    subject: Subject,
    mode: PollMode,
    backend: Backend,
    clients: [Client; CLIENTS],
    sent: Vec<PollRequest>,
    read: Vec<(PollRequest, PollAnswer)>,
}

impl World {
    fn new(mode: PollMode) -> Self {
        let subject = Subject::new(mode);
        let backend = Backend::default();
        let clients = Default::default();
        Self { subject, mode, backend, clients, sent: Vec::new(), read: Vec::new() }
    }

    fn take(&mut self, step: Step) {
        match step {
            Step::Wait(ms) => self.subject.ms += ms,
            Step::Track { client, key } => self.track(client, &key.to_string(), 0),
            Step::Untrack { client, key } => self.untrack(client, &key.to_string()),
            Step::Reconnect(client) => self.subscribe(client),
            Step::Change { key, is_published } => {
                let version = self.backend.change(key);
                if is_published && self.mode == PollMode::Versioned {
                    self.publish(&key.to_string(), version);
                }
            }
            Step::Remove(key) => self.backend.versions[key] = None,
            Step::Flip if self.mode == PollMode::Versioned => {
                let epoch = self.backend.epoch + 1;
                self.backend = Backend { epoch, ..Backend::default() };
            }
            Step::Flip => {}
            Step::Read(index) if index < self.sent.len() => {
                let request = self.sent.remove(index);
                let answer = self.backend.answer(&request);
                self.read.push((request, answer));
            }
            Step::Answer(index) if index < self.read.len() => {
                let (request, answer) = self.read.remove(index);
                self.answer(request, Some(answer));
            }
            Step::Fail(index) if index < self.sent.len() => {
                let request = self.sent.remove(index);
                self.answer(request, None);
            }
            Step::Read(_) | Step::Answer(_) | Step::Fail(_) => {}
        }
        self.poll();
    }

    fn poll(&mut self) {
        let requests = self.subject.requests();
        self.sent.extend(requests);
    }

    fn track(&mut self, client: usize, key: &str, version: u64) {
        let item = TrackedItem { key, version, expires_at: None };
        let client = &mut self.clients[client];
        client.epoch = self.subject.channel.epoch().to_owned();
        if !client.tracked.track(item, || key.into()) {
            return;
        }
        if let Some(update) = self.subject.track(key, version) {
            self.deliver(&PollEffect::Updated(update));
        }
    }

    fn untrack(&mut self, client: usize, key: &str) {
        self.clients[client].values.remove(key);
        if self.clients[client].tracked.untrack(key) {
            self.subject.channel.untrack(key);
        }
    }

    /// Subscribes again, with versions 0 if the epoch is another one.
    fn subscribe(&mut self, client: usize) {
        let tracked = std::mem::take(&mut self.clients[client].tracked);
        let is_same = self.clients[client].epoch == self.subject.channel.epoch();
        for key in tracked.keys() {
            self.subject.channel.untrack(key);
        }
        for key in tracked.keys() {
            let version = if is_same { tracked.version(key) } else { 0 };
            self.track(client, key, version);
        }
    }

    fn publish(&mut self, key: &str, version: u64) {
        let epoch = self.backend.epoch();
        let data = value(&epoch, key, version);
        let publish = DirectPublish { key: key.to_owned(), data, version, epoch };
        let now = self.subject.now();
        let effects = self.subject.channel.publish(publish, now);
        effects.iter().for_each(|effect| self.deliver(effect));
    }

    fn answer(&mut self, request: PollRequest, answer: Option<PollAnswer>) {
        let now = self.subject.now();
        let effects = self.subject.channel.answer(request.id, answer, now);
        effects.iter().for_each(|effect| self.deliver(effect));
    }

    fn deliver(&mut self, effect: &PollEffect) {
        match effect {
            PollEffect::EpochChanged => (0..CLIENTS).for_each(|client| self.subscribe(client)),
            PollEffect::Removed(key) => {
                for client in 0..CLIENTS {
                    self.untrack(client, key);
                }
            }
            PollEffect::Updated(KeyUpdate { key, data, version }) => {
                if self.mode == PollMode::Versioned {
                    let epoch = self.subject.channel.epoch();
                    assert_eq!(
                        *data,
                        value(epoch, key, *version),
                        "an old value under a new number"
                    );
                }
                for client in &mut self.clients {
                    if client.tracked.accepts(key, *version) {
                        client.values.insert(key.to_string(), (*version, data.clone()));
                    }
                }
            }
        }
    }

    /// No key is in two requests that the channel still waits for.
    fn check(&self) {
        let mut asked = BTreeMap::new();
        let requests = self.sent.iter().chain(self.read.iter().map(|(request, _)| request));
        let waited_for =
            |request: &&PollRequest| self.subject.channel.in_flight.contains_key(&request.id);
        for request in requests.filter(waited_for) {
            for (key, _) in &request.keys {
                assert_eq!(asked.insert(key.clone(), request.id), None, "{key} is polled twice");
            }
        }
        let kept = self.subject.channel.keys.values().filter_map(|polled| polled.data.as_ref());
        assert_eq!(self.subject.channel.values_bytes, kept.map(Bytes::len).sum::<usize>());
        let idle = self.subject.channel.keys.values().filter(|polled| polled.trackers == 0);
        assert_eq!(self.subject.channel.idle_count, idle.count());
    }

    /// Answers all requests for some cycles. Then every client has the values of the backend.
    fn settle(&mut self) {
        for _ in 0..80 {
            self.take(Step::Wait(1000));
            while !self.sent.is_empty() || !self.read.is_empty() {
                self.take(Step::Read(0));
                self.take(Step::Answer(0));
                self.check();
            }
        }
        for client in &self.clients {
            for key in client.tracked.keys() {
                let number: usize = key.parse().expect("a number");
                let newest = self.backend.versions[number].expect("a removed key is not tracked");
                let expect = value(&self.backend.epoch(), key, newest);
                let held = client.values.get(&**key).map(|(_, data)| data);
                assert_eq!(held, Some(&expect), "{key}");
            }
        }
    }
}

proptest! {
    #[test]
    fn every_client_gets_the_newest_value_and_never_an_old_one_under_a_new_number(
        steps in steps(),
        is_versioned in any::<bool>(),
    ) {
        let mode = if is_versioned { PollMode::Versioned } else { PollMode::Versionless };
        let mut world = World::new(mode);
        for step in steps {
            world.take(step);
            world.check();
        }
        world.settle();
    }
}
