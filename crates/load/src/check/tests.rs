//! Tests of the checks: each fault is found and named once, and nothing else is.
//! In: publications and messages in a chosen order → out: counts.
//! Pure.
//! The same over sockets is in the tests of `fanwire bench`.

use super::*;
use proptest::prelude::*;

impl GroupCounts {
    /// Whether nothing is wrong for subscribers that read all the time.
    fn is_whole(&self) -> bool {
        let Self { lost, duplicates, reordered, broken, .. } = self;
        lost + duplicates + reordered + broken == 0 && self.disconnects.is_empty()
    }
}

fn checker(is_latest: bool, groups: &[Group]) -> Checker {
    let payloads = Payloads::synthetic(20, 0.5, false).expect("a share");
    let channels = ["a".to_owned(), "b".to_owned()];
    let mut checker = Checker::new(payloads, &channels, is_latest, Recorder::new(0, u64::MAX, 1));
    for (number, group) in groups.iter().enumerate() {
        checker.add_subscriber(*group, Encoding::Json, &[0, 1]);
        checker.subscribed(number);
    }
    checker
}

fn message(channel: &str, data: &[u8]) -> Vec<u8> {
    let data = String::from_utf8_lossy(data);
    format!("{{\"push\":{{\"channel\":\"{channel}\",\"pub\":{{\"data\":{data}}}}}}}").into_bytes()
}

/// Publishes `count` times to the channel a.
fn publish(checker: &mut Checker, count: u64) -> Vec<Vec<u8>> {
    (0..count).map(|planned| message("a", &checker.publish(0, planned))).collect()
}

fn finish(checker: Checker) -> GroupCounts {
    checker.finish().1[0].clone()
}

#[test]
fn what_arrives_once_in_order_is_whole() {
    let mut checker = checker(false, &[Group::Regular; 2]);
    let messages = publish(&mut checker, 3);
    assert_eq!(checker.outstanding(), 3);
    for message in &messages {
        checker.receive(0, message, 7);
        checker.receive(1, message, 9);
    }
    assert_eq!(checker.outstanding(), 0);
    let (recorder, [counts, ..]) = checker.finish();
    assert_eq!((counts.received, counts.is_whole()), (6, true));
    let part = &recorder.parts()[0];
    assert_eq!(
        (part.published, part.latency.len(), part.last.len(), part.last.max()),
        (3, 6, 3, 9)
    );
}

#[test]
fn each_fault_is_counted_as_what_it_is() {
    let by_order = |order: &[usize]| {
        let mut checker = checker(false, &[Group::Regular]);
        let messages = publish(&mut checker, 5);
        order.iter().for_each(|place| checker.receive(0, &messages[*place], 1));
        let counts = finish(checker);
        (counts.lost, counts.duplicates, counts.reordered, counts.broken)
    };
    assert_eq!(by_order(&[0, 1, 2, 3, 4]), (0, 0, 0, 0));
    assert_eq!(by_order(&[0, 1, 3, 4]), (1, 0, 0, 0), "one in the middle");
    assert_eq!(by_order(&[1, 2, 3, 4]), (1, 0, 0, 0), "the first");
    assert_eq!(by_order(&[0, 1, 2]), (2, 0, 0, 0), "the last two");
    assert_eq!(by_order(&[]), (5, 0, 0, 0), "all");
    assert_eq!(by_order(&[0, 1, 1, 2, 3, 4]), (0, 1, 0, 0));
    assert_eq!(by_order(&[0, 2, 1, 3, 4]), (0, 0, 1, 0));
    assert_eq!(by_order(&[0, 2, 1, 1, 3, 4]), (0, 1, 1, 0));
    assert_eq!(by_order(&[4, 0, 2, 1, 3]), (0, 0, 4, 0));
}

#[test]
fn a_damaged_message_is_broken_and_named() {
    let whole =
        |checker: &mut Checker| String::from_utf8(publish(checker, 1).remove(0)).expect("text");
    for (damage, part) in [
        ((|text| text.replace("price", "prise")) as fn(String) -> String, "damaged data"),
        (|text| text.replace("\"channel\":\"a\"", "\"channel\":\"b\""), "another channel"),
        (|text| text.replace("\"channel\":\"a\"", "\"channel\":\"c\""), "without subscription"),
        (|text| text.replace("\"n\":0", "\"n\":9"), "damaged data"),
        (|text| text.replace("\"c\":0", "\"x\":0"), "did not publish"),
        (|text| text[..text.len() - 3].to_owned(), "no message"),
        (|_| "garbage".to_owned(), "no message"),
    ] {
        let mut checker = checker(false, &[Group::Regular]);
        // The share of random words leaves the first one as it is in some body: take one that has it.
        let mut text = whole(&mut checker);
        while !text.contains("price") {
            checker.receive(0, text.as_bytes(), 1);
            text = whole(&mut checker);
        }
        let text = damage(text);
        checker.receive(0, text.as_bytes(), 1);
        let counts = finish(checker);
        let example = counts.example.unwrap_or_default();
        assert!(counts.broken == 1 && example.contains(part), "{text}: {example}");
    }
}

#[test]
fn other_pushes_and_late_replies_are_no_faults() {
    let mut checker = checker(false, &[Group::Regular]);
    checker.receive(0, br#"{"push":{"channel":"a","join":{"info":{"client":"x","user":""}}}}"#, 1);
    checker.receive(0, br#"{"id":9,"publish":{}}"#, 1);
    assert!(finish(checker).is_whole());
}

#[test]
fn where_the_newest_counts_gaps_are_conflated_and_only_the_last_can_be_lost() {
    let run = |order: &[usize]| {
        let mut checker = checker(true, &[Group::Regular]);
        let messages = publish(&mut checker, 5);
        order.iter().for_each(|place| checker.receive(0, &messages[*place], 1));
        let outstanding = checker.outstanding();
        let counts = finish(checker);
        (counts.conflated, counts.lost, outstanding)
    };
    assert_eq!(run(&[4]), (4, 0, 0));
    assert_eq!(run(&[0, 3]), (2, 1, 1));
    assert_eq!(run(&[]), (4, 1, 5));
}

#[test]
fn a_subscriber_that_comes_and_goes_misses_nothing_that_was_published_while_it_was_there() {
    let mut checker = checker(false, &[Group::Regular; 2]);
    let before = publish(&mut checker, 2);
    checker.receive(0, &before[0], 1);
    checker.closed(1, true);
    checker.receive(0, &before[1], 1);
    assert_eq!(checker.outstanding(), 0, "no other subscriber is missing");
    let between = publish(&mut checker, 1);
    checker.subscribed(1);
    let after = publish(&mut checker, 2);
    // What was published before it came may still arrive; then nothing may be left out.
    for message in [&between[0], &after[0], &after[1]] {
        checker.receive(1, message, 1);
        checker.receive(0, message, 1);
    }
    assert!(finish(checker).is_whole());
}

#[test]
fn a_disconnect_loses_what_was_published_before_it_and_nothing_after() {
    let mut checker = checker(false, &[Group::Regular, Group::Slow]);
    let messages = publish(&mut checker, 3);
    checker.receive(0, &messages[0], 1);
    checker.closed(0, false);
    checker.closed(0, false);
    publish(&mut checker, 2);
    assert_eq!(checker.outstanding(), 0);
    let (_, [regular, slow, _]) = checker.finish();
    assert_eq!((regular.lost, slow.lost), (2, 5));
}

#[test]
fn memory_is_bounded_when_a_subscriber_gets_nothing() {
    let mut checker = checker(false, &[Group::Regular]);
    publish(&mut checker, RECENT_MAX as u64 + 100);
    assert_eq!(checker.channels[0].recent.len(), RECENT_MAX);
    assert_eq!(checker.outstanding(), RECENT_MAX);
    assert_eq!(finish(checker).lost, RECENT_MAX as u64 + 100);
}

proptest! {
    /// Drops, duplicates and reorders at random: the counts are the sums of the faults.
    #[test]
    fn faults_at_random_are_counted_exactly(faults in prop::collection::vec(0..20u8, 1..60)) {
        let mut checker = checker(false, &[Group::Regular]);
        let messages = publish(&mut checker, faults.len() as u64);
        let (mut dropped, mut doubled) = (0, 0);
        for (message, fault) in messages.iter().zip(&faults) {
            let times = match fault { 0 => 0, 1 => 2, _ => 1 };
            (dropped, doubled) = (dropped + u64::from(times == 0), doubled + u64::from(times == 2));
            (0..times).for_each(|_| checker.receive(0, message, 1));
        }
        let counts = finish(checker);
        prop_assert_eq!((counts.lost, counts.duplicates), (dropped, doubled));
        prop_assert_eq!((counts.reordered, counts.broken), (0, 0));
    }
}
