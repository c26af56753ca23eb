//! Tests of the backoff: it grows to a limit, has jitter, and starts again after a useful connection.
//! In: tries → out: durations.
//! Uses nothing else. Never: timers.
//! A new rule is a test here.

use super::*;

#[test]
fn waiting_grows_to_a_limit_with_jitter() {
    let mut backoff = Backoff::default();
    for whole in [100, 200, 400, 800, 1600, 3200, 5000, 5000] {
        let wait = backoff.next().as_millis();
        assert!((whole / 2..=whole).contains(&wait), "{wait} of {whole}");
    }
    (0..100).for_each(|_| assert!(backoff.next() <= LONGEST));
}

#[test]
fn a_connection_that_lived_is_replaced_at_once() {
    let mut backoff = Backoff::default();
    assert!(backoff.ended(Duration::from_millis(10)), "one that died young");
    backoff.next();
    assert!(!backoff.ended(OF_USE));
    assert!(backoff.next() <= FIRST, "from the beginning");
}
