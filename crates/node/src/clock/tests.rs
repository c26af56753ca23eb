//! Tests of moments and their relation to instants and Unix time.
//! In: instants before and after the beginning → out: moments, seconds.
//! Uses: nothing but the clock; never waits.
//! What is due when is tested in `tests/it/life.rs` and `tests/it/expiry.rs`.

use super::*;

const UNIX_MS: u64 = 1_800_000_000_500;

#[test]
fn a_moment_counts_from_the_beginning_and_never_below() {
    let base = Instant::now() + Duration::from_secs(60);
    let clock = Clock::new(base, UNIX_MS);
    assert_eq!(clock.moment(base + Duration::from_millis(1_234)), Moment(1_234));
    assert_eq!(clock.moment(base - Duration::from_secs(1)), Moment(0));
    assert_eq!(clock.instant(Moment(1_234)), Some(base + Duration::from_millis(1_234)));
}

#[test]
fn unix_time_follows_the_instants() {
    let base = Instant::now();
    let clock = Clock::new(base, UNIX_MS);
    let later = base + Duration::from_millis(1_500);
    assert_eq!(clock.unix_ms(later), UNIX_MS + 1_500);
    assert_eq!(clock.unix(later), 1_800_000_002);
    assert_eq!(clock.moment_of_unix(1_800_000_002), Moment(1_500));
    assert_eq!(clock.moment_of_unix(7), Moment(0));
}

#[test]
fn synchronising_moves_unix_time_but_no_moment() {
    let base = Instant::now();
    let clock = Clock::new(base, UNIX_MS);
    let later = base + Duration::from_secs(10);
    clock.synchronise(later, UNIX_MS + 3_600_000);
    assert_eq!(clock.moment(later), Moment(10_000));
    assert_eq!(clock.unix_ms(later), UNIX_MS + 3_600_000);
}

#[test]
fn a_duration_is_added_rounded_up_and_saturates() {
    assert_eq!(Moment(5).after(Duration::from_micros(1_001)), Moment(7));
    assert_eq!(Moment(5).after(Duration::MAX), Moment::NEVER);
}
