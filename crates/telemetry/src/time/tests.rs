//! Tests of times.
//! In: texts → out: Unix times.
//! Uses proptest. Never: the clock.
//! Changed here: tests of which texts are times.

use proptest::prelude::*;

use super::parse_rfc3339;

#[test]
fn a_time_has_a_date_a_time_and_a_zone() {
    let check = |text: &str, seconds: u64, milliseconds: u64| {
        assert_eq!(parse_rfc3339(text), Some(seconds * 1000 + milliseconds), "{text}");
    };
    check("1970-01-01T00:00:00Z", 0, 0);
    check("2024-10-09T00:00:00Z", 1_728_432_000, 0);
    check("2024-02-29t23:59:60.5z", 1_709_251_200, 500);
    check("2030-01-31T12:00:00.123456+05:30", 1_896_071_400, 123);
    check("2000-03-01T00:00:00-00:00", 951_868_800, 0);
    check("1969-01-01T00:00:00Z", 0, 0);
    for wrong in [
        "",
        "not-a-date",
        "2030-01-31",
        "2030-01-31T12:00:00",
        "2030-13-01T00:00:00Z",
        "2030-00-01T00:00:00Z",
        "2030-02-29T00:00:00Z",
        "2030-01-31T24:00:00Z",
        "2030-01-31T12:00:00.Z",
        "2030-01-31T12:00:00+5:30",
        "2030-01-31T12:00:00.5",
        "2030-1-31T12:00:00Z",
        "2030/01/31T12:00:00Z",
        "+030-01-31T12:00:00Z",
    ] {
        assert_eq!(parse_rfc3339(wrong), None, "{wrong:?}");
    }
}

proptest! {
    #[test]
    fn no_text_panics(text in "\\PC*", digits in "[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:.Z+-]{0,20}") {
        let _ = (parse_rfc3339(&text), parse_rfc3339(&digits));
    }
}
