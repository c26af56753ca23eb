//! Tests of `publication`: the hand-written push against the example and against prost.
//! In: publications. Out: exact bytes, exact allocation, or `None`.
//! Uses `fuzzing::publication_push` as the comparison, and counts allocations.
//! Random publications run in `tests/it/any_bytes.rs`.

use super::*;
use crate::fuzzing::publication_push;
use crate::message::ClientInfo;

#[test]
fn a_push_is_written_as_in_the_example() {
    let publication = Publication {
        data: Bytes::from_static(br#"{"a":1}"#),
        offset: 1,
        epoch: "AbCdEfGh".into(),
        ..Publication::default()
    };
    let expect =
        r#"{"push":{"channel":"news","pub":{"data":{"a":1},"offset":1,"epoch":"AbCdEfGh"}}}"#;
    check("news", &publication, expect);
    let message = encode_publication(Encoding::Protobuf, "news", &publication);
    let expect = b"\x1f\x22\x1d\x12\x04news\x22\x15\x22\x07{\"a\":1}\x30\x01\x72\x08AbCdEfGh";
    assert_eq!(message.as_deref(), Some(&expect[..]));
}

#[test]
fn every_field_is_written_in_order() {
    let info = ClientInfo {
        user: "u&".into(),
        client: "c\n".into(),
        conn_info: Bytes::from_static(b"[\n1\n]"),
        chan_info: Bytes::from_static(b"null"),
    };
    let publication = Publication {
        data: Bytes::from_static(b"\"\\n\""),
        info: Some(info),
        offset: u64::MAX,
        tags: [("a", "1"), ("\"", "\u{2029}")].map(|(k, v)| (k.into(), v.into())).into(),
        delta: true,
        time: -5,
        channel: "x".into(),
        key: "k".into(),
        removed: true,
        score: i64::MIN,
        epoch: "e".into(),
        prev_data: Bytes::from_static(b"0"),
        version: 10,
    };
    let expect = concat!(
        r#"{"push":{"channel":"\u003cé\u001f","pub":{"data":"\n","info":{"user":"u\u0026","#,
        r#""client":"c\n","conn_info":[1],"chan_info":null},"offset":18446744073709551615,"#,
        r#""tags":{"\"":"\u2029","a":"1"},"delta":true,"time":-5,"channel":"x","key":"k","#,
        r#""removed":true,"score":-9223372036854775808,"epoch":"e","prev_data":0,"version":10}}}"#,
    );
    check("<é\u{1f}", &publication, expect);
}

#[test]
fn an_empty_publication_has_no_fields() {
    check("", &Publication::default(), r#"{"push":{"pub":{}}}"#);
    let info = Some(ClientInfo::default());
    let publication = Publication { info, ..Publication::default() };
    check("", &publication, r#"{"push":{"pub":{"info":{"user":"","client":""}}}}"#);
}

#[test]
fn a_payload_that_is_no_json_has_no_json_push() {
    for data in [&b"{"[..], b"\xff\xfe", b" ", b"{}{}", b"nul", b"\"\n\""] {
        let data = Bytes::copy_from_slice(data);
        let publications = [
            Publication { data: data.clone(), ..Publication::default() },
            Publication { prev_data: data.clone(), ..Publication::default() },
            publisher(ClientInfo { conn_info: data.clone(), ..ClientInfo::default() }),
            publisher(ClientInfo { chan_info: data.clone(), ..ClientInfo::default() }),
        ];
        for publication in publications {
            assert_eq!(encode_publication(Encoding::Json, "c", &publication), None, "{data:?}");
            publication_push("c", &publication);
        }
    }
}

#[test]
fn lengths_that_need_more_bytes_are_right() {
    for length in [0, 1, 100, 127, 128, 200, 16_383, 16_384, 70_000] {
        let data = Bytes::from(format!("\"{}\"", "x".repeat(length)));
        publication_push("c", &Publication { data, ..Publication::default() });
        publication_push(&"é".repeat(length), &Publication::default());
    }
}

#[test]
fn a_push_takes_one_allocation_of_its_size() {
    let info = ClientInfo { user: "é<".repeat(9), client: "c".into(), ..ClientInfo::default() };
    for bytes in [0, 50, 300, 2_048] {
        let publication = Publication {
            data: format!("[\n\"{}\"]", "x".repeat(bytes)).into(),
            info: Some(info.clone()),
            offset: 5,
            tags: [("k".to_owned(), "v".to_owned())].into(),
            ..Publication::default()
        };
        for encoding in Encoding::ALL {
            let mut length = 0;
            let allocated = allocation_counter::measure(|| {
                length =
                    encode_publication(encoding, "c", &publication).expect("JSON inside").len();
            });
            assert_eq!((allocated.count_total, allocated.bytes_total), (1, length as u64));
        }
    }
}

fn publisher(info: ClientInfo) -> Publication {
    Publication { info: Some(info), ..Publication::default() }
}

fn check(channel: &str, publication: &Publication, text: &str) {
    let message = encode_publication(Encoding::Json, channel, publication).expect("JSON inside");
    assert_eq!(std::str::from_utf8(&message), Ok(text));
    publication_push(channel, publication);
}
