//! Lines of a body that arrives in any pieces, and the answers to good and bad lines.
//! In: pieces and lines → out: lines, answers.
//! Uses an `Api` over a node in memory; never HTTP.
//! Changed here: tests of `stream.rs`. Real connections are in `fanwire/tests/it/stream.rs`.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use std::sync::Arc;

use fanwire_node::{Node, Options};
use proptest::{collection::vec, prelude::*};

use super::*;
use crate::reply_budget::tests::api_with_history;
use crate::{ApiOptions, Method};

fn text(line: &str) -> Line {
    Line::Text(Bytes::copy_from_slice(line.as_bytes()))
}

fn split(pieces: &[&str], bytes_max: usize) -> Vec<Line> {
    let mut lines = Lines::new(bytes_max);
    let pieces = pieces.iter().map(|piece| Bytes::copy_from_slice(piece.as_bytes()));
    let mut all: Vec<Line> = pieces.flat_map(|piece| lines.push(piece)).collect();
    all.extend(lines.end());
    all
}

#[test]
fn lines_end_with_a_line_feed_or_the_body() {
    let check = |pieces: &[&str], expected: &[Line]| assert_eq!(split(pieces, 8), expected);
    check(&[], &[]);
    check(&["a\nb\n"], &[text("a"), text("b")]);
    check(&["a\nb"], &[text("a"), text("b")]);
    check(&["a", "b\n", "c"], &[text("ab"), text("c")]);
    check(&["\n\r\n  \n", "\n"], &[]);
    check(&["a\r\n"], &[text("a\r")]);
}

#[test]
fn a_line_that_is_too_long_is_skipped_to_its_end() {
    let check = |pieces: &[&str], expected: &[Line]| assert_eq!(split(pieces, 3), expected);
    check(&["abc\nabcd\nb\n"], &[text("abc"), Line::TooLong, text("b")]);
    check(&["ab", "cd", "ef", "g\nb"], &[Line::TooLong, text("b")]);
    check(&["ab", "cd"], &[Line::TooLong]);
    let mut lines = Lines::new(3);
    for _ in 0..1000 {
        assert!(lines.push(Bytes::from_static(b"abcd")).is_empty());
        assert!(lines.rest.capacity() < 100, "what is skipped is not kept");
    }
}

proptest! {
    #[test]
    fn the_pieces_of_a_body_do_not_matter(
        body in "[ab \n]{0,60}",
        cuts in vec(0..60_usize, 0..10),
    ) {
        let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| cut.min(body.len())).collect();
        cuts.extend([0, body.len()]);
        cuts.sort_unstable();
        let pieces: Vec<&str> = cuts.windows(2).map(|pair| &body[pair[0]..pair[1]]).collect();
        prop_assert_eq!(split(&pieces, 5), split(&[&body], 5));
    }

    #[test]
    fn any_line_is_answered_by_one_line(line in vec(any::<u8>(), 1..60)) {
        let line = Line::Text(line.into());
        let answers = futures_util::FutureExt::now_or_never(api().answer_lines([line].into(), &KeyHolder::default()));
        let (answers, _) = answers.expect("in memory");
        prop_assert_eq!(answers.iter().filter(|byte| **byte == b'\n').count(), 1);
        prop_assert!(serde_json::from_slice::<serde_json::Value>(&answers).is_ok());
    }
}

fn api() -> Api {
    let node = Node::new(Options::default()).expect("defaults are valid");
    Api::new(Arc::clone(&node), ApiOptions::default())
}

/// An answer without the cause of its error.
fn without_cause(answer: &str) -> String {
    match (answer.split_once("\",\"cause\":"), answer.rsplit_once('"')) {
        (Some((begin, _)), Some((_, end))) => format!("{begin}\"{end}"),
        _ => answer.to_owned(),
    }
}

async fn check(lines: &str, expected: &str) {
    let lines = lines.lines().map(text).collect();
    let answers = String::from_utf8(api().answer_lines(lines, &KeyHolder::default()).await.0)
        .expect("JSON is text");
    let answers: Vec<&str> = answers.split_inclusive('\n').collect();
    let answers: String = answers.into_iter().map(without_cause).collect();
    assert_eq!(answers, expected);
}

#[tokio::test]
async fn answers_have_the_order_and_the_ids_of_their_lines() {
    check(
        r#"{"publish":{"channel":"a","data":{}}}
{"id":7,"publish":{"channel":"a","data":{}}}
{"publish":{"channel":"a","data":{}},"id":"x\u00e9"}
 {"id":-1.5e3 , "channels":{}, "other":[1]} "#,
        "{\"publish\":{}}\n{\"id\":7,\"publish\":{}}\n{\"id\":\"x\\u00e9\",\"publish\":{}}\n{\"id\":-1.5e3,\"channels\":{\"channels\":{}}}\n",
    )
    .await;
}

#[tokio::test]
async fn a_bad_line_is_answered_and_the_next_one_executed() {
    let bad =
        |id: &str| format!("{{{id}\"error\":{{\"code\":107,\"message\":\"bad request\"}}}}\n");
    let missing =
        |id: &str| format!("{{{id}\"error\":{{\"code\":104,\"message\":\"not found\"}}}}\n");
    for (line, expected) in [
        ("{", bad("")),
        ("null", bad("")),
        ("[]", bad("")),
        (r#"{"id":1"#, bad("")),
        (r#"{"id":1,"publish":{"channel":5}}"#, bad("\"id\":1,")),
        (r#"{"id":1,"publish":{},"channels":{}}"#, bad("\"id\":1,")),
        (r#"{"id":[1],"publish":{"channel":"a","data":1}}"#, bad("")),
        (r#"{"id":null,"publish":{"channel":"a","data":1}}"#, bad("")),
        (r#"{"id":{},"id":1,"publish":{"channel":"a","data":1}}"#, bad("")),
        (r#"{"id":2,"publish":{"data":1}}"#, bad("\"id\":2,")),
        (r#"{"id":3,"publishing":{"channel":"a"}}"#, missing("\"id\":3,")),
        (r#"{"id":4}"#, missing("\"id\":4,")),
        (r#"{"id":5,"batch":{"commands":[]}}"#, missing("\"id\":5,")),
    ] {
        let lines = format!("{line}\n{{\"id\":9,\"publish\":{{\"channel\":\"a\",\"data\":1}}}}");
        check(&lines, &format!("{expected}{{\"id\":9,\"publish\":{{}}}}\n")).await;
    }
    let (answers, _) = api().answer_lines([Line::TooLong].into(), &KeyHolder::default()).await;
    let cause = "bad request\",\"cause\":\"the line is longer than http_api.max_request_body_size";
    let expected = bad("").replace("bad request", cause);
    assert_eq!(String::from_utf8(answers).expect("text"), expected);
}

#[tokio::test]
async fn each_line_counts_as_a_call_of_its_method() {
    let api = api();
    let line = text(r#"{"publish":{"channel":"a","data":{}}}"#);
    api.answer_lines(vec![line; 3000].into(), &KeyHolder::default()).await;
    assert_eq!(api.counters().of(Method::Publish).calls, 3000);
}

const HISTORY: &str = r#"{"history":{"channel":"a","limit":-1}}"#;

#[tokio::test]
async fn a_piece_of_large_answers_ends_and_the_next_one_continues() {
    let bytes = 600_000;
    let api = api_with_history(bytes).await;
    let mut lines: VecDeque<Line> = vec![text(HISTORY); 50].into();
    let mut pieces = Vec::new();
    while !lines.is_empty() {
        let (answers, left) = api.answer_lines(lines, &KeyHolder::default()).await;
        assert!(answers.len() < ANSWERS_BYTES_MAX + bytes + 1_000, "{}", answers.len());
        pieces.push(answers.iter().filter(|byte| **byte == b'\n').count());
        lines = left;
    }
    assert_eq!(pieces, [2; 25]);
}

#[test]
fn other_tasks_run_between_commands_and_a_request_that_is_dropped_reads_no_more() {
    let api = futures_util::FutureExt::now_or_never(api_with_history(100_000)).expect("in memory");
    let mut context = std::task::Context::from_waker(std::task::Waker::noop());
    for (line, calls_max) in [(HISTORY, 1), (r#"{"publish":{"channel":"b","data":1}}"#, 128)] {
        let caller = KeyHolder::default();
        let before: u64 = Method::ALL.iter().map(|method| api.counters().of(*method).calls).sum();
        let mut answers = Box::pin(api.answer_lines(vec![text(line); 1_000].into(), &caller));
        assert!(answers.as_mut().poll(&mut context).is_pending());
        drop(answers);
        let after: u64 = Method::ALL.iter().map(|method| api.counters().of(*method).calls).sum();
        assert!((1..=calls_max).contains(&(after - before)), "{line}: {} calls", after - before);
    }
}

#[tokio::test]
async fn a_history_with_line_ends_in_its_data_is_one_line() {
    let mut options = Options::default();
    let open = &mut options.channel.without_namespace;
    (open.history_size, open.history_ttl) = (9, std::time::Duration::from_secs(60));
    let api = Api::new(Node::new(options).expect("valid"), ApiOptions::default());
    let data = STANDARD.encode("{\r\n\"a\":\n[1,\r2]}\n");
    let publish = format!(r#"{{"publish":{{"channel":"a","b64data":"{data}"}}}}"#);
    let history = r#"{"history":{"channel":"a","limit":1}}"#;
    let (answers, _) =
        api.answer_lines([text(&publish), text(history)].into(), &KeyHolder::default()).await;
    let answers = String::from_utf8(answers).expect("JSON is text");
    assert_eq!(answers.lines().count(), 2, "{answers}");
    assert!(answers.contains(r#""data":{"a":[1,2]}"#) && !answers.contains('\r'), "{answers}");
}

#[tokio::test]
async fn short_lines_end_before_a_command_that_may_take_long() {
    let api = api();
    let caller = KeyHolder::default();
    let publish = r#"{"publish":{"channel":"a","data":{}}}"#;
    let channels: Vec<_> = (0..300).map(|number| format!("c{number}")).collect();
    let broadcast = |count: usize| {
        let channels = &channels[..count];
        format!("{{\"broadcast\":{{\"channels\":{channels:?},\"data\":{{}}}}}}")
    };
    for long in [r#"{"info":{}}"#.to_owned(), r#"{"history":{}}"#.to_owned(), broadcast(257)] {
        let lines = [publish, "nonsense", &broadcast(256), &long, publish].map(text);
        let (answers, left) = api.answer_short_lines(lines.into(), &caller).await;
        assert_eq!(answers.iter().filter(|byte| **byte == b'\n').count(), 3);
        assert_eq!(left, [text(&long), text(publish)]);
        let counted = caller.counts()[0];
        let (answers, left) = api.answer_short_lines(left, &caller).await;
        assert!(answers.is_empty());
        assert_eq!(caller.counts()[0], counted, "it was not begun");
        assert_eq!(left.len(), 2);
    }
}
