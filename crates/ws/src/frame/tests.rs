//! Tests of `frame`: the bytes of server frames (RFC 6455 §5.2, §5.5.1).
//! Opcode, RSV1, payload → bytes in hex.
//! Uses only `frame`; that clients can read the frames is tested in `tests/it`.
//! Changed here: cases about the layout of a frame.

use super::*;

#[test]
fn the_examples_of_rfc_6455_section_5_7_are_written_byte_for_byte() {
    // RFC 6455 §5.1b, §5.2a, §6.1b, §6.1c, §6.1d
    check(Opcode::Text, false, b"Hello", "81 05 48 65 6c 6c 6f");
    check(Opcode::Ping, false, b"Hello", "89 05 48 65 6c 6c 6f");
    check_header(Opcode::Binary, 256, "82 7e 01 00");
    check_header(Opcode::Binary, 65_536, "82 7f 00 00 00 00 00 01 00 00");
}

#[test]
fn a_length_takes_as_few_bytes_as_it_needs() {
    // RFC 6455 §5.2e
    check_header(Opcode::Text, 0, "81 00");
    check_header(Opcode::Text, 125, "81 7d");
    check_header(Opcode::Text, 126, "81 7e 00 7e");
    check_header(Opcode::Text, 65_535, "81 7e ff ff");
}

#[test]
fn rsv1_marks_a_compressed_message() {
    // RFC 7692 §6.1c, §6.1d; §7.2.3.1
    check(Opcode::Text, true, b"\xf2\x48\xcd\xc9\xc9\x07\x00", "c1 07 f2 48 cd c9 c9 07 00");
    check(Opcode::Text, false, b"Hello", "81 05 48 65 6c 6c 6f");
}

#[test]
fn a_frame_is_appended_in_at_most_one_allocation() {
    let mut out = vec![7];
    encode(Opcode::Pong, false, &[], &mut out);
    assert_eq!(out, [7, 0x8a, 0x00]);
    assert!(out.capacity() > HEADER_BYTES_MAX);
}

#[test]
fn a_payload_that_is_in_place_gets_the_same_header_before_it() {
    for bytes in [0, 125, 126, 65_535, 65_536] {
        let payload: Vec<u8> = (0..bytes).map(|at| at as u8).collect();
        for rsv1 in [false, true] {
            let mut expected = Vec::new();
            encode(Opcode::Binary, rsv1, &payload, &mut expected);
            let mut out = [&[7; 3 + HEADER_BYTES_MAX][..], &payload].concat();
            let start = encode_before(Opcode::Binary, rsv1, 3 + HEADER_BYTES_MAX, &mut out);
            assert_eq!(out[start..], expected);
            assert!(out[..start].iter().all(|byte| *byte == 7), "nothing else is touched");
        }
    }
}

#[test]
fn a_close_frame_carries_code_and_reason() {
    // RFC 6455 §5.5.1a
    check_close(1000, "bye", "88 05 03 e8 62 79 65");
    check_close(3001, "", "88 02 0b b9");
}

#[test]
fn a_close_reason_is_cut_at_123_bytes_between_two_characters() {
    // RFC 6455 §5.5a: a control frame's payload is 125 bytes or less.
    let mut out = Vec::new();
    encode_close(1000, &"x".repeat(200), &mut out);
    assert_eq!(out.len(), 2 + 125);
    let mut out = Vec::new();
    encode_close(1000, &format!("{}\u{20ac}", "x".repeat(121)), &mut out); // 3 bytes from 121 on
    assert_eq!(out.len(), 2 + 2 + 121);
    assert_eq!(out[1], 123);
}

#[test]
fn a_code_that_must_not_be_sent_gives_an_empty_close_frame() {
    // RFC 6455 §7.4.1a
    for code in [1005, 1006, 1015] {
        check_close(code, "never sent", "88 00");
    }
}

fn check(opcode: Opcode, rsv1: bool, payload: &[u8], expect: &str) {
    let mut out = Vec::new();
    encode(opcode, rsv1, payload, &mut out);
    assert_eq!(hex(&out), expect);
}

fn check_header(opcode: Opcode, payload_bytes: usize, expect: &str) {
    let mut out = Vec::new();
    encode(opcode, false, &vec![0; payload_bytes], &mut out);
    let header_bytes = out.len() - payload_bytes;
    assert_eq!(hex(&out[..header_bytes]), expect);
}

fn check_close(code: u16, reason: &str, expect: &str) {
    let mut out = Vec::new();
    encode_close(code, reason, &mut out);
    assert_eq!(hex(&out), expect);
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect::<Vec<_>>().join(" ")
}
