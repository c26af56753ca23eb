//! Tests of the search for a publication in a reply: found, too far back, or behind too many candidates.
//! In: replies → out: positions.
//! Uses nothing but `find`; real replies are in `realtime::frames` and `tests/it`.
//! Changed here: unusual replies.

use super::*;

#[test]
fn the_last_one_is_found() {
    let reply = br#"[{"data":1,"offset":1},{"data":1,"offset":1},{"data":3,"offset":2}]"#;
    assert_eq!(find(reply, br#"{"data":1,"offset":1}"#), Some(23));
    assert_eq!(find(reply, br#"{"data":3,"offset":2}"#), Some(45));
    assert_eq!(find(reply, br#"{"data":4,"offset":2}"#), None);
    assert_eq!(find(reply, reply), Some(0));
}

#[test]
fn what_is_longer_or_very_short_is_not_found() {
    assert_eq!(find(b"", b"12345678"), None);
    assert_eq!(find(b"12345678", b"012345678"), None);
    assert_eq!(find(b"12345678", b"2345678"), None);
    assert_eq!(find(b"12345678", b""), None);
}

#[test]
fn only_what_the_window_can_hold_is_searched() {
    let publication = [b'p'; 100];
    for (behind, at) in [(0, Some(7)), (32_668, Some(7)), (32_669, None)] {
        let reply = [&[b'.'; 7], &publication[..], &vec![b'.'; behind]].concat();
        assert_eq!(find(&reply, &publication), at, "{behind}");
    }
}

#[test]
fn few_places_with_the_same_end_are_compared() {
    let reply = |ends: usize| format!("begin---01234567{}", ".01234567".repeat(ends));
    assert_eq!(find(reply(15).as_bytes(), b"begin---01234567"), Some(0));
    assert_eq!(find(reply(16).as_bytes(), b"begin---01234567"), None);
}
