//! Tests of `any_case`: spellings of names, and what keeps its case.
//! In: JSON texts. Out: values, or errors.
//! Uses serde_json. Spellings of every field are tested with the messages: in `proxy`, and in crate `api`.
//! Changed here: cases of names.

use std::collections::BTreeMap;

use serde_json::Value;
use serde_json::value::RawValue;

use super::*;

#[derive(Debug, Default, PartialEq, serde::Deserialize)]
#[serde(default)]
struct Outer {
    text: String,
    #[serde(alias = "Other")]
    number: Option<u64>,
    inner: Option<Box<Outer>>,
    list: Vec<Outer>,
    map: BTreeMap<String, Outer>,
    newtype: Newtype,
    payload: Option<Box<Payload>>,
    any: Value,
}

#[derive(Debug, Default, PartialEq, serde::Deserialize)]
struct Newtype(BTreeMap<String, Option<bool>>);

#[derive(Debug, serde::Deserialize)]
struct Payload(Box<RawValue>);

impl PartialEq for Payload {
    fn eq(&self, other: &Self) -> bool {
        self.0.get() == other.0.get()
    }
}

fn read(text: &str) -> Result<Outer, String> {
    let read: Result<AnyCase<Outer>, _> = serde_json::from_str(text);
    read.map(|AnyCase(outer)| outer).map_err(|error| error.to_string())
}

#[test]
fn names_are_read_in_any_case_at_any_depth() {
    let exact =
        r#"{"text":"A","inner":{"number":1},"list":[{"text":"B"}],"map":{"K":{"number":2}}}"#;
    let spelled =
        r#"{"TEXT":"A","Inner":{"nUMBER":1},"LIST":[{"te\u0058t":"B"}],"Map":{"K":{"OTHER":2}}}"#;
    assert_eq!(read(spelled), read(exact));
    assert!(
        read(exact).is_ok_and(|outer| outer.list[0].text == "B" && outer.map.contains_key("K"))
    );
}

#[test]
fn keys_of_maps_and_payloads_keep_their_case() {
    let outer = read(
        r#"{"NEWTYPE":{"Text":true,"text":null},"Payload":{ "Text" :1},"any":{"Text":1,"text":2}}"#,
    );
    let outer = outer.expect("an object");
    assert_eq!(
        outer.newtype.0,
        [("Text".to_owned(), Some(true)), ("text".to_owned(), None)].into()
    );
    assert_eq!(outer.payload.expect("given").0.get(), r#"{ "Text" :1}"#);
    assert_eq!(outer.any, serde_json::json!({ "Text": 1, "text": 2 }));
}

#[test]
fn a_name_that_comes_twice_is_an_error_in_any_spelling() {
    for text in [r#"{"text":"","text":""}"#, r#"{"text":"","Text":""}"#, r#"{"TEXT":"","Text":""}"#]
    {
        assert!(
            read(text).is_err_and(|error| error.starts_with("duplicate field `text`")),
            "{text}"
        );
    }
    assert!(read(r#"{"inner":{"number":1,"Other":2}}"#).is_err());
}

#[test]
fn other_names_are_unknown_and_a_message_is_an_object() {
    for text in
        [r#"{"te_xt":"x","\u017fext":1,"te\u212at":[]}"#, "{}", r#"{"text ":"x","":1,"x":1e999}"#]
    {
        assert_eq!(read(text), Ok(Outer::default()), "{text}");
    }
    for text in ["[]", "null", r#""text""#, r#"{"inner":[]}"#, r#"{"list":[[]]}"#, r#"{"Text":1}"#]
    {
        assert!(read(text).is_err(), "{text}");
    }
}
