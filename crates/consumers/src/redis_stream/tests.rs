//! Tests of replies of Redis as messages.
//! In: values of both versions of the protocol → out: messages, ages.
//! Uses values only. Never: a Redis, which tests/it has.
//! A form of a reply is a test here.

use crate::options::PublicationDataMode;

use super::*;

fn text(text: &str) -> Value {
    Value::BulkString(text.into())
}

fn entry(id: &str, fields: &[&str]) -> Value {
    Value::Array(vec![text(id), Value::Array(fields.iter().map(|field| text(field)).collect())])
}

fn options(is_enabled: bool) -> RedisStreamOptions {
    let publication_data_mode = PublicationDataMode { enabled: is_enabled, ..Default::default() };
    RedisStreamOptions {
        payload_value: "payload".to_owned(),
        method_value: "method".to_owned(),
        publication_data_mode,
        ..RedisStreamOptions::default()
    }
}

#[test]
fn entries_are_messages_in_both_protocols() {
    let all =
        || Value::Array(vec![entry("5-1", &["method", "publish", "payload", "{}", "x", "1"])]);
    let payload = Some(Bytes::from_static(b"{}"));
    let id = "5-1".to_owned();
    let expected = QueueMessage { id, method: "publish".to_owned(), payload, headers: Vec::new() };
    let replies = [
        Value::Map(vec![(text("s"), all())]),
        Value::Array(vec![Value::Array(vec![text("s"), all()])]),
    ];
    for reply in replies {
        let found = entries(of_first_stream(reply), &options(false));
        assert_eq!(found, [(Bytes::from_static(b"5-1"), expected.clone())]);
    }
    assert!(entries(of_first_stream(Value::Nil), &options(false)).is_empty());
}

#[test]
fn other_fields_are_headers_for_data_of_publications() {
    let found = entries(
        Value::Array(vec![entry("1-0", &["payload", "1", "centrifugo-channels", "ä"])]),
        &options(true),
    );
    assert_eq!(found[0].1.headers, [("centrifugo-channels".to_owned(), "ä".to_owned())]);
}

#[test]
fn an_entry_that_was_deleted_has_no_payload_and_still_an_id() {
    let found =
        entries(Value::Array(vec![Value::Array(vec![text("1-0"), Value::Nil])]), &options(false));
    let expected = QueueMessage { id: "1-0".to_owned(), ..QueueMessage::default() };
    assert_eq!(found, [(Bytes::from_static(b"1-0"), expected)]);
}

#[test]
fn the_age_of_an_id_is_the_time_since_its_milliseconds() {
    assert!(age(b"1000-0") > Duration::from_secs(1_000_000_000));
    assert_eq!(age(b"99999999999999999-0"), Duration::ZERO);
    assert_eq!(age(b"x"), Duration::ZERO);
}
