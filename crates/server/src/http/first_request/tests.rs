//! Tests of the requests that a shard reads: which are plain upgrades, and the bytes of responses.
//! In: bytes of a request → out: the length that is taken, or nothing for hyper.
//! Pure. The same with sockets is `tests/it/handshake.rs`.
//! Changed here: expectations of `http::first_request`.

use super::*;

const PATH: &str = "/connection/websocket";

/// An upgrade with one more header line, or with another first line.
fn request(first_line: &str, more: &str) -> String {
    format!(
        "{first_line}\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
         Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n{more}\r\n"
    )
}

const PLAIN: &str = "GET /connection/websocket HTTP/1.1";

fn taken(bytes: &str) -> Option<usize> {
    plain_upgrade(bytes.as_bytes(), PATH, false).map(|(_, length)| length)
}

#[test]
fn a_plain_upgrade_is_taken_without_what_follows_it() {
    let plain = request(PLAIN, "");
    assert_eq!(taken(&plain), Some(plain.len()));
    assert_eq!(taken(&format!("{plain}frame")), Some(plain.len()));
    let with_query = request("GET /connection/websocket?cf_protocol=protobuf HTTP/1.1", "");
    let (head, _) = plain_upgrade(with_query.as_bytes(), PATH, true).expect("an upgrade");
    assert_eq!(head.uri.query(), Some("cf_protocol=protobuf"));
    assert_eq!(head.headers[header::SEC_WEBSOCKET_VERSION], "13");
}

#[test]
fn every_part_of_an_upgrade_is_for_hyper() {
    let plain = request(PLAIN, "");
    for length in 0..plain.len() {
        assert_eq!(taken(&plain[..length]), None, "{length}");
    }
}

#[test]
fn all_other_requests_are_for_hyper() {
    let many = "X-A: b\r\n".repeat(HEADERS_MAX);
    for (first_line, more) in [
        ("POST /connection/websocket HTTP/1.1", ""),
        ("get /connection/websocket HTTP/1.1", ""),
        ("GET /connection/websocket HTTP/1.0", ""),
        ("GET /connection/websocket/ HTTP/1.1", ""),
        ("GET /connection/websocke%74 HTTP/1.1", ""),
        ("GET http://localhost/connection HTTP/1.1", ""),
        ("GET * HTTP/1.1", ""),
        (PLAIN, "Content-Length: 0\r\n"),
        (PLAIN, "Transfer-Encoding: chunked\r\n"),
        (PLAIN, "Host: other\r\n"),
        (PLAIN, "no colon\r\n"),
        (PLAIN, &many),
    ] {
        assert_eq!(taken(&request(first_line, more)), None, "{first_line} {more}");
    }
    let without_upgrade = request(PLAIN, "").replace("Upgrade: websocket\r\n", "");
    assert_eq!(taken(&without_upgrade), None);
    let foreign = request(PLAIN, "").replace("localhost", "example.com");
    assert!(plain_upgrade(foreign.as_bytes(), PATH, true).is_none(), "development mode");
    assert!(plain_upgrade(foreign.as_bytes(), PATH, false).is_some());
}

#[test]
fn responses_have_a_length_unless_they_switch() {
    let refusal = Response::builder().status(503).header("connection", "close").body(());
    let refusal = encode(&refusal.expect("a response"), "busy\n");
    let expected =
        "HTTP/1.1 503 Service Unavailable\r\nconnection: close\r\ncontent-length: 5\r\n\r\nbusy\n";
    assert_eq!(String::from_utf8_lossy(&refusal), expected);
    let upgrade = Response::builder().status(426).header("connection", "upgrade").body(());
    let upgrade = encode(&upgrade.expect("a response"), "");
    let expected = "HTTP/1.1 426 Upgrade Required\r\nconnection: upgrade\r\nconnection: close\r\ncontent-length: 0\r\n\r\n";
    assert_eq!(String::from_utf8_lossy(&upgrade), expected);
    let switch = Response::builder().status(101).header("upgrade", "websocket").body(());
    let switch = encode(&switch.expect("a response"), "");
    let expected = "HTTP/1.1 101 Switching Protocols\r\nupgrade: websocket\r\n\r\n";
    assert_eq!(String::from_utf8_lossy(&switch), expected);
}
