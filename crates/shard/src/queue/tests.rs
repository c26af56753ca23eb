//! Tests of the outgoing queue: pushed bytes leave once, in order, whatever the socket takes.
//! In: frames and write sizes → out: the bytes that a peer would receive.
//! Uses proptest; never a socket.
//! Changed here: expectations of the queue alone.

use proptest::prelude::*;

use super::*;

fn written(queue: &Queue, count: usize) -> Vec<u8> {
    let all: Vec<u8> = queue.slices().iter().flat_map(|slice| slice.to_vec()).collect();
    all[..count.min(all.len())].to_vec()
}

proptest! {
    #[test]
    fn bytes_leave_once_and_in_order(
        steps in prop::collection::vec((prop::collection::vec(any::<u8>(), 1..40), 0usize..60), 1..80),
    ) {
        let (mut queue, mut lists) = (Queue::default(), Lists::default());
        let (mut pushed, mut left) = (Vec::new(), Vec::new());
        for (frame, take) in steps {
            pushed.extend_from_slice(&frame);
            queue.push(frame.into(), &mut lists);
            let out = written(&queue, take);
            queue.advance(out.len(), &mut lists);
            left.extend_from_slice(&out);
            prop_assert_eq!(queue.bytes(), pushed.len() - left.len());
            prop_assert_eq!(lists.queued_bytes(), queue.bytes() as u64);
        }
        while !queue.is_empty() {
            let out = written(&queue, usize::MAX);
            queue.advance(out.len(), &mut lists);
            left.extend_from_slice(&out);
        }
        prop_assert_eq!(left, pushed);
        prop_assert!(queue.rest.is_none());
    }
}

#[test]
fn a_begun_frame_survives_and_unbegun_ones_go() {
    let (mut queue, mut lists) = (Queue::default(), Lists::default());
    for frame in [b"one", b"two"] {
        queue.push(Rc::from(&frame[..]), &mut lists);
    }
    queue.advance(1, &mut lists);
    queue.drop_unwritten(0, &mut lists);
    assert_eq!((written(&queue, 9), queue.bytes()), (b"ne".to_vec(), 2));
    assert_eq!(lists.queued_bytes(), 2);
    queue.forget(&mut lists);
    assert_eq!(lists.queued_bytes(), 0);
}

#[test]
fn the_limit_is_for_a_backlog_and_not_for_one_large_frame() {
    let (mut queue, mut lists) = (Queue::default(), Lists::default());
    assert!(queue.takes(1_000, 10));
    queue.push(Rc::from(&[0; 1_000][..]), &mut lists);
    queue.advance(7, &mut lists);
    assert!(queue.takes(10, 10) && !queue.takes(11, 10));
    queue.push(Rc::from(&[1; 8][..]), &mut lists);
    assert!(queue.takes(2, 10) && !queue.takes(3, 10));
    queue.advance(993, &mut lists);
    assert!(queue.takes(2, 10) && !queue.takes(3, 10), "what is left counts as it did");
    queue.advance(3, &mut lists);
    assert!(queue.takes(5, 10) && !queue.takes(6, 10));
}

#[test]
fn an_empty_queue_is_small_and_holds_nothing() {
    assert!(size_of::<Queue>() <= 32);
    let (mut queue, mut lists) = (Queue::default(), Lists::default());
    queue.push(Rc::from(&b"x"[..]), &mut lists);
    queue.push(Rc::from(&b"y"[..]), &mut lists);
    queue.advance(2, &mut lists);
    assert!(queue.is_empty() && queue.rest.is_none() && queue.single().is_none());
    assert_eq!(lists.unused.len(), 1);
}

#[test]
fn queues_share_one_copy_of_a_brief_frame_and_there_is_none_without_a_queue() {
    let copy = OnceCell::new();
    let frame = BorrowedFrame { bytes: b"frame", copy: &copy };
    assert_eq!(frame.bytes(), b"frame");
    assert!(copy.get().is_none());
    assert!(Frame::ptr_eq(&frame.shared(), &frame.shared()));
    assert_eq!(frame.shared()[..], *b"frame");
}
