//! The tests that every engine with maps must pass: the promises of `map.rs`, one function each.
//! In: a function that makes an engine in front of a recorder → out: a panic that names the broken promise.
//! Uses: the recorder of brokers. Never: the order of pages or their length; they are merged. Never: expiry, which each engine tests.
//! Changed here: the promises that all engines share; those about checks and limits are in `conformance/checks.rs`.

mod checks;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::thread;
use std::time::{Duration, Instant};

use fanwire_protocol::{ClientInfo, Publication};

use super::{
    ChangesQuery, MapBroker, MapChannel, MapError, MapOutcome, MapPublish, MapRemoval,
    MapRetention, MapStats, PositionLost, StatePage, StateQuery,
};
use crate::broker::conformance::{MakeBroker, Recorder, THREADS, in_threads, start};
use crate::{Delta, Epoch, Position, Retention, StreamSlice};

/// Tests every promise.
///
/// # Panics
/// When the engine breaks a promise, or has no maps.
pub fn check(make: MakeBroker<'_>) {
    a_change_arrives_complete(make);
    offsets_count_from_one_in_the_order_of_delivery(make);
    a_state_is_paged_to_its_end(make);
    a_page_has_only_what_was_asked_for(make);
    a_removal_keeps_the_tags_of_its_entry(make);
    a_stream_returns_every_change_or_says_that_some_are_lost(make);
    an_ephemeral_channel_has_no_stream(make);
    a_delta_is_made_against_the_value_before_of_its_key(make);
    a_cleared_channel_begins_again(make);
    channels_are_apart(make);
    pages_and_stream_give_the_state_while_keys_change(make);
    checks::check(make);
}

const RETENTION: MapRetention = MapRetention {
    key_ttl: Duration::from_secs(600),
    stream: Retention {
        size: 10_000,
        ttl: Duration::from_secs(600),
        meta_ttl: Duration::from_secs(6000),
    },
    entries_max: 10_000,
    bytes_max: 1 << 24,
};

/// A channel of an engine, and what arrives of it.
struct Subject {
    recorder: Arc<Recorder>,
    maps: Arc<dyn MapBroker>,
    name: &'static str,
    retention: MapRetention,
}

impl Subject {
    fn of(make: MakeBroker<'_>) -> Self {
        let (recorder, broker) = start(make, &["board"]);
        let maps = broker.maps().expect("an engine with maps");
        Self { recorder, maps, name: "board", retention: RETENTION }
    }

    /// The same engine with another stream or other limits.
    fn with(make: MakeBroker<'_>, change: impl FnOnce(&mut MapRetention)) -> Self {
        let mut subject = Self::of(make);
        change(&mut subject.retention);
        subject
    }

    fn channel(&self) -> MapChannel<'_> {
        MapChannel { name: self.name, retention: self.retention }
    }

    fn publish(&self, publish: MapPublish) -> Result<MapOutcome, MapError> {
        let answer = self.maps.publish(self.channel(), publish, Instant::now());
        answer.wait().expect("the engine is available")
    }

    /// Sets a key without any check. Returns the position of the change.
    fn set(&self, key: &str, data: &str) -> Position {
        let outcome = self.publish(value(key, data)).expect("nothing to refuse");
        assert_eq!(outcome.suppression, None);
        outcome.position
    }

    fn remove(&self, removal: MapRemoval) -> MapOutcome {
        let answer = self.maps.remove(self.channel(), removal, Instant::now());
        answer.wait().expect("the engine is available").expect("nothing to refuse")
    }

    fn page(&self, query: &StateQuery) -> Result<StatePage, PositionLost> {
        let answer = self.maps.read_state(self.channel(), query, Instant::now());
        answer.wait().expect("the engine is available")
    }

    fn changes(&self, query: ChangesQuery) -> Result<StreamSlice, PositionLost> {
        let answer = self.maps.read_stream(self.channel(), query, Instant::now());
        answer.wait().expect("the engine is available")
    }

    /// All pages, and the position of the first one.
    fn pages(&self, limit: usize) -> (Vec<Publication>, Position) {
        let mut query = StateQuery { limit: Some(limit), ..StateQuery::default() };
        let mut page = self.page(&query).expect("any epoch");
        let top = page.top;
        query.epoch = top.epoch;
        let mut entries = page.entries;
        let mut count = 1;
        while !page.cursor.is_empty() {
            count += 1;
            assert!(count < 10_000, "pages come to an end");
            query.cursor = page.cursor;
            page = self.page(&query).expect("the epoch of the first page");
            entries.append(&mut page.entries);
        }
        (entries, top)
    }

    fn state(&self) -> BTreeMap<String, String> {
        let mut state = BTreeMap::new();
        apply(&mut state, self.pages(100).0);
        state
    }

    fn entry(&self, key: &str) -> Option<Publication> {
        let query = StateQuery { key: Some(key.to_owned()), ..StateQuery::default() };
        self.page(&query).expect("any epoch").entries.pop()
    }
}

fn value(key: &str, data: &str) -> MapPublish {
    let key = key.to_owned();
    let data = data.to_owned().into();
    let publication = Publication { key, data, ..Publication::default() };
    MapPublish { publication, ..MapPublish::default() }
}

fn removal(key: &str) -> MapRemoval {
    let publication = Publication { key: key.to_owned(), ..Publication::default() };
    MapRemoval { publication, ..MapRemoval::default() }
}

fn tags(key: &str, value: &str) -> BTreeMap<String, String> {
    [(key.to_owned(), value.to_owned())].into()
}

/// Applies entries or changes as a client does.
fn apply(state: &mut BTreeMap<String, String>, changes: Vec<Publication>) {
    for Publication { key, data, removed, .. } in changes {
        if removed {
            state.remove(&key);
        } else {
            state.insert(key, String::from_utf8_lossy(&data).into());
        }
    }
}

fn a_change_arrives_complete(make: MakeBroker<'_>) {
    let subject = Subject::of(make);
    let sent = Publication {
        key: "\0é\u{2028}\"".into(),
        data: "\u{0}binary \u{fffd}".into(),
        info: Some(ClientInfo { user: "42".into(), client: "c".into(), ..ClientInfo::default() }),
        tags: tags("k", "v"),
        time: 1_700_000_000_123,
        ..Publication::default()
    };
    let publish = MapPublish { publication: sent.clone(), ..MapPublish::default() };
    let outcome = subject.publish(publish).expect("nothing to refuse");
    let expect = Publication { offset: 1, ..sent };
    let arrived = subject.recorder.wait_for(1).remove(0);
    assert_eq!(arrived, ("board".to_owned(), expect.clone()));
    assert_eq!(subject.recorder.positions(), [outcome.position]);
    assert_eq!(subject.entry(&expect.key), Some(expect.clone()), "it is in the state");
    let slice = subject.changes(ChangesQuery::default()).expect("no position to lose");
    assert_eq!(slice.publications, [expect], "it is in the stream");
    assert_eq!(slice.top, outcome.position);
}

fn offsets_count_from_one_in_the_order_of_delivery(make: MakeBroker<'_>) {
    let subject = Subject::of(make);
    let empty = subject.page(&StateQuery::default()).expect("any epoch");
    assert_eq!((empty.top.offset, empty.entries.len(), &*empty.cursor), (0, 0, ""));
    assert_ne!(empty.top.epoch, Epoch::NONE);
    in_threads(|thread| {
        for number in 0..50 {
            subject.set(&format!("{thread} {}", number % 10), &number.to_string());
        }
    });
    let arrived = subject.recorder.wait_for(THREADS * 50);
    let offsets = arrived.iter().map(|(_, publication)| publication.offset);
    assert!(offsets.eq(1..=THREADS as u64 * 50), "each offset once, in order");
    let positions = subject.recorder.positions();
    assert!(positions.iter().all(|position| position.epoch == empty.top.epoch), "one epoch");
    let mut state = BTreeMap::new();
    apply(&mut state, arrived.into_iter().map(|(_, publication)| publication).collect());
    assert_eq!(subject.state(), state);
}

fn a_state_is_paged_to_its_end(make: MakeBroker<'_>) {
    let subject = Subject::of(make);
    let names = (0..250).map(|number| format!("key {number}"));
    let expect: BTreeMap<_, _> = names.map(|key| (key.clone(), key)).collect();
    for (key, data) in &expect {
        subject.set(key, data);
    }
    for limit in [1, 7, 100, 250, 1000] {
        let mut state = BTreeMap::new();
        let (entries, top) = subject.pages(limit);
        apply(&mut state, entries);
        assert_eq!(state, expect, "pages of {limit}");
        assert_eq!(top.offset, 250);
    }
    let stats = subject.maps.stats(subject.channel(), Instant::now());
    assert_eq!(stats.wait(), Ok(MapStats { entries: 250 }));
}

fn a_page_has_only_what_was_asked_for(make: MakeBroker<'_>) {
    let subject = Subject::of(make);
    let first = subject.set("a", "1");
    let second = subject.set("b", "2");
    let page = |query: StateQuery| subject.page(&query);
    let none = StateQuery { limit: Some(0), ..StateQuery::default() };
    let position_only = StatePage { top: second, ..StatePage::default() };
    assert_eq!(page(none), Ok(position_only), "limit 0 is the position only");
    let all = page(StateQuery::default()).expect("any epoch");
    assert_eq!((all.entries.len(), &*all.cursor), (2, ""), "no limit is everything");
    assert_eq!(subject.entry("a").expect("it is set").offset, first.offset);
    assert_eq!(subject.entry("c"), None);
    let same = StateQuery { epoch: second.epoch, ..StateQuery::default() };
    assert_eq!(page(same).expect("the same epoch").top, second);
    let other = StateQuery { epoch: Epoch::random(), ..StateQuery::default() };
    assert_eq!(page(other), Err(PositionLost));
    let behind = StateQuery { cursor: "zzz".to_owned(), limit: Some(1), ..StateQuery::default() };
    assert!(page(behind).is_ok(), "a cursor that was made up");
}

fn a_removal_keeps_the_tags_of_its_entry(make: MakeBroker<'_>) {
    let subject = Subject::of(make);
    for key in ["own", "other"] {
        let mut tagged = value(key, "1");
        tagged.publication.tags = tags("room", "1");
        subject.publish(tagged).expect("nothing to refuse");
    }
    let removed = subject.remove(removal("own"));
    assert_eq!((removed.position.offset, removed.suppression), (3, None));
    let mut tagged = removal("other");
    tagged.publication.tags = tags("room", "2");
    subject.remove(tagged);
    let arrived = subject.recorder.wait_for(4);
    let expect = |key: &str, offset, tags| Publication {
        key: key.to_owned(),
        removed: true,
        offset,
        tags,
        ..Publication::default()
    };
    let removals = [expect("own", 3, tags("room", "1")), expect("other", 4, tags("room", "2"))];
    assert!(arrived[2..].iter().map(|(_, removal)| removal).eq(&removals));
    let changes = subject.changes(ChangesQuery::default()).expect("no position to lose");
    assert_eq!(changes.publications[2..], removals);
    assert!(subject.state().is_empty());
}

fn a_stream_returns_every_change_or_says_that_some_are_lost(make: MakeBroker<'_>) {
    let subject = Subject::with(make, |retention| retention.stream.size = 5);
    let first = subject.set("a", "1");
    for number in 2..=20 {
        subject.set("a", &number.to_string());
    }
    let position = |offset| Position { offset, ..first };
    let offsets = |query| {
        let slice = subject.changes(query)?;
        assert_eq!(slice.top, position(20));
        Ok(slice.publications.iter().map(|change| change.offset).collect::<Vec<_>>())
    };
    let since = |offset| ChangesQuery { since: Some(position(offset)), ..ChangesQuery::default() };
    for lost in [0, 1, 2, 14, 21, u64::MAX] {
        assert_eq!(offsets(since(lost)), Err(PositionLost), "since {lost}");
        let limited = ChangesQuery { limit: Some(0), ..since(lost) };
        assert_eq!(offsets(limited), Err(PositionLost), "also when nothing is read");
    }
    assert_eq!(offsets(since(15)), Ok(vec![16, 17, 18, 19, 20]));
    assert_eq!(offsets(since(18)), Ok(vec![19, 20]));
    assert_eq!(offsets(since(20)), Ok(vec![]));
    assert_eq!(offsets(ChangesQuery { limit: Some(2), ..since(15) }), Ok(vec![16, 17]));
    assert_eq!(offsets(ChangesQuery::default()), Ok(vec![16, 17, 18, 19, 20]));
    let back = ChangesQuery { reverse: true, limit: Some(2), since: None };
    assert_eq!(offsets(back), Ok(vec![20, 19]));
    assert_eq!(offsets(ChangesQuery { since: Some(position(18)), ..back }), Ok(vec![17, 16]));
    let any = Position { offset: 17, epoch: Epoch::NONE };
    let any = ChangesQuery { since: Some(any), ..ChangesQuery::default() };
    assert_eq!(offsets(any), Ok(vec![18, 19, 20]), "an empty epoch is any");
    let other = Position { offset: 20, epoch: Epoch::random() };
    let other = ChangesQuery { since: Some(other), ..ChangesQuery::default() };
    assert_eq!(offsets(other), Err(PositionLost));
}

fn an_ephemeral_channel_has_no_stream(make: MakeBroker<'_>) {
    let subject = Subject::with(make, |retention| retention.stream = Retention::default());
    assert_eq!(subject.set("a", "1"), Position::default());
    assert_eq!(subject.set("b", "2"), Position::default());
    subject.remove(removal("a"));
    let arrived = subject.recorder.wait_for(3);
    assert!(arrived.iter().all(|(_, change)| change.offset == 0));
    assert!(subject.recorder.positions().iter().all(|position| *position == Position::default()));
    let (entries, top) = subject.pages(1);
    assert_eq!((entries.len(), top), (1, Position::default()));
    assert_eq!(subject.changes(ChangesQuery::default()), Ok(StreamSlice::default()));
}

fn a_delta_is_made_against_the_value_before_of_its_key(make: MakeBroker<'_>) {
    let subject = Subject::of(make);
    let put = |key, data, delta| {
        subject.publish(MapPublish { delta, ..value(key, data) }).expect("nothing to refuse");
    };
    put("a", "1", true);
    put("b", "2", true);
    put("a", "3", true);
    put("a", "4", false);
    put("b", "5", true);
    subject.remove(removal("b"));
    put("b", "6", true);
    subject.recorder.wait_for(7);
    let against = |data: &'static str| Delta::Against(data.into());
    let expect = [
        Delta::Alone,
        Delta::Alone,
        against("1"),
        Delta::Off,
        against("2"),
        Delta::Off,
        Delta::Alone,
    ];
    assert_eq!(subject.recorder.deltas(), expect);
}

fn a_cleared_channel_begins_again(make: MakeBroker<'_>) {
    let subject = Subject::of(make);
    let keyed = || MapPublish { idempotency_key: "once".to_owned(), ..value("a", "1") };
    let before = subject.publish(keyed()).expect("nothing to refuse").position;
    let cleared = subject.maps.clear(subject.channel(), Instant::now());
    cleared.wait().expect("the engine is available");
    let page = subject.page(&StateQuery::default()).expect("any epoch");
    assert_eq!((page.entries.len(), page.top.offset), (0, 0));
    assert_ne!(page.top.epoch, before.epoch);
    let lost = ChangesQuery { since: Some(before), ..ChangesQuery::default() };
    assert_eq!(subject.changes(lost), Err(PositionLost));
    let again = subject.publish(keyed()).expect("nothing to refuse");
    assert_eq!(again.suppression, None, "results of idempotency keys are forgotten");
    assert_eq!(again.position, Position { offset: 1, ..page.top });
}

fn channels_are_apart(make: MakeBroker<'_>) {
    let subject = Subject::of(make);
    subject.set("a", "1");
    let other = Subject { name: "other", ..subject };
    assert!(other.state().is_empty());
    assert_eq!(other.set("a", "2").offset, 1);
    assert_eq!(other.state(), [("a".to_owned(), "2".to_owned())].into());
}

/// Readers page through the state while writers set and remove keys.
fn pages_and_stream_give_the_state_while_keys_change(make: MakeBroker<'_>) {
    let subject = Subject::with(make, |retention| retention.stream.size = 1 << 20);
    let is_over = AtomicBool::new(false);
    let write = |thread: usize| {
        let mut number = thread;
        for _ in 0..1000 {
            number = (number * 7919 + 31) % 100_003;
            let key = format!("key {}", number % 60);
            if number.is_multiple_of(3) {
                subject.remove(removal(&key));
            } else {
                subject.set(&key, &number.to_string());
            }
        }
    };
    let read = || {
        let (entries, first) = subject.pages(3);
        let since = ChangesQuery { since: Some(first), ..ChangesQuery::default() };
        let slice = subject.changes(since).expect("the stream is long enough");
        let mut merged = BTreeMap::new();
        apply(&mut merged, entries);
        apply(&mut merged, slice.publications);
        (merged, slice.top)
    };
    thread::scope(|scope| {
        let readers = Vec::from_iter((0..2).map(|_| {
            scope.spawn(|| {
                let mut reads = Vec::new();
                while !is_over.load(SeqCst) && reads.len() < 200 {
                    reads.push(read());
                }
                reads
            })
        }));
        in_threads(write);
        is_over.store(true, SeqCst);
        let all = subject.changes(ChangesQuery::default()).expect("no position to lose");
        let states = states_by_offset(all.publications);
        for (merged, top) in readers.into_iter().flat_map(|reader| reader.join().expect("reads")) {
            assert_eq!(Some(&merged), states.get(top.offset as usize), "at {top:?}");
        }
    });
    assert_eq!(read().0, subject.state());
}

/// The state at each offset.
fn states_by_offset(changes: Vec<Publication>) -> Vec<BTreeMap<String, String>> {
    let mut states = vec![BTreeMap::new()];
    for change in changes {
        let mut state = states.last().expect("one at offset 0").clone();
        apply(&mut state, vec![change]);
        states.push(state);
    }
    states
}
