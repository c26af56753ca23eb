//! Tests of `history`: what is kept, and for how long it can be parsed.
//! Publications → memory and parses.
//! Uses `gap`; what the parses decode to is tested in `tests/it`.
//! Change here: cases of limits.

use super::*;

#[test]
fn a_message_that_is_empty_or_too_long_is_no_publication() {
    let mut history = History::new(1 << 15, 4, 6);
    assert!(history.publish(b"").is_none());
    assert!(history.publish(&[0; History::MESSAGE_BYTES_MAX + 1]).is_none());
    assert!(history.publish(&[0; History::MESSAGE_BYTES_MAX]).is_some());
}

#[test]
fn a_history_that_has_gone_on_parses_no_more() {
    let mut history = History::new(2_000, 4, 6);
    let first = history.publish(&[1; 1_000]).expect("a usual length");
    assert!(history.parse(&first, Depth::Alone).is_some());
    for _ in 0..4 {
        history.publish(&[2; 1_000]).expect("a usual length");
    }
    assert!(history.parse(&first, Depth::Alone).is_none());
}

#[test]
fn memory_is_bounded_by_the_limit_of_bytes() {
    for bytes_max in [1_000, 4_000, 32_768] {
        let mut history = History::new(bytes_max, 4, 6);
        for at in 0..10_000u32 {
            let message = at.to_string().repeat(at as usize % 60 + 1);
            history.publish(message.as_bytes()).expect("a usual length");
        }
        // Bytes and links, which grow by doubling; the table; and where publications start.
        let bytes = bytes_max * 5 / 4 + 400;
        let most = bytes * 2 * 3 + bytes_max * 2 * 2 + bytes * 8;
        assert!(history.memory() <= most, "{} of {most}", history.memory());
    }
}
