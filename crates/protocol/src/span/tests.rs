//! Tests of `span`: messages with pushes of all kinds, pushes of all shapes, and bytes that are none.
//! In: messages. Out: the range of the publication, or none.
//! Uses the encoders; that the bytes are those of a subscribe result is checked in `fuzzing`, for random publications.
//! Repeats of odd messages go here.

use bytes::Bytes;

use super::*;
use crate::message::{
    ClientInfo, Connect, ConnectResult, Disconnect, Join, Leave, Message, Push, Refresh, Reply,
    Subscribe, SubscribeResult, Unsubscribe,
};
use crate::{Publication, encode_publication, encode_refresh_push, encode_reply, fuzzing, ping};

#[test]
fn a_push_of_any_kind_stands_in_its_message_as_it_stands_alone() {
    let info = Some(ClientInfo { user: "u".into(), client: "id".into(), ..Default::default() });
    let channel = || Push { channel: "}}\"push\":{".to_owned(), ..Push::default() };
    let unsubscribe = Some(Unsubscribe { code: 2000, reason: "server unsubscribe".into() });
    let message = Some(Message { data: Bytes::from_static(b"{\"push\":{}}") });
    let disconnect = Some(Disconnect { code: 3001, reason: "shutdown".into(), reconnect: false });
    let pushes = [
        Push { r#pub: Some(publication()), ..channel() },
        Push { join: Some(Join { info: info.clone() }), ..channel() },
        Push { leave: Some(Leave { info }), ..channel() },
        Push { unsubscribe, ..channel() },
        Push { message, ..Push::default() },
        Push { subscribe: Some(Subscribe::default()), ..channel() },
        Push { connect: Some(Connect::default()), ..Push::default() },
        Push { disconnect, ..Push::default() },
        Push { refresh: Some(Refresh { expires: true, ttl: 60 }), ..Push::default() },
        Push { id: 5, r#pub: Some(publication()), ..Push::default() },
        Push::default(),
    ];
    for push in pushes {
        fuzzing::bare(&Reply { push: Some(push), ..Reply::default() });
    }
}

#[test]
fn a_bare_ping_is_an_empty_push() {
    assert_eq!(bare_push(Encoding::Json, ping(Encoding::Json)), Some(&b"{}"[..]));
    assert_eq!(bare_push(Encoding::Protobuf, ping(Encoding::Protobuf)), Some(&b""[..]));
}

#[test]
fn what_is_neither_a_push_nor_a_ping_has_no_bare_push() {
    for message in ["", "{", r#"{"id":1}"#, r#"{"id":1,"push":{}}"#, r#"{"push":"#] {
        assert_eq!(bare_push(Encoding::Json, message.as_bytes()), None, "{message}");
    }
    for message in
        [&b""[..], b"\x02\x08\x01", b"\x02\x22\x01", b"\x05\x22\x00", b"\x03\x22\x00\x00"]
    {
        assert_eq!(bare_push(Encoding::Protobuf, message), None, "{message:?}");
    }
}

#[test]
fn a_connect_result_becomes_the_push_of_a_unidirectional_client() {
    let subs = [("news".to_owned(), SubscribeResult::default())].into();
    let result = ConnectResult {
        client: "4f1d".into(),
        version: "6.9.1 OSS".into(),
        expires: true,
        ttl: 60,
        data: Bytes::from_static(b"5"),
        subs,
        ping: 25,
        session: "s".into(),
        node: "n".into(),
        time: 7,
        ..ConnectResult::default()
    };
    let mut message = Vec::new();
    let reply = Reply { push: Some(result.into()), ..Reply::default() };
    encode_reply(Encoding::Json, &reply, &mut message).expect("JSON inside");
    let bare = bare_push(Encoding::Json, &message).expect("a push");
    let text = r#"{"connect":{"client":"4f1d","version":"6.9.1 OSS","data":5,"subs":{"news":{}},"expires":true,"ttl":60,"ping":25,"session":"s","node":"n","time":7}}"#;
    assert_eq!(std::str::from_utf8(bare), Ok(text));
}

#[test]
fn the_publication_is_found_in_its_push() {
    let publication = Publication {
        data: Bytes::from_static(br#"{"push":{"channel":"x","pub":{"data":1}}}"#),
        offset: 5,
        ..Publication::default()
    };
    let text = r#"{"data":{"push":{"channel":"x","pub":{"data":1}}},"offset":5}"#;
    for channel in ["", "news", "\"pub\":", "a\\\"pub\":{", &"c".repeat(300)] {
        let (json, protobuf) = found(channel, &publication);
        assert_eq!(String::from_utf8(json).as_deref(), Ok(text));
        assert_eq!(protobuf, prost::Message::encode_to_vec(&publication));
    }
}

#[test]
fn an_empty_publication_is_found_too() {
    assert_eq!(found("c", &Publication::default()), (b"{}".to_vec(), b"".to_vec()));
}

#[test]
fn what_is_no_push_of_a_publication_has_none() {
    for message in ["", "{}", "}}", "\"pub\":", "\"pub\":}", "\"pub\":1}}", "{\"id\":1}"] {
        assert_eq!(publication_in_push(Encoding::Json, message.as_bytes()), None, "{message}");
    }
    let push = encode_publication(Encoding::Protobuf, "c", &publication()).expect("any payload");
    for cut in 0..push.len() {
        assert_eq!(publication_in_push(Encoding::Protobuf, &push[..cut]), None);
    }
    assert_eq!(publication_in_push(Encoding::Protobuf, &[&push[..], b"\0"].concat()), None);
    let mut refresh = Vec::new();
    encode_refresh_push(Encoding::Protobuf, Refresh::default(), &mut refresh);
    assert_eq!(publication_in_push(Encoding::Protobuf, &refresh), None);
}

fn publication() -> Publication {
    Publication { data: Bytes::from_static(b"12345"), offset: 1, ..Publication::default() }
}

fn found(channel: &str, publication: &Publication) -> (Vec<u8>, Vec<u8>) {
    Encoding::ALL
        .map(|encoding| {
            let push = encode_publication(encoding, channel, publication).expect("JSON inside");
            push[publication_in_push(encoding, &push).expect("a push")].to_vec()
        })
        .into()
}
