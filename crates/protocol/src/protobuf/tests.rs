//! Tests of `protobuf`: the bytes of prost, and as many as were announced.
//! In: numbers and publications at the edges. Out: bytes.
//! Uses prost as the oracle.
//! Random publications run in `tests/it/any_bytes.rs`, inside their pushes.

use prost::Message as _;
use prost::encoding::{encode_varint, encoded_len_varint};

use super::*;

#[test]
fn numbers_take_the_bytes_that_prost_gives_them() {
    for shift in 0..64 {
        for value in [(1_u64 << shift) - 1, 1 << shift, u64::MAX >> shift] {
            let (mut ours, mut expect) = (Vec::new(), Vec::new());
            put_varint(value, &mut ours);
            encode_varint(value, &mut expect);
            assert_eq!(ours, expect, "{value}");
            assert_eq!(varint_length(value), encoded_len_varint(value), "{value}");
        }
    }
}

#[test]
fn signs_are_written_as_prost_writes_them() {
    for value in [0, 1, -1, 63, -64, 64, i64::MAX, i64::MIN] {
        check(&Publication { score: value, ..Publication::default() });
        check(&Publication { time: value, ..Publication::default() });
    }
}

#[test]
fn each_field_alone_is_written_as_prost_writes_it() {
    let texts = [("", ""), ("k", ""), ("", "v"), ("k", "v")];
    let tags = texts.map(|(key, value)| (key.to_owned(), value.to_owned())).into();
    let info = ClientInfo { user: "é".repeat(100), ..ClientInfo::default() };
    let rows = [
        Publication::default(),
        Publication { data: vec![0; 128].into(), ..Publication::default() },
        Publication { info: Some(ClientInfo::default()), ..Publication::default() },
        Publication { info: Some(info), ..Publication::default() },
        Publication { offset: u64::MAX, ..Publication::default() },
        Publication { tags, ..Publication::default() },
        Publication { delta: true, ..Publication::default() },
        Publication { channel: "c".into(), ..Publication::default() },
        Publication { key: "k".into(), ..Publication::default() },
        Publication { removed: true, ..Publication::default() },
        Publication { epoch: "e".into(), ..Publication::default() },
        Publication { prev_data: "1".into(), ..Publication::default() },
        Publication { version: 1 << 7, ..Publication::default() },
    ];
    rows.iter().for_each(check);
}

fn check(publication: &Publication) {
    let mut out = Vec::new();
    put_publication(publication, &mut out);
    assert_eq!(out, publication.encode_to_vec(), "{publication:?}");
    assert_eq!(out.len(), publication_length(publication), "{publication:?}");
}
