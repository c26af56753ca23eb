//! Work that is kept for sessions that wait; nothing stays when they go.
//! In: parks, frames, broadcasts, arrivals → out: what comes back, in order.
//! Uses: the table alone. Never: hubs; what clients hear of waiting is tested in `tests/it/slow.rs`.
//! Changed here: tests of `pending.rs`.

use fanwire_protocol::Reply;

use super::*;

const ADA: ConnectionKey = ConnectionKey { index: 3, generation: 7 };

fn frame(text: &str) -> Deferred {
    Deferred::Frame(Bytes::copy_from_slice(text.as_bytes()))
}

/// The frame that comes next, if one does.
fn next(waiting: &mut PendingCommands) -> Option<String> {
    waiting.next_deferred(ADA).map(|next| match next {
        Deferred::Frame(frame) | Deferred::Rest(frame) => {
            String::from_utf8(frame.to_vec()).expect("text")
        }
        other => panic!("{other:?} is no frame"),
    })
}

#[test]
fn who_does_not_wait_puts_nothing_off() {
    let mut waiting = PendingCommands::default();
    assert_eq!(waiting.defer(ADA, || unreachable!("nobody waits")), Ok(false));
    assert!(!waiting.waits(ADA));
    assert_eq!(next(&mut waiting), None);
}

#[test]
fn what_was_put_off_comes_back_in_order_and_the_rest_of_a_frame_first() {
    let mut waiting = PendingCommands::default();
    let ticket = waiting.ticket();
    waiting.suspend(ADA, ticket, 2, Awaited::Reply(None));
    waiting.put_back(ADA, frame("rest"));
    assert_eq!(waiting.defer(ADA, || frame("a")), Ok(true));
    assert_eq!(waiting.defer(ADA, || frame("b")), Ok(true));
    assert_eq!(next(&mut waiting), None, "it still waits");

    assert!(matches!(waiting.take_work(ADA), Some((2, Awaited::Reply(None)))));
    assert_eq!(waiting.defer(ADA, || unreachable!("it goes on now")), Ok(false));
    assert_eq!(next(&mut waiting).as_deref(), Some("rest"));
    let ticket = waiting.ticket();
    waiting.suspend(ADA, ticket, 3, Awaited::Reply(None));
    waiting.put_back(ADA, frame("rest of the rest"));
    assert_eq!(next(&mut waiting), None, "it waits again");

    assert!(matches!(waiting.take_work(ADA), Some((3, Awaited::Reply(None)))));
    for text in ["rest of the rest", "a", "b"] {
        assert_eq!(next(&mut waiting).as_deref(), Some(text));
    }
    assert_eq!(next(&mut waiting), None);
    assert!(waiting.pending.is_empty());
}

#[test]
fn an_answer_reaches_the_wait_it_belongs_to_and_no_other() {
    let mut waiting = PendingCommands::default();
    let old = waiting.ticket();
    let new = waiting.ticket();
    waiting.suspend(ADA, new, 2, Awaited::Reply(None));
    let arrival = |key, ticket| AwaitedResult {
        key,
        ticket,
        part: Part::Outcome(Box::new(Ok(Reply::default().into()))),
    };
    assert!(waiting.awaiting(&arrival(ADA, old)).is_none(), "given up");
    let later = ConnectionKey { generation: 8, ..ADA };
    assert!(waiting.awaiting(&arrival(later, new)).is_none(), "somebody else's index");
    assert!(waiting.awaiting(&arrival(ADA, new)).is_some());
    assert!(waiting.take_work(ADA).is_some());
    assert!(waiting.awaiting(&arrival(ADA, new)).is_none(), "it resumes");
    waiting.suspend(ADA, new, 2, Awaited::Reply(None));
    assert!(waiting.forget(ADA).is_none(), "it was entering nothing");
    assert!(waiting.awaiting(&arrival(ADA, new)).is_none(), "gone");
}

#[test]
fn what_is_made_for_a_session_is_wished_for_until_it_is_gone_or_has_it() {
    let mut waiting = PendingCommands::default();
    let ticket = waiting.ticket();
    waiting.suspend(ADA, ticket, 2, Awaited::Reply(None));
    let interest = waiting.interest(ADA);
    assert!(interest.upgrade().is_some());
    assert!(waiting.forget(ADA).is_none());
    assert!(interest.upgrade().is_none(), "it is gone");

    waiting.suspend(ADA, ticket, 2, Awaited::Reply(None));
    let interest = waiting.interest(ADA);
    assert!(waiting.take_work(ADA).is_some());
    assert_eq!(next(&mut waiting), None);
    assert!(interest.upgrade().is_none(), "it has it");
}

#[test]
fn what_is_put_off_is_limited_and_what_was_done_counts_no_more() {
    let mut waiting = PendingCommands::default();
    let half = || Deferred::Frame(vec![b' '; PUT_OFF_BYTES_MAX / 2 - PUT_OFF_BYTES].into());
    for round in 0..3 {
        let ticket = waiting.ticket();
        waiting.suspend(ADA, ticket, round, Awaited::Reply(None));
        assert_eq!(waiting.defer(ADA, half), Ok(true));
        assert_eq!(waiting.defer(ADA, half), Ok(true));
        assert_eq!(waiting.defer(ADA, || frame("")), Err(DeferLimitExceeded));
        assert!(waiting.take_work(ADA).is_some());
        assert!(next(&mut waiting).is_some() && next(&mut waiting).is_some());
        if round == 1 {
            assert_eq!(next(&mut waiting), None, "and begins anew");
        }
    }
    waiting.suspend(ADA, 9, 9, Awaited::Reply(None));
    let large = || Deferred::Frame(vec![b' '; 2 * PUT_OFF_BYTES_MAX].into());
    assert_eq!(waiting.defer(ADA, large), Ok(true), "one message is never too much");
    assert_eq!(waiting.defer(ADA, || frame("")), Err(DeferLimitExceeded));
}
