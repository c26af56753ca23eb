//! Tests of `streams`: who gives way when memory is short.
//! In: streams that are used or not, evictions → out: whose publications are left.
//! Uses: the streams of one stripe. Never: the broker around them; its bounds are tested in `memory/tests.rs`.
//! Change here: expectations of `streams.rs`.

use std::time::Duration;

use fanwire_protocol::Publication;

use super::*;
use crate::{PublishOptions, Query, Retention};

const RETENTION: Retention =
    Retention { size: 10, ttl: Duration::from_secs(60), meta_ttl: Duration::from_secs(600) };

fn publish(streams: &mut Streams, number: u64, now: Instant) {
    let publication = Publication { data: "1".into(), ..Publication::default() };
    let append = |stream: &mut Stream| {
        stream.append(&publication, &PublishOptions::default(), RETENTION, now);
    };
    streams.with((number, &number.to_string()), now, append);
}

/// How many publications a stream has, without using it.
fn stored(streams: &Streams, number: u64) -> usize {
    let index = streams.find(number, &number.to_string()).expect("it was made and not removed");
    streams.slab[index].stream.read(Query::default()).publications.len()
}

#[test]
fn a_stream_that_is_written_or_read_outlives_those_that_are_not() {
    let now = Instant::now();
    for is_written in [true, false] {
        for (busy, count) in [(0, 50), (20, 50), (49, 50), (0, 2), (1, 2)] {
            let mut streams = Streams::default();
            (0..count).for_each(|number| publish(&mut streams, number, now));
            for evicted in 1..count {
                match is_written {
                    true => publish(&mut streams, busy, now),
                    false => drop(streams.with((busy, &busy.to_string()), now, |_| ())),
                }
                assert!(streams.evict().is_some_and(|bytes| bytes > 0));
                let idle = (0..count).filter(|number| *number != busy);
                let left = idle.filter(|number| stored(&streams, *number) > 0).count() as u64;
                assert_eq!(left, count - 1 - evicted, "{busy} of {count}");
                assert!(stored(&streams, busy) > 0, "{busy} of {count}, evicted {evicted}");
            }
        }
    }
}

#[test]
fn what_was_stored_last_stays_wherever_the_hand_is() {
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
fn where_all_streams_are_in_use_one_is_evicted_all_the_same() {
    let now = Instant::now();
    for count in [1, 2, 1000] {
        let mut streams = Streams::default();
        for _ in 0..10 {
            (0..count).for_each(|number| publish(&mut streams, number, now));
            assert!(streams.evict().is_some_and(|bytes| bytes > 0), "{count}");
            let empty = (0..count).filter(|number| stored(&streams, *number) == 0).count();
            assert_eq!(empty, 1, "{count}");
        }
    }
}
