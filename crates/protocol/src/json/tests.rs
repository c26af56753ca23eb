//! Tests of `json`: what each kind of field takes and gives.
//! In: JSON texts. Out: messages, and texts again.
//! Uses a few messages that have each kind of field.
//! Which field is of which kind is checked against the .proto file in `tests/it`.

use super::*;
use crate::message::{
    ConnectRequest, Dictionary, EmulationRequest, FilterNode, PublishRequest, SubRefreshRequest,
    SubscribeRequest,
};

#[test]
fn null_is_absent_for_every_kind_of_field_but_payloads() {
    let text = br#"{"token":null,"subs":null,"headers":null,"flag":null}"#;
    assert_eq!(read(text), Ok(ConnectRequest::default()));
    let text = br#"{"recover":null,"offset":null,"tf":null,"type":null}"#;
    assert_eq!(read(text), Ok(SubscribeRequest::default()));
    let text = br#"{"vals":null,"nodes":null}"#;
    assert_eq!(read(text), Ok(FilterNode::default()));
    let request: PublishRequest = read(br#"{"channel":"c","data":null}"#).expect("a request");
    assert_eq!(request.data, "null");
}

#[test]
fn null_inside_lists_and_maps_is_the_default() {
    let filter: FilterNode = read(br#"{"vals":["a",null],"nodes":[null]}"#).expect("a filter");
    assert_eq!(filter.vals, ["a", ""]);
    assert_eq!(filter.nodes, [FilterNode::default()]);
    let text = br#"{"subs":{"c":null},"headers":{"h":null}}"#;
    let connect: ConnectRequest = read(text).expect("a request");
    assert_eq!(connect.subs["c"], SubscribeRequest::default());
    assert_eq!(connect.headers["h"], "");
}

#[test]
fn a_filter_reads_as_a_tree() {
    let text = br#"{"op":"and","nodes":[{"key":"k","cmp":"in","vals":["1","2"]},{"op":"not"}]}"#;
    let leaf = FilterNode {
        key: "k".into(),
        cmp: "in".into(),
        vals: vec!["1".into(), "2".into()],
        ..FilterNode::default()
    };
    let not = FilterNode { op: "not".into(), ..FilterNode::default() };
    let and = FilterNode { op: "and".into(), nodes: vec![leaf, not], ..FilterNode::default() };
    check(text, &and);
}

#[test]
fn a_payload_of_any_json_is_kept_as_text() {
    for data in ["{\"a\": 1}", "[]", "\"\\u0000\"", "0", "1e999", "true", "{\"data\":null}"] {
        let message = PublishRequest { data: data.into(), ..PublishRequest::default() };
        check(format!("{{\"data\":{data}}}").as_bytes(), &message);
    }
}

#[test]
fn half_a_surrogate_pair_is_a_replacement_character() {
    let checks = [
        (r#""\ud800""#, "\u{fffd}"),
        (r#""\udc00\ud800""#, "\u{fffd}\u{fffd}"),
        (r#""\ud83d\ud83d\ude80""#, "\u{fffd}🚀"),
        (r#""a\uD83Dz\\ud800\n\uDE80""#, "a\u{fffd}z\\ud800\n\u{fffd}"),
        (r#""ä\ud800🚀""#, "ä\u{fffd}🚀"),
    ];
    for (text, expected) in checks {
        let request: PublishRequest =
            read(format!(r#"{{"channel":{text}}}"#).as_bytes()).expect("a request");
        assert_eq!(request.channel, expected, "{text}");
        let connect: ConnectRequest =
            read(format!(r#"{{{text}:1,"headers":{{{text}:{text}}}}}"#).as_bytes())
                .expect("a request");
        assert_eq!(connect.headers[expected], expected, "{text}");
    }
    let payload: PublishRequest = read(br#"{"data":"\ud800"}"#).expect("a request");
    assert_eq!(payload.data, r#""\ud800""#, "a payload is not touched");
}

#[test]
fn a_broken_escape_is_an_error_beside_half_a_surrogate_pair_too() {
    for text in
        [r"\ud80", r"\ud800\", r"\ud800\x", r"\ud800\u12", r"\u+800", r"\ud800\u+123", "\\ud800\t"]
    {
        let read = read::<PublishRequest>(format!(r#"{{"channel":"{text}"}}"#).as_bytes());
        assert!(matches!(read, Err(DecodeError::JsonSyntax { .. })), "{text}: {read:?}");
    }
}

#[test]
fn a_text_is_utf_8_in_what_is_skipped_too() {
    for text in [&b"{\"what\":\"\xff\"}"[..], b"{\"\xff\":1}", b"{\"a\":\"\xed\xa0\x80\"}"] {
        let read = read::<PublishRequest>(text);
        assert!(matches!(read, Err(DecodeError::JsonSyntax { .. })), "{text:?}: {read:?}");
    }
}

#[test]
fn line_ends_inside_a_payload_are_removed_and_escaped_ones_stay() {
    let data = Bytes::from_static(b"\n{\r\n\"a\":\n\"\\n\\r\"\r}\n");
    let mut out = Vec::new();
    write(&Dictionary { data, ..Dictionary::default() }, &mut out).expect("JSON inside");
    assert_eq!(out, b"{\"data\":{\"a\":\"\\n\\r\"}}");
}

#[test]
fn numbers_of_64_bits_are_plain() {
    let subscribe =
        SubscribeRequest { offset: u64::MAX, flag: i64::MIN, ..SubscribeRequest::default() };
    check(br#"{"offset":18446744073709551615,"flag":-9223372036854775808}"#, &subscribe);
}

#[test]
fn lists_and_maps_of_texts_read_as_they_are() {
    let untrack = vec!["a".to_owned(), "b".to_owned()];
    let message = SubRefreshRequest { untrack, ..SubRefreshRequest::default() };
    check(br#"{"untrack":["a","b"]}"#, &message);
    let headers = [("h".to_owned(), "<".to_owned())].into();
    let message = ConnectRequest { headers, ..ConnectRequest::default() };
    check(br#"{"headers":{"h":"\u003c"}}"#, &message);
}

#[test]
fn emulated_commands_are_a_string() {
    let data = Bytes::from_static(b"{\"id\":1}\n{}");
    let message = EmulationRequest { session: "s".into(), data, ..EmulationRequest::default() };
    check(br#"{"session":"s","data":"{\"id\":1}\n{}"}"#, &message);
}

/// The text reads as the message, and the message is written as the text.
fn check<T>(text: &[u8], message: &T)
where
    T: for<'de> Deserialize<'de> + Serialize + PartialEq + fmt::Debug,
{
    assert_eq!(read::<T>(text).as_ref(), Ok(message));
    let mut out = Vec::new();
    write(message, &mut out).expect("JSON inside");
    assert_eq!(out.escape_ascii().to_string(), text.escape_ascii().to_string());
}
