//! Tests of `streams`: which stream is evicted first.
//! In: streams that are used or not, evictions → out: the streams that still have publications.
//! Uses: the streams of one stripe. Never: the broker around them; its bounds are tested in `memory/tests.rs`.
//! Changed here: expectations of `streams.rs`.

use std::time::Duration;

use fanwire_protocol::Publication;

use super::*;
use crate::{PublishOptions, Query, Retention};

const RETENTION: Retention =
    Retention { size: 10, ttl: Duration::from_secs(60), meta_ttl: Duration::from_secs(600) };

fn channel(hash: u64, name: &str) -> HashedChannel<'_> {
    HashedChannel { hash, name }
}

fn publish(streams: &mut Streams, number: u64, now: Instant) {
    let publication = Publication { data: "1".into(), ..Publication::default() };
    let append = |stream: &mut Stream| {
        stream.append(&publication, &PublishOptions::default(), RETENTION, now);
    };
    streams.with(channel(number, &number.to_string()), now, append);
}

/// The number of publications of a stream, read without marking it as used.
fn stored(streams: &Streams, number: u64) -> usize {
    let Some(index) = streams.find(channel(number, &number.to_string())) else { return 0 };
    streams.slab[index].stream.read(Query::default()).publications.len()
}

/// Evicts until one more stream has lost its publications; empty streams may be removed first.
fn evict_one(streams: &mut Streams, count: u64) {
    let full = |streams: &Streams| (0..count).filter(|one| stored(streams, *one) > 0).count();
    let before = full(streams);
    while full(streams) == before {
        assert!(streams.evict().is_some_and(|bytes| bytes > 0));
    }
}

#[test]
fn a_used_stream_is_evicted_after_unused_ones() {
    let now = Instant::now();
    for is_written in [true, false] {
        for (busy, count) in [(0, 50), (20, 50), (49, 50), (0, 2), (1, 2)] {
            let mut streams = Streams::default();
            (0..count).for_each(|number| publish(&mut streams, number, now));
            for evicted in 1..count {
                if is_written {
                    publish(&mut streams, busy, now);
                } else {
                    streams.with(channel(busy, &busy.to_string()), now, |_| ());
                }
                evict_one(&mut streams, count);
                let idle = (0..count).filter(|number| *number != busy);
                let left = idle.filter(|number| stored(&streams, *number) > 0).count() as u64;
                assert_eq!(left, count - 1 - evicted, "{busy} of {count}");
                assert!(stored(&streams, busy) > 0, "{busy} of {count}, evicted {evicted}");
            }
        }
    }
}

#[test]
fn the_newest_stream_stays_at_every_position_of_the_hand() {
    let (mut streams, now) = (Streams::default(), Instant::now());
    for number in 0..1000 {
        publish(&mut streams, number, now);
        if number > 10 {
            streams.evict();
        }
        assert_eq!(stored(&streams, number), 1, "{number}");
    }
}

#[test]
fn one_stream_is_evicted_even_if_all_are_used() {
    let now = Instant::now();
    for count in [1, 2, 1000] {
        let mut streams = Streams::default();
        for _ in 0..10 {
            (0..count).for_each(|number| publish(&mut streams, number, now));
            evict_one(&mut streams, count);
            let empty = (0..count).filter(|number| stored(&streams, *number) == 0).count();
            assert_eq!(empty, 1, "{count}");
        }
    }
}

#[test]
fn streams_without_publications_are_evicted_first() {
    let (mut streams, start) = (Streams::default(), Instant::now());
    let later = start + RETENTION.ttl;
    (0..100).for_each(|number| publish(&mut streams, number, start));
    streams.sweep(60, later); // the others expire when they are read
    (60..100)
        .for_each(|number| streams.with(channel(number, &number.to_string()), later, |_| ()).0);
    (100..120).for_each(|number| publish(&mut streams, number, later));
    for gone in 1..=100 {
        assert!(streams.evict().is_some_and(|bytes| bytes > 0));
        assert_eq!(streams.slab.len(), 120 - gone);
    }
    assert!((100..120).all(|number| stored(&streams, number) == 1));
    assert!(streams.evict().is_some_and(|bytes| bytes > 0), "then one of those");
    assert_eq!((100..120).filter(|number| stored(&streams, *number) == 1).count(), 19);
}

#[test]
fn a_stream_that_is_published_to_again_is_no_longer_empty() {
    let (mut streams, now) = (Streams::default(), Instant::now());
    (0..50).for_each(|number| publish(&mut streams, number, now));
    (0..50).for_each(|number| assert!(streams.clear(channel(number, &number.to_string())) > 0));
    (0..50).step_by(2).for_each(|number| publish(&mut streams, number, now));
    for _ in 0..25 {
        assert!(streams.evict().is_some_and(|bytes| bytes > 0));
    }
    assert_eq!(streams.slab.len(), 25);
    assert!((0..50).step_by(2).all(|number| stored(&streams, number) == 1));
}
