//! Tests of a channel at virtual times: when keys are polled, and which answers count.
//! In: tracked keys, answers, publishes → out: requests and effects.
//! Uses nothing else; random runs against a model are in `model.rs`. Never: a clock it does not set.
//! Changed here: tests of one rule each.

mod model;

use super::*;

/// A channel, and the time since its beginning.
pub(super) struct Subject {
    pub(super) channel: PollChannel,
    start: Instant,
    pub(super) ms: u64,
}

impl Subject {
    pub(super) fn new(mode: PollMode) -> Self {
        Self::with(PollOptions { mode, ..PollOptions::default() })
    }

    fn with(options: PollOptions) -> Self {
        let channel =
            PollChannel::new(options, String::new(), Arc::new(PollNodeState::new(usize::MAX)));
        Self { channel, start: Instant::now(), ms: 0 }
    }

    pub(super) fn now(&self) -> Instant {
        self.start + Duration::from_millis(self.ms)
    }

    pub(super) fn track(&mut self, key: &str, version: u64) -> Option<KeyUpdate> {
        let now = self.now();
        self.channel.track(key, version, now)
    }

    pub(super) fn requests(&mut self) -> Vec<PollRequest> {
        let now = self.now();
        std::iter::from_fn(|| self.channel.poll(now)).collect()
    }

    /// The requests at a time in milliseconds, as `key:version` and in their order.
    fn polled(&mut self, ms: u64) -> (Vec<RequestId>, Vec<Vec<String>>) {
        self.ms = ms;
        let requests = self.requests();
        let text = |(key, version): &(Arc<str>, u64)| format!("{key}:{version}");
        let texts = requests.iter().map(|request| request.keys.iter().map(text).collect());
        (requests.iter().map(|request| request.id).collect(), texts.collect())
    }

    /// The one request at a time.
    fn one(&mut self, ms: u64, expect: &[&str]) -> RequestId {
        let (ids, texts) = self.polled(ms);
        assert_eq!(texts, [expect], "at {ms} ms");
        ids[0]
    }

    fn nothing(&mut self, ms: u64) {
        assert_eq!(self.polled(ms).1, Vec::<Vec<String>>::new(), "at {ms} ms");
    }

    pub(super) fn answer(
        &mut self,
        id: RequestId,
        epoch: &str,
        items: Vec<PollItem>,
    ) -> Vec<PollEffect> {
        let now = self.now();
        let answer = PollAnswer { items, epoch: epoch.to_owned() };
        self.channel.answer(id, Some(answer), now)
    }

    fn publish(&mut self, key: &str, version: u64, epoch: &str) -> Vec<PollEffect> {
        let now = self.now();
        let publish = DirectPublish {
            key: key.to_owned(),
            data: data(version),
            version,
            epoch: epoch.to_owned(),
        };
        self.channel.publish(publish, now)
    }
}

fn data(version: u64) -> Bytes {
    format!("value {version}").into()
}

fn item(key: &str, version: u64) -> PollItem {
    PollItem { key: key.to_owned(), data: data(version), version, is_removed: false }
}

fn removed(key: &str, version: u64) -> PollItem {
    PollItem { key: key.to_owned(), version, is_removed: true, ..PollItem::default() }
}

fn updated(key: &str, version: u64) -> PollEffect {
    PollEffect::Updated(KeyUpdate { key: key.into(), data: data(version), version })
}

#[test]
fn a_new_key_is_polled_at_once_and_once_for_all_who_track_it() {
    let mut subject = Subject::new(PollMode::Versioned);
    for _ in 0..1000 {
        assert_eq!(subject.track("a", 0), None);
    }
    let id = subject.one(0, &["a:0"]);
    assert_eq!(subject.track("a", 0), None);
    subject.nothing(1);
    assert_eq!(subject.answer(id, "", vec![item("a", 5)]), [updated("a", 5)]);
    let known = KeyUpdate { key: "a".into(), data: data(5), version: 5 };
    assert_eq!(subject.track("a", 0), Some(known.clone()), "later ones get it without a request");
    assert_eq!(subject.track("a", 4), Some(known));
    assert_eq!(subject.track("a", 5), None);
    subject.nothing(9_999);
    subject.nothing(10_000); // it was polled in this interval
    let id = subject.one(20_000, &["a:5"]);
    assert_eq!(subject.answer(id, "", vec![]), [], "unchanged");
    let id = subject.one(30_000, &["a:5"]);
    assert_eq!(subject.answer(id, "", vec![item("a", 7)]), [updated("a", 7)]);
}

#[test]
fn a_client_that_has_a_value_waits_for_the_cycle() {
    let mut subject = Subject::new(PollMode::Versioned);
    assert_eq!(subject.track("a", 7), None);
    subject.nothing(9_999);
    subject.one(10_000, &["a:0"]);
}

#[test]
fn ten_thousand_clients_that_return_at_once_cost_what_one_costs() {
    let refresh_interval = Duration::from_secs(1);
    let options =
        PollOptions { refresh_interval, refresh_batch_size: 50, ..PollOptions::default() };
    let mut subject = Subject::with(options);
    let mut counts = Vec::new();
    for second in 0..4 {
        let mut polled = 0;
        for step in 0..100 {
            subject.ms = second * 1000 + step * 10;
            for client in 0..(if second == 0 { 100 } else { 0 }) {
                subject.track(&format!("key {}", (step * 100 + client) % 200), 0);
            }
            for request in subject.requests() {
                polled += request.keys.len();
                let values = request.keys.iter().map(|(key, _)| item(key, subject.ms + 1));
                let values = values.collect();
                subject.answer(request.id, "", values);
            }
        }
        counts.push(polled);
    }
    assert_eq!(counts, [200, 0, 200, 200]);
}

#[test]
fn batches_are_sorted_and_spread_over_the_interval() {
    let mut subject = Subject::with(PollOptions {
        mode: PollMode::Versioned,
        refresh_batch_size: 2,
        ..PollOptions::default()
    });
    for key in ["e", "c", "a", "d", "b"] {
        subject.track(key, 1);
    }
    subject.nothing(9_999);
    subject.one(10_000, &["a:0", "b:0"]);
    assert_eq!(
        subject.channel.deadline(),
        Some(subject.start + Duration::from_nanos(13_333_333_333))
    );
    subject.nothing(13_333);
    subject.channel.untrack("c");
    subject.one(13_334, &["d:0"]);
    subject.one(16_667, &["e:0"]);
    subject.nothing(19_999);
    subject.nothing(20_000); // all are in flight
}

#[test]
fn a_request_that_fails_or_is_never_answered_waits_for_the_next_cycle() {
    let mut subject = Subject::new(PollMode::Versioned);
    subject.track("a", 0);
    let id = subject.one(0, &["a:0"]);
    let now = subject.now();
    assert_eq!(subject.channel.answer(id, None, now), []);
    subject.nothing(1);
    let id = subject.one(10_000, &["a:0"]);
    subject.nothing(20_000);
    subject.nothing(30_000);
    subject.one(40_000, &["a:0"]);
    assert_eq!(subject.answer(id, "", vec![item("a", 1)]), [], "too late");
    let counts = PollCounts { failed: 2, late: 1, ..PollCounts::default() };
    assert_eq!(subject.channel.counts(), counts);
}

#[test]
fn an_answer_that_is_older_than_a_direct_publish_does_not_count() {
    let mut subject = Subject::new(PollMode::Versioned);
    subject.track("a", 0);
    let id = subject.one(0, &["a:0"]);
    assert_eq!(subject.publish("a", 7, ""), [updated("a", 7)]);
    assert_eq!(subject.answer(id, "", vec![item("a", 6)]), []);
    assert_eq!(subject.publish("a", 7, ""), [], "nor does the same version");
    subject.nothing(10_000);
    let id = subject.one(20_000, &["a:7"]);
    subject.publish("a", 8, "");
    assert_eq!(subject.answer(id, "", vec![removed("a", 0)]), [], "removed before");
    subject.nothing(30_000);
    let id = subject.one(40_000, &["a:8"]);
    assert_eq!(subject.answer(id, "", vec![removed("a", 0)]), [PollEffect::Removed("a".into())]);
    assert_eq!(
        subject.track("a", 0),
        None,
        "a client that tracks it again, before others have untracked it"
    );
    subject.channel.untrack("a");
    subject.channel.untrack("a");
    assert!(subject.channel.is_idle());
    assert_eq!(subject.channel.counts().stale, 3);
    assert_eq!(subject.publish("b", 1, ""), [], "no connection tracks it");
}

#[test]
fn foreign_and_wrong_items_do_not_count() {
    let mut subject = Subject::new(PollMode::Versioned);
    subject.track("a", 0);
    let id = subject.one(0, &["a:0"]);
    subject.track("b", 5);
    let empty = PollItem { data: Bytes::new(), ..item("a", 9) };
    let items = vec![item("b", 9), item("c", 9), removed("b", 9), item("a", 0), empty];
    assert_eq!(subject.answer(id, "", items), []);
    let counts = PollCounts { foreign: 3, invalid: 2, ..PollCounts::default() };
    assert_eq!(subject.channel.counts(), counts);
    let id = subject.one(10_000, &["a:0", "b:0"]);
    let twice = vec![item("a", 2), item("a", 1), item("a", 3)];
    let expect = [updated("a", 2), updated("a", 3)];
    assert_eq!(subject.answer(id, "", twice), expect);
}

#[test]
fn a_value_for_which_there_is_no_memory_is_polled_when_it_is_wanted() {
    let mut subject = Subject::with(PollOptions {
        mode: PollMode::Versioned,
        values_bytes_max: 7,
        ..PollOptions::default()
    });
    subject.track("a", 0);
    subject.track("b", 0);
    let id = subject.one(0, &["a:0", "b:0"]);
    subject.answer(id, "", vec![item("a", 1), item("b", 1)]);
    assert!(subject.track("a", 0).is_some());
    assert_eq!(subject.track("b", 0), None);
    assert_eq!(subject.track("b", 0), None);
    let id = subject.one(1, &["b:0"]);
    assert_eq!(subject.answer(id, "", vec![item("b", 1)]), [updated("b", 1)]);
    subject.nothing(10_000);
    let id = subject.one(20_000, &["a:1", "b:1"]);
    subject.answer(id, "", vec![removed("a", 1)]);
    subject.channel.untrack("a");
    subject.channel.untrack("a");
    // b is polled with a version while a client needs its value.
    let id = subject.one(30_000, &["b:1"]);
    subject.track("b", 0);
    subject.nothing(30_001);
    subject.answer(id, "", vec![]);
    let id = subject.one(30_002, &["b:0"]);
    assert_eq!(subject.answer(id, "", vec![item("b", 1)]), [updated("b", 1)]);
    assert!(subject.track("b", 0).is_some(), "now there is memory");
}

#[test]
fn another_epoch_forgets_all_values_and_changes_once_a_second() {
    let mut subject = Subject::new(PollMode::Versioned);
    subject.track("a", 0);
    subject.track("b", 7);
    let id = subject.one(0, &["a:0"]);
    assert_eq!(subject.answer(id, "", vec![item("a", 9)]), [updated("a", 9)]);
    let old = subject.one(10_000, &["b:0"]);
    let changed = PollEffect::EpochChanged;
    assert_eq!(subject.publish("unknown", 1, "new"), [PollEffect::EpochChanged]);
    assert_eq!(subject.channel.epoch(), "new");
    assert_eq!(subject.answer(old, "", vec![item("b", 9)]), [], "it was sent before");
    assert_eq!(subject.publish("a", 1, "new"), [updated("a", 1)], "versions begin again");
    subject.ms += 999;
    assert_eq!(subject.publish("a", 50, ""), []);
    subject.ms += 1;
    assert_eq!(subject.publish("a", 2, ""), [changed, updated("a", 2)]);
    let counts = subject.channel.counts();
    assert_eq!((counts.flips, counts.flips_suppressed, counts.stale), (2, 1, 1));
}

#[test]
fn the_first_epoch_is_no_change_while_no_client_has_a_version() {
    let mut subject = Subject::new(PollMode::Versioned);
    subject.track("a", 0);
    let id = subject.one(0, &["a:0"]);
    assert_eq!(subject.answer(id, "first", vec![item("a", 9)]), [updated("a", 9)]);
    assert_eq!(subject.channel.epoch(), "first");
    let mut subject = Subject::new(PollMode::Versioned);
    subject.track("a", 3);
    let id = subject.one(10_000, &["a:0"]);
    let effects = [PollEffect::EpochChanged, updated("a", 9)];
    assert_eq!(subject.answer(id, "first", vec![item("a", 9)]), effects);
    assert!(subject.channel.kept_until() > Some(subject.now()));
}

#[test]
fn without_versions_of_the_backend_values_are_compared() {
    let mut subject = Subject::new(PollMode::Versionless);
    subject.track("a", 0);
    subject.track("b", 0);
    let id = subject.one(0, &["a:0", "b:0"]);
    let effects = subject.answer(id, "ignored", vec![item("a", 50), item("b", 50)]);
    let versions = |effects: &[PollEffect]| {
        let version = |effect: &PollEffect| match effect {
            PollEffect::Updated(update) => update.version,
            other => panic!("{other:?}"),
        };
        effects.iter().map(version).collect::<Vec<_>>()
    };
    assert_eq!(versions(&effects), [1, 2], "counted by the node");
    subject.nothing(10_000);
    let id = subject.one(20_000, &["a:0", "b:0"]);
    let effects = subject.answer(id, "", vec![item("a", 50), item("b", 51)]);
    assert_eq!(versions(&effects), [3]);
    assert_eq!(subject.channel.epoch(), "");
}

#[test]
fn keys_that_nobody_tracks_are_not_polled_and_forgotten() {
    let mut subject = Subject::new(PollMode::Versioned);
    assert!(subject.channel.is_idle() && subject.channel.deadline().is_none());
    subject.track("a", 0);
    let id = subject.one(0, &["a:0"]);
    subject.answer(id, "", vec![item("a", 1)]);
    subject.channel.untrack("a");
    subject.channel.untrack("a");
    assert!(subject.channel.is_idle());
    assert!(subject.track("a", 0).is_some(), "a client that returns costs no request");
    subject.channel.untrack("a");
    subject.nothing(10_000);
    assert!(subject.channel.keys.is_empty() && subject.channel.deadline().is_none());
    assert_eq!((subject.channel.values_bytes, subject.channel.idle_count), (0, 0));
    for number in 0..IDLE_KEYS_MAX + 10 {
        let key = number.to_string();
        subject.track(&key, 1);
        subject.channel.untrack(&key);
    }
    assert_eq!(subject.channel.keys.len(), IDLE_KEYS_MAX);
    // A key that was untracked before it was polled.
    subject.track("c", 0);
    subject.channel.untrack("c");
    subject.nothing(10_001);
    subject.track("c", 0);
    subject.one(10_002, &["c:0"]);
}
