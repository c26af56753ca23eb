//! Tests of the checker's inflater.
//! In: payloads made with zlib-rs or written in hex → out: their plaintext.
//! Uses zlib-rs as the other side; never a socket.
//! Repeats of RFC 7692 §7.2 belong here; the negotiation is tested in `generator`.

use super::*;
use zlib_rs::{Deflate, DeflateFlush};

/// One message through a compressor that may keep its window, without the closing 00 00 FF FF.
fn compress(state: &mut Deflate, message: &[u8]) -> Vec<u8> {
    let mut out = vec![0; message.len() + 64];
    let before = state.total_out();
    state.compress(message, &mut out, DeflateFlush::SyncFlush).expect("room for the output");
    out.truncate((state.total_out() - before) as usize - 4);
    out
}

#[test]
fn messages_in_context_need_the_kept_window() {
    let mut deflate = Deflate::new(6, false, 15);
    let mut inflater = Inflater::default();
    for n in 0..50 {
        let message = format!("a sentence that comes back with number {n} again and again");
        let payload = compress(&mut deflate, message.as_bytes());
        let mut plain = Vec::new();
        inflater.message(&payload, &mut plain).expect("a valid payload");
        assert_eq!(plain, message.as_bytes());
    }
    let payload = compress(&mut deflate, b"a sentence that comes back with number");
    let inflated = Inflater::default().message(&payload, &mut Vec::new());
    assert!(inflated.is_err(), "a fresh window has no such past");
}

#[test]
fn a_message_larger_than_the_output_piece_comes_out_whole() {
    for length in [OUTPUT_BYTES - 1, OUTPUT_BYTES, OUTPUT_BYTES + 1, 5 * OUTPUT_BYTES] {
        let message: Vec<u8> = (0..length).map(|n| ((n * n) >> 3) as u8).collect();
        let payload = compress(&mut Deflate::new(6, false, 15), &message);
        let mut plain = Vec::new();
        Inflater::default().message(&payload, &mut plain).expect("a valid payload");
        assert_eq!(plain, message);
    }
}

#[test]
fn a_final_block_is_refused() {
    // RFC 7692 §7.2.3.4: "Hello" with BFINAL set.
    let payload = [0xf3, 0x48, 0xcd, 0xc9, 0xc9, 0x07, 0x00, 0x00];
    assert!(Inflater::default().message(&payload, &mut Vec::new()).is_err());
}

#[test]
fn the_examples_of_the_rfc_inflate() {
    // RFC 7692 §7.2.3.1 and §7.2.3.2: the second one refers back to the first.
    let mut inflater = Inflater::default();
    for payload in
        [&[0xf2, 0x48, 0xcd, 0xc9, 0xc9, 0x07, 0x00][..], &[0xf2, 0x00, 0x11, 0x00, 0x00]]
    {
        let mut plain = Vec::new();
        inflater.message(payload, &mut plain).expect("an example of the RFC");
        assert_eq!(plain, b"Hello");
    }
}
