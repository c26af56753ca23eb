//! Addresses, lines and the pace of `fanwire publish`.
//! In: options → out: where to publish and what; when chunks are sent.
//! Uses tokio's clock, which jumps to the next timer.
//! Real servers are in `tests/it/publish.rs`.

use clap::Parser as _;
use futures_util::StreamExt as _;

use super::*;
use crate::arguments::{Arguments, CliCommand};

fn parsed(arguments: &[&str]) -> Publish {
    let all = ["fanwire", "publish"].iter().chain(arguments);
    match Arguments::try_parse_from(all).expect("good options").command {
        Some(CliCommand::Publish(publish)) => publish,
        other => panic!("{other:?}"),
    }
}

#[test]
fn lines_have_numbers_tags_and_delivery() {
    let publish = parsed(&["a\"b", "{\"n\":\n1}", "--tag", "s=x=y", "--delivery", "latest"]);
    let line = r#"{"id":1,"publish":{"channel":"a\"b","tags":{"s":"x=y"},"delivery":"latest","data":{"n": 1}}}"#;
    assert_eq!(lines(&publish).expect("JSON"), [format!("{line}\n")]);
    let error = lines(&parsed(&["a", "hello"])).expect_err("no JSON").to_string();
    assert!(error.contains("a text needs quotes"), "{error}");
}

#[test]
fn keys_of_maps_are_set_and_removed() {
    let set = parsed(&["a", "1", "--map-key", "k\"", "--tag", "s=x"]);
    let line = r#"{"id":1,"map_publish":{"channel":"a","tags":{"s":"x"},"key":"k\"","data":1}}"#;
    assert_eq!(lines(&set).expect("JSON"), [format!("{line}\n")]);
    let removed = parsed(&["a", "--map-remove", "k"]);
    let line = lines(&removed).expect("a line").concat();
    let expected = json!({"id": 1, "map_remove": {"channel": "a", "key": "k"}});
    assert_eq!(serde_json::from_str::<Value>(&line).expect("JSON"), expected);
    assert!(line.ends_with('\n'));
}

#[test]
fn a_key_that_did_not_change_is_named_with_its_reason() {
    let line = br#"{"id":1,"map_remove":{"suppressed":true,"suppress_reason":"key_not_found"}}"#;
    assert_eq!(
        error_of(line).expect("JSON").as_deref(),
        Some("message 1: no change, key_not_found")
    );
    assert_eq!(
        error_of(br#"{"id":1,"map_publish":{"offset":3,"epoch":"e"}}"#).expect("JSON"),
        None
    );
}

#[tokio::test(start_paused = true)]
async fn messages_are_sent_at_their_planned_times() {
    let started = tokio::time::Instant::now();
    let lines = (0..10).map(|number| number.to_string()).collect();
    let mut chunks = Box::pin(paced(lines, Some(2.0)));
    let mut sent = Vec::new();
    while let Some(Ok(chunk)) = chunks.next().await {
        sent.push((started.elapsed().as_millis(), chunk.into_data().expect("data")));
    }
    let times: Vec<u128> = sent.iter().map(|(at, _)| *at / 500).collect();
    assert_eq!(times, Vec::from_iter(0..10));
}

#[test]
fn an_error_names_its_message() {
    let line = br#"{"id":7,"error":{"code":102,"message":"unknown channel"}}"#;
    assert_eq!(
        error_of(line).expect("JSON").as_deref(),
        Some("message 7: error 102, unknown channel")
    );
    let with_cause =
        br#"{"id":8,"error":{"code":107,"message":"bad request","cause":"no channel"}}"#;
    assert_eq!(
        error_of(with_cause).expect("JSON").as_deref(),
        Some("message 8: error 107, bad request: no channel")
    );
    assert_eq!(error_of(br#"{"id":7,"publish":{}}"#).expect("JSON"), None);
    assert!(error_of(b"<html>").is_err());
}
