//! Tests of the memory of maps: what is counted, what gives way, what is refused.
//! In: changes of many channels in little memory → out: bytes, refusals.
//! Uses: the subject of `tests.rs`. Never: a clock it does not set.
//! Changed here: tests of limits in bytes.

use super::*;
use crate::{PublishOptions, Query};

const MEGABYTE: usize = 1 << 20;

fn publish(subject: &Subject, channel: &str, number: usize) -> Result<MapOutcome, MapError> {
    let publish = value(&number.to_string(), &"x".repeat(1000));
    let channel = subject.channel(channel);
    let answer = MapBroker::publish(&subject.broker, channel, publish, subject.start);
    answer.wait().expect("memory is available")
}

#[test]
fn the_memory_of_maps_is_counted_and_given_back() {
    let subject = Subject::new(MEGABYTE);
    assert_eq!(subject.broker.history_bytes(), 0);
    for number in 0..100 {
        publish(&subject, &format!("channel {}", number % 7), number).expect("it fits");
    }
    let held = subject.broker.history_bytes();
    assert!((200_000..400_000).contains(&held), "{held}: 100 values, in entries and changes");
    let mut visited = 0;
    subject.broker.visit_histories(&mut |_, bytes| visited += bytes);
    assert_eq!(visited, held);
    subject.broker.clear(subject.channel("channel 0"), subject.start).wait().expect("available");
    assert!(subject.broker.history_bytes() < held);
    for at in [60, 90, 400] {
        subject.broker.sweep(subject.at(at));
    }
    assert_eq!(subject.broker.history_bytes(), 0);
    assert_eq!(subject.broker.map_entries_bytes.load(Relaxed), 0);
}

#[test]
fn channels_that_are_only_read_take_no_memory() {
    let subject = Subject::new(MEGABYTE);
    let epoch = |number: usize| {
        let name = format!("channel {number}");
        let query = StateQuery::default();
        let page = subject.broker.read_state(subject.channel(&name), &query, subject.start);
        page.wait().expect("available").expect("any epoch").top.epoch
    };
    (0..1000).for_each(|number| assert_eq!(epoch(number), epoch(number)));
    assert_eq!(subject.broker.history_bytes(), 0);
}

#[test]
fn entries_are_refused_and_never_evicted_when_memory_is_full() {
    let subject = Subject::new(MEGABYTE);
    let mut accepted = 0;
    while publish(&subject, &format!("channel {}", accepted % 50), accepted).is_ok() {
        accepted += 1;
        assert!(accepted < 1000);
    }
    assert!(accepted > 700, "{accepted} entries of 1,000 bytes: their streams have given way");
    let refused = publish(&subject, "channel 0", accepted);
    assert_eq!(refused, Err(MapError::MemoryFull));
    let held = subject.broker.history_bytes();
    assert!(held <= MEGABYTE + 100_000, "{held}");
    let entries = (0..50).map(|number| {
        let name = format!("channel {number}");
        let stats = subject.broker.stats(subject.channel(&name), subject.start);
        stats.wait().expect("available").entries
    });
    assert_eq!(entries.sum::<usize>(), accepted);
    subject.broker.clear(subject.channel("channel 1"), subject.start).wait().expect("available");
    publish(&subject, "channel 0", accepted).expect("there is memory again");
}

#[test]
fn stored_publications_of_streams_give_way_to_entries() {
    let subject = Subject::new(MEGABYTE);
    let retention = subject.retention.stream;
    for number in 0..900 {
        let publication = Publication { data: vec![b'1'; 1000].into(), ..Publication::default() };
        let options = PublishOptions::default();
        let name = format!("stream {number}");
        let broker: &dyn Broker = &subject.broker;
        let published = broker.publish(&name, publication, &options, retention, subject.start);
        published.wait().expect("available");
    }
    let mut accepted = 0;
    while publish(&subject, &format!("channel {}", accepted % 50), accepted).is_ok() {
        accepted += 1;
        if accepted % 10 == 0 {
            subject.broker.sweep(subject.start);
        }
        assert!(accepted < 1000);
    }
    assert!(accepted > 700, "{accepted}");
    let slices = (0..900).map(|number| {
        let name = format!("stream {number}");
        let slice = subject.broker.history(&name, Query::default(), retention, subject.start);
        slice.wait().expect("available").publications.len()
    });
    assert!(slices.sum::<usize>() < 100);
}

#[test]
fn a_map_keeps_its_stream_while_streams_are_evicted() {
    let subject = Subject::new(MEGABYTE);
    let first = subject.set("a", 0);
    let retention = subject.retention.stream;
    for number in 0..3000 {
        let publication = Publication { data: vec![b'1'; 1000].into(), ..Publication::default() };
        let broker: &dyn Broker = &subject.broker;
        let options = PublishOptions::default();
        let name = format!("stream {number}");
        let published = broker.publish(&name, publication, &options, retention, subject.start);
        published.wait().expect("available");
    }
    let changes = subject.changes(Position { offset: 0, ..first }, 0).expect("it is stored");
    assert_eq!(changes.publications.len(), 1);
}
