//! Tests of one member of an object.
//! In: payloads → out: texts.
//! Uses proptest. Never: commands.
//! Changed here: cases of payloads.

use proptest::prelude::*;

use super::text_member;

#[test]
fn a_text_is_found_among_other_members() {
    let found = |json: &str| text_member(json.as_bytes(), "id");
    assert_eq!(found(r#"{"id":"a"}"#).as_deref(), Some("a"));
    assert_eq!(
        found(r#" { "x" : [{"id":"b"}], "id" : "a\u00e9\n" , "y":1e999} "#).as_deref(),
        Some("aé\n")
    );
    assert_eq!(found(r#"{"id":"a","id":"b"}"#).as_deref(), Some("b"), "as in JavaScript");
    assert_eq!(found(r#"{"id":"\ud83d"}"#).as_deref(), Some("\u{fffd}"));
    assert_eq!(found(r#"{"id":""}"#).as_deref(), Some(""));
}

#[test]
fn another_value_and_another_payload_have_no_text() {
    for json in [
        "{}",
        r#"{"id":1}"#,
        r#"{"id":null}"#,
        r#"{"id":["a"]}"#,
        r#"{"id":{"id":"a"}}"#,
        r#"{"ID":"a"}"#,
    ] {
        assert_eq!(text_member(json.as_bytes(), "id"), None, "{json}");
    }
    for json in ["", "[]", r#""id""#, r#"{"id":"a""#, r#"{"id":"a"} x"#] {
        assert_eq!(text_member(json.as_bytes(), "id"), None, "{json}");
    }
    assert_eq!(text_member(b"{\"id\":\"\xff\"}", "id"), None);
}

proptest! {
    #[test]
    fn any_text_is_read_back(text in ".*", other in ".*") {
        let json = serde_json::json!({"other": other, "id": text}).to_string();
        prop_assert_eq!(text_member(json.as_bytes(), "id"), Some(text));
    }

    #[test]
    fn no_payload_panics(bytes in prop::collection::vec(any::<u8>(), 0..64)) {
        let _ = text_member(&bytes, "id");
    }
}
