//! Tests of how often something is said.
//! In: events of kinds at moments → out: lines, or silence.
//! Uses moments made by hand, no clock.
//! Changed here: expectations of how long and how many.

use super::*;

#[test]
fn what_happens_often_is_said_once_a_minute_by_kind() {
    let (seldom, start) = (LogThrottle::default(), Instant::now());
    let at = |seconds| start + Duration::from_secs(seconds);
    assert_eq!(seldom.happens("a", at(0)), Some(Repeats(1)));
    assert_eq!(seldom.happens("b", at(1)), Some(Repeats(1)), "another kind");
    for seconds in [0, 30, 59] {
        assert_eq!(seldom.happens("a", at(seconds)), None);
    }
    let later = seldom.happens("a", at(60)).expect("a minute later");
    assert_eq!(
        (later, later.to_string().as_str()),
        (Repeats(4), "; 4 cases since this was said last")
    );
    assert_eq!(Repeats(1).to_string(), "");
    let said = (0..1000).filter_map(|kind| seldom.happens(&format!("kind {kind}"), at(60)));
    assert_eq!(said.count(), KINDS_MAX - 2 + 1, "the kinds are bounded");
}
