//! Tests of what fan-out rounds publish and compare.
//! In: sizes and flags → out: payloads, requests, contenders.
//! Uses `fanout` only; starts nothing.
//! The bookkeeping of a round is tested in `round`.

use std::path::Path;

use super::*;

#[test]
fn made_up_payloads_are_json_of_the_asked_size() {
    for bytes in [64, 200, 5_000] {
        let payloads = made_up_payloads(bytes);
        for payload in &payloads {
            assert_eq!(payload.len(), bytes);
            serde_json::from_str::<serde_json::Value>(payload).expect("valid JSON");
        }
        assert_ne!(payloads[0], payloads[1]);
    }
}

#[test]
fn the_bare_frame_is_as_long_as_the_envelope() {
    let publications =
        publications(&[r#""data":{}"#.to_owned()], 1, false).expect("one payload is enough");
    let envelope = r#"{"push":{"channel":"bench","pub":{"data":{}}}}"#;
    assert_eq!(publications[0][0].trigger, (envelope.len() as u32).to_le_bytes());
    assert!(publications[0][0].request.ends_with(br#"{"channel":"bench","data":{}}"#));
    let bare = super::publications(&[r#""data":{}"#.to_owned()], 1, true).expect("one");
    assert_eq!(bare[0][0].trigger, (envelope.len() as u32 - 9).to_le_bytes());
}

#[test]
fn each_channel_gets_an_equal_part_of_the_payloads_in_their_order() {
    let payloads: Vec<String> = (0..7).map(|number| format!("\"data\":{number}")).collect();
    let publications = publications(&payloads, 3, false).expect("more payloads than channels");
    let ends = |channel: usize| -> Vec<&[u8]> {
        publications[channel].iter().map(|one| &one.request[one.request.len() - 2..]).collect()
    };
    assert_eq!(ends(0), [b"0}", b"1}"]);
    assert_eq!(ends(2), [b"4}", b"5}"]);
    assert!(super::publications(&payloads, 8, false).is_err(), "no payload for the last");
}

#[test]
fn a_binary_corpus_is_published_as_base64() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus/game.bin");
    let (is_binary, messages) = files::read(&path).expect("a good file").expect("a known name");
    assert!(is_binary && messages.len() > 50, "{} messages", messages.len());
    let field = files::payload(is_binary, b"\0\xff");
    assert_eq!(field, r#""b64data":"AP8=""#);
    let publications = publications(&[field], 1, false).expect("one payload is enough");
    assert!(publications[0][0].request.ends_with(br#"{"channel":"bench","b64data":"AP8="}"#));
    assert!(files::read(Path::new("game.txt")).expect("not looked at").is_none());
}
