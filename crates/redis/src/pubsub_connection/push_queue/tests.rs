//! Tests of the queue of pushes: it is bounded, and an overflow is noticed.
//! In: pushes that are not taken → out: an overflow, or none.
//! Uses the sending end as the connection does. Never: sockets.
//! The effect of an overflow is tested in `tests/it/faults.rs`.

use futures_util::FutureExt as _;

use redis::PushKind;

use super::*;

fn push(length: usize) -> PushInfo {
    let texts = [b"name".to_vec(), vec![b'x'; length]];
    PushInfo { kind: PushKind::Message, data: texts.map(Value::BulkString).into() }
}

fn has_overflowed(pushes: &PushQueue) -> bool {
    pushes.overflow.notified().now_or_never().is_some()
}

#[test]
fn too_many_pushes_are_an_overflow() {
    let (send, pushes) = PushQueue::pair();
    (0..PUSHES_MAX).for_each(|_| send(push(1)));
    assert!(!has_overflowed(&pushes));
    send(push(1));
    assert!(has_overflowed(&pushes));
}

#[test]
fn too_many_bytes_are_an_overflow() {
    let (send, pushes) = PushQueue::pair();
    (0..16).for_each(|_| send(push(PUSH_BYTES_MAX / 16)));
    send(push(1)); // names count as well, so this passes the limit a little
    assert!(has_overflowed(&pushes));
}

#[test]
fn what_was_taken_counts_no_more() {
    let (send, mut pushes) = PushQueue::pair();
    for _ in 0..64 {
        send(push(PUSH_BYTES_MAX / 4));
        let taken = pushes.queue.try_recv().expect("it was sent");
        pushes.release(&taken);
    }
    assert!(!has_overflowed(&pushes));
}
