//! Tests of the counters: buckets, sums, refusals.
//! In: recorded durations. Out: asserted snapshots.
//! Uses private parts of the module; never a clock.
//! That requests are counted at all is tested in `tests/it`.

use super::*;

#[test]
fn a_latency_falls_into_the_first_bucket_that_holds_it() {
    let check = |nanoseconds, bucket| {
        assert_eq!(bucket_of(Duration::from_nanos(nanoseconds)), bucket, "{nanoseconds} ns");
    };
    check(0, 0);
    check(10_000, 0);
    check(10_001, 1);
    check(25_000, 1);
    check(10_000_000_000, 11);
    check(10_000_000_001, 12);
    check(u64::MAX, 12);
}

#[test]
fn calls_errors_and_time_add_up_per_method() {
    let counters = Counters::default();
    counters.record(Method::Publish, Duration::from_micros(3), false);
    counters.record(Method::Publish, Duration::from_micros(30), true);
    counters.record(Method::Info, Duration::from_micros(1), false);

    let publish = counters.of(Method::Publish);
    assert_eq!((publish.calls, publish.errors), (2, 1));
    assert_eq!(publish.time, Duration::from_micros(33));
    assert_eq!((publish.buckets[0], publish.buckets[2]), (1, 1));
    assert_eq!(counters.of(Method::Info).calls, 1);
    assert_eq!(counters.of(Method::Batch).calls, 0);
}

#[test]
fn refusals_are_counted_by_their_reason() {
    let counters = Counters::default();
    counters.record_refusal(RequestErrorKind::Unauthorized);
    counters.record_refusal(RequestErrorKind::TooLarge);
    counters.record_refusal(RequestErrorKind::TooLarge);
    let expect = RequestErrorCounts { unauthorized: 1, malformed: 0, too_large: 2 };
    assert_eq!(counters.refusals(), expect);
}
