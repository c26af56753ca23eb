//! Tests of patches and of recovered publications: what pays, what fits into JSON, what a list becomes.
//! In: payloads → out: patches that are applied again, strings.
//! Uses: `fossil::apply`. Never: subscribers.
//! Who gets what is tested in `subscribers/deltas/tests.rs` and `tests/it/deltas.rs`.

use fanwire_protocol::fossil;

use super::*;

fn publication(data: &str) -> Publication {
    Publication { data: data.to_owned().into(), offset: 7, ..Publication::default() }
}

fn made(source: &[u8], target: &[u8]) -> Option<Bytes> {
    patch(&mut differ(), source, target)
}

#[test]
fn a_patch_is_shorter_than_its_target_or_there_is_none() {
    let source = b"the quick brown fox jumps over the lazy dog".repeat(2);
    let target = [&source[..], b"!"].concat();
    let patch = made(&source, &target).expect("alike");
    let mut whole = Vec::new();
    assert_eq!(fossil::apply(&source, &patch, 1000, &mut whole), Ok(()));
    assert_eq!(whole, target);
    assert_eq!(made(b"", &target), None);
    assert_eq!(made(&source, b""), None);
    assert_eq!(made(&source, &[0xff; 50]), None);
}

#[test]
fn a_patch_of_text_is_text_and_one_of_bytes_is_as_short_as_can_be() {
    let rest = "the quick brown fox jumps over the lazy dog";
    let source = format!("--\u{e9}{rest}");
    let target = format!("\u{429}{rest}");
    let text = made(source.as_bytes(), target.as_bytes()).expect("alike");
    assert!(str::from_utf8(&text).is_ok());
    let source = [0x80; 40];
    let target = [0x80; 41];
    let mut shortest = Vec::new();
    Differ::default().create(&source, &target, &mut shortest);
    assert_eq!(made(&source, &target), Some(shortest.into()));
}

#[test]
fn a_payload_beyond_the_limit_has_no_patch() {
    let long = vec![b'x'; PAYLOAD_BYTES_MAX];
    assert!(made(&long, &long).is_some());
    let longer = vec![b'x'; PAYLOAD_BYTES_MAX + 1];
    assert_eq!(made(&long, &longer), None);
    assert_eq!(made(&longer, &long), None);
}

#[test]
fn everything_but_the_data_stays_in_a_shape() {
    let plain = Publication {
        tags: [("k".to_owned(), "v".to_owned())].into(),
        epoch: "e".into(),
        ..publication("{}")
    };
    let json = with_data(Encoding::Json, &plain, &Bytes::from("\"\n<"));
    assert_eq!(json, Publication { data: r#""\"\n\u003c""#.into(), ..plain.clone() });
    let protobuf = with_data(Encoding::Protobuf, &plain, &Bytes::from("\"\n<"));
    assert_eq!(protobuf, Publication { data: "\"\n<".into(), ..plain });
}

#[test]
fn missed_publications_are_one_full_and_deltas_where_they_pay() {
    let text = |number: usize| format!(r#"{{"n":{number},"text":"the same in all of them"}}"#);
    let mut list = [publication(&text(1)), publication(&text(2)), publication("3")];
    let saved = shape_missed(Encoding::Protobuf, &mut list);
    assert_eq!(list.each_ref().map(|one| one.delta), [false, true, false]);
    assert_eq!(list[0].data, text(1));
    assert_eq!(list[2], publication("3"));
    assert_eq!(saved, Saved { deltas: 1, bytes: (text(2).len() - list[1].data.len()) as u64 });
    assert_eq!(shape_missed(Encoding::Json, &mut []), Saved::default());
}
