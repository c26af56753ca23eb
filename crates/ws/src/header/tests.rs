//! Tests of `header`: every rule about a client frame's header (RFC 6455 §5.1–§5.5, RFC 7692 §6.1).
//! Bytes in hex, and what is allowed → a header or a failure.
//! Uses only `header`; the same rules within a stream are tested in `reader`.
//! Changed here: cases of one header.

use super::*;

#[test]
fn a_header_is_read_when_its_last_byte_is_there() {
    let whole = "81 fe 01 00 01 02 03 04";
    check(START, whole, Ok(Some((Opcode::Text, 256, 8))));
    check(START, "81 fe 01 00 01 02 03", Ok(None));
    check(START, "", Ok(None));
}

#[test]
fn the_three_forms_of_a_length_are_read() {
    // RFC 6455 §5.2
    check(START, "82 80 00 00 00 00", Ok(Some((Opcode::Binary, 0, 6))));
    check(START, "82 fd 00 00 00 00", Ok(Some((Opcode::Binary, 125, 6))));
    check(START, "82 fe 00 7e 00 00 00 00", Ok(Some((Opcode::Binary, 126, 8))));
    check(START, "82 fe ff ff 00 00 00 00", Ok(Some((Opcode::Binary, 65_535, 8))));
    let header = "82 ff 00 00 00 00 00 01 00 00 00 00 00 00";
    check(START, header, Ok(Some((Opcode::Binary, 65_536, 14))));
}

#[test]
fn reserved_bits_fail_with_1002() {
    // RFC 6455 §5.2b
    for first in ["91", "a1", "b1", "f1", "90", "99"] {
        check(START, first, Err(Failure::ReservedBits));
    }
    check(START, "c1", Err(Failure::ReservedBits));
}

#[test]
fn rsv1_starts_a_compressed_message_when_agreed_and_means_nothing_elsewhere() {
    // RFC 7692 §6.1b
    let agreed = Allowed { rsv1: true, ..START };
    check(agreed, "c1 80 00 00 00 00", Ok(Some((Opcode::Text, 0, 6))));
    check(agreed, "42 80 00 00 00 00", Ok(Some((Opcode::Binary, 0, 6))));
    check(Allowed { continuation: true, ..agreed }, "c0", Err(Failure::MisplacedRsv1));
    check(agreed, "c8", Err(Failure::MisplacedRsv1));
    check(agreed, "c9", Err(Failure::MisplacedRsv1));
    check(agreed, "ca", Err(Failure::MisplacedRsv1));
    check(agreed, "e1", Err(Failure::ReservedBits));
    check(agreed, "d1", Err(Failure::ReservedBits));
}

#[test]
fn reserved_opcodes_fail_with_1002() {
    // RFC 6455 §5.2c
    for opcode in [3, 4, 5, 6, 7, 11, 12, 13, 14, 15] {
        check(START, &format!("8{opcode:x}"), Err(Failure::ReservedOpcode { opcode }));
        check(START, &format!("0{opcode:x}"), Err(Failure::ReservedOpcode { opcode }));
    }
}

#[test]
fn a_fragmented_control_frame_fails_with_1002() {
    // RFC 6455 §5.4a, §5.5a
    for first in ["08", "09", "0a"] {
        check(START, first, Err(Failure::FragmentedControl));
    }
}

#[test]
fn a_control_frame_of_126_bytes_or_more_fails_with_1002() {
    // RFC 6455 §5.5
    for first in ["88", "89", "8a"] {
        check(START, &format!("{first} fe"), Err(Failure::ControlTooLong));
        check(START, &format!("{first} ff"), Err(Failure::ControlTooLong));
    }
    check(START, "89 fd 00 00 00 00", Ok(Some((Opcode::Ping, 125, 6))));
}

#[test]
fn an_unmasked_frame_fails_with_1002() {
    // RFC 6455 §5.1a
    check(START, "81 05", Err(Failure::Unmasked));
    check(START, "89 00", Err(Failure::Unmasked));
    check(START, "88 7f", Err(Failure::Unmasked));
}

#[test]
fn a_length_in_more_bytes_than_needed_fails_with_1002() {
    // RFC 6455 §5.2e: "the minimal number of bytes MUST be used to encode the length"
    check(START, "81 fe 00 7d", Err(Failure::LengthNotMinimal));
    check(START, "81 fe 00 00", Err(Failure::LengthNotMinimal));
    check(START, "81 ff 00 00 00 00 00 00 ff ff", Err(Failure::LengthNotMinimal));
}

#[test]
fn a_64_bit_length_with_its_highest_bit_set_fails_with_1002() {
    // RFC 6455 §5.2d
    check(START, "81 ff 80 00 00 00 00 00 00 00", Err(Failure::LengthHighBit));
    check(START, "81 ff ff ff ff ff ff ff ff ff", Err(Failure::LengthHighBit));
}

#[test]
fn a_length_beyond_the_limit_fails_with_1009_before_any_payload() {
    // RFC 6455 §7.4.1, §10.4a
    let too_big = Err(Failure::MessageTooBig { bytes_max: 1 << 20 });
    check(START, "81 ff 00 00 00 00 00 10 00 01", too_big);
    check(START, "81 ff 7f ff ff ff ff ff ff ff", too_big);
    check(Allowed { payload_bytes: 4, ..START }, "81 85", too_big);
    check(
        Allowed { payload_bytes: 0, ..START },
        "89 85 00 00 00 00",
        Ok(Some((Opcode::Ping, 5, 6))),
    );
}

#[test]
fn a_continuation_without_a_message_fails_with_1002() {
    // RFC 6455 §5.4
    check(START, "80", Err(Failure::ContinuationWithoutStart));
    check(START, "00", Err(Failure::ContinuationWithoutStart));
}

#[test]
fn a_message_within_a_fragmented_message_fails_with_1002() {
    // RFC 6455 §5.4c
    let open = Allowed { continuation: true, ..START };
    check(open, "81", Err(Failure::MessageInterleaved));
    check(open, "02", Err(Failure::MessageInterleaved));
    check(open, "80 80 00 00 00 00", Ok(Some((Opcode::Continuation, 0, 6))));
    check(open, "89 80 00 00 00 00", Ok(Some((Opcode::Ping, 0, 6))));
}

const START: Allowed = Allowed {
    rsv1: false,
    continuation: false,
    payload_bytes: 1 << 20,
    message_bytes_max: 1 << 20,
};

/// Opcode, payload bytes, header bytes.
type Short = (Opcode, usize, usize);

fn check(allowed: Allowed, bytes: &str, expect: Result<Option<Short>, Failure>) {
    let bytes: Vec<u8> = bytes
        .split(' ')
        .filter(|byte| !byte.is_empty())
        .map(|byte| u8::from_str_radix(byte, 16).expect("hex"))
        .collect();
    let short = |header: FrameHeader| (header.opcode, header.payload_bytes, header.header_bytes);
    let result = parse::<true>(&bytes, allowed);
    assert_eq!(result.map(|header| header.map(short)), expect, "{bytes:02x?}");
    if result == Ok(None) {
        return;
    }
    // A failure names the byte that broke the rule: nothing before it fails otherwise.
    for cut in 0..bytes.len() {
        let early = parse::<true>(&bytes[..cut], allowed);
        assert!(early == Ok(None) || early == result, "{bytes:02x?} cut at {cut}: {early:?}");
    }
}
