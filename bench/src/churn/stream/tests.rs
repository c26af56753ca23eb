//! Tests of the checker: every kind of wrong stream is noticed and named, and a right one is not.
//! In: offsets as a client would get them → out: counts of faults.
//! Uses nothing but the checker.
//! Changed here: expectations of `stream`; the scenario over sockets is a scenario.

use super::*;

fn answer(offset: u64, recovered: bool) -> Answer {
    Answer { offset, epoch: "epoch".to_owned(), recovered }
}

/// A client that subscribes at 0, gets `offsets`, and ends with `top` publications made.
fn check(offsets: &[u64], top: u64, expect: Faults) {
    let (mut stream, mut faults) = (Stream::default(), Faults::default());
    stream.subscribed(answer(0, false), &mut faults);
    for offset in offsets {
        stream.publication(*offset, *offset, &mut faults);
    }
    stream.finish(top, &mut faults);
    assert_eq!(faults, expect, "{offsets:?} of {top}");
    assert_eq!(faults.is_none(), expect == Faults::default());
}

#[test]
fn a_stream_in_order_has_no_fault() {
    check(&[1, 2, 3, 4], 4, Faults::default());
    check(&[], 0, Faults::default());
}

#[test]
fn what_never_comes_is_lost() {
    check(&[1, 2, 4, 5], 5, Faults { lost: 1, ..Faults::default() });
    check(&[2, 3], 3, Faults { lost: 1, ..Faults::default() });
    check(&[1, 2], 5, Faults { lost: 3, ..Faults::default() });
    check(&[], 2, Faults { lost: 2, ..Faults::default() });
}

#[test]
fn what_comes_twice_is_duplicated() {
    check(&[1, 2, 2, 3], 3, Faults { duplicated: 1, ..Faults::default() });
    check(&[1, 2, 3, 1, 2, 3], 3, Faults { duplicated: 3, ..Faults::default() });
}

#[test]
fn what_comes_too_late_is_reordered_and_not_lost() {
    check(&[1, 3, 2, 4], 4, Faults { reordered: 1, ..Faults::default() });
    check(&[3, 2, 1], 3, Faults { reordered: 2, ..Faults::default() });
    check(&[1, 3, 2, 2], 3, Faults { reordered: 1, duplicated: 1, ..Faults::default() });
    check(&[4, 1], 4, Faults { reordered: 1, lost: 2, ..Faults::default() });
}

#[test]
fn what_is_not_what_was_published_there_is_altered() {
    let (mut stream, mut faults) = (Stream::default(), Faults::default());
    stream.subscribed(answer(0, false), &mut faults);
    stream.publication(1, 2, &mut faults);
    assert_eq!(faults, Faults { altered: 1, ..Faults::default() });
}

#[test]
fn a_recovery_goes_on_where_the_client_was() {
    let (mut stream, mut faults) = (Stream::default(), Faults::default());
    assert_eq!(stream.position(), None);
    stream.subscribed(answer(5, false), &mut faults);
    stream.publication(6, 6, &mut faults);
    assert_eq!(stream.position(), Some(("epoch", 6)));
    stream.subscribed(answer(6, true), &mut faults);
    assert!(stream.has_reached(6) && !stream.has_reached(7));
    stream.publication(7, 7, &mut faults);
    stream.finish(7, &mut faults);
    assert!(faults.is_none(), "{faults}");
}

#[test]
fn a_recovery_from_another_place_is_misplaced() {
    for wrong in [answer(7, true), Answer { epoch: "other".to_owned(), ..answer(6, true) }] {
        let (mut stream, mut faults) = (Stream::default(), Faults::default());
        stream.subscribed(answer(6, false), &mut faults);
        stream.subscribed(wrong, &mut faults);
        assert_eq!(faults, Faults { misplaced: 1, ..Faults::default() });
    }
}

#[test]
fn a_return_without_recovery_loses_what_lies_between() {
    let (mut stream, mut faults) = (Stream::default(), Faults::default());
    stream.subscribed(answer(2, false), &mut faults);
    stream.subscribed(answer(5, false), &mut faults);
    stream.publication(6, 6, &mut faults);
    stream.finish(6, &mut faults);
    assert_eq!(faults, Faults { unrecovered: 1, lost: 3, ..Faults::default() });
}
