//! Tests of durations as people write them.
//! In: texts and durations → out: each other, or why not.
//! Uses proptest for the way back. Never: limits of keys.
//! A spelling is a line of a table.

use std::time::Duration;

use proptest::prelude::*;

use super::{NotADuration, format, parse};

#[test]
fn units_add_up() {
    let check = |text, nanos| assert_eq!(parse(text), Ok(Duration::from_nanos(nanos)), "{text}");
    check("0", 0);
    check("0s", 0);
    check("25s", 25_000_000_000);
    check("300ms", 300_000_000);
    check("1m30s", 90_000_000_000);
    check("1h", 3_600_000_000_000);
    check("1.5h", 5_400_000_000_000);
    check(".5s", 500_000_000);
    check("1.s", 1_000_000_000);
    check("2us3ns", 2_003);
    check("2µs", 2_000);
}

#[test]
fn anything_else_is_no_duration() {
    for text in ["", "25", "s", "25 s", "25S", "1d", "1..5s", ".s", "1s2", "+1s", "∞", "9e9s"] {
        assert_eq!(parse(text), Err(NotADuration::Malformed), "{text}");
    }
    assert_eq!(parse("99999999999h"), Err(NotADuration::Malformed));
    assert_eq!(parse("18446744073709551615h"), Err(NotADuration::Malformed));
}

#[test]
fn less_than_nothing_is_named_as_such() {
    for text in ["-1", "-1s", "-1m30s"] {
        assert_eq!(parse(text), Err(NotADuration::Negative), "{text}");
    }
    for text in ["-", "-x", "--1s", "-5"] {
        assert_eq!(parse(text), Err(NotADuration::Malformed), "{text}");
    }
}

#[test]
fn durations_are_written_with_the_largest_units() {
    let check = |nanos, text| assert_eq!(format(Duration::from_nanos(nanos)), text);
    check(0, "0s");
    check(90_000_000_000, "1m30s");
    check(86_400_000_000_000, "24h");
    check(1_500_000_001, "1s500ms1ns");
}

proptest! {
    #[test]
    fn what_is_written_is_read_back(nanos: u64) {
        let duration = Duration::from_nanos(nanos);
        prop_assert_eq!(parse(&format(duration)), Ok(duration));
    }

    #[test]
    fn no_text_panics(text: String) {
        let _ = parse(&text);
    }

    #[test]
    fn no_text_of_the_right_letters_panics(text in "[-0-9.hmsuµn]{0,24}") {
        let _ = parse(&text);
    }
}
