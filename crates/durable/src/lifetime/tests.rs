//! Tests of lifetimes: numbers of seconds, times of RFC 3339.
//! In: texts of headers → out: lifetimes, or refusals.
//! Pure. Never: the clock.
//! Changed here: which texts are lifetimes.

use super::StreamLifetime;

#[test]
fn a_window_is_a_plain_number_of_seconds() {
    for (text, seconds) in [("0", 0), ("3600", 3600), ("18446744073709551615", u64::MAX)] {
        let parsed = StreamLifetime::parse(Some(text), None);
        assert_eq!(parsed, Ok(StreamLifetime::Window(seconds)));
        assert!(parsed.unwrap().expires_at_ms(1).is_some_and(|at| at > 0), "no overflow");
    }
    for wrong in ["", "-1", "+60", "00060", "60.5", "1e3", "abc", " 60", "18446744073709551616"] {
        assert!(StreamLifetime::parse(Some(wrong), None).is_err(), "{wrong:?}");
    }
    assert!(StreamLifetime::parse(Some("60"), Some("2030-01-31T12:00:00Z")).is_err());
}
