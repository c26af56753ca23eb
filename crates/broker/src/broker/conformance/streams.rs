//! The promises of every broker about history: offsets, epochs, queries, versions, removal (protocol §9, server API §6).
//! In: a function that makes a broker in front of a recorder → out: a panic that names the broken promise.
//! Uses: the recorder of `conformance.rs`. Never: expiry, because some brokers use their own clock.
//! Changed here: the promises about streams. Expiry is tested next to each broker.

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::{MakeBroker, THREADS, in_threads, numbered, pair, start};
use crate::{Broker, Epoch, Position, PublishOptions, Query, Retention, StreamSlice};

pub(super) fn check(make: MakeBroker<'_>) {
    offsets_count_from_one_and_arrive_with_the_publications(make);
    offsets_have_the_order_of_delivery_with_many_publishers(make);
    a_stream_keeps_the_newest_publications(make);
    a_read_begins_after_or_before_an_offset(make);
    a_read_returns_no_more_than_its_limit(make);
    skipped_publications_have_no_offset(make);
    without_retention_there_is_no_stream(make);
    removal_keeps_offset_and_epoch(make);
    the_first_publication_keeps_the_epoch_that_was_read_before(make);
    an_older_version_is_not_published(make);
    a_version_counts_within_its_epoch(make);
    a_repeated_key_returns_the_position_of_the_first_publication(make);
}

const KEPT: usize = 5;

fn retention() -> Retention {
    Retention { size: KEPT, ttl: Duration::from_secs(600), meta_ttl: Duration::from_secs(6000) }
}

fn put(broker: &dyn Broker, number: usize, options: &PublishOptions) -> Position {
    let publication = numbered(0, number);
    let published = broker.publish("a", publication, options, retention(), Instant::now());
    published.wait().expect("the broker is available")
}

fn put_plain(broker: &dyn Broker, number: usize) -> Position {
    put(broker, number, &PublishOptions::default())
}

fn put_many(broker: &dyn Broker, count: usize) {
    for number in 0..count {
        put_plain(broker, number);
    }
}

fn read(broker: &dyn Broker, query: Query) -> StreamSlice {
    let slice = broker.history("a", query, retention(), Instant::now());
    slice.wait().expect("the broker is available")
}

/// The offsets of a read. Asserts that each payload belongs to its offset: number 0 has offset 1 and so on.
fn offsets(broker: &dyn Broker, query: Query) -> Vec<u64> {
    let slice = read(broker, query);
    for publication in &slice.publications {
        let number = pair(&publication.data).expect("made by numbered").1;
        assert_eq!(number as u64 + 1, publication.offset, "the right payload");
    }
    slice.publications.iter().map(|publication| publication.offset).collect()
}

/// A broker whose channel holds the offsets 3 to 7.
fn trimmed(make: MakeBroker<'_>) -> Arc<dyn Broker> {
    let (_, broker) = start(make, &["a"]);
    put_many(&*broker, 7);
    broker
}

fn offsets_count_from_one_and_arrive_with_the_publications(make: MakeBroker<'_>) {
    let (recorder, broker) = start(make, &["a"]);
    let returned: Vec<_> = (0..3).map(|number| put_plain(&*broker, number)).collect();
    assert_eq!(returned.iter().map(|position| position.offset).collect::<Vec<_>>(), [1, 2, 3]);
    assert!(returned.iter().all(|position| position.epoch == returned[0].epoch));
    assert_ne!(returned[0].epoch, Epoch::NONE);
    recorder.wait_for(3);
    assert_eq!(recorder.positions(), returned);
}

fn offsets_have_the_order_of_delivery_with_many_publishers(make: MakeBroker<'_>) {
    let (recorder, broker) = start(make, &["a"]);
    in_threads(|_| put_many(&*broker, 50));
    let arrived = recorder.wait_for(THREADS * 50);
    let offsets = arrived.iter().map(|(_, publication)| publication.offset);
    assert!(offsets.eq(1..=THREADS as u64 * 50), "each offset once, in order");
}

fn a_stream_keeps_the_newest_publications(make: MakeBroker<'_>) {
    let broker = trimmed(make);
    assert_eq!(offsets(&*broker, Query::default()), [3, 4, 5, 6, 7]);
    assert_eq!(offsets(&*broker, Query { reverse: true, ..Query::default() }), [7, 6, 5, 4, 3]);
    assert_eq!(read(&*broker, Query::TOP).top.offset, 7);
}

fn a_read_begins_after_or_before_an_offset(make: MakeBroker<'_>) {
    let broker = trimmed(make);
    let rows: [(u64, &[u64], &[u64]); 8] = [
        (0, &[3, 4, 5, 6, 7], &[]),
        (1, &[3, 4, 5, 6, 7], &[]),
        (2, &[3, 4, 5, 6, 7], &[]),
        (3, &[4, 5, 6, 7], &[]),
        (5, &[6, 7], &[4, 3]),
        (7, &[], &[6, 5, 4, 3]),
        (8, &[], &[7, 6, 5, 4, 3]),
        (u64::MAX, &[], &[7, 6, 5, 4, 3]),
    ];
    for (since, after, before) in rows {
        let query = Query { since: Some(since), ..Query::default() };
        assert_eq!(offsets(&*broker, query), after, "after {since}");
        assert_eq!(offsets(&*broker, Query { reverse: true, ..query }), before, "before {since}");
    }
}

fn a_read_returns_no_more_than_its_limit(make: MakeBroker<'_>) {
    let broker = trimmed(make);
    let query = Query { limit: Some(2), since: Some(3), reverse: false };
    assert_eq!(offsets(&*broker, query), [4, 5]);
    assert_eq!(offsets(&*broker, Query { since: None, reverse: true, ..query }), [7, 6]);
    assert_eq!(offsets(&*broker, Query { limit: Some(100), ..query }), [4, 5, 6, 7]);
    assert_eq!(offsets(&*broker, Query::TOP), [0; 0]);
}

fn skipped_publications_have_no_offset(make: MakeBroker<'_>) {
    let (recorder, broker) = start(make, &["a"]);
    let first = put_plain(&*broker, 0);
    let skip = PublishOptions { skip_history: true, ..PublishOptions::default() };
    assert_eq!(put(&*broker, 7, &skip), Position::default());
    let second = put_plain(&*broker, 1);
    assert_eq!(second, Position { offset: 2, ..first });
    recorder.wait_for(3);
    assert_eq!(
        recorder.positions(),
        [first, Position::default(), second],
        "also the skipped one is delivered"
    );
    assert_eq!(offsets(&*broker, Query::default()), [1, 2]);
}

fn without_retention_there_is_no_stream(make: MakeBroker<'_>) {
    let (_, broker) = start(make, &["a"]);
    let none = Retention::default();
    let now = Instant::now();
    let published = broker.publish("a", numbered(0, 0), &PublishOptions::default(), none, now);
    assert_eq!(published.wait(), Ok(Position::default()));
    assert_eq!(broker.history("a", Query::default(), none, now).wait(), Ok(StreamSlice::default()));
}

fn removal_keeps_offset_and_epoch(make: MakeBroker<'_>) {
    let broker = trimmed(make);
    let top = read(&*broker, Query::TOP).top;
    broker.remove_history("a", Instant::now()).wait().expect("the broker is available");
    assert_eq!(read(&*broker, Query::default()), StreamSlice { top, ..StreamSlice::default() });
    assert_eq!(put_plain(&*broker, 7), Position { offset: 8, ..top });
    assert_eq!(offsets(&*broker, Query::default()), [8]);
    broker.remove_history("never published to", Instant::now()).wait().expect("nothing to do");
}

fn the_first_publication_keeps_the_epoch_that_was_read_before(make: MakeBroker<'_>) {
    let (_, broker) = start(make, &["a"]);
    let top = read(&*broker, Query::default()).top;
    assert_eq!(top.offset, 0);
    assert_ne!(top.epoch, Epoch::NONE);
    assert_eq!(read(&*broker, Query::TOP).top, top);
    assert_eq!(put_plain(&*broker, 0), Position { offset: 1, ..top });
}

fn versioned(version: u64, version_epoch: &str) -> PublishOptions {
    let version_epoch = version_epoch.to_owned();
    PublishOptions { version, version_epoch, ..PublishOptions::default() }
}

/// The offset after publishing each version.
fn offsets_of_versions(make: MakeBroker<'_>, versions: &[(u64, &str)]) -> Vec<u64> {
    let (recorder, broker) = start(make, &["a"]);
    let offsets: Vec<u64> = (versions.iter())
        .map(|(version, epoch)| put(&*broker, 0, &versioned(*version, epoch)).offset)
        .collect();
    let published = *offsets.last().expect("some versions") as usize;
    assert_eq!(recorder.wait_for(published).len(), published, "dropped publications do not arrive");
    offsets
}

fn an_older_version_is_not_published(make: MakeBroker<'_>) {
    let versions = [(5, ""), (5, ""), (4, ""), (0, ""), (5, ""), (6, "")];
    assert_eq!(offsets_of_versions(make, &versions), [1, 1, 1, 2, 2, 3]);
}

fn a_version_counts_within_its_epoch(make: MakeBroker<'_>) {
    let versions = [(5, "x"), (4, "x"), (4, ""), (1, "y"), (5, "x"), (1, "y")];
    assert_eq!(offsets_of_versions(make, &versions), [1, 1, 1, 2, 3, 4]);
}

fn a_repeated_key_returns_the_position_of_the_first_publication(make: MakeBroker<'_>) {
    let (_, broker) = start(make, &["a"]);
    let keyed = PublishOptions { idempotency_key: "key".into(), ..PublishOptions::default() };
    let first = put(&*broker, 0, &keyed);
    let second = put_plain(&*broker, 1);
    assert_eq!(put(&*broker, 2, &keyed), first);
    assert_eq!(second.offset, 2);
    assert_eq!(offsets(&*broker, Query::default()), [1, 2]);
}
