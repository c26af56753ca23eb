//! Tests of `reply`: the examples of the protocol, byte for byte, in both encodings.
//! In: replies and pushes. Out: what stands on the wire.
//! Uses the face of the room.
//! Every field of every message is covered in `tests/it`; publications in `publication`.

use bytes::Bytes;

use super::*;
use crate::message::{
    Dictionary, Error, HistoryResult, Message, PresenceResult, PresenceStatsResult, Publication,
    Subscribe, SubscribeResult, UnsubscribeResult,
};
use crate::{ErrorCode, UnsubscribeCode};

#[test]
fn a_connect_result_is_written_as_in_the_example() {
    let connect = ConnectResult {
        client: "4f1d".into(),
        version: "6.9.1 OSS".into(),
        ping: 25,
        pong: true,
        ..ConnectResult::default()
    };
    let reply = Reply { id: 1, connect: Some(connect), ..Reply::default() };
    let text =
        r#"{"id":1,"connect":{"client":"4f1d","version":"6.9.1 OSS","ping":25,"pong":true}}"#;
    check(&reply, text);
    let bytes = b"\x19\x08\x01\x2a\x15\x0a\x044f1d\x12\x096.9.1 OSS\x38\x19\x40\x01";
    assert_eq!(written(Encoding::Protobuf, &reply), Ok(bytes.to_vec()));
}

#[test]
fn a_subscription_without_a_field_keeps_its_value_in_the_map() {
    let positioned = SubscribeResult { positioned: true, ..SubscribeResult::default() };
    let subs = [("a".to_owned(), SubscribeResult::default()), ("b".to_owned(), positioned)];
    let connect = ConnectResult { client: "c".into(), subs: subs.into(), ..Default::default() };
    let reply = Reply { id: 1, connect: Some(connect), ..Reply::default() };
    check(&reply, r#"{"id":1,"connect":{"client":"c","subs":{"a":{},"b":{"positioned":true}}}}"#);
    let bytes =
        b"\x17\x08\x01\x2a\x13\x0a\x01c\x32\x05\x0a\x01a\x12\x00\x32\x07\x0a\x01b\x12\x02\x50\x01";
    assert_eq!(written(Encoding::Protobuf, &reply), Ok(bytes.to_vec()));
    assert_eq!(Reply::decode_length_delimited(&bytes[..]), Ok(reply));
}

#[test]
fn every_field_of_a_connect_result_has_the_bytes_that_prost_writes() {
    let publications = vec![Publication { offset: 7, ..Publication::default() }];
    let sub = SubscribeResult { publications, ttl: 5, ..SubscribeResult::default() };
    let connect = ConnectResult {
        client: "4f1d".into(),
        version: "1".into(),
        expires: true,
        ttl: 3600,
        data: Bytes::from_static(b"{}"),
        subs: [("a".to_owned(), sub.clone()), ("b".to_owned(), sub)].into(),
        ping: 25,
        pong: true,
        session: "s".repeat(200),
        node: "n".into(),
        time: -1,
        flag: i64::MAX,
        dict: Some(Dictionary { id: "d".into(), ..Dictionary::default() }),
    };
    for connect in [connect, ConnectResult::default()] {
        let reply = Reply { id: 300, connect: Some(connect), ..Reply::default() };
        let expect = reply.encode_length_delimited_to_vec();
        assert_eq!(written(Encoding::Protobuf, &reply), Ok(expect));
    }
}

#[test]
fn a_subscribe_result_is_written_as_in_the_example() {
    let subscribe = SubscribeResult {
        recoverable: true,
        epoch: "AbCdEfGh".into(),
        positioned: true,
        ..SubscribeResult::default()
    };
    let reply = Reply { id: 2, subscribe: Some(subscribe), ..Reply::default() };
    let text = r#"{"id":2,"subscribe":{"recoverable":true,"epoch":"AbCdEfGh","positioned":true}}"#;
    check(&reply, text);
}

#[test]
fn an_error_is_written_as_in_the_example() {
    let error = |code: ErrorCode| Reply { id: 3, error: Some(code.into()), ..Reply::default() };
    let text = r#"{"id":3,"error":{"code":103,"message":"permission denied"}}"#;
    check(&error(ErrorCode::PERMISSION_DENIED), text);
    let text =
        r#"{"id":3,"error":{"code":100,"message":"internal server error","temporary":true}}"#;
    check(&error(ErrorCode::INTERNAL), text);
}

#[test]
fn an_empty_result_keeps_its_key() {
    let unsubscribe = Some(UnsubscribeResult {});
    check(&Reply { id: 3, unsubscribe, ..Reply::default() }, r#"{"id":3,"unsubscribe":{}}"#);
}

#[test]
fn fields_marked_always_are_there_with_default_values() {
    let history = Some(HistoryResult::default());
    let text = r#"{"history":{"publications":[],"epoch":"","offset":0}}"#;
    check(&Reply { history, ..Reply::default() }, text);
    let presence_stats = Some(PresenceStatsResult::default());
    let text = r#"{"presence_stats":{"num_clients":0,"num_users":0}}"#;
    check(&Reply { presence_stats, ..Reply::default() }, text);
    let presence = [("id".to_owned(), ClientInfo::default())].into();
    let presence = Some(PresenceResult { presence });
    let text = r#"{"presence":{"presence":{"id":{"user":"","client":""}}}}"#;
    check(&Reply { presence, ..Reply::default() }, text);
    let text = r#"{"presence":{"presence":{}}}"#;
    check(&Reply { presence: Some(PresenceResult::default()), ..Reply::default() }, text);
}

#[test]
fn a_reply_without_any_field_is_the_ping() {
    for encoding in Encoding::ALL {
        let expect = crate::ping(encoding).to_vec();
        assert_eq!(written(encoding, &Reply::default()), Ok(expect));
    }
}

#[test]
fn pushes_name_their_channel_code_and_reason() {
    let code = UnsubscribeCode::SERVER;
    let mut out = Vec::new();
    encode_unsubscribe_push(Encoding::Json, "c", code.code, code.reason, &mut out);
    crate::join(Encoding::Json, &mut out);
    encode_refresh_push(Encoding::Json, Refresh { expires: true, ttl: 60 }, &mut out);
    let expect = r#"{"push":{"channel":"c","unsubscribe":{"code":2000,"reason":"server unsubscribe"}}}
{"push":{"refresh":{"expires":true,"ttl":60}}}"#;
    assert_eq!(String::from_utf8(out).as_deref(), Ok(expect));
}

fn message(data: &[u8]) -> Push {
    let message = Some(Message { data: Bytes::copy_from_slice(data) });
    Push { message, ..Push::default() }
}

#[test]
fn pushes_of_presence_and_subscriptions_carry_their_payloads() {
    let info = || ClientInfo {
        user: "u".into(),
        client: "id".into(),
        conn_info: Bytes::from_static(b"{\n\"a\": 1}"),
        ..ClientInfo::default()
    };
    let mut out = Vec::new();
    encode_join_push(Encoding::Json, "c", info(), &mut out).expect("JSON inside");
    crate::join(Encoding::Json, &mut out);
    encode_leave_push(Encoding::Json, "c", info(), &mut out).expect("JSON inside");
    crate::join(Encoding::Json, &mut out);
    let subscribe = Some(Subscribe { data: Bytes::from_static(b"5"), ..Subscribe::default() });
    let subscribed = Push { channel: "c".to_owned(), subscribe, ..Push::default() };
    encode_push(Encoding::Json, subscribed, &mut out).expect("JSON inside");
    crate::join(Encoding::Json, &mut out);
    encode_push(Encoding::Json, message(b"[]"), &mut out).expect("JSON inside");
    let expect = r#"{"push":{"channel":"c","join":{"info":{"user":"u","client":"id","conn_info":{"a": 1}}}}}
{"push":{"channel":"c","leave":{"info":{"user":"u","client":"id","conn_info":{"a": 1}}}}}
{"push":{"channel":"c","subscribe":{"data":5}}}
{"push":{"message":{"data":[]}}}"#;
    assert_eq!(String::from_utf8(out).as_deref(), Ok(expect));
}

#[test]
fn a_payload_that_is_no_json_leaves_the_buffer_as_it_was() {
    let mut out = b"before".to_vec();
    for data in [&b"{"[..], b"\xff", b"\"\xff\"", b"1 2", b"\n"] {
        assert_eq!(encode_push(Encoding::Json, message(data), &mut out), Err(NotJson));
        assert_eq!(out, b"before");
    }
    assert_eq!(encode_push(Encoding::Protobuf, message(b"{"), &mut out), Ok(()));
    assert_eq!(out, b"before\x07\x22\x05\x42\x03\x0a\x01{");
}

#[test]
fn strings_are_escaped_the_html_safe_way() {
    let message = "<a href=\"x\">&\u{2028}\n".to_owned();
    let error = Some(Error { code: 400, message, temporary: false });
    let text = r#"{"error":{"code":400,"message":"\u003ca href=\"x\"\u003e\u0026\u2028\n"}}"#;
    check(&Reply { error, ..Reply::default() }, text);
}

/// The reply is written as `text`, and both encodings read back as what was written.
fn check(reply: &Reply, text: &str) {
    let json = written(Encoding::Json, reply).expect("JSON inside");
    assert_eq!(String::from_utf8(json).as_deref(), Ok(text));
    assert_eq!(json::read::<Reply>(text.as_bytes()).as_ref(), Ok(reply));
    let protobuf = written(Encoding::Protobuf, reply).expect("Protobuf takes anything");
    assert_eq!(Reply::decode_length_delimited(&*protobuf).as_ref(), Ok(reply));
}

fn written(encoding: Encoding, reply: &Reply) -> Result<Vec<u8>, NotJson> {
    let mut out = Vec::new();
    encode_reply(encoding, reply, &mut out).map(|()| out)
}
