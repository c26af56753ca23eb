//! Tests of the judging: an answer counts only with a result for every channel, bars belong to rows without history.
//! In: answers and samples → out: errors, verdicts.
//! Uses `broadcast` only; never a server.
//! Changed here: expectations of `broadcast` without sockets.

use super::*;
use clap::Parser;

#[derive(Parser)]
struct Line {
    #[command(flatten)]
    broadcast: Broadcast,
}

fn scenario(flags: &str) -> Broadcast {
    let words = flags.split_whitespace();
    Line::try_parse_from(std::iter::once("broadcast").chain(words)).expect("flags").broadcast
}

#[test]
fn an_answer_needs_a_result_for_every_channel() {
    let answer = |responses: &str| {
        format!("HTTP/1.1 200 OK\r\n\r\n{{\"result\":{{\"responses\":[{responses}]}}}}")
    };
    let check = |responses, channels| check_results(answer(responses).as_bytes(), channels);
    assert!(check(r#"{"result":{}},{"result":{"offset":1}}"#, 2).is_ok());
    assert!(check(r#"{"result":{}}"#, 2).is_err(), "one is missing");
    assert!(check(r#"{"result":{}},{"error":{"code":100}}"#, 2).is_err(), "one is an error");
    assert!(check_results(b"HTTP/1.1 200 OK\r\n\r\n", 1).is_err(), "no JSON");
}

#[test]
fn a_row_without_history_is_judged_by_its_own_bar_and_limit() {
    let row = [Sample { echo: 10.0, redis: Some(20.0), calls: vec![30.0, 20.0, 40.0] }];
    let check = |flags: &str, channels, has_history, kept| {
        let scenario = scenario(flags);
        scenario.check().expect("a line that makes sense");
        assert_eq!(scenario.judge(Case { channels, has_history }, &row), kept, "{flags}");
    };
    check("", 1, false, true);
    check("--bar 3", 5_000, false, true);
    check("--bar 2.9", 5_000, false, false);
    check("--bar 2.9", 5_000, true, true);
    check("--bar 3,2,3", 1, false, true);
    check("--bar 3,2,3", 100, false, false);
    check("--engine redis --bar 1.5", 1, false, true);
    check("--engine redis --bar 1.4", 1, false, false);
    check("--limit-us 29,30,30", 1, false, false);
    check("--limit-us 29,30,30", 100, false, true);
}

#[test]
fn limits_that_fit_no_row_are_refused() {
    for flags in ["--bar 1,2", "--limit-us 1", "--channels 0"] {
        assert!(scenario(flags).check().is_err(), "{flags}");
    }
}

#[test]
fn an_answer_in_chunks_is_whole_at_its_last_one() {
    let head = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
    let chunks = ["{\"resu", "lt\":{\"responses\"", ":[{\"result\":{\"offset\":1}}]", "}}", ""];
    let written = chunks.map(|chunk| format!("{:x}\r\n{chunk}\r\n", chunk.len()));
    let whole = format!("{head}{}", written.concat());
    let bytes = whole.as_bytes();
    assert_eq!(whole_length(bytes).expect("HTTP"), Some(bytes.len()));
    assert_eq!(whole_length(&bytes[..bytes.len() - 5]).expect("HTTP"), None);
    check_results(bytes, 1).expect("one result");
    assert!(check_results(bytes, 2).is_err());
    assert!(body(&bytes[..head.len() + 7]).is_err(), "a chunk that is not whole");
}
