//! Tests of the bucket: against a jar that counts tokens, and what a user reads in the configuration.
//! In: rates and calls at random times → out: the same answers as the jar's.
//! Uses: proptest, which prints what failed.
//! What is limited by buckets is tested in `tests/it/rates.rs`.

use std::time::Duration;

use proptest::prelude::*;

use super::*;

/// The obvious bucket: tokens in pieces, one more piece with every nanosecond.
struct Jar {
    pieces: u64,
    filled_at: u64,
}

impl Jar {
    fn take(&mut self, rate: Rate, now: u64) -> bool {
        let pieces_per_token = rate.interval.as_nanos() as u64 / u64::from(rate.limit);
        let room = pieces_per_token * u64::from(rate.limit);
        self.pieces = room.min(self.pieces + (now - self.filled_at));
        self.filled_at = now;
        let has_token = self.pieces >= pieces_per_token;
        self.pieces -= if has_token { pieces_per_token } else { 0 };
        has_token
    }
}

proptest! {
    #[test]
    fn a_bucket_answers_as_a_jar_of_tokens_does(
        limit in prop_oneof![1..8u32, 1..=Rate::LIMIT_MAX],
        interval_ms in 1_000..60_000u64,
        pauses in prop::collection::vec(0..100u64, 1..200),
        unit in prop_oneof![Just(1), Just(1_000), Just(50_000_000), Just(1_000_000_000u64)],
    ) {
        let rate = Rate { limit, interval: Duration::from_millis(interval_ms) };
        let (mut bucket, mut now) = (TokenBucket::default(), 0);
        let mut jar = Jar { pieces: u64::MAX / 2, filled_at: 0 };
        for pause in pauses {
            now += pause * unit;
            prop_assert_eq!(bucket.take(rate, now), jar.take(rate, now), "at {}", now);
        }
    }
}

#[test]
fn the_whole_limit_is_there_at_once_and_comes_back_evenly() {
    let rate = Rate { limit: 3, interval: Duration::from_secs(1) };
    let mut bucket = TokenBucket::default();
    let mut taken_at = |ms: u64| (0..10).filter(|_| bucket.take(rate, ms * 1_000_000)).count();
    assert_eq!([0, 333, 334, 999, 1000, 5000].map(&mut taken_at), [3, 0, 1, 1, 1, 3]);
}

#[test]
fn a_debt_is_paid_back_and_has_an_end() {
    let rate = Rate { limit: 10, interval: Duration::from_secs(1) };
    let second = 1_000_000_000;
    let mut bucket = TokenBucket::default();
    bucket.charge(rate, 15, 0);
    assert!(!bucket.take(rate, second / 2), "it is empty after half a second");
    assert!(bucket.take(rate, second / 10 * 6));
    bucket.charge(rate, u32::MAX, second);
    assert_eq!(bucket.until_full(second), 10 * second);
    assert!(!bucket.take(rate, second * 10));
    assert!(bucket.take(rate, second * 11));
}
