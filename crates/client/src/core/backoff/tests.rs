//! Tests of `backoff`: the range of delays and their spread.
//! Seeds and numbers of attempts → delays.
//! Uses only `backoff` and proptest.
//! Changed here: properties of delays.

use proptest::prelude::*;

use super::*;

proptest! {
    #[test]
    fn a_delay_is_within_its_range(seed: u64, attempts: u32, min in 0..500u64, max in 500..60_000u64) {
        let min = Duration::from_millis(min);
        let max = Duration::from_millis(max);
        let delay = Jitter::new(seed).delay(attempts, min, max);
        prop_assert!(min <= delay && delay <= max, "{delay:?}");
    }
}

#[test]
fn delays_spread_over_a_range_that_doubles() {
    let mut jitter = Jitter::new(7);
    let min = Duration::from_millis(200);
    let max = Duration::from_secs(20);
    for attempts in 0..6 {
        let upper = min + min * 2_u32.pow(attempts);
        let delays: Vec<_> = (0..1_000).map(|_| jitter.delay(attempts, min, max)).collect();
        let middle = min + (upper - min) / 2;
        let later = delays.iter().filter(|delay| **delay > middle).count();
        assert!((400..=600).contains(&later), "{later} of 1,000 after {attempts} attempts");
        assert!(delays.iter().all(|delay| *delay <= upper));
    }
}
