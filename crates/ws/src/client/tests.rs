//! Tests of `client`: the request of a handshake, and the rules of its response (RFC 6455 §4.1).
//! A request's texts, and responses with one wrong part → lines of the head, and errors.
//! Uses the example of RFC 6455 §1.3.
//! Changed here: cases of one handshake. Both sides together are `tests/it/client_role.rs`.

use super::*;

#[test]
fn the_request_has_the_headers_that_a_server_asks_for() {
    let handshake = handshake(Some(ExtensionOffer::default()));
    let headers = [("Origin".to_owned(), "https://example.com".to_owned())];
    let head = handshake.request("example.com:8000", "/chat?a=b", &headers).expect("no line ends");
    let expect = "GET /chat?a=b HTTP/1.1\r\n\
        Host: example.com:8000\r\n\
        Upgrade: websocket\r\n\
        Connection: Upgrade\r\n\
        Sec-WebSocket-Version: 13\r\n\
        Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\
        Sec-WebSocket-Protocol: centrifuge-protobuf\r\n\
        Sec-WebSocket-Extensions: permessage-deflate; client_max_window_bits\r\n\
        Origin: https://example.com\r\n\r\n";
    assert_eq!(head, expect);
}

#[test]
fn no_part_of_the_request_can_add_a_line() {
    let handshake = handshake(None);
    assert_eq!(handshake.request("example.com\r\nA: b", "/", &[]), Err(LineEnd));
    assert_eq!(handshake.request("example.com", "/ HTTP/1.1\n", &[]), Err(LineEnd));
    let header = ("Authorization".to_owned(), "a\r\nb".to_owned());
    assert_eq!(handshake.request("example.com", "/", &[header]), Err(LineEnd));
}

#[test]
fn a_response_is_accepted_if_each_part_of_it_is_right() {
    let handshake = handshake(None);
    assert_eq!(handshake.check(&RIGHT), Ok(None));
    let check = |response, error| assert_eq!(handshake.check(&response), Err(error));
    check(HandshakeResponse { status: 403, ..RIGHT }, ResponseError::Status { status: 403 });
    check(HandshakeResponse { upgrade: None, ..RIGHT }, ResponseError::Upgrade);
    check(HandshakeResponse { upgrade: Some("h2c"), ..RIGHT }, ResponseError::Upgrade);
    check(HandshakeResponse { connection: Some("close"), ..RIGHT }, ResponseError::Connection);
    let other = Some("s3pPLMBiTxaQ9kYGzzhZRbK+xOp=");
    check(HandshakeResponse { accept: other, ..RIGHT }, ResponseError::Accept);
    check(HandshakeResponse { subprotocol: None, ..RIGHT }, ResponseError::Subprotocol);
    let json = Some("centrifuge-json");
    check(HandshakeResponse { subprotocol: json, ..RIGHT }, ResponseError::Subprotocol);
    let extension = Some("permessage-deflate");
    check(HandshakeResponse { extensions: extension, ..RIGHT }, ResponseError::Extension);
}

fn handshake(offer: Option<ExtensionOffer>) -> ClientHandshake {
    ClientHandshake::new(*b"the sample nonce", Some("centrifuge-protobuf"), offer)
}

const RIGHT: HandshakeResponse<'_> = HandshakeResponse {
    status: 101,
    upgrade: Some("WebSocket"),
    connection: Some("keep-alive, Upgrade"),
    accept: Some("s3pPLMBiTxaQ9kYGzzhZRbK+xOo="),
    subprotocol: Some("centrifuge-protobuf"),
    extensions: None,
};
