//! Tests of commands and values: bytes of commands, and texts and numbers of values.
//! In: arguments, values of every kind → out: bytes on the wire, texts, numbers.
//! Uses the crate `redis`. Never: sockets.
//! A new kind of value is a row here.

use super::*;

#[test]
fn commands_are_arrays_of_texts() {
    let mut command = RedisCommand::new(3, 0);
    command.text("SET").text(b"\r\n").number(u64::MAX);
    let expected = b"*3\r\n$3\r\nSET\r\n$2\r\n\r\n\r\n$20\r\n18446744073709551615\r\n";
    assert_eq!(command.length(), 3 * FRAME_BYTES + 25);
    assert_eq!(command.into_cmd().get_packed_command(), expected);
    let ping = RedisCommand::of(&[b"PING"]);
    assert_eq!(ping.into_cmd().get_packed_command(), b"*1\r\n$4\r\nPING\r\n");
}

#[test]
fn values_are_taken_for_what_they_are() {
    let rows: [(Value, Option<&str>, Option<u64>); 7] = [
        (Value::BulkString(b"12".to_vec()), Some("12"), Some(12)),
        (Value::SimpleString("x".into()), Some("x"), None),
        (Value::BulkString(b"-1".to_vec()), Some("-1"), None),
        (Value::Int(7), None, Some(7)),
        (Value::Int(-7), None, None),
        (Value::Nil, None, None),
        (Value::Array(vec![]), None, None),
    ];
    for (value, expected_text, expected_number) in rows {
        let found = text(value.clone());
        assert_eq!(found.as_deref(), expected_text.map(str::as_bytes), "{value:?}");
        assert_eq!(number(value.clone()), expected_number, "{value:?}");
    }
    assert_eq!(parts(Value::Array(vec![Value::Nil])), Some(vec![Value::Nil]));
    assert_eq!(parts(Value::Nil), None);
}
