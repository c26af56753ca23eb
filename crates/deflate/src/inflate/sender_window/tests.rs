//! Tests of `sender_window`: which bytes it keeps, and in how much memory.
//! Lengths of messages → the same bytes as the end of one long text.
//! Uses only `sender_window`; messages that refer to it are in `inflate/tests.rs` and `tests/it`.
//! Changed here: cases of the buffer.

use super::*;

#[test]
fn the_window_is_the_end_of_all_messages_in_order() {
    check(&[1, 511, 1, 512, 513, 0, 2000, 3]);
    check(&[100; 20]);
    check(&[512, 512, 1]);
    check(&[5000]);
    check(&[0, 0]);
    check(&[511, 2, 510, 3, 1024, 1]);
}

#[test]
fn the_buffer_grows_with_what_came_and_never_beyond_the_window() {
    let mut window = SenderWindow::new(12);
    assert_eq!(window.heap_bytes(), 0);
    window.append(b"");
    assert_eq!(window.heap_bytes(), 0);
    window.append(&[1; 100]);
    assert_eq!(window.heap_bytes(), 100);
    window.append(&[1; 1]);
    assert_eq!(window.heap_bytes(), 200);
    for _ in 0..100 {
        window.append(&[1; 300]);
        assert!(window.heap_bytes() <= 4096, "{} bytes", window.heap_bytes());
    }
    assert_eq!(window.heap_bytes(), 4096);
    window.append(&[1; 100_000]);
    assert_eq!(window.heap_bytes(), 4096);
}

#[test]
fn a_window_of_eight_bits_is_kept_as_one_of_nine() {
    let mut window = SenderWindow::new(8);
    window.append(&[1; 1000]);
    assert_eq!(window.parts().concat().len(), 512);
    assert_eq!(SenderWindow::memory_for(8), SenderWindow::memory_for(9));
}

/// Appends messages of these lengths to a window of 512 bytes.
fn check(lengths: &[usize]) {
    let mut window = SenderWindow::new(9);
    let mut all = Vec::new();
    for &length in lengths {
        let message: Vec<u8> = (all.len()..all.len() + length).map(|at| (at % 251) as u8).collect();
        window.append(&message);
        all.extend(message);
        let end = &all[all.len().saturating_sub(512)..];
        assert!(window.parts().concat() == end, "{lengths:?} after {} bytes", all.len());
        assert!(window.heap_bytes() <= 512);
    }
}
