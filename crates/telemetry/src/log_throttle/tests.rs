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

#[test]
fn ten_thousand_refusals_a_second_are_less_than_a_hundred_lines_a_minute() {
    let (throttle, start) = (LogThrottle::for_refusals(), Instant::now());
    let events = (0..600_000_u64).map(|event| {
        let at = start + Duration::from_micros(100 * event);
        (throttle.record(&format!("kind {}", event % 60), at), at)
    });
    let logged: Vec<_> = events.filter(|(repeats, _)| repeats.is_some()).collect();
    assert_eq!(logged.len(), 6 * REFUSAL_LINES_MAX);
    let counted: u64 = logged.iter().filter_map(|(repeats, _)| *repeats).map(Repeats::count).sum();
    assert!(counted > 100_000, "suppressed refusals are in the next count: {counted}");
}

#[test]
fn a_refusal_of_one_kind_is_logged_every_ten_seconds_with_the_count() {
    let (throttle, start) = (LogThrottle::for_refusals(), Instant::now());
    let counts = (0..25).map(|second| {
        throttle.record("subscribe 103", start + Duration::from_secs(second)).map(Repeats::count)
    });
    let logged: Vec<_> = counts.enumerate().filter(|(_, count)| count.is_some()).collect();
    assert_eq!(logged, [(0, Some(1)), (10, Some(10)), (20, Some(10))]);
}

#[test]
fn the_end_of_a_burst_is_returned_with_its_causes_and_who_had_most() {
    let (throttle, start) = (LogThrottle::for_refusals(), Instant::now());
    let at = |seconds| start + Duration::from_secs(seconds);
    let event = |cause, user| RefusalEvent {
        kind: "subscribe 103",
        cause,
        user,
        address: Some(IpAddr::from([10, 0, 0, 1])),
    };
    assert_eq!(throttle.record_event(event("no permission", "7"), at(0)), Some(Repeats(1)));
    for _ in 0..38 {
        assert_eq!(throttle.record_event(event("no permission", "42"), at(1)), None);
    }
    let other = throttle.record_event(event("no such namespace", "7"), at(2));
    assert_eq!(other, Some(Repeats(39)), "a second cause is not hidden");
    assert_eq!(throttle.record_event(event("no such namespace", "7"), at(2)), None);
    assert!(throttle.ended(at(9)).is_empty());
    let ended = Burst {
        kind: "subscribe 103".to_owned(),
        count: 1,
        causes: "no permission (39), no such namespace (2)".to_owned(),
        users: "42 (38), 7 (3)".to_owned(),
        addresses: "10.0.0.1 (41)".to_owned(),
    };
    assert_eq!(throttle.ended(at(10)), [ended]);
    assert!(throttle.ended(at(30)).is_empty());
}

#[test]
fn names_of_a_burst_are_bounded_and_the_frequent_ones_stay() {
    let (throttle, now) = (LogThrottle::for_refusals(), Instant::now());
    for number in 0..10_000 {
        let user = if number % 4 == 0 { "often".to_owned() } else { format!("user {number}") };
        throttle
            .record_event(RefusalEvent { kind: "a", user: &user, ..RefusalEvent::default() }, now);
    }
    let ended = throttle.ended(now + Duration::from_secs(10));
    assert!(ended[0].users.starts_with("often ("), "{ended:?}");
    assert_eq!(ended[0].count, 9_999);
}
