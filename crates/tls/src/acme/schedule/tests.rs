//! Tests of the schedule: what is due, and how long attempts wait.
//! In: certificates, failures, times → out: names and durations.
//! Uses made-up times. Never: the clock.
//! A rule about attempts is a test here.

use super::*;

const NOW: SystemTime = SystemTime::UNIX_EPOCH;
const MINUTE: Duration = Duration::from_secs(60);
const DAY: Duration = Duration::from_secs(24 * 3600);

fn now() -> SystemTime {
    NOW + 20_000 * DAY
}

fn valid_for(life: Duration) -> Validity {
    Validity { not_before: now(), not_after: now() + life }
}

fn schedule(names: &[&str], challenges: &'static [ChallengeKind]) -> OrderSchedule {
    OrderSchedule::new(names.iter().map(|name| Arc::from(*name)), challenges)
}

const ONE: &[ChallengeKind] = &[ChallengeKind::TlsAlpn];
const TWO: &[ChallengeKind] = &[ChallengeKind::TlsAlpn, ChallengeKind::Http];

fn name_due(schedule: &OrderSchedule, now: SystemTime) -> Option<String> {
    schedule.poll_order(now).map(|due| due.name.to_string())
}

fn failed(kind: FailureKind) -> OrderFailure {
    OrderFailure { kind, retry_after: None }
}

/// The minutes of the first attempts when each of them fails.
fn attempts(
    challenges: &'static [ChallengeKind],
    failure: FailureKind,
    count: usize,
) -> Vec<(u64, ChallengeKind)> {
    let mut schedule = schedule(&["a"], challenges);
    let mut time = now();
    let mut attempts = Vec::new();
    for _ in 0..count {
        time += schedule.time_to_wait(time);
        let due = schedule.poll_order(time).expect("the time to wait has passed");
        attempts.push((time.duration_since(now()).expect("later").as_secs() / 60, due.challenge));
        schedule.handle_failure("a", failed(failure), time, 0.0);
    }
    attempts
}

#[test]
fn names_without_a_certificate_are_due_at_once_in_their_order() {
    let mut schedule = schedule(&["a", "b"], ONE);
    assert_eq!(name_due(&schedule, now()), Some("a".to_owned()));
    schedule.handle_issued("a", valid_for(90 * DAY), now(), 0.0);
    assert_eq!(name_due(&schedule, now()), Some("b".to_owned()));
    schedule.handle_issued("b", valid_for(90 * DAY), now(), 0.0);
    assert_eq!(name_due(&schedule, now()), None);
}

#[test]
fn a_certificate_of_the_cache_makes_no_order_until_its_renewal() {
    let mut schedule = schedule(&["a"], ONE);
    schedule.handle_cached("a", valid_for(90 * DAY), 0.0);
    assert_eq!(schedule.time_to_wait(now()), 60 * DAY);
    assert_eq!(name_due(&schedule, now() + 60 * DAY - MINUTE), None);
    assert_eq!(name_due(&schedule, now() + 60 * DAY), Some("a".to_owned()));
}

#[test]
fn an_expired_certificate_of_the_cache_is_due_at_once() {
    let mut schedule = schedule(&["a"], ONE);
    schedule.handle_cached("a", valid_for(DAY), 0.0);
    assert_eq!(name_due(&schedule, now() + 2 * DAY), Some("a".to_owned()));
}

#[test]
fn an_issued_certificate_that_is_old_already_is_renewed_an_hour_later() {
    let mut schedule = schedule(&["a"], ONE);
    let later = now() + 100 * DAY;
    let renew_at = schedule.handle_issued("a", valid_for(90 * DAY), later, 0.0);
    assert_eq!(renew_at, later + RETRY_MAX);
    assert_eq!(schedule.time_to_wait(later), RETRY_MAX);
}

#[test]
fn five_refused_orders_are_made_in_the_first_hour() {
    let minutes = attempts(ONE, FailureKind::Refused, 8).into_iter().map(|(minute, _)| minute);
    assert_eq!(minutes.collect::<Vec<_>>(), [0, 4, 12, 28, 60, 120, 180, 240]);
}

#[test]
fn the_other_challenge_is_tried_at_once_and_then_in_turn() {
    let expect = [(0, TWO[0]), (0, TWO[1]), (4, TWO[0]), (12, TWO[1]), (28, TWO[0]), (60, TWO[1])];
    assert_eq!(attempts(TWO, FailureKind::Challenge, 6), expect);
    let refused = attempts(TWO, FailureKind::Refused, 3);
    assert_eq!(refused, [(0, TWO[0]), (4, TWO[0]), (12, TWO[0])]);
}

#[test]
fn the_challenge_that_worked_is_used_for_renewals() {
    let mut schedule = schedule(&["a"], TWO);
    schedule.handle_failure("a", failed(FailureKind::Challenge), now(), 0.0);
    schedule.handle_issued("a", valid_for(90 * DAY), now(), 0.0);
    let due = schedule.poll_order(now() + 60 * DAY).expect("it is to be renewed");
    assert_eq!(due.challenge, ChallengeKind::Http);
}

#[test]
fn an_authority_that_does_not_answer_is_asked_again_soon_and_hourly_at_last() {
    let mut schedule = schedule(&["a"], ONE);
    let mut wait = || schedule.handle_failure("a", failed(FailureKind::Authority), now(), 0.0);
    let waits: Vec<u64> = (0..10).map(|_| wait().as_secs()).collect();
    assert_eq!(waits, [15, 30, 60, 120, 240, 480, 960, 1920, 3600, 3600]);
    for _ in 0..100 {
        assert_eq!(wait(), RETRY_MAX);
    }
}

#[test]
fn an_issued_certificate_ends_the_backoff() {
    let mut schedule = schedule(&["a"], ONE);
    let fail = |schedule: &mut OrderSchedule| {
        schedule.handle_failure("a", failed(FailureKind::Authority), now(), 0.0)
    };
    for _ in 0..5 {
        fail(&mut schedule);
    }
    schedule.handle_issued("a", valid_for(90 * DAY), now(), 0.0);
    assert_eq!(fail(&mut schedule), Duration::from_secs(15));
}

#[test]
fn the_time_that_the_authority_asks_for_is_the_least_and_a_day_at_most() {
    let mut schedule = schedule(&["a"], ONE);
    let mut wait = |retry_after| {
        let retry_after = Some(retry_after);
        let failure = OrderFailure { kind: FailureKind::Refused, retry_after };
        schedule.handle_failure("a", failure, now(), 0.0)
    };
    assert_eq!(wait(Duration::from_secs(1)), 4 * MINUTE);
    assert_eq!(wait(90 * MINUTE), 90 * MINUTE);
    assert_eq!(wait(1000 * DAY), RETRY_AFTER_MAX);
}

#[test]
fn jitter_adds_up_to_a_quarter_of_a_wait() {
    let mut schedule = schedule(&["a"], ONE);
    let wait = schedule.handle_failure("a", failed(FailureKind::Refused), now(), 1.0);
    assert_eq!(wait, 5 * MINUTE);
}

#[test]
fn a_name_that_fails_does_not_delay_the_others() {
    let mut schedule = schedule(&["a", "b"], ONE);
    schedule.handle_failure("a", failed(FailureKind::Refused), now(), 0.0);
    assert_eq!(name_due(&schedule, now()), Some("b".to_owned()));
    schedule.handle_issued("b", valid_for(90 * DAY), now(), 0.0);
    assert_eq!(name_due(&schedule, now() + 4 * MINUTE), Some("a".to_owned()));
}

#[test]
fn a_name_outside_the_list_changes_nothing() {
    let mut schedule = schedule(&["a"], ONE);
    schedule.handle_cached("b", valid_for(DAY), 0.0);
    schedule.handle_failure("b", failed(FailureKind::Refused), now(), 0.0);
    assert_eq!(name_due(&schedule, now()), Some("a".to_owned()));
}
