//! Tests of the requests that a shard reads: which are plain, and the bytes of responses.
//! In: bytes of a request → out: the length that is taken, or nothing for hyper.
//! Pure. The same with sockets is in `tests/it`.
//! Changed here: expectations of `edge::accept::plain_request`.

use super::*;

/// An upgrade with one more header line, or with another first line.
fn request(first_line: &str, more: &str) -> String {
    format!(
        "{first_line}\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
         Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n{more}\r\n"
    )
}

const PLAIN: &str = "GET /connection/websocket HTTP/1.1";

fn parse(bytes: &[u8]) -> Option<PlainRequest<'_>> {
    let (head, head_length) = parse_head(bytes)?;
    with_body(head, head_length, bytes)
}

fn taken(bytes: &str) -> Option<usize> {
    parse(bytes.as_bytes()).map(|request| request.length)
}

#[test]
fn a_request_is_taken_without_what_follows_it() {
    let plain = request(PLAIN, "");
    assert_eq!(taken(&plain), Some(plain.len()));
    assert_eq!(taken(&format!("{plain}frame")), Some(plain.len()));
    let with_query = request("GET /connection/websocket?cf_protocol=protobuf HTTP/1.1", "");
    let PlainRequest { head, body, .. } = parse(with_query.as_bytes()).expect("an upgrade");
    assert_eq!(head.uri.query(), Some("cf_protocol=protobuf"));
    assert_eq!(head.headers[header::SEC_WEBSOCKET_VERSION], "13");
    assert!(body.is_empty());
}

#[test]
fn a_body_of_a_length_is_taken_when_it_is_whole() {
    let post = "POST /emulation HTTP/1.1\r\nHost: localhost\r\nContent-Length: 4\r\n\r\nbodyPOST";
    let whole = post.len() - "POST".len();
    let PlainRequest { head, body, length } = parse(post.as_bytes()).expect("a request");
    assert_eq!((head.method, body, length), (Method::POST, &b"body"[..], whole));
    for length in 0..whole {
        assert_eq!(taken(&post[..length]), None, "{length}");
    }
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
    let post = "POST /emulation HTTP/1.1";
    for (first_line, more) in [
        (post, ""),
        (post, "Content-Length: 0\r\nContent-Length: 0\r\n"),
        (post, "Content-Length: +1\r\n"),
        (post, "Content-Length: 99999999999999999999999\r\n"),
        (post, "Content-Length: 18446744073709551615\r\n"),
        (post, "Content-Length: 0\r\nExpect: 100-continue\r\n"),
        (post, "Content-Length: 0\r\nTransfer-Encoding: chunked\r\n"),
        ("get /connection/websocket HTTP/1.1", ""),
        ("OPTIONS /emulation HTTP/1.1", ""),
        ("GET /connection/websocket HTTP/1.0", ""),
        ("GET http://localhost/connection HTTP/1.1", ""),
        (PLAIN, "Content-Length: 0\r\n"),
        (PLAIN, "Transfer-Encoding: chunked\r\n"),
        (PLAIN, "no colon\r\n"),
        (PLAIN, &many),
    ] {
        assert_eq!(taken(&request(first_line, more)), None, "{first_line} {more}");
    }
    assert!(taken(&request(post, "Content-Length: 0\r\n")).is_some());
}

#[test]
fn responses_have_a_length_unless_they_have_no_body() {
    let without_date = |bytes: Vec<u8>| {
        let text = String::from_utf8(bytes).expect("text");
        assert!(text.lines().nth(1).is_some_and(|line| line.starts_with("Date: ")), "{text}");
        text.split_inclusive("\r\n").filter(|line| !line.starts_with("Date: ")).collect::<String>()
    };
    let refusal = |response: Response<String>| match refuse::<()>(response) {
        RequestOutcome::Refuse(bytes) => without_date(bytes),
        RequestOutcome::Open(_) | RequestOutcome::Answer(..) | RequestOutcome::Serve => {
            panic!("a refusal")
        }
    };
    let busy = Response::builder().status(503).header("connection", "close");
    let expected =
        "HTTP/1.1 503 Service Unavailable\r\nconnection: close\r\ncontent-length: 5\r\n\r\nbusy\n";
    assert_eq!(refusal(busy.body("busy\n".to_owned()).expect("a response")), expected);
    let upgrade = Response::builder().status(426).header("connection", "upgrade");
    let expected = "HTTP/1.1 426 Upgrade Required\r\nconnection: upgrade\r\nconnection: close\r\ncontent-length: 0\r\n\r\n";
    assert_eq!(refusal(upgrade.body(String::new()).expect("a response")), expected);
    for (status, line) in [(101, "101 Switching Protocols"), (204, "204 No Content")] {
        let response = Response::builder().status(status).header("upgrade", "websocket").body(());
        let response = encode(&response.expect("a response"), "");
        let expected = format!("HTTP/1.1 {line}\r\nupgrade: websocket\r\n\r\n");
        assert_eq!(without_date(response), expected);
    }
}
