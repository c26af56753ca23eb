//! Tests of `shadow`: what it agrees with, and each kind of mismatch.
//! Payloads, whole and damaged → agreement or the mismatch.
//! Uses the crate's encoder, and bits written by hand where that would never do wrong.
//! Changed here: cases of mismatches.

use super::*;
use crate::bits::{BitWriter, SLACK_BYTES};
use crate::block::{Histogram, Plan, write_flush};
use crate::token::{Gaps, Sequences, Token};
use crate::{Compressor, Dedicated, Scratch};

#[test]
fn messages_in_context_agree_in_every_window() {
    for window_bits in 9..=15 {
        let mut dedicated = Dedicated::new(window_bits, 8, 6);
        let mut shadow = Shadow::new(window_bits);
        for at in 0..50 {
            let message = format!(r#"{{"seq":{at},"text":"again and again"}}"#).repeat(at % 30);
            let mut payload = Vec::new();
            dedicated.compress(message.as_bytes(), &mut Scratch::default(), &mut payload);
            assert_eq!(shadow.check(&payload, message.as_bytes()), Ok(()), "{window_bits} bits");
        }
    }
}

#[test]
fn the_largest_distance_is_the_size_of_the_window() {
    for window_bits in 9..=15 {
        let window = 1 << window_bits;
        check_distance(window_bits, window, Ok(()));
        if window_bits < 15 {
            let distance = window + 1;
            check_distance(window_bits, distance, Err(Mismatch::TooFar { distance }));
        }
    }
}

/// A copy of 90 bytes from `distance` bytes back.
fn check_distance(window_bits: u8, distance: usize, expect: Result<(), Mismatch>) {
    let message: Vec<u8> = (0..40_000u32).map(|at| (at * at / 128) as u8).collect();
    let mut shadow = Shadow::new(window_bits);
    let mut payload = Vec::new();
    Compressor::new(6).standalone_within(window_bits, &message, &mut payload);
    assert_eq!(shadow.check(&payload, &message), Ok(()));
    let copied = &message[message.len() - distance..][..90];
    let payload = payload_of(copied, 0, Token::copy(90, distance));
    assert_eq!(shadow.check(&payload, copied), expect, "{distance} with {window_bits} bits");
}

#[test]
fn a_distance_before_the_first_byte_is_corrupt() {
    let payload = payload_of(b"aaaaa", 1, Token::copy(4, 2));
    assert_eq!(Shadow::new(15).check(&payload, b"aaaaa"), Err(Mismatch::Corrupt { at: 1 }));
}

#[test]
fn other_plaintext_differs() {
    let payload = standalone(b"one message");
    check(&payload, b"one message", Ok(()));
    check(&payload, b"one massage", Err(Mismatch::Differs { at: 5 }));
    check(&payload, b"one", Err(Mismatch::Differs { at: 3 }));
    check(&payload, b"one message more", Err(Mismatch::Differs { at: 11 }));
}

#[test]
fn a_final_block_is_a_mismatch() {
    let mut payload = standalone(b"one message");
    payload[0] |= 1;
    check(&payload, b"one message", Err(Mismatch::Final));
}

#[test]
fn a_payload_that_ends_inside_a_block_is_a_mismatch() {
    for message in [&b"one message"[..], &[0x95; 40], &[]] {
        let payload = standalone(message);
        for cut in 0..payload.len() {
            let result = Shadow::new(15).check(&payload[..cut], message);
            assert!(result.is_err(), "{cut} of {} bytes", payload.len());
        }
    }
}

#[test]
fn messages_in_another_order_are_a_mismatch() {
    let mut dedicated = Dedicated::new(15, 8, 6);
    let payloads = [b"the first message", b"the third message"].map(|message| {
        let mut payload = Vec::new();
        dedicated.compress(message, &mut Scratch::default(), &mut payload);
        payload
    });
    let mut shadow = Shadow::new(15);
    assert_eq!(shadow.check(&payloads[0], b"the first message"), Ok(()));
    assert_eq!(shadow.check(&standalone(b"another one"), b"another one"), Ok(()));
    assert!(shadow.check(&payloads[1], b"the third message").is_err());
}

fn check(payload: &[u8], message: &[u8], expect: Result<(), Mismatch>) {
    for window_bits in [9, 15] {
        assert_eq!(Shadow::new(window_bits).check(payload, message), expect);
    }
}

fn standalone(message: &[u8]) -> Vec<u8> {
    let mut payload = Vec::new();
    Compressor::new(6).standalone(message, &mut payload);
    payload
}

/// One block of so many literals and a copy, which need not make sense.
fn payload_of(message: &[u8], literals: usize, copy: Token) -> Vec<u8> {
    let mut sequences = Sequences::default();
    sequences.literals(literals);
    sequences.copy(copy);
    let sequences = sequences.end();
    let mut payload = vec![0; 100 + SLACK_BYTES];
    let mut writer = BitWriter::new(&mut payload);
    let plan = Plan::fixed(&Histogram::new(sequences, message), 10_000);
    plan.write(sequences, message, &Gaps::NONE, &mut writer);
    write_flush(&mut writer);
    let len = writer.finish();
    payload.truncate(len);
    payload
}
