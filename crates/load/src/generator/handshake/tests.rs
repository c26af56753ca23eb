//! Tests of the client's opening handshake.
//! In: answers as servers write them → out: the agreement or the refusal.
//! Uses `handshake` only.
//! Repeats of the answer belong here; the whole opening is tested in `generator`.

use super::*;

fn with_extension(line: &str) -> String {
    format!("HTTP/1.1 101 Switching Protocols\r\nsec-websocket-accept: {ACCEPT}\r\n{line}\r\n")
}

fn check(line: &str, expect: CompressionAgreement) {
    let bytes = with_extension(line);
    let expect = Some((expect, bytes.len()));
    assert_eq!(answer(bytes.as_bytes()).expect("an agreement"), expect);
    assert_eq!(answer(&bytes.as_bytes()[..bytes.len() - 1]).expect("cut"), None);
}

#[test]
fn the_answer_decides_about_compression() {
    check("", CompressionAgreement::Raw);
    check("Sec-WebSocket-Extensions: permessage-deflate\r\n", CompressionAgreement::Context);
    let standalone = "permessage-deflate; server_no_context_takeover; client_no_context_takeover";
    check(&format!("Sec-WebSocket-Extensions: {standalone}\r\n"), CompressionAgreement::Standalone);
}

#[test]
fn a_refusal_shows_the_servers_words() {
    let refused = answer(b"HTTP/1.1 403 Forbidden\r\n\r\norigin not allowed");
    assert!(refused.expect_err("a refusal").to_string().contains("origin not allowed"));
    assert!(answer(b"HTTP/1.1 101 Switching Protocols\r\n\r\n").is_err(), "no accept value");
}
