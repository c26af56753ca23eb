//! Tests of `span`: pushes of all shapes, and bytes that are none.
//! In: messages. Out: the range of the publication, or none.
//! Uses the encoders; that the bytes are those of a subscribe result is checked in `fuzzing`, for random publications.
//! Repeats of odd messages go here.

use bytes::Bytes;

use super::*;
use crate::{Publication, encode_publication, encode_refresh_push};

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
    encode_refresh_push(Encoding::Protobuf, crate::Refresh::default(), &mut refresh);
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
