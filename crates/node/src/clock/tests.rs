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
    assert_eq!(clock.moment_of_unix(1_800_000_002, Duration::ZERO), Moment(1_500));
    assert_eq!(clock.moment_of_unix(1_799_999_999, Duration::from_secs(2)), Moment(500));
    assert_eq!(clock.moment_of_unix(7, Duration::from_secs(2)), Moment(0));
    assert_eq!(clock.moment_of_unix(7, Duration::MAX), Moment(u64::MAX - UNIX_MS));
}

#[test]
fn synchronising_moves_unix_time_but_no_moment() {
    let base = Instant::now();
    let clock = Clock::new(base, UNIX_MS);
    let later = base + Duration::from_secs(10);
    assert!(clock.synchronise(later, UNIX_MS + 3_600_000));
    assert_eq!(clock.moment(later), Moment(10_000));
    assert_eq!(clock.unix_ms(later), UNIX_MS + 3_600_000);
}

#[test]
fn a_step_is_told_once_and_a_drift_when_it_has_become_a_second() {
    let base = Instant::now();
    let clock = Clock::new(base, UNIX_MS);
    let mut later = base;
    for drift in 1..1_000 {
        later += Duration::from_secs(1);
        assert!(!clock.synchronise(later, UNIX_MS + drift * 1_001), "{drift}");
        assert!(clock.unix_ms(later).abs_diff(UNIX_MS + drift * 1_001) <= 1, "{drift}");
    }
    later += Duration::from_secs(1);
    assert!(clock.synchronise(later, UNIX_MS + 1_001_000));
    assert!(!clock.synchronise(later, UNIX_MS + 1_001_000));
    assert!(clock.synchronise(later, UNIX_MS), "back again");
    assert_eq!(clock.unix_ms(later), UNIX_MS);
}

#[test]
fn a_duration_is_added_rounded_up_and_saturates() {
    assert_eq!(Moment(5).after(Duration::from_micros(1_001)), Moment(7));
    assert_eq!(Moment(5).after(Duration::MAX), Moment::NEVER);
}
