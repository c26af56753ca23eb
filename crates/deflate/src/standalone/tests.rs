//! Tests of `standalone`: the form of a payload (RFC 7692 §7.2.1).
//! Messages → bytes of the payload.
//! Uses only `standalone`; that payloads decode again is tested in `tests/it`.
//! Changed here: cases about the form of the output.

use super::*;

#[test]
fn hello_is_the_example_of_rfc_7692_section_7_2_3_1() {
    for level in 1..=9 {
        check(level, b"Hello", &[0xf2, 0x48, 0xcd, 0xc9, 0xc9, 0x07, 0x00]);
    }
}

#[test]
fn an_empty_message_is_one_zero_byte() {
    for level in 1..=9 {
        check(level, b"", &[0x00]); // RFC 7692 §7.2.3.6
    }
}

#[test]
fn levels_outside_one_to_nine_are_brought_into_range() {
    check(0, b"Hello", &[0xf2, 0x48, 0xcd, 0xc9, 0xc9, 0x07, 0x00]);
    check(255, b"Hello", &[0xf2, 0x48, 0xcd, 0xc9, 0xc9, 0x07, 0x00]);
}

#[test]
fn what_was_in_the_buffer_stays_in_front() {
    let mut out = b"header".to_vec();
    Compressor::new(6).standalone(b"Hello", &mut out);
    assert_eq!(out, b"header\xf2\x48\xcd\xc9\xc9\x07\x00");
}

#[test]
fn a_message_compresses_the_same_whatever_came_before() {
    let mut compressor = Compressor::new(6);
    let mut first = Vec::new();
    compressor.standalone(b"the same bytes, the same bytes", &mut first);
    compressor.standalone(&[7; 100_000], &mut Vec::new());
    let mut second = Vec::new();
    compressor.standalone(b"the same bytes, the same bytes", &mut second);
    assert_eq!(first, second);
}

fn check(level: u8, message: &[u8], expect: &[u8]) {
    let mut out = Vec::new();
    Compressor::new(level).standalone(message, &mut out);
    assert_eq!(out, expect, "level {level}");
}
