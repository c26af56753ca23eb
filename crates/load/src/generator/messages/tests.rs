//! Tests of the subscriber's side of the client protocol.
//! In: payloads as the protocol's description shows them → out: messages, ids, publications.
//! Uses `messages` and `protobuf`; never a socket.
//! Repeats of single messages belong here; the sequence of a connection is tested in `generator`.

use super::*;
use crate::generator::SubscribeForm;

fn messages(encoding: Encoding, payload: &[u8]) -> Vec<Vec<u8>> {
    let (mut rest, mut found) = (payload, Vec::new());
    while let Some(message) = encoding.next_message(&mut rest).expect("a valid payload") {
        found.push(message.to_vec());
    }
    found
}

#[test]
fn a_json_payload_is_split_at_newlines() {
    assert_eq!(messages(Encoding::Json, b"{\"id\":1}\n{}\n{\"push\":{}}").len(), 3);
    assert_eq!(messages(Encoding::Json, b"{}"), [b"{}"]);
}

#[test]
fn a_protobuf_payload_is_split_by_its_lengths() {
    assert_eq!(messages(Encoding::Protobuf, &[2, 8, 1, 0, 1, 7]), [&[8, 1][..], &[], &[7]]);
    assert!(Encoding::Protobuf.next_message(&mut &[9, 0][..]).is_err());
}

#[test]
fn commands_connect_first_and_number_the_subscriptions() {
    let channels = ["a".to_owned(), "b\"".to_owned()];
    let json =
        String::from_utf8(Encoding::Json.commands(None, &channels, SubscribeForm::default()))
            .expect("JSON is text");
    let expect = concat!(
        r#"{"id":1,"connect":{"name":"bench"}}"#,
        "\n",
        r#"{"id":2,"subscribe":{"channel":"a"}}"#,
        "\n",
        r#"{"id":3,"subscribe":{"channel":"b\""}}"#
    );
    assert_eq!(json, expect);
    let protobuf = messages(
        Encoding::Protobuf,
        &Encoding::Protobuf.commands(None, &channels[..1], SubscribeForm::default()),
    );
    assert_eq!(protobuf, [&[8, 1, 0x22, 0][..], &[8, 2, 0x2a, 3, 0x0a, 1, b'a']]);
}

#[test]
fn replies_show_their_id_and_errors_stop() {
    let json = |text: &str| Encoding::Json.reply_id(text.as_bytes());
    assert_eq!(json(r#"{"id":1,"connect":{"client":"x"}}"#).expect("a reply"), Some(1));
    assert_eq!(json(r#"{"push":{"channel":"a"}}"#).expect("a push"), None);
    let refused = json(r#"{"id":2,"error":{"code":103,"message":"permission denied"}}"#);
    assert!(refused.expect_err("an error reply").to_string().contains("permission denied"));
    assert_eq!(Encoding::Protobuf.reply_id(&[8, 2, 0x32, 0]).expect("a reply"), Some(2));
    assert!(Encoding::Protobuf.reply_id(&[8, 2, 0x12, 3, 0x12, 1, b'x']).is_err());
}

#[test]
fn a_publication_keeps_its_data_byte_for_byte() {
    let json = br#"{"push":{"channel":"a","pub":{"data":{"n" : 1.50},"offset":3}}}"#;
    let expect = ReceivedPublication { channel: "a".into(), data: br#"{"n" : 1.50}"# };
    assert_eq!(Encoding::Json.publication(json).expect("a publication"), expect);
    assert_eq!(Encoding::Json.channel(json), Some(&b"a"[..]));

    let (mut publication, mut push, mut reply) = (Vec::new(), Vec::new(), Vec::new());
    protobuf::push_bytes(PUBLICATION_DATA, &[0, 255], &mut publication);
    protobuf::push_bytes(PUSH_CHANNEL, b"a", &mut push);
    protobuf::push_bytes(PUSH_PUBLICATION, &publication, &mut push);
    protobuf::push_bytes(REPLY_PUSH, &push, &mut reply);
    let expect = ReceivedPublication { channel: "a".into(), data: &[0, 255] };
    assert_eq!(Encoding::Protobuf.publication(&reply).expect("a publication"), expect);
    assert_eq!(Encoding::Protobuf.channel(&reply), Some(&b"a"[..]));
}
