//! Memory of connections with context takeover of the client (RFC 7692 §7.1.2.2): their windows, and nothing else.
//! In: many messages on one connection → out: bytes that the connection holds between them.
//! Uses: `allocation-counter`, which counts per thread. Never: resident memory.
//! Changed here: what a connection may hold. The growth of a window is tested in `deflate`.

use allocation_counter::measure;
use fanwire_deflate::SenderWindow;
use fanwire_ws::{Pool, Reader};

use crate::client_takeover::{Sender, receive};

#[test]
fn a_connection_holds_the_agreed_window_and_a_small_constant() {
    for window_bits in 9..=15 {
        let formula = (1 << window_bits) + 64;
        assert!(SenderWindow::memory_for(window_bits) <= formula);
        let mut sender = Sender::new(window_bits, 6);
        let frames: Vec<_> = (0..400).map(|n| sender.frame(&state(n))).collect();
        let mut reader = Reader::with_takeover(window_bits);
        let mut pool = warm_pool();
        let held = measure(|| {
            for frame in &frames {
                receive(&mut reader, &mut pool, frame).expect("valid");
            }
        });
        let held = usize::try_from(held.bytes_current).expect("more is allocated than freed");
        assert!(held <= formula, "{held} bytes for {window_bits} bits");
        assert!(held >= 1 << window_bits, "{held} bytes do not hold the window");
        let freed = measure(|| drop(reader)).bytes_current;
        assert_eq!(freed, -i64::try_from(held).expect("some KiB"), "all of it is the connection's");
    }
}

#[test]
fn a_connection_that_sent_little_holds_little() {
    let mut sender = Sender::new(15, 6);
    let (first, second) = (sender.frame(&state(1)), sender.frame(&state(2)));
    let mut reader = Reader::with_takeover(15);
    let mut pool = warm_pool();
    let none = measure(|| reader = Reader::with_takeover(15)).bytes_current;
    assert_eq!(none, 0, "nothing before the first compressed message");
    let held = measure(|| {
        receive(&mut reader, &mut pool, &first).expect("valid");
        receive(&mut reader, &mut pool, &second).expect("valid");
    });
    let sent = state(1).len() + state(2).len();
    let held = usize::try_from(held.bytes_current).expect("more is allocated than freed");
    assert!(held <= sent + 64, "{held} bytes after {sent}");
}

/// A pool whose inflater exists, and whose buffers are larger than any message here needs.
fn warm_pool() -> Pool {
    let mut pool = Pool::new();
    let frame = Sender::new(15, 6).frame(&state(0).repeat(20));
    receive(&mut Reader::with_takeover(15), &mut pool, &frame).expect("valid");
    pool
}

/// Some 300 bytes.
fn state(n: u32) -> Vec<u8> {
    let reading = |row: u32| format!("{{\"row\":{row},\"value\":{}}}", (n * 7 + row * 13) % 1_000);
    (0..12).map(reading).collect::<Vec<_>>().join(",").into_bytes()
}
