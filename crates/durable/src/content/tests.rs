//! Tests of content: arrays, joins, events of SSE.
//! In: bodies → out: payloads, and texts of responses.
//! Uses proptest and a reader of SSE. Never: HTTP.
//! Changed here: how content is cut and joined.

use bytes::{Bytes, BytesMut};
use proptest::prelude::*;

use super::{ContentKind, ControlEvent};

fn payloads(body: &str) -> Result<Vec<String>, String> {
    let cut = ContentKind::Json.payloads(&Bytes::copy_from_slice(body.as_bytes()))?;
    Ok(cut.into_iter().map(|one| String::from_utf8(one.to_vec()).expect("UTF-8")).collect())
}

fn event(kind: ContentKind, content: &[u8]) -> String {
    let mut events = BytesMut::new();
    kind.write_event(&[Bytes::copy_from_slice(content)], &mut events);
    String::from_utf8(events.to_vec()).expect("UTF-8")
}

#[test]
fn an_array_is_flattened_by_one_level() {
    let check = |body: &str, expected: &[&str]| {
        assert_eq!(
            payloads(body),
            Ok(expected.iter().map(|&one| one.to_owned()).collect()),
            "{body}"
        );
    };
    check("", &[]);
    check("[]", &[]);
    check(" [1, {\"a\":[2]} ,[3,4]]\n", &["1", "{\"a\":[2]}", "[3,4]"]);
    check(" {\"a\": 1.50}\n", &["{\"a\": 1.50}"]);
    check("\"[\"", &["\"[\""]);
    for wrong in ["[1", "1 2", "{a:1}", "[1,]", "nul", "\u{0}"] {
        assert!(payloads(wrong).is_err(), "{wrong}");
    }
    let half = ContentKind::Json.payloads(&Bytes::from_static(b"\"\xc3\""));
    assert!(half.unwrap_err().contains("UTF-8"));
}

#[test]
fn kinds_are_of_the_type_without_parameters() {
    assert_eq!(ContentKind::of("Application/JSON; charset=utf-8"), ContentKind::Json);
    assert_eq!(ContentKind::of("text/plain"), ContentKind::Text);
    assert_eq!(ContentKind::of("application/ndjson"), ContentKind::Binary);
}

#[test]
fn each_line_of_content_is_a_line_of_data() {
    assert_eq!(
        event(ContentKind::Text, b"a\r\nb\rc\nevent: x"),
        "event: data\ndata:a\ndata:b\ndata:c\ndata:event: x\n\n"
    );
    assert_eq!(event(ContentKind::Text, b" a\n"), "event: data\ndata:  a\ndata:\n\n");
    assert_eq!(event(ContentKind::Json, b"{\"a\":1}"), "event: data\ndata:[{\"a\":1}]\n\n");
    assert_eq!(event(ContentKind::Binary, b"\xff\n"), "event: data\ndata:/wo=\n\n");
}

#[test]
fn a_control_event_of_a_closed_stream_has_no_cursor() {
    let control = |is_up_to_date, is_closed| {
        let mut events = BytesMut::new();
        let control = ControlEvent { next: "1_a", cursor: Some(7), is_up_to_date, is_closed };
        control.write(&mut events);
        String::from_utf8(events.to_vec()).expect("UTF-8")
    };
    assert_eq!(
        control(true, false),
        "event: control\ndata:{\"streamNextOffset\":\"1_a\",\"streamCursor\":\"7\",\"upToDate\":true}\n\n"
    );
    assert_eq!(
        control(true, true),
        "event: control\ndata:{\"streamNextOffset\":\"1_a\",\"upToDate\":true,\"streamClosed\":true}\n\n"
    );
    assert!(!control(false, false).contains("upToDate"));
}

proptest! {
    #[test]
    fn a_reader_of_sse_gets_the_content_with_plain_line_ends(content in "[a\r\n :]{0,20}") {
        let text = event(ContentKind::Text, content.as_bytes());
        let lines = text.strip_suffix("\n\n").expect("an event").lines().skip(1);
        let lines = lines.map(|line| {
            let value = line.strip_prefix("data:").expect("a line of data");
            value.strip_prefix(' ').unwrap_or(value)
        });
        let read = lines.collect::<Vec<_>>().join("\n");
        prop_assert_eq!(read, content.replace("\r\n", "\n").replace('\r', "\n"));
    }

    #[test]
    fn joined_payloads_are_the_array_that_was_cut(values in proptest::collection::vec(any::<i32>(), 0..9)) {
        let body: Bytes = serde_json::to_vec(&values).expect("JSON").into();
        let cut = ContentKind::Json.payloads(&body).expect("an array");
        prop_assert_eq!(cut.len(), values.len());
        prop_assert_eq!(ContentKind::Json.joined(&cut), body);
    }
}
