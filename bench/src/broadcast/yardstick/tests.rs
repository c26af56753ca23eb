//! Tests of the yardstick: the bytes are Fanwire's, and the echo carries as many as it is told to.
//! In: payloads, sizes → out: records, a time.
//! Uses a socket of its own on the loopback; never a Redis.
//! Changed here: expectations of `yardstick`; how fast it is belongs to no test.

use super::*;

#[test]
fn a_record_is_a_version_byte_and_two_heads_around_the_payload() {
    assert_eq!(record("{}"), b"\x01\x0a\x04\x22\x02{}");
    let long = record(&"x".repeat(200));
    assert_eq!(long[..7], *b"\x01\x0a\xcb\x01\x22\xc8\x01");
    assert_eq!(long.len(), 207);
}

#[test]
fn the_echo_answers_every_call_with_as_many_bytes() {
    for answer_bytes in [1, 300_000] {
        let us = echo_us(b"a request", answer_bytes, 3, 0).expect("a loopback");
        assert!(us > 0.0);
    }
}
