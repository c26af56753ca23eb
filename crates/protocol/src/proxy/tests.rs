//! Tests of the JSON of event proxies: which keys a request always has, and what a response may leave out.
//! In: messages, texts → out: texts, messages.
//! Uses `proxy`. Never: backends.
//! Changed here: rules of fields.

use bytes::Bytes;

use super::*;

#[test]
fn a_request_names_its_user_also_if_it_is_empty() {
    let request = RpcRequest { method: "a\"b".to_owned(), ..RpcRequest::default() };
    let text = write(&request).expect("no payload");
    assert_eq!(String::from_utf8(text).unwrap(), r#"{"user":"","method":"a\"b"}"#);
    let request = ConnectRequest { data: Bytes::from_static(br#"{"a":1}"#), ..Default::default() };
    let text = write(&request).expect("the payload is JSON");
    assert_eq!(String::from_utf8(text).unwrap(), r#"{"data":{"a":1}}"#);
}

#[test]
fn a_payload_that_is_no_json_makes_no_request() {
    let data = Bytes::from_static(b"\xff{");
    assert_eq!(write(&RpcRequest { data, ..RpcRequest::default() }), None);
}

#[test]
fn a_response_has_a_known_part_or_is_empty() {
    let response = |text: &str| read_response::<ConnectResponse>(text.as_bytes());
    for text in ["{}", " { } ", r#"{"result":null}"#, r#"{"ERROR":null,"more":1}"#] {
        assert_eq!(response(text), Ok(ConnectResponse::default()), "{text}");
    }
    let foreign = [
        r#"{"status":"denied"}"#,
        r#"{"di\u017fconnect":{"code":4501}}"#,
        r#"{"err":{}}"#,
        r#"{"":1}"#,
    ];
    for text in foreign {
        assert_eq!(response(text), Err(DecodeError::NoPart), "{text}");
    }
    assert!(response(r#"{"Result":{},"result":{}}"#).is_err());
    assert!(response(r#"{"\ud83d":1}"#).is_err());
}

#[test]
fn no_result_differs_from_an_empty_one() {
    let result = |text: &str| read::<SubscribeResponse>(text.as_bytes()).expect("an object").result;
    assert_eq!(result("{}"), None);
    assert_eq!(result(r#"{"result":null}"#), None);
    assert_eq!(result(r#"{"result":{},"more":1}"#), Some(SubscribeResult::default()));
    for wrong in ["null", "[]", "<html>", "", "{", r#"{"result":[]}"#, "{}{}"] {
        assert!(read::<SubscribeResponse>(wrong.as_bytes()).is_err(), "{wrong}");
    }
}
