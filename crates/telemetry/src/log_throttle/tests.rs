//! Tests of the throttle.
//! In: events of kinds at moments → out: counts to log, or none.
//! Uses moments made by hand, no clock.
//! Changed here: expectations of how long and how many.

use super::*;

#[test]
fn frequent_events_are_logged_once_a_minute_by_kind() {
    let (throttle, start) = (LogThrottle::default(), Instant::now());
    let at = |seconds| start + Duration::from_secs(seconds);
    assert_eq!(throttle.record("a", at(0)), Some(Repeats(1)));
    assert_eq!(throttle.record("b", at(1)), Some(Repeats(1)), "another kind");
    for seconds in [0, 30, 59] {
        assert_eq!(throttle.record("a", at(seconds)), None);
    }
    let later = throttle.record("a", at(60)).expect("a minute later");
    assert_eq!(
        (later, later.to_string().as_str()),
        (Repeats(4), "; 4 times since this was last logged")
    );
    assert_eq!(Repeats(1).to_string(), "");
    let logged = (0..1000).filter_map(|kind| throttle.record(&format!("kind {kind}"), at(60)));
    assert_eq!(logged.count(), KINDS_MAX - 2 + 1, "the kinds are bounded");
}
