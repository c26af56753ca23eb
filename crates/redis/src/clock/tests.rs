//! Tests of the clock: it follows a Redis and ignores round trips.
//! In: instants and made-up times → out: milliseconds.
//! Uses nothing else. Never: sleeps.
//! A new rule of the clock is a test here.

use std::time::Duration;

use super::*;

#[test]
fn a_clock_that_is_off_follows_the_redis() {
    let clock = RedisClock::new();
    let now = Instant::now();
    clock.set(now, 5_000_000);
    assert_eq!(clock.ms(now), 5_000_000);
    assert_eq!(clock.ms(now + Duration::from_millis(7)), 5_000_007);
    clock.set(now, 5_001_000);
    assert_eq!(clock.ms(now), 5_000_000, "a round trip is no step");
    clock.set(now, 4_998_999);
    assert_eq!(clock.ms(now), 4_998_999, "backwards, too");
}
