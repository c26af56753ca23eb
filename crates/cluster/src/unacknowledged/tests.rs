//! Tests of unacknowledged that reach too few: how often they are given, what becomes of them, who obeys them.
//! In: numbers, counts, times → out: what is given again, answers.
//! Uses: values only. Never: a bus.
//! Changed here: tests of `unacknowledged.rs`; nodes that hear each other are tested in `tests.rs`.

use fanwire_broker::Answer;
use proptest::prelude::*;

use super::*;

/// UnacknowledgedCommands, of which one was given.
fn one() -> (UnacknowledgedCommands, Answer<(), ErrorCode>) {
    let mut commands = UnacknowledgedCommands::default();
    let (promise, answer) = Answer::later();
    let number = commands.next();
    commands.begin(number, Bytes::from_static(b"command"), promise);
    (commands, answer)
}

fn all(count: usize) -> OtherNodes {
    OtherNodes { count, is_complete: true }
}

/// Another one may be missing.
fn some(count: usize) -> OtherNodes {
    OtherNodes { count, is_complete: false }
}

fn seconds(count: u64) -> Duration {
    Duration::from_secs(count)
}

#[test]
fn an_order_is_done_when_it_reached_all() {
    for (count, others, is_done) in [
        (1, all(0), true),
        (2, all(1), true),
        (3, all(1), true),
        (1, all(1), false),
        (0, all(0), false),
        (9, some(0), false),
    ] {
        let (mut commands, answer) = one();
        let settled = commands.reached(1, Ok(count), others);
        assert_eq!(settled.is_some(), is_done, "{count} of {others:?}");
        settled.into_iter().for_each(SettledPromise::keep);
        assert_eq!(answer.ready().is_ok(), is_done);
    }
}

#[test]
fn an_order_that_nobody_took_has_failed() {
    let (mut commands, answer) = one();
    commands.reached(1, Err(BrokerError::Unavailable), all(0)).expect("at once").keep();
    assert_eq!(answer.wait(), Err(ErrorCode::INTERNAL));
}

#[test]
fn an_order_is_given_again_until_it_reaches_all() {
    let (mut commands, answer) = one();
    let now = Instant::now();
    let again = |commands: &mut UnacknowledgedCommands, at| {
        let (again, over) = commands.due(now + seconds(at), |_| all(1));
        assert!(over.is_empty());
        again.len()
    };
    assert_eq!(again(&mut commands, 0), 0, "what became of the first try is not known yet");
    for second in 1..4 {
        assert!(commands.reached(1, Ok(1), all(1)).is_none());
        assert_eq!(again(&mut commands, second), 1);
        assert_eq!(again(&mut commands, second), 0, "once");
    }
    commands.reached(1, Ok(2), all(1)).expect("all").keep();
    assert_eq!(answer.wait(), Ok(()));
    assert_eq!(again(&mut commands, 5), 0);
}

#[test]
fn at_last_those_count_that_said_something() {
    for (spoken, expect) in
        [(all(0), Ok(())), (all(1), Err(ErrorCode::INTERNAL)), (some(0), Err(ErrorCode::INTERNAL))]
    {
        let (mut commands, answer) = one();
        let now = Instant::now();
        assert!(commands.reached(1, Ok(1), all(1)).is_none());
        assert_eq!(commands.due(now, |_| all(1)).0, [(1, Bytes::from_static(b"command"))]);
        assert!(commands.reached(1, Ok(1), all(1)).is_none());
        let (again, over) = commands.due(now + ORDER_TIME, |since| {
            assert_eq!(since, now);
            spoken
        });
        assert!(again.is_empty());
        over.into_iter().for_each(SettledPromise::keep);
        assert_eq!(answer.ready().expect("over"), expect, "{spoken:?}");
    }
}

#[test]
fn orders_that_wait_are_bounded() {
    let mut commands = UnacknowledgedCommands::default();
    let mut answers: Vec<_> = (0..=COMMANDS_MAX)
        .map(|_| {
            let (promise, answer) = Answer::later();
            let number = commands.next();
            commands.begin(number, Bytes::new(), promise);
            commands.reached(number, Ok(1), all(1)).into_iter().for_each(SettledPromise::keep);
            answer
        })
        .collect();
    assert_eq!(answers.pop().map(Answer::wait), Some(Err(ErrorCode::INTERNAL)));
    assert!(answers.into_iter().all(|answer| answer.ready().is_err()), "the others wait");
    let (promise, answer) = Answer::later();
    let number = commands.next();
    commands.begin(number, Bytes::new(), promise);
    commands.reached(number, Ok(2), some(1)).expect("it does not wait").keep();
    assert_eq!(answer.wait(), Ok(()), "all nodes that are known");
}

#[test]
fn an_order_given_again_is_new_to_who_did_not_hear_it() {
    let mut window = ReceivedCommands::default();
    let mut received = |number, expect| assert_eq!(window.is_new(number), expect, "{number}");
    let last = COMMANDS_MAX as u64;
    received(3, true);
    received(3, false);
    received(2, true);
    received(2, false);
    received(last + 2, true);
    received(3, false);
    received(2, false);
    received(4, true);
    received(3 * last, true);
    received(last + 2, false);
    received(2 * last + 2, true);
}

proptest! {
    #[test]
    fn nobody_obeys_twice(numbers in prop::collection::vec(1..3 * COMMANDS_MAX as u64, 0..200)) {
        let mut window = ReceivedCommands::default();
        let mut executed = std::collections::BTreeSet::new();
        for number in numbers {
            let is_recent = executed.last().is_none_or(|last| number + (COMMANDS_MAX as u64) > *last);
            let is_new = window.is_new(number);
            prop_assert_eq!(is_new, is_recent && !executed.contains(&number));
            if is_new {
                executed.insert(number);
            }
        }
    }
}
