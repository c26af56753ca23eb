//! Tests of `close`: what a client may put into a close frame (RFC 6455 §5.5.1, §7.4).
//! Payload → code and reason, or a failure.
//! Uses only `close`.
//! Changed here: cases of close payloads.

use super::*;

#[test]
fn an_empty_payload_has_no_code() {
    check(b"", Ok(None));
}

#[test]
fn a_payload_of_one_byte_fails_with_1002() {
    check(&[3], Err(Failure::CloseTooShort));
}

#[test]
fn a_code_may_stand_alone_or_with_a_reason() {
    check(&[0x03, 0xe8], Ok(Some((1000, ""))));
    check(b"\x03\xe8going away", Ok(Some((1000, "going away"))));
}

#[test]
fn codes_that_may_be_sent_pass() {
    let registered = [1000, 1001, 1002, 1003, 1007, 1008, 1009, 1010, 1011, 1012, 1013, 1014];
    for code in registered.into_iter().chain([3000, 3999, 4000, 4999]) {
        check_code(code, true);
    }
}

#[test]
fn codes_that_must_not_be_sent_fail_with_1002() {
    // RFC 6455 §7.4.1 and §7.4.2; Autobahn 7.9.*
    for code in [0, 1, 999, 1004, 1005, 1006, 1015, 1016, 1100, 2000, 2999, 5000, 65_535] {
        check_code(code, false);
    }
}

#[test]
fn a_reason_that_is_not_utf_8_fails_with_1007() {
    check(b"\x03\xe8\xce\xba\xe1\xbd\xb9\xed\xa0\x80", Err(Failure::CloseReasonNotUtf8));
    check(b"\x03\xe8\xce", Err(Failure::CloseReasonNotUtf8));
}

fn check_code(code: u16, passes: bool) {
    let expect = if passes { Ok(Some((code, ""))) } else { Err(Failure::CloseCode { code }) };
    check(&code.to_be_bytes(), expect);
}

fn check(payload: &[u8], expect: Result<Option<(u16, &str)>, Failure>) {
    assert_eq!(parse(payload), expect, "{payload:02x?}");
}
