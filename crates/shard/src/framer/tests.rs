//! Tests of the frame encoder: which messages are compressed.
//! In: messages and kinds of compression → out: first bytes and sizes of frames.
//! Uses the framer alone.
//! Changed here: expectations of which messages are compressed.

use super::*;

fn check(may_compress: bool, message: &[u8], head: u8, bytes_max: usize) {
    let mut framer = Framer::new(6, 100);
    let frame = framer.frame(Opcode::Text, may_compress, message);
    assert_eq!((frame[0], frame.len() <= bytes_max), (head, true), "{} bytes", frame.len());
}

#[test]
fn a_message_that_shrinks_is_compressed_where_that_was_agreed() {
    check(true, &[b'a'; 1000], 0xc1, 30);
    check(false, &[b'a'; 1000], 0x81, 1004);
}

#[test]
fn a_message_below_the_minimum_stays_raw() {
    check(true, &[b'a'; 99], 0x81, 101);
    check(true, &[b'a'; 100], 0xc1, 20);
}

#[test]
fn a_huge_message_is_compressed_for_many_but_not_for_one() {
    let framer = Framer::new(6, 100);
    let is_for_one = |bytes| framer.compresses_for_one(&vec![b'a'; bytes]);
    assert_eq!([99, 100, 262_144, 262_145].map(is_for_one), [false, true, true, false]);
    assert!(framer.compresses(&[b'a'; 262_145]));
}

#[test]
fn a_message_that_does_not_shrink_stays_raw() {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut step = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state as u8
    };
    let noise: Vec<u8> = (0..500).map(|_| step()).collect();
    check(true, &noise, 0x81, 504);
}
