//! Tests of files of messages.
//! In: names and bytes → out: samples and errors.
//! Uses the room's functions. Never: a file system.
//! A form of file, and a mistake in one, is a test here.

use std::path::Path;

use fanwire_protocol::Encoding;

use super::{InputError, MESSAGE_BYTES_MAX, Sample, read};

fn messages(name: &str, bytes: &[u8]) -> Sample {
    read(Path::new(name), bytes, 100).expect("a good file")
}

/// The error is this one, and its text says what the file should hold.
fn refused(name: &str, bytes: &[u8], expect: InputError) {
    let error = read(Path::new(name), bytes, 100).expect_err("a bad file");
    assert_eq!(error, expect);
    let text = error.to_string();
    assert!(text.contains("one JSON text a line") && text.contains("little-endian"), "{text}");
}

fn record(payload: &[u8]) -> Vec<u8> {
    [&(payload.len() as u32).to_le_bytes()[..], payload].concat()
}

#[test]
fn lines_are_messages_of_the_channel_that_the_file_is_named_after() {
    let sample = messages("folder/score.jsonl", b"{\"a\":1}\n[2]\r\n\n 3 \n");
    assert_eq!(sample.file, "score.jsonl");
    assert_eq!(sample.channel, "score");
    assert_eq!(sample.encoding, Encoding::Json);
    assert_eq!(sample.payloads, [&b"{\"a\":1}"[..], b"[2]", b"3"]);
    assert!(!sample.has_more);
}

#[test]
fn records_are_binary_messages() {
    let bytes = [record(b"\x00\xff"), record(b"abc")].concat();
    for name in ["game.bin", "game"] {
        let sample = messages(name, &bytes);
        assert_eq!(sample.encoding, Encoding::Protobuf);
        assert_eq!(sample.payloads, [&b"\x00\xff"[..], b"abc"]);
    }
}

#[test]
fn without_a_known_ending_the_content_decides() {
    assert_eq!(messages("log", b"{}\n{}\n").encoding, Encoding::Json);
    let truncated = InputError::Truncated { record: 2, announced: 9, left: 1 };
    refused("log", &[record(b"abc"), b"\x09\0\0\0x".to_vec()].concat(), truncated);
}

#[test]
fn a_byte_order_mark_is_no_part_of_the_first_message() {
    assert_eq!(messages("a.jsonl", b"\xef\xbb\xbf{}\n{}\n").payloads, [b"{}", b"{}"]);
}

#[test]
fn no_more_messages_are_taken_than_wanted() {
    let sample = read(Path::new("a.jsonl"), b"1\n2\n3\nnot looked at", 3).expect("three");
    assert!(sample.payloads.len() == 3 && sample.has_more);
    let bytes = [record(b"1"), record(b"2"), b"cut".to_vec()].concat();
    let sample = read(Path::new("a.bin"), &bytes, 2).expect("two");
    assert!(sample.payloads.len() == 2 && sample.has_more);
}

#[test]
fn a_file_without_messages_is_refused() {
    for name in ["a.jsonl", "a.bin", "a"] {
        refused(name, b"", InputError::Empty);
    }
    refused("a.jsonl", b"\n \n", InputError::Empty);
}

#[test]
fn one_message_is_refused() {
    refused("a.jsonl", b"{}\n", InputError::OneMessage);
    refused("a.bin", &record(b"x"), InputError::OneMessage);
}

#[test]
fn a_line_that_is_no_json_is_named() {
    let expected = |line, column, reason: &str| InputError::NotJson {
        line,
        column,
        reason: reason.to_owned(),
    };
    refused("a.jsonl", b"{}\n\n{\"a\":}\n", expected(3, 6, "expected value"));
    refused("a.json", b"{\n  \"a\": 1\n}\n", expected(1, 1, "EOF while parsing an object"));
    refused("a.jsonl", b"{} {}\n", expected(1, 4, "trailing characters"));
}

#[test]
fn a_broken_record_is_named() {
    refused("a.bin", b"\x01\0\0\0xy", InputError::Truncated { record: 2, announced: 4, left: 1 });
    refused("a.bin", b"\x05\0\0\0xy", InputError::Truncated { record: 1, announced: 5, left: 2 });
    refused(
        "a.bin",
        b"\xff\xff\xff\xff",
        InputError::Truncated { record: 1, announced: u32::MAX as usize, left: 0 },
    );
    refused("a.bin", b"\0\0\0\0", InputError::EmptyRecord { record: 1 });
}

#[test]
fn a_message_beyond_the_limit_is_refused() {
    let long = vec![b'1'; MESSAGE_BYTES_MAX + 1];
    let bytes = [b"1\n", &long[..]].concat();
    refused("a.jsonl", &bytes, InputError::TooLong { message: 2, bytes: MESSAGE_BYTES_MAX + 1 });
}
