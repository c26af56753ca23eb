//! Tests of `command`: framing of both encodings, dispatch order, and every kind of broken message.
//! In: messages as clients send them. Out: ids and requests, or the one right error.
//! Uses the public face only.
//! Round trips of every message live in `tests/it`.

use super::*;

#[test]
fn the_first_example_of_the_protocol_is_a_connect() {
    let (id, request) = one(Encoding::Json, br#"{"id":1,"connect":{"name":"js"}}"#).into_request();
    assert_eq!(id, 1);
    let connect = ConnectRequest { name: "js".into(), ..ConnectRequest::default() };
    assert_eq!(request, Request::Connect(connect));
}

#[test]
fn a_connect_request_alone_is_one_command_without_an_id() {
    for (text, name) in [
        (r#"{"name":"js","subs":{"a":{"recover":true,"offset":5}}}"#, "js"),
        ("{}\n", ""),
        (" null ", ""),
    ] {
        let mut commands = Commands::of_connect_request(Encoding::Json, text.as_bytes());
        let (id, request) = commands.next().expect("one").expect(text).into_request();
        let Request::Connect(request) = request else { panic!("{request:?}") };
        assert_eq!((id, request.name.as_str()), (0, name));
        assert!(commands.next().is_none());
    }
    let request = ConnectRequest { token: "t".into(), ..ConnectRequest::default() };
    let read = ConnectRequest::read(Encoding::Protobuf, &request.encode_to_vec());
    assert_eq!(read, Ok(request));
    assert_eq!(ConnectRequest::read(Encoding::Protobuf, b""), Ok(ConnectRequest::default()));
}

#[test]
fn what_is_no_connect_request_is_an_error() {
    for text in ["", " ", "nothing", "[]", "5", "{}{}", "{}\n{}", r#"{"token":5}"#, "nulll"] {
        let read = ConnectRequest::read(Encoding::Json, text.as_bytes());
        assert!(read.is_err(), "{text}: {read:?}");
    }
    assert!(ConnectRequest::read(Encoding::Protobuf, b"\x0a\x05a").is_err());
}

#[test]
fn json_commands_are_split_at_newlines_and_one_may_trail() {
    let frame = b"{\"id\":1}\n{\"id\":2}\r\n{}\n";
    assert_eq!(ids(Encoding::Json, frame), [Ok(1), Ok(2), Ok(0)]);
}

#[test]
fn protobuf_commands_follow_their_lengths() {
    assert_eq!(ids(Encoding::Protobuf, &[2, 8, 7, 0, 2, 8, 9]), [Ok(7), Ok(0), Ok(9)]);
}

#[test]
fn an_empty_message_is_an_error_in_both_encodings() {
    for encoding in Encoding::ALL {
        assert_eq!(ids(encoding, b""), [Err(DecodeError::EmptyFrame)]);
    }
}

#[test]
fn a_blank_line_is_an_error_and_ends_the_message() {
    for frame in [&b"\n"[..], b" \t\r\n", b"\n{}", b"  "] {
        assert_eq!(ids(Encoding::Json, frame), [Err(DecodeError::BlankLine)], "{frame:?}");
    }
    assert_eq!(ids(Encoding::Json, b"{}\n\n{}"), [Ok(0), Err(DecodeError::BlankLine)]);
    assert_eq!(ids(Encoding::Json, b"{}\n\n"), [Ok(0), Err(DecodeError::BlankLine)]);
}

#[test]
fn a_length_beyond_the_message_is_an_error() {
    let overrun = DecodeError::LengthOverrun { length: 3, left: 2 };
    assert_eq!(ids(Encoding::Protobuf, &[2, 8, 1, 3, 8, 1]), [Ok(1), Err(overrun)]);
    let huge = [0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f];
    let overrun = DecodeError::LengthOverrun { length: usize::MAX >> 1, left: 0 };
    assert_eq!(ids(Encoding::Protobuf, &huge), [Err(overrun)]);
}

#[test]
fn a_length_without_end_is_an_error() {
    for frame in [&[0x80][..], &[0xff; 10], &[0xff; 30]] {
        assert_eq!(ids(Encoding::Protobuf, frame), [Err(DecodeError::BrokenLength)]);
    }
}

#[test]
fn broken_protobuf_is_an_error() {
    let checks: [&[u8]; 4] = [
        &[1, 8],              // a key without its value
        &[2, 0x22, 5],        // connect longer than the command
        &[2, 0x20, 1],        // connect as a number
        &[4, 0x22, 2, 10, 9], // a token longer than its connect
    ];
    for frame in checks {
        let found = ids(Encoding::Protobuf, frame);
        assert!(matches!(found[..], [Err(DecodeError::Protobuf(_))]), "{frame:?}: {found:?}");
    }
    let invalid_utf8 = [5, 0x22, 3, 10, 1, 0xff];
    assert!(matches!(ids(Encoding::Protobuf, &invalid_utf8)[..], [Err(DecodeError::Protobuf(_))]));
}

#[test]
fn what_is_no_json_is_a_syntax_error_with_its_place() {
    let column = |line: &[u8]| match ids(Encoding::Json, line)[..] {
        [Err(DecodeError::JsonSyntax { column })] => column,
        ref other => panic!("{other:?}"),
    };
    assert_eq!(column(b"{\"id\":1"), 7);
    assert_eq!(column(b"{\"id\":x}"), 7);
    assert_eq!(column(b"{} {}"), 4);
    assert_eq!(column(b"hello"), 1);
    assert_eq!(column(b"{\"connect\":{\"token\":\"\xff\"}}"), 22);
    assert_eq!(column(b"{\"rpc\":{\"data\":[1,}}"), 19);
}

#[test]
fn a_json_value_of_the_wrong_type_is_a_type_error() {
    let checks = [
        r#"{"id":"1"}"#,
        r#"{"id":-1}"#,
        r#"{"id":1.5}"#,
        r#"{"id":4294967296}"#,
        r#"{"id":1,"id":2}"#,
        r#"{"connect":"yes"}"#,
        r#"{"connect":{"token":5}}"#,
        r#"{"connect":{"subs":[]}}"#,
        r#"{"connect":{"subs":{"a":1}}}"#,
        r#"{"subscribe":{"recover":1}}"#,
        r#"{"subscribe":{"offset":18446744073709551616}}"#,
        r#"{"subscribe":{"tf":{"vals":"a"}}}"#,
        r#"{"sub_refresh":{"untrack":[1]}}"#,
        "5",
        "\"connect\"",
        "null",
    ];
    for line in checks {
        let found = ids(Encoding::Json, line.as_bytes());
        assert!(matches!(found[..], [Err(DecodeError::JsonType { .. })]), "{line}: {found:?}");
    }
}

#[test]
fn an_array_never_passes_for_a_message() {
    for line in ["[]", "[1]", r#"{"connect":[]}"#, r#"{"connect":{"subs":{"a":[]}}}"#] {
        let found = ids(Encoding::Json, line.as_bytes());
        assert!(matches!(found[..], [Err(DecodeError::JsonType { .. })]), "{line}: {found:?}");
    }
}

#[test]
fn deep_nesting_ends_in_an_error_or_passes_unread() {
    const DEPTH: usize = 100_000; // some 20 bytes of a test's stack for each level: whoever recursed would overflow it
    let deep = |open: &str, close: &str| format!("{}{}", open.repeat(DEPTH), close.repeat(DEPTH));
    let filter = format!(r#"{{"subscribe":{{"tf":{{"nodes":{}}}}}}}"#, deep("[{\"nodes\":", "}]"));
    let found = ids(Encoding::Json, filter.as_bytes());
    assert!(matches!(found[..], [Err(DecodeError::JsonSyntax { .. })]), "{found:?}");
    let payload = format!(r#"{{"id":3,"publish":{{"data":{}}}}}"#, deep("[", "]"));
    assert_eq!(ids(Encoding::Json, payload.as_bytes()), [Ok(3)]);

    let mut filter = Vec::new();
    for _ in 0..200 {
        let mut outer = vec![6 << 3 | 2]; // FilterNode.nodes
        prost::encode_length_delimiter(filter.len(), &mut outer).expect("a Vec grows");
        outer.append(&mut filter);
        filter = outer;
    }
    let mut subscribe = vec![13 << 3 | 2]; // SubscribeRequest.tf
    prost::encode_length_delimiter(filter.len(), &mut subscribe).expect("a Vec grows");
    subscribe.append(&mut filter);
    let mut frame = Vec::new();
    prost::encode_length_delimiter(subscribe.len() + 3, &mut frame).expect("a Vec grows");
    frame.push(5 << 3 | 2); // Command.subscribe
    prost::encode_length_delimiter(subscribe.len(), &mut frame).expect("a Vec grows");
    frame.append(&mut subscribe);
    assert!(matches!(ids(Encoding::Protobuf, &frame)[..], [Err(DecodeError::Protobuf(_))]));
}

#[test]
fn unknown_fields_are_ignored_and_null_is_absent_but_as_a_payload() {
    let line = br#"{"id":4,"new":[{}],"connect":null,"rpc":{"method":"m","data":null,"x":1}}"#;
    let (id, request) = one(Encoding::Json, line).into_request();
    let rpc = RpcRequest { method: "m".into(), data: "null".into() };
    assert_eq!((id, request), (4, Request::Rpc(rpc)));
    assert_eq!(ids(Encoding::Protobuf, &[5, 8, 4, 0x92, 0x03, 0]), [Ok(4)]);
}

#[test]
fn the_first_request_in_dispatch_order_is_taken() {
    let kinds = [
        "connect",
        "subscribe",
        "unsubscribe",
        "publish",
        "presence",
        "presence_stats",
        "history",
        "rpc",
        "send",
        "refresh",
        "sub_refresh",
    ];
    for first in 0..kinds.len() {
        // Written backwards: the order of dispatch is not that of the text.
        let fields: Vec<String> =
            kinds[first..].iter().rev().map(|kind| format!("\"{kind}\":{{}}")).collect();
        let line = format!("{{\"id\":9,{},\"ping\":{{}}}}", fields.join(","));
        let (id, request) = one(Encoding::Json, line.as_bytes()).into_request();
        assert_eq!(id, 9);
        let name = format!("{request:?}").to_lowercase();
        assert!(name.starts_with(&format!("{}(", kinds[first].replace('_', ""))), "{name}");
    }
}

#[test]
fn only_a_command_without_any_field_is_a_pong() {
    let checks = [
        ("{}", (0, Request::Pong)),
        (r#"{"id":0}"#, (0, Request::Pong)),
        (r#"{"id":5}"#, (5, Request::Unknown)),
        (r#"{"ping":{}}"#, (0, Request::Unknown)),
        (r#"{"id":5,"ping":{}}"#, (5, Request::Unknown)),
    ];
    for (line, expect) in checks {
        assert_eq!(one(Encoding::Json, line.as_bytes()).into_request(), expect, "{line}");
    }
    assert_eq!(one(Encoding::Protobuf, &[0]).into_request(), (0, Request::Pong));
}

#[test]
fn a_payload_is_the_text_of_the_client() {
    let line = br#"{"id":1,"publish":{"channel":"c","data": {"a" : [1, "\u00e9\n"]} }}"#;
    let (_, request) = one(Encoding::Json, line).into_request();
    let Request::Publish(publish) = request else { panic!("{request:?}") };
    assert_eq!(publish.data, &br#"{"a" : [1, "\u00e9\n"]}"#[..]);
}

fn one(encoding: Encoding, frame: &[u8]) -> Command {
    let mut commands = Commands::new(encoding, frame);
    let command = commands.next().expect("one command").expect("a good one");
    assert_eq!(commands.next(), None);
    command
}

fn ids(encoding: Encoding, frame: &[u8]) -> Vec<Result<u32, DecodeError>> {
    Commands::new(encoding, frame).map(|command| command.map(|command| command.id)).collect()
}
