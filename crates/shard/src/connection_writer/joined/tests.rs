//! Joined frames are the bytes of their queue, whatever queue came before.
//! In: queues of shared and own frames → out: their bytes.
//! Uses queues alone.
//! Changed here: tests of `joined.rs`.

use super::*;
use crate::queue::Lists;

fn queue(frames: &[Frame]) -> Queue {
    queue_with(frames, &mut Lists::default())
}

fn queue_with(frames: &[Frame], lists: &mut Lists) -> Queue {
    let mut queue = Queue::default();
    frames.iter().for_each(|frame| queue.push(frame.clone(), lists));
    queue
}

fn frame(text: &str) -> Frame {
    text.as_bytes().into()
}

#[test]
fn queues_with_the_same_frames_share_a_copy_and_others_do_not() {
    let mut joined = JoinedFrames::default();
    let [a, b, c] = ["aa", "bb", "cc"].map(frame);
    let mut check = |frames: &[&Frame], expected: &str| {
        let frames: Vec<Frame> = frames.iter().map(|frame| Frame::clone(frame)).collect();
        let bytes = joined.bytes_of(&queue(&frames)).expect("small");
        assert_eq!(str::from_utf8(bytes), Ok(expected));
    };
    check(&[&a, &b], "aabb");
    check(&[&a, &b], "aabb");
    check(&[&b, &a], "bbaa");
    check(&[&a, &b, &c], "aabbcc");
    check(&[&a, &c], "aacc");
    check(&[&a, &frame("cc")], "aacc");
    joined.clear();
    assert_eq!(Rc::strong_count(&a), 1, "nothing is kept");
}

#[test]
fn partly_written_and_large_queues_are_not_copied() {
    let (mut joined, mut lists) = (JoinedFrames::default(), Lists::default());
    let mut partly = queue_with(&[frame("aa"), frame("bb")], &mut lists);
    partly.advance(1, &mut lists);
    assert_eq!(joined.bytes_of(&partly), None);
    partly.advance(1, &mut lists);
    assert_eq!(joined.bytes_of(&partly), Some(&b"bb"[..]));
    let large = frame(&"a".repeat(BYTES_MAX));
    assert!(joined.bytes_of(&queue(std::slice::from_ref(&large))).is_some());
    assert_eq!(joined.bytes_of(&queue(&[large, frame("b")])), None);
}
