//! Tests of what surrounds a payload.
//! In: payloads → out: pushes and frame lengths.
//! Uses the room's functions. Never: a socket.
//! A new envelope is a test here.

use fanwire_protocol::Encoding;

use super::{delta_push, frame_bytes, push};

#[test]
fn a_json_push_embeds_its_payload() {
    let message = push(Encoding::Json, "score", 0, br#"{"a":1}"#);
    let expect = br#"{"push":{"channel":"score","pub":{"data":{"a":1},"offset":1}}}"#;
    assert_eq!(message, &expect[..]);
}

#[test]
fn a_binary_push_has_its_length_in_front() {
    let message = push(Encoding::Protobuf, "g", 0, b"\x00\xff");
    assert_eq!(usize::from(message[0]), message.len() - 1);
    assert!(message.windows(2).any(|bytes| bytes == b"\x00\xff"));
}

#[test]
fn a_delta_travels_in_a_string() {
    let message = delta_push(Encoding::Json, "s", 1, b"7\n3@0,;", true);
    let expect = br#"{"push":{"channel":"s","pub":{"data":"7\n3@0,;","offset":2,"delta":true}}}"#;
    assert_eq!(message, &expect[..]);
}

#[test]
fn a_delta_that_is_no_text_travels_in_bytes() {
    let message = delta_push(Encoding::Protobuf, "s", 1, b"\xc3", true);
    assert!(message.contains(&0xc3));
}

#[test]
fn frames_have_headers_of_two_four_or_ten_bytes() {
    let headers = [0, 125, 126, 65_535, 65_536].map(|bytes| frame_bytes(bytes) - bytes);
    assert_eq!(headers, [2, 2, 4, 4, 10]);
}
