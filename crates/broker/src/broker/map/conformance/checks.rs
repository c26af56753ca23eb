//! The promises of every engine with maps about changes that have no effect: their checks, the order of these, limits.
//! In: a function that makes an engine in front of a recorder → out: a panic that names the broken promise.
//! Uses: the subject of `conformance.rs`, threads. Never: expiry.
//! Changed here: the promises about suppressed and refused changes.

use std::thread;

use super::{RETENTION, Subject, removal, value};
use crate::broker::conformance::MakeBroker;
use crate::map::{
    ChangesQuery, KeyMode, MapError, MapOutcome, MapPublish, MapRemoval, MapSuppression,
};
use crate::{Epoch, Position, Retention};

pub(super) fn check(make: MakeBroker<'_>) {
    an_idempotency_key_changes_once(make);
    a_version_is_never_replaced_by_an_older_one(make);
    a_key_mode_demands_a_key_or_its_absence(make);
    an_expected_position_must_be_that_of_the_entry(make);
    a_hundred_writers_with_expected_positions_lose_no_update(make);
    checks_have_an_order(make);
    what_was_suppressed_is_not_delivered(make);
    an_ephemeral_channel_has_no_positions_and_versions(make);
    limits_refuse_and_change_nothing(make);
    a_stream_gives_way_to_entries(make);
}

fn suppressed(outcome: Result<MapOutcome, MapError>) -> Option<MapSuppression> {
    outcome.expect("nothing to refuse").suppression
}

fn keyed(key: &str, publish: MapPublish) -> MapPublish {
    MapPublish { idempotency_key: key.to_owned(), ..publish }
}

fn versioned(version: u64, epoch: &str) -> MapPublish {
    MapPublish { version, version_epoch: epoch.to_owned(), ..value("a", &version.to_string()) }
}

fn expecting(position: Position, publish: MapPublish) -> MapPublish {
    MapPublish { expected: Some(position), ..publish }
}

fn an_idempotency_key_changes_once(make: MakeBroker<'_>) {
    let subject = Subject::of(make);
    let first = subject.publish(keyed("k", value("a", "1"))).expect("nothing to refuse");
    subject.set("b", "2");
    let again = subject.publish(keyed("k", value("a", "3"))).expect("nothing to refuse");
    let suppression = Some(MapSuppression::Idempotency);
    assert_eq!(again, MapOutcome { suppression: suppression.clone(), ..first });
    assert_eq!(subject.entry("a").expect("it is set").offset, 1);
    let keyed_removal = || MapRemoval { idempotency_key: "r".to_owned(), ..removal("b") };
    let removed = subject.remove(keyed_removal());
    subject.set("b", "4");
    assert_eq!(subject.remove(keyed_removal()), MapOutcome { suppression, ..removed });
    assert_eq!(subject.state().len(), 2);
    thread::scope(|scope| {
        let publish = || subject.publish(keyed("many", value("c", "5")));
        let threads = Vec::from_iter((0..8).map(|_| scope.spawn(publish)));
        let outcomes = threads.into_iter().map(|thread| thread.join().expect("no panic"));
        let made = outcomes.map(suppressed).filter(Option::is_none).count();
        assert_eq!(made, 1, "one of many threads");
    });
}

fn a_version_is_never_replaced_by_an_older_one(make: MakeBroker<'_>) {
    let subject = Subject::of(make);
    let check = |publish: MapPublish, is_old: bool| {
        let expect = is_old.then_some(MapSuppression::Version);
        assert_eq!(suppressed(subject.publish(publish.clone())), expect, "{publish:?}");
    };
    check(versioned(5, "e"), false);
    check(versioned(5, "e"), true);
    check(versioned(4, ""), true);
    check(versioned(1, "f"), false); // another epoch
    check(versioned(2, "f"), false);
    check(value("a", "without"), false);
    check(versioned(2, "f"), true); // which kept the version
    check(MapPublish { version: 1, ..value("b", "1") }, false); // another key
    subject.remove(removal("a"));
    check(versioned(1, "f"), false); // the removal forgot it
}

fn a_key_mode_demands_a_key_or_its_absence(make: MakeBroker<'_>) {
    let subject = Subject::of(make);
    let put = |key_mode| suppressed(subject.publish(MapPublish { key_mode, ..value("a", "1") }));
    let if_new = KeyMode::IfNew { refreshes: false };
    assert_eq!(put(KeyMode::IfExists), Some(MapSuppression::KeyNotFound));
    assert_eq!(put(if_new), None);
    assert_eq!(put(if_new), Some(MapSuppression::KeyExists));
    assert_eq!(put(KeyMode::IfNew { refreshes: true }), Some(MapSuppression::KeyExists));
    assert_eq!(put(KeyMode::IfExists), None);
    assert_eq!(subject.remove(removal("b")).suppression, Some(MapSuppression::KeyNotFound));
    assert_eq!(subject.remove(removal("a")).position.offset, 3);
    assert_eq!(put(KeyMode::IfExists), Some(MapSuppression::KeyNotFound));
}

fn an_expected_position_must_be_that_of_the_entry(make: MakeBroker<'_>) {
    let subject = Subject::of(make);
    let first = subject.set("a", "1");
    let second = subject.set("b", "2");
    let mismatch = |key: &str, offset| {
        let current = subject.entry(key).map(Box::new);
        let position = Position { offset, ..first };
        let suppression = Some(MapSuppression::PositionMismatch(current));
        Ok(MapOutcome { position, suppression })
    };
    let put = |key, expected| subject.publish(expecting(expected, value(key, "3")));
    assert_eq!(put("a", second), mismatch("a", 1));
    assert_eq!(put("c", Position { offset: 0, ..first }), mismatch("c", 0));
    assert_eq!(put("a", Position { epoch: Epoch::random(), ..first }), mismatch("a", 1));
    let third = put("a", first).expect("nothing to refuse");
    assert_eq!(third, MapOutcome { position: Position { offset: 3, ..first }, suppression: None });
    assert_eq!(put("a", first), mismatch("a", 3));

    let remove = |key, expected| subject.remove(MapRemoval { expected, ..removal(key) });
    assert_eq!(Ok(remove("a", Some(first))), mismatch("a", 3));
    assert_eq!(Ok(remove("c", Some(first))), mismatch("c", 0), "before the key is looked for");
    assert_eq!(remove("a", Some(third.position)).position.offset, 4);
}

fn a_hundred_writers_with_expected_positions_lose_no_update(make: MakeBroker<'_>) {
    const WRITERS: u64 = 100;
    const UPDATES: u64 = 3;
    let subject = Subject::of(make);
    let mut at = subject.set("counter", "0");
    at.offset = 0; // of no entry
    let add = || {
        let mut number = 0_u64;
        let mut expected = at;
        loop {
            let next = value("counter", &(number + 1).to_string());
            let outcome = subject.publish(expecting(expected, next)).expect("nothing to refuse");
            let Some(suppression) = outcome.suppression else { return };
            let MapSuppression::PositionMismatch(Some(current)) = suppression else {
                panic!("{suppression:?}");
            };
            let text = std::str::from_utf8(&current.data).expect("a number");
            number = text.parse().expect("a number");
            expected = outcome.position;
        }
    };
    thread::scope(|scope| {
        for _ in 0..WRITERS {
            scope.spawn(|| (0..UPDATES).for_each(|_| add()));
        }
    });
    let counter = subject.entry("counter").expect("it is set");
    assert_eq!(counter.data, (WRITERS * UPDATES).to_string());
}

/// Each check is passed by what all later ones would suppress.
fn checks_have_an_order(make: MakeBroker<'_>) {
    let subject = Subject::with(make, |retention| retention.entries_max = 1);
    let wrong = Position { offset: 9, epoch: Epoch::random() };
    let worst = |key| {
        let key_mode = KeyMode::IfNew { refreshes: false };
        expecting(wrong, MapPublish { key_mode, ..keyed(key, versioned(1, "")) })
    };
    subject.publish(keyed("k", versioned(1, ""))).expect("nothing to refuse");
    assert_eq!(suppressed(subject.publish(worst("k"))), Some(MapSuppression::Idempotency));
    assert_eq!(suppressed(subject.publish(worst("other"))), Some(MapSuppression::Version));
    let newer = MapPublish { version: 2, ..worst("other") };
    assert_eq!(suppressed(subject.publish(newer)), Some(MapSuppression::KeyExists));
    let second_key = expecting(wrong, value("b", "1"));
    let mismatch = Some(MapSuppression::PositionMismatch(None));
    assert_eq!(suppressed(subject.publish(second_key)), mismatch);
    assert_eq!(subject.publish(value("b", "1")), Err(MapError::TooManyEntries));
}

fn what_was_suppressed_is_not_delivered(make: MakeBroker<'_>) {
    let subject = Subject::of(make);
    subject.set("a", "1");
    let if_new = KeyMode::IfNew { refreshes: true };
    subject.publish(MapPublish { key_mode: if_new, ..value("a", "2") }).expect("nothing to refuse");
    subject.remove(removal("b"));
    subject.set("a", "3");
    let arrived = subject.recorder.wait_for(2);
    let rows = arrived.iter().map(|(_, change)| (change.offset, &change.data[..]));
    assert!(rows.eq([(1, &b"1"[..]), (2, b"3")]));
}

fn an_ephemeral_channel_has_no_positions_and_versions(make: MakeBroker<'_>) {
    let subject = Subject::with(make, |retention| retention.stream = Retention::default());
    subject.set("a", "1");
    assert_eq!(subject.publish(versioned(1, "")), Err(MapError::NoStream));
    let expected = expecting(Position::default(), value("a", "2"));
    assert_eq!(subject.publish(expected), Err(MapError::NoStream));
    let if_new = KeyMode::IfNew { refreshes: false };
    let again = MapPublish { key_mode: if_new, ..value("a", "2") };
    assert_eq!(suppressed(subject.publish(again)), Some(MapSuppression::KeyExists));
    assert_eq!(subject.state(), [("a".to_owned(), "1".to_owned())].into());
}

fn limits_refuse_and_change_nothing(make: MakeBroker<'_>) {
    let subject = Subject::with(make, |retention| {
        retention.entries_max = 3;
        retention.bytes_max = 4000;
    });
    for key in ["a", "b", "c"] {
        subject.set(key, "1");
    }
    assert_eq!(subject.publish(value("d", "1")), Err(MapError::TooManyEntries));
    let large = "x".repeat(4000);
    assert_eq!(subject.publish(value("a", &large)), Err(MapError::TooLarge));
    assert_eq!(subject.state().values().collect::<Vec<_>>(), ["1", "1", "1"]);
    assert_eq!(subject.set("a", "2").offset, 4, "a refusal has no offset");
    subject.remove(removal("a"));
    assert_eq!(subject.set("d", "1").offset, 6);
}

fn a_stream_gives_way_to_entries(make: MakeBroker<'_>) {
    let subject = Subject::with(make, |retention| retention.bytes_max = 20_000);
    let data = "x".repeat(1000);
    let first = subject.set("0", &data);
    let keys = (1..).map(|number: u32| number.to_string());
    let is_set = |key: &String| subject.publish(value(key, &data)).is_ok();
    let count = 1 + keys.take_while(is_set).take(100).count();
    assert!((10..20).contains(&count), "{count} entries");
    assert_eq!(subject.state().len(), count, "no entry was evicted");
    let since = ChangesQuery { since: Some(first), ..ChangesQuery::default() };
    assert!(subject.changes(since).is_err(), "changes were");
    assert!(RETENTION.stream.size > count);
}
