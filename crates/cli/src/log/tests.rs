//! Tests of the times that `fanwire log` takes, and of its lines.
//! In: times as users write them, logs → out: asserted ranges and lines.
//! Uses fixed times. Never: files; `tests/it/log.rs` has them.
//! Changed here: tests of the form of lines and times.

use fanwire_node::questions::{ConnectionLogRecord, LoggedEvent};

use super::*;

/// 2030-01-31T09:00:00Z
const NOW: u64 = 1_896_080_400_000;

#[test]
fn a_time_may_lack_its_date_its_seconds_and_its_zone() {
    let check = |text: &str, expected: &str| {
        let range = around(text, NOW).expect(text);
        let at = parse_rfc3339(expected).expect(expected);
        assert_eq!(range, at - AROUND_MS..=at + AROUND_MS, "{text}");
    };
    check("03:12", "2030-01-31T03:12:00Z");
    check("03:12:05", "2030-01-31T03:12:05Z");
    check("09:00", "2030-01-31T09:00:00Z");
    check("09:01", "2030-01-30T09:01:00Z");
    check("23:59Z", "2030-01-30T23:59:00Z");
    check("00:30+01:00", "2030-01-30T23:30:00Z");
    check("2030-01-29T03:12", "2030-01-29T03:12:00Z");
    check("2030-01-29 03:12", "2030-01-29T03:12:00Z");
    check("2030-01-29T03:12:00.5-02:00", "2030-01-29T05:12:00.5Z");
    assert_eq!(around("00:00", 0).expect("a time"), 0..=AROUND_MS);
    for wrong in [
        "",
        "3:12",
        "25:00",
        "03:12 UTC",
        "yesterday",
        "2030-01-31",
        "T03:12+",
        "03:12:00:00",
        "2030-02-30T00:00Z",
        "ä:ö+",
    ] {
        let error = around(wrong, NOW).expect_err(wrong).to_string();
        assert!(error.contains(&format!("--at is {wrong:?}, expected 03:12")), "{error}");
    }
}

#[test]
fn lines_have_the_names_of_connection_log_and_nothing_that_steers_a_terminal() {
    let event = |name: &str, count, text: &str| LoggedEvent {
        at_ms: NOW + 61_007,
        name: name.to_owned(),
        count,
        text: text.to_owned(),
        detail: "5.0".to_owned(),
        ..LoggedEvent::default()
    };
    let record = ConnectionLogRecord {
        client: "5b1c".to_owned(),
        user: "42".to_owned(),
        address: "192.0.2.7".to_owned(),
        transport: "websocket".to_owned(),
        opened_ms: NOW,
        ended_ms: NOW + 90_000,
        ping_ms: Some(30),
        events: vec![event("connect", 1, "js"), event("subscribe", 3, "evil\u{1b}[2J\u{9b}\"\n")],
    };
    let text = text(&ConnectionLog::new("red", record));
    let lines: Vec<&str> = text.lines().collect();
    let first = "Thu, 31 Jan 2030 09:00:00 GMT to Thu, 31 Jan 2030 09:01:30 GMT address=\"192.0.2.7\" client=\"5b1c\" \
                 node=\"red\" ping_ms=30 transport=\"websocket\" user=\"42\"";
    let connect = "  09:01:01.007 connect app=\"js 5.0\" count=1";
    let subscribe = "  09:01:01.007 subscribe channel=\"evil\\u001b[2J\u{fffd}\\\"\\n\" count=3";
    assert_eq!(lines, [first, connect, subscribe]);
}
