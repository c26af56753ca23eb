//! Tests of watches: the table of protocol §10, and one position for many subscribers.
//! In: joins and publications → out: steps, seen by connection.
//! Uses: watches only.
//! What happens to those who lost their place is tested in `tests/it/recovery.rs`.

use super::*;

const NOW: Moment = Moment(0);

fn epoch(text: &str) -> Epoch {
    Epoch::parse(text).expect("eight notices")
}

fn at(offset: u64) -> Position {
    Position { offset, epoch: epoch("epochone") }
}

fn elsewhere(offset: u64) -> Position {
    Position { offset, epoch: epoch("epochtwo") }
}

/// Result of a check that continues what was known.
fn check(top: Position) -> PositionCheck {
    PositionCheck { top, is_in_order: false, has_lost_end: false }
}

#[test]
fn a_step_is_next_known_or_lost() {
    let rows = [
        (at(3), at(4), PositionStep::Next),
        (at(3), at(3), PositionStep::Known),
        (at(3), at(1), PositionStep::Known),
        (at(3), at(5), PositionStep::Lost),
        (at(3), elsewhere(4), PositionStep::Lost),
        (at(3), elsewhere(1), PositionStep::Lost),
        (at(0), at(1), PositionStep::Next),
        (Position::default(), at(1), PositionStep::Next),
        (Position::default(), at(7), PositionStep::Next),
    ];
    for (from, to, step) in rows {
        assert_eq!(PositionStep::from_to(from, to), step, "{from:?} {to:?}");
    }
}

#[test]
fn in_order_publications_are_for_all_and_those_without_a_place_move_nobody() {
    let mut position_tracker = PositionTracker::new(NOW);
    position_tracker.join(1, at(3));
    position_tracker.join(2, at(3));
    assert!(position_tracker.take_for_all(at(4), Moment(7)));
    assert!(position_tracker.take_for_all(Position::default(), Moment(8)));
    assert!(position_tracker.take_for_all(at(5), Moment(9)));
    assert!(!position_tracker.take_for_all(at(5), Moment(10)));
    assert_eq!(position_tracker.sure_at, Moment(9));
}

#[test]
fn whoever_joins_ahead_waits_for_the_others() {
    let mut position_tracker = PositionTracker::new(NOW);
    position_tracker.join(1, at(3));
    position_tracker.join(2, at(5));
    for offset in [4, 5] {
        assert!(!position_tracker.take_for_all(at(offset), NOW));
        assert_eq!(position_tracker.step(1, at(offset)), PositionStep::Next);
        assert_eq!(position_tracker.step(2, at(offset)), PositionStep::Known);
        position_tracker.settle(at(offset), NOW);
    }
    assert!(position_tracker.take_for_all(at(6), NOW), "they are together now");
}

#[test]
fn a_hole_is_lost_for_those_who_have_it_and_the_position_goes_on() {
    let mut position_tracker = PositionTracker::new(NOW);
    position_tracker.join(1, at(3));
    position_tracker.join(2, at(4));
    assert!(!position_tracker.take_for_all(at(5), NOW));
    assert_eq!(
        (position_tracker.step(1, at(5)), position_tracker.step(2, at(5))),
        (PositionStep::Lost, PositionStep::Next)
    );
    position_tracker.settle(at(5), NOW);
    assert!(!position_tracker.leave(1));
    assert!(position_tracker.take_for_all(at(6), NOW));
    assert!(position_tracker.leave(2), "nobody is left");
}

#[test]
fn one_who_was_ahead_and_leaves_is_forgotten() {
    let mut position_tracker = PositionTracker::new(NOW);
    position_tracker.join(1, at(3));
    position_tracker.join(2, at(9));
    assert!(!position_tracker.leave(2));
    assert!(position_tracker.take_for_all(at(4), NOW));
}

#[test]
fn a_top_that_did_not_arrive_was_missed() {
    let mut position_tracker = PositionTracker::new(NOW);
    position_tracker.join(1, at(3));
    position_tracker.join(2, at(5));
    assert!(position_tracker.lacks(1, at(5)) && !position_tracker.lacks(2, at(5)));
    assert!(position_tracker.confirm(check(at(5)), Moment(7)));
    assert_eq!(position_tracker.sure_at, Moment(7));
    position_tracker.leave(1);
    assert!(position_tracker.take_for_all(at(6), NOW), "the others go on");
}

#[test]
fn a_top_that_is_older_than_the_position_confirms_nothing() {
    let mut position_tracker = PositionTracker::new(NOW);
    position_tracker.join(1, at(3));
    assert!(!position_tracker.lacks(1, at(2)));
    assert!(!position_tracker.confirm(check(at(2)), Moment(7)));
    assert_eq!(position_tracker.sure_at, NOW);
    assert!(position_tracker.take_for_all(at(4), NOW));
}

#[test]
fn another_stream_and_a_shorter_one_are_noticed() {
    let mut position_tracker = PositionTracker::new(NOW);
    position_tracker.join(1, at(3));
    assert!(
        position_tracker.is_elsewhere(1, elsewhere(0)) && !position_tracker.lacks(1, elsewhere(9))
    );
    assert!(position_tracker.is_beyond(1, at(2)) && !position_tracker.is_beyond(1, at(3)));
    assert!(!position_tracker.is_beyond(1, elsewhere(2)));
    assert!(
        position_tracker.is_elsewhere(1, elsewhere(9)) && !position_tracker.is_elsewhere(1, at(9))
    );
    let mut fresh = PositionTracker::new(NOW);
    fresh.join(1, Position::default());
    assert!(
        fresh.lacks(1, at(9)) && !fresh.is_elsewhere(1, at(9)),
        "whoever knows of no stream adopts the first one"
    );
}

#[test]
fn a_stream_that_lost_its_end_is_followed_from_there_by_those_who_are_left() {
    let mut position_tracker = PositionTracker::new(NOW);
    position_tracker.join(1, at(9));
    position_tracker.join(2, at(4));
    position_tracker.join(3, at(12));
    assert_eq!(position_tracker.furthest(), at(12));
    assert!(
        position_tracker.confirm(PositionCheck { has_lost_end: true, ..check(at(4)) }, Moment(7))
    );
    for gone in [1, 3] {
        assert!(!position_tracker.leave(gone));
    }
    assert_eq!((position_tracker.furthest(), position_tracker.sure_at), (at(4), Moment(7)));
    assert!(position_tracker.take_for_all(at(5), Moment(8)));
}

#[test]
fn what_is_known_to_all_does_not_say_that_the_position_is_right() {
    let mut position_tracker = PositionTracker::new(NOW);
    position_tracker.join(1, at(3));
    for offset in [2, 3] {
        assert!(!position_tracker.take_for_all(at(offset), Moment(7)));
        position_tracker.settle(at(offset), Moment(7));
    }
    assert_eq!(position_tracker.sure_at, NOW);
}
