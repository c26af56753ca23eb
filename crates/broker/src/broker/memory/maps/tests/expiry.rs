//! Tests of expiry: entries, changes and epochs at virtual times.
//! In: changes, sweeps and reads at given seconds → out: removals, positions.
//! Uses: the subject of `tests.rs`. Never: a clock it does not set.
//! Changed here: tests of lifetimes.

use super::*;

#[test]
fn an_entry_expires_with_an_offset_a_place_in_the_stream_and_its_tags() {
    let subject = Subject::new(1 << 20);
    let mut tagged = value("a", "1");
    tagged.publication.tags = [("room".to_owned(), "1".to_owned())].into();
    tagged.publication.time = 1_000_000;
    let first = subject.publish(tagged.clone(), 0).expect("nothing to refuse").position;
    subject.broker.sweep(subject.at(59));
    assert!(subject.removed().is_empty());
    assert_eq!(subject.keys(70), ["a"], "it exists until a sweep");
    subject.broker.sweep(subject.at(70));
    let removal = Publication {
        key: "a".into(),
        removed: true,
        offset: 2,
        tags: tagged.publication.tags,
        time: 1_070_000,
        ..Publication::default()
    };
    assert_eq!(subject.delivered.0.lock()[1], (removal.clone(), first.epoch));
    assert_eq!(subject.changes(first, 70).expect("it is stored").publications, [removal]);
    assert!(subject.keys(70).is_empty());
}

#[test]
fn entries_expire_in_the_order_of_their_deadlines() {
    let subject = Subject::new(1 << 20);
    for (key, at) in [("c", 0), ("a", 1), ("b", 2), ("c", 3)] {
        subject.set(key, at);
    }
    subject.broker.sweep(subject.at(62));
    assert_eq!(subject.removed(), ["a", "b"]);
    subject.broker.sweep(subject.at(63));
    assert_eq!(subject.removed(), ["a", "b", "c"]);
}

#[test]
fn a_refresh_keeps_an_entry_and_its_stream_alive() {
    let subject = Subject::new(1 << 20);
    let refreshes = |refreshes| {
        let key_mode = KeyMode::IfNew { refreshes };
        MapPublish { key_mode, ..value("a", "2") }
    };
    let first = subject.set("a", 0);
    assert_eq!(subject.publish(refreshes(true), 25).expect("suppressed").position, first);
    let before = Position { offset: 0, ..first };
    assert_eq!(subject.changes(before, 54).expect("it is stored").publications.len(), 1);
    assert_eq!(subject.changes(before, 55), Err(PositionLost));
    subject.publish(refreshes(false), 80).expect("suppressed");
    subject.broker.sweep(subject.at(84));
    assert_eq!(subject.keys(84), ["a"]);
    subject.broker.sweep(subject.at(85));
    assert!(subject.keys(85).is_empty());
}

#[test]
fn a_refresh_in_time_wins_against_a_late_sweep() {
    let subject = Subject::new(1 << 20);
    subject.set("a", 0);
    subject.set("a", 61);
    subject.broker.sweep(subject.at(62));
    assert!(subject.removed().is_empty(), "its time was over, but it was set again");
    assert_eq!(subject.keys(62), ["a"]);
}

/// The reference answers this with no changes, and the client misses them.
#[test]
fn a_position_in_a_stream_that_has_expired_is_lost() {
    let subject = Subject::new(1 << 20);
    let first = subject.set("0", 0);
    let last = (1..20).map(|number| subject.set(&number.to_string(), 0)).last();
    let last = last.expect("twenty changes");
    let zero = Position { offset: 0, ..first };
    assert_eq!(subject.changes(zero, 29).expect("all are stored").publications.len(), 20);
    for since in [zero, first] {
        assert_eq!(subject.changes(since, 30), Err(PositionLost));
    }
    let nothing_missed = StreamSlice { top: last, ..StreamSlice::default() };
    assert_eq!(subject.changes(last, 30), Ok(nothing_missed));
    assert_eq!(subject.keys(30).len(), 20, "entries live longer");
}

#[test]
fn an_epoch_ends_after_its_entries_when_nothing_was_published_or_read() {
    let subject = Subject::new(1 << 20);
    let first = subject.set("a", 0);
    subject.broker.sweep(subject.at(60));
    assert_eq!(subject.page(299).top, Position { offset: 2, ..first }, "a read keeps it alive");
    subject.broker.sweep(subject.at(598));
    assert_eq!(subject.page(598).top.offset, 2);
    subject.broker.sweep(subject.at(898));
    assert_eq!(subject.broker.history_bytes(), 0);
    let top = subject.page(898).top;
    assert_eq!(top.offset, 0);
    assert_ne!(top.epoch, first.epoch);
    assert_eq!(subject.set("a", 900), Position { offset: 1, ..top });
}

#[test]
fn a_persistent_map_is_kept_for_ever() {
    let mut subject = Subject::new(1 << 20);
    subject.retention.key_ttl = Duration::ZERO;
    subject.retention.stream.meta_ttl = Duration::ZERO;
    let first = subject.set("a", 0);
    let years = 100 * 365 * 24 * 3600;
    subject.broker.sweep(subject.at(years));
    assert_eq!((subject.keys(years), subject.page(years).top), (vec!["a".to_owned()], first));
    assert_eq!(subject.changes(Position { offset: 0, ..first }, years), Err(PositionLost));
}

#[test]
fn many_entries_of_one_channel_expire_in_a_few_sweeps() {
    let subject = Subject::new(1 << 30);
    let count = SWEEP_STEPS * SWEEP_TURNS + 10;
    for number in 0..count {
        subject.set(&number.to_string(), 0);
    }
    subject.broker.sweep(subject.at(60));
    assert_eq!(subject.removed().len(), count - 10);
    subject.broker.sweep(subject.at(61));
    assert_eq!(subject.removed().len(), count);
    let offsets = subject.delivered.0.lock();
    assert!(offsets.iter().map(|(change, _)| change.offset).eq(1..=2 * count as u64));
}

#[test]
fn another_mode_begins_another_stream_and_keeps_the_entries() {
    let mut subject = Subject::new(1 << 20);
    let first = subject.set("a", 0);
    let stream = mem::take(&mut subject.retention.stream);
    assert_eq!(subject.set("b", 1), Position::default());
    assert_eq!(subject.keys(1), ["a", "b"]);
    assert!(subject.page(1).entries.iter().all(|entry| entry.offset == 0));
    subject.retention.stream = stream;
    let again = subject.set("c", 2);
    assert_eq!((again.offset, subject.keys(2).len()), (1, 3));
    assert_ne!(again.epoch, first.epoch);
}
