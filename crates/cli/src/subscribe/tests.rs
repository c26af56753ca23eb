//! Tests of `subscribe`: the lines, their width, and addresses.
//! Publications and columns → lines.
//! Uses only `subscribe`. The command with a server is `tests/it/subscribe.rs`.
//! Changed here: the form of a line.

use super::*;

#[test]
fn a_line_has_time_offset_bytes_and_message_and_fits_the_terminal() {
    let now = Duration::from_millis(3_723_004);
    let publication = Publication { data: r#"{"n":1}"#.into(), offset: 42, ..Default::default() };
    let printer = Printer { is_json: false, names_channel: false, columns: 80 };
    let line = printer.text_line(now, "news", &publication, 118);
    assert_eq!(line, r#"01:02:03.004       42    118 B  {"n":1}"#);
    let printer = Printer { names_channel: true, ..printer };
    let line = printer.text_line(now, "news", &publication, 118);
    assert_eq!(line, r#"01:02:03.004       42    118 B  news  {"n":1}"#);
    let data = format!("\"{}\u{9b}31m\"", "é".repeat(100)).into();
    let long = Publication { data, offset: 1 << 60, ..Default::default() };
    let line = printer.text_line(now, "news", &long, usize::MAX);
    assert_eq!(line.chars().count(), 80);
    let printer = Printer { columns: usize::MAX, ..printer };
    let line = printer.text_line(now, "news", &long, usize::MAX);
    assert!(line.ends_with("\u{fffd}31m\""), "no text steers the terminal: {line}");
}

#[test]
fn a_json_line_is_one_object_with_the_message_as_it_is() {
    let now = Duration::from_millis(3_723_004);
    let tags = [("a".to_owned(), "b".to_owned())].into();
    let data = r#"{"z":1.0,"a":[]}"#.into();
    let publication = Publication { data, offset: 42, tags, ..Default::default() };
    let line = json_line(now, "news", &publication, 118);
    assert!(line.ends_with(r#","data":{"z":1.0,"a":[]}}"#), "{line}");
    let value: Value = serde_json::from_str(&line).expect("JSON");
    assert_eq!(value["time"], 3_723_004);
    assert_eq!(value["channel"], "news");
    assert_eq!(value["offset"], 42);
    assert_eq!(value["wire_bytes"], 118);
    assert_eq!(value["tags"]["a"], "b");
}

#[test]
fn an_address_without_a_path_has_the_usual_one() {
    assert_eq!(with_path("ws://localhost:8000"), "ws://localhost:8000/connection/websocket");
    assert_eq!(with_path("wss://localhost/ws"), "wss://localhost/ws");
    assert_eq!(with_path("ws://localhost?a=b"), "ws://localhost?a=b");
}
