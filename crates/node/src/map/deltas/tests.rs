//! Tests of the form for subscribers with deltas: chains by key, removals, entries, data without a form in JSON.
//! In: results → out: their entries and changes, and what patches saved.
//! Uses: the decoder of patches. Never: sessions.
//! Changed here: tests of replies with deltas. Live changes are tested in `tests/it/maps.rs`.

use std::iter::repeat_n;

use fanwire_protocol::{Publication, fossil};

use super::*;
use crate::map::MAP;

fn change(key: &str, data: &str) -> Publication {
    let data = Bytes::copy_from_slice(data.as_bytes());
    Publication { key: key.into(), data, ..Publication::default() }
}

fn long(end: &str) -> String {
    format!("{{\"text\":\"{}{end}\"}}", repeat_n('x', 100).collect::<String>())
}

fn removal(key: &str) -> Publication {
    Publication { removed: true, ..change(key, "") }
}

fn result(publications: Vec<Publication>) -> SubscribeResult {
    SubscribeResult { r#type: MAP, publications, ..SubscribeResult::default() }
}

#[test]
fn each_key_has_a_chain_of_its_own() {
    let changes = [
        change("a", &long("1")),
        change("b", "{\"y\":1}"),
        change("a", &long("2")),
        change("b", "{\"y\":2}"),
    ];
    let mut shaped = result(changes.to_vec());
    let saved = shape(Encoding::Protobuf, &mut shaped);
    let is_patch: Vec<_> = shaped.publications.iter().map(|one| one.delta).collect();
    assert_eq!(is_patch, [false, false, true, false], "a patch of a short value does not pay");
    let mut patched = Vec::new();
    let applied = fossil::apply(&changes[0].data, &shaped.publications[2].data, 1000, &mut patched);
    assert!(applied.is_ok());
    assert_eq!(patched, changes[2].data);
    assert_eq!(saved.deltas, 1);
}

#[test]
fn a_removal_ends_the_chain_and_is_no_patch() {
    let changes = [change("a", &long("1")), removal("a"), change("a", &long("2"))];
    for encoding in Encoding::ALL {
        let mut shaped = result(changes.to_vec());
        assert_eq!(shape(encoding, &mut shaped).deltas, 0, "{encoding:?}");
        let data = &shaped.publications[1].data;
        let expect = if encoding == Encoding::Json { "\"null\"" } else { "" };
        assert_eq!(data, expect, "clients parse it");
    }
}

#[test]
fn entries_and_pages_of_changes_have_no_patches() {
    let state = vec![change("a", &long("1"))];
    let publications = vec![change("a", &long("1")), change("a", &long("2"))];
    let phase = Phase::Stream as i32;
    let mut shaped = SubscribeResult { state, phase, ..result(publications) };
    assert_eq!(shape(Encoding::Json, &mut shaped).deltas, 0);
    let text = serde_json::to_string(&long("1")).expect("text");
    assert_eq!(shaped.state[0].data, text, "a string in JSON");
    assert_eq!(shaped.publications[0].data, text);
}

#[test]
fn data_without_json_has_no_form_in_a_reply() {
    let mut shaped = SubscribeResult { state: vec![change("a", "{")], ..result(Vec::new()) };
    shape(Encoding::Json, &mut shaped);
    assert!(!fanwire_protocol::is_json(&shaped.state[0].data));
}
