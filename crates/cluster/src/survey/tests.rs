//! How long a survey waits, and for which nodes.
//! In: states and answers of nodes, the time → out: what was found, and who is missing.
//! Uses: the bus of `tests.rs`. Never: threads, clocks.
//! Changed here: tests of limits of time. What surveys add up is tested in `tests.rs`.

use std::sync::atomic::Ordering::Relaxed;

use fanwire_broker::Answer;

use super::*;
use crate::tests::{CountQuestion, Counts, answer, ask, introduce, node, without};

#[test]
fn a_survey_waits_ten_seconds_for_a_node_that_is_alive_and_then_goes_without_it() {
    let (a, wire) = node("a");
    let now = Instant::now();
    introduce(&a, "b", now);
    wire.ears.store(2, Relaxed);
    let mut answer = ask(&a, &[("news", 2)], now);
    for second in 1..10 {
        let now = now + Duration::from_secs(second);
        introduce(&a, "b", now);
        a.tick(now);
        answer = answer.ready().expect_err("there is time left");
    }
    a.tick(now + SURVEY_TIME);
    assert_eq!(answer.wait(), Ok(without(&[("news", 2)], "b")));
    assert!(a.table.lock().surveys.is_empty());
}

#[test]
fn a_survey_waits_a_second_for_a_node_that_gave_no_sign_of_life_lately() {
    let (a, wire) = node("a");
    let start = Instant::now();
    introduce(&a, "b", start);
    wire.ears.store(2, Relaxed); // the bus does not know yet that b is gone
    for asked_after in [0, 2, 4, 5, 7] {
        let now = start + Duration::from_secs(asked_after);
        let answer = ask(&a, &[], now);
        let until = (now + SILENT_NODE_TIME).max(start + SIGN_OF_LIFE_TIME);
        a.tick(until - Duration::from_millis(1));
        let answer = answer.ready().expect_err("there is time left");
        a.tick(until);
        assert_eq!(answer.wait(), Ok(without(&[], "b")), "after {asked_after} s");
    }
}

#[test]
fn a_survey_ends_with_the_last_answer_of_those_that_the_bus_reached() {
    let (a, wire) = node("a");
    let now = Instant::now();
    for uid in ["b", "c"] {
        introduce(&a, uid, now);
    }
    wire.ears.store(2, Relaxed); // one of them has no connection to the bus
    let found = ask(&a, &[], now).ready().expect_err("the other one may answer");
    let (_, question) = wire.take().remove(0);
    let (_, reply) = answer("b", &question, &[("news", 2)], now);
    a.handle_message(&reply, now);
    assert_eq!(found.wait(), Ok(without(&[("news", 2)], "c")));
    wire.ears.store(0, Relaxed);
    let none = Answer::now(Ok(Counts::default()));
    let one = a.ask(CountQuestion::default(), Some("c"), none, now).ready().expect("at once");
    assert_eq!(one, Ok(without(&[], "c")));
}

#[test]
fn a_survey_waits_for_a_slow_node_although_the_dead_one_has_been_given_up() {
    let (a, wire) = node("a");
    let start = Instant::now();
    for uid in ["dead", "slow"] {
        introduce(&a, uid, start);
    }
    wire.ears.store(2, Relaxed);
    let answer = ask(&a, &[], start);
    let now = start + SIGN_OF_LIFE_TIME;
    introduce(&a, "slow", now);
    a.tick(now);
    let answer = answer.ready().expect_err("one is alive");
    a.tick(start + SURVEY_TIME);
    let missing = vec!["dead".to_owned(), "slow".to_owned()];
    assert_eq!(answer.wait(), Ok(Surveyed { found: Counts::default(), missing }));
}
