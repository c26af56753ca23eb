//! The messages of map channels, byte for byte: the phases of a subscribe, pages, changes of keys (client protocol §27).
//! In: commands and replies of a client with a map. Out: verdicts about both encodings.
//! Uses the public face and prost. Random values of the same fields are in `every_message`.
//! Changed here: examples of map messages; what a server answers is tested in the node.

use bytes::Bytes;
use fanwire_protocol::{
    Command, Commands, Encoding, Publication, PublishRequest, Reply, Request, SubscribeRequest,
    SubscribeResult, encode_publication, encode_reply,
};
use prost::Message;

const MAP: i32 = 1;
const STREAM_PHASE: i32 = 1;
const STATE_PHASE: i32 = 2;

fn entry(key: &str, offset: u64) -> Publication {
    let data = Bytes::from_static(b"{\"x\":1}");
    Publication { key: key.into(), data, offset, ..Publication::default() }
}

fn check_request(text: &str, bytes: &[u8], expect: &Request) {
    for (encoding, frame) in [(Encoding::Json, text.as_bytes()), (Encoding::Protobuf, bytes)] {
        let command = Commands::new(encoding, frame).next().expect("one command");
        let (id, request) = command.expect("a valid command").into_request();
        assert_eq!((id, &request), (1, expect), "{encoding:?}");
    }
}

fn check_reply(subscribe: SubscribeResult, text: &str) {
    let reply = Reply { id: 1, subscribe: Some(subscribe), ..Reply::default() };
    let mut json = Vec::new();
    encode_reply(Encoding::Json, &reply, &mut json).expect("every payload is JSON");
    assert_eq!(std::str::from_utf8(&json), Ok(text));
    let mut bytes = Vec::new();
    encode_reply(Encoding::Protobuf, &reply, &mut bytes).expect("Protobuf takes any payload");
    assert_eq!(Reply::decode_length_delimited(&*bytes), Ok(reply));
}

fn check_push(publication: &Publication, text: &str, fields: &[u8]) {
    let json = encode_publication(Encoding::Json, "board", publication).expect("JSON inside");
    assert_eq!(std::str::from_utf8(&json), Ok(text));
    let bytes = encode_publication(Encoding::Protobuf, "board", publication);
    let bytes = bytes.expect("Protobuf takes any payload");
    assert!(bytes.ends_with(fields), "{bytes:02x?}");
}

#[test]
fn a_page_of_state_is_requested_with_type_phase_cursor_and_limit() {
    let expect = SubscribeRequest {
        channel: "board".into(),
        epoch: "AbCdEfGh".into(),
        offset: 7,
        r#type: MAP,
        phase: STATE_PHASE,
        cursor: "card 9".into(),
        limit: 2,
        asc: true,
        ..SubscribeRequest::default()
    };
    let text = r#"{"id":1,"subscribe":{"channel":"board","epoch":"AbCdEfGh","offset":7,"type":1,"phase":2,"cursor":"card 9","limit":2,"asc":true}}"#;
    let bytes = b"\x2b\x08\x01\x2a\x27\x0a\x05board\x32\x08AbCdEfGh\x38\x07\
                  \x78\x01\x80\x01\x02\x8a\x01\x06card 9\x90\x01\x02\x98\x01\x01";
    check_request(text, bytes, &Request::Subscribe(expect));
}

#[test]
fn a_client_publishes_and_removes_a_key() {
    let channel = || "board".to_owned();
    let data = Bytes::from_static(b"1");
    let publish = PublishRequest {
        channel: channel(),
        data,
        r#type: MAP,
        key: "k".into(),
        ..PublishRequest::default()
    };
    let text = r#"{"id":1,"publish":{"channel":"board","data":1,"type":1,"key":"k"}}"#;
    let bytes = b"\x13\x08\x01\x3a\x0f\x0a\x05board\x12\x011\x18\x01\x22\x01k";
    check_request(text, bytes, &Request::Publish(publish));

    let remove = PublishRequest {
        channel: channel(),
        r#type: MAP,
        key: "k".into(),
        removed: true,
        ..PublishRequest::default()
    };
    let text = r#"{"id":1,"publish":{"channel":"board","type":1,"key":"k","removed":true}}"#;
    let bytes = b"\x12\x08\x01\x3a\x0e\x0a\x05board\x18\x01\x22\x01k\x28\x01";
    check_request(text, bytes, &Request::Publish(remove));
}

#[test]
fn a_page_of_state_leaves_out_what_is_zero() {
    let page = SubscribeResult {
        r#type: MAP,
        phase: STATE_PHASE,
        cursor: "b".into(),
        state: vec![entry("a", 3), entry("b", 0)],
        epoch: "AbCdEfGh".into(),
        offset: 7,
        ..SubscribeResult::default()
    };
    let text = r#"{"id":1,"subscribe":{"epoch":"AbCdEfGh","offset":7,"type":1,"phase":2,"cursor":"b","state":[{"data":{"x":1},"offset":3,"key":"a"},{"data":{"x":1},"key":"b"}]}}"#;
    check_reply(page, text);
}

#[test]
fn the_live_phase_is_absent_in_json() {
    let live = SubscribeResult {
        r#type: MAP,
        recoverable: true,
        publish_debounce: 50,
        ..SubscribeResult::default()
    };
    let text = r#"{"id":1,"subscribe":{"recoverable":true,"type":1,"publish_debounce":50}}"#;
    check_reply(live, text);
    let stream = SubscribeResult {
        r#type: MAP,
        phase: STREAM_PHASE,
        publications: vec![Publication { removed: true, data: Bytes::new(), ..entry("a", 4) }],
        offset: 4,
        ..SubscribeResult::default()
    };
    let text = r#"{"id":1,"subscribe":{"publications":[{"offset":4,"key":"a","removed":true}],"offset":4,"type":1,"phase":1}}"#;
    check_reply(stream, text);
}

#[test]
fn a_push_has_the_key_the_removal_and_the_epoch_of_the_first_one() {
    let first = Publication { epoch: "AbCdEfGh".into(), ..entry("a", 1) };
    let text = r#"{"push":{"channel":"board","pub":{"data":{"x":1},"offset":1,"key":"a","epoch":"AbCdEfGh"}}}"#;
    check_push(&first, text, b"\x30\x01\x5a\x01a\x72\x08AbCdEfGh");
    let removal = Publication { removed: true, data: Bytes::new(), ..entry("a", 2) };
    let text = r#"{"push":{"channel":"board","pub":{"offset":2,"key":"a","removed":true}}}"#;
    check_push(&removal, text, b"\x30\x02\x5a\x01a\x60\x01");
}

#[test]
fn a_key_may_have_any_character() {
    let text =
        r#"{"push":{"channel":"board","pub":{"data":{"x":1},"offset":1,"key":"\u0000\u003cé\""}}}"#;
    check_push(&entry("\0<é\"", 1), text, "\x5a\x05\0<é\"".as_bytes());
    let text = r#"{"id":1,"publish":{"channel":"b","type":1,"key":"\u0000<é\""}}"#;
    let command = Commands::new(Encoding::Json, text.as_bytes()).next().expect("one command");
    let Command { publish, .. } = command.expect("a valid command");
    assert_eq!(publish.expect("a publish").key, "\0<é\"");
}
