//! Tests of cursors.
//! In: times and cursors of clients → out: cursors.
//! Pure. Never: the clock.
//! Changed here: how cursors grow.

use std::time::Duration;

use super::cursor_at;

#[test]
fn a_cursor_is_above_that_of_the_client() {
    let at = |seconds: u64, of_client| {
        cursor_at((1_728_432_000 + seconds) * 1000, of_client, Duration::from_secs(61))
    };
    assert_eq!(at(0, None), 0);
    assert_eq!(at(40, None), 2);
    assert_eq!(at(40, Some(1)), 2);
    assert_eq!(at(40, Some(2)), 5, "three intervals of jitter");
    assert_eq!(at(40, Some(u64::MAX)), u64::MAX);
    assert_eq!(cursor_at(0, Some(0), Duration::ZERO), 1, "one interval at least");
}
