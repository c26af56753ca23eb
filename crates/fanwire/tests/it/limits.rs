//! Limits of messages on a connection: size, inflated size, fragments (client protocol §1; RFC 6455 §7.4.1).
//! In: messages above a limit → out: 1009, and bounded memory.
//! Uses the test client and the compressor of `deflate`.
//! Changed here: expectations over sockets. The reader's own tests are in `ws`.

use fanwire::config::Namespace;
use fanwire_deflate::Compressor;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};

use crate::client::{Client, start};

#[tokio::test]
async fn a_message_above_the_limit_fails_with_1009() {
    let server = start(|config| config.websocket.message_size_limit = 1000).await;
    let mut client = Client::open(server.address(), "").await;
    client.frame(0x81, &[b'x'; 1001]).await;
    assert_eq!(client.closed().await.0, 1009);
}

#[tokio::test]
async fn a_decompression_bomb_fails_with_1009() {
    let mut bomb = Vec::new(); // before there is a connection, which would be stale on a busy machine
    Compressor::new(9).standalone(&vec![b' '; 16 << 20], &mut bomb);
    assert!(bomb.len() < 65_536, "the bomb passes the limit of the wire");
    let server = start(|_| {}).await;
    let mut client =
        Client::open(server.address(), "Sec-WebSocket-Extensions: permessage-deflate\r\n").await;
    client.frame(0xc1, &bomb).await;
    assert_eq!(client.closed().await.0, 1009);
}

#[tokio::test]
async fn corrupt_deflate_data_fails_with_1007() {
    let server = start(|_| {}).await;
    let mut client =
        Client::open(server.address(), "Sec-WebSocket-Extensions: permessage-deflate\r\n").await;
    client.frame(0xc1, &[0x07, 0xff, 0xff]).await;
    assert_eq!(client.closed().await.0, 1007);
}

#[tokio::test]
async fn a_compressed_command_is_executed() {
    let server = start(|_| {}).await;
    let mut client =
        Client::open(server.address(), "Sec-WebSocket-Extensions: permessage-deflate\r\n").await;
    let mut command = Vec::new();
    Compressor::new(6).standalone(b"{\"id\":1,\"connect\":{}}", &mut command);
    client.frame(0xc1, &command).await;
    assert!(client.next_text().await.starts_with("{\"id\":1,\"connect\":{"));
}

#[tokio::test]
async fn fragments_above_the_limit_fail() {
    let server = start(|config| config.websocket.fragments_max = 3).await;
    let mut client = Client::open(server.address(), "").await;
    client.frame(0x01, b"{").await;
    for _ in 0..4 {
        client.frame(0x00, b" ").await;
    }
    assert!(matches!(client.closed().await.0, 1008 | 1009));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_api_request_with_a_too_large_content_length_gets_413_and_the_connection_closes() {
    let server = start(|config| config.http_api.max_request_body_size = 1000).await;
    let address = server.address();
    for (length, body) in [(1001_u64, ""), (1 << 40, "{\"channel\":\"a\",")] {
        let head = format!(
            "POST /api/publish HTTP/1.1\r\nHost: {address}\r\nX-API-Key: key\r\nContent-Length: {length}\r\n\r\n{body}"
        );
        let client = Client::request(address, &head).await;
        assert!(client.response.starts_with("HTTP/1.1 413 "), "{}", client.response);
        assert!(
            client.response.to_lowercase().contains("connection: close"),
            "{}",
            client.response
        );
    }
    server.shutdown().await;
}

/// RFC 9112 §6.3, §7.1. The end of such a body is unknown, so the connection cannot be used again.
#[tokio::test(flavor = "multi_thread")]
async fn a_request_with_an_invalid_body_gets_400_and_the_connection_closes() {
    let server = start(|_| {}).await;
    for (headers, body) in [
        ("Transfer-Encoding: chunked", "x\r\n{}\r\n0\r\n\r\n"),
        ("Transfer-Encoding: chunked", "1\r\n{}\r\n0\r\n\r\n"),
        ("Transfer-Encoding: chunked", "fffffffffffffffff\r\n{}"),
        ("Transfer-Encoding: gzip", "{}"),
        ("Content-Length: two", "{}"),
        ("Content-Length: -2", "{}"),
        ("Content-Length: +2", "{}"),
        ("Content-Length: 2\r\nContent-Length: 3", "{}"),
    ] {
        let client = Client::request(server.address(), &call(headers, body)).await;
        let response = &client.response;
        assert!(response.starts_with("HTTP/1.1 400 "), "{headers} {body}: {response}");
        client.text_to_the_end().await;
    }
    server.shutdown().await;
}

/// RFC 9112 §8: the peer closed its sending side and may still read.
#[tokio::test(flavor = "multi_thread")]
async fn a_request_with_an_incomplete_body_gets_400() {
    let server = start(|_| {}).await;
    for (headers, body) in [
        ("Content-Length: 5", "{}"),
        ("Transfer-Encoding: chunked", "2\r\n{}\r\n"),
        ("Transfer-Encoding: chunked", "5\r\n{}"),
    ] {
        let mut socket = TcpStream::connect(server.address()).await.expect("it listens");
        socket.write_all(call(headers, body).as_bytes()).await.expect("it reads");
        socket.shutdown().await.expect("an open socket");
        let mut response = String::new();
        socket.read_to_string(&mut response).await.expect("an orderly end");
        assert!(response.starts_with("HTTP/1.1 400 "), "{headers} {body}: {response}");
    }
    server.shutdown().await;
}

fn call(headers: &str, body: &str) -> String {
    format!("POST /api/channels HTTP/1.1\r\nHost: a\r\nX-API-Key: key\r\n{headers}\r\n\r\n{body}")
}

/// The server does not wait for a body that it will refuse.
#[tokio::test(flavor = "multi_thread")]
async fn a_request_that_is_refused_is_refused_before_its_body() {
    let server = start(|config| {
        config.client.allowed_origins = vec!["https://good.example".to_owned()];
        config.http_stream.enabled = true;
        config.uni_http_stream.enabled = true;
        config.durable_streams.enabled = true;
        config.durable_streams.namespace = "log".to_owned();
        let namespace = Namespace { name: "log".into(), history_size: 10, ..Namespace::default() };
        let history_ttl = std::time::Duration::from_secs(60);
        config.channel.namespaces.push(Namespace { history_ttl, ..namespace });
        config.admin.enabled = true;
        config.admin.password = "right".into();
        config.admin.secret = "a secret that is long enough for a test".into();
    })
    .await;
    let foreign = "Origin: https://bad.example\r\n";
    for (line, headers, status) in [
        ("POST /admin/api", "", 401),
        ("POST /admin/api", "Authorization: token x.y\r\n", 401),
        ("POST /admin/api", "Sec-Fetch-Site: cross-site\r\n", 403),
        ("POST /admin/api", foreign, 403),
        ("POST /admin/auth", "Sec-Fetch-Site: same-site\r\n", 403),
        ("POST /admin/auth", foreign, 403),
        ("POST /api/publish", "X-API-Key: wrong\r\n", 401),
        ("POST /api/stream", "", 401),
        ("PUT /v1/stream/a", "", 401),
        ("POST /v1/stream/a", "", 401),
        ("POST /emulation", foreign, 403),
        ("POST /connection/http_stream", foreign, 403),
        ("POST /connection/uni_http_stream", foreign, 403),
        ("POST /nothing", "", 404),
    ] {
        for length in ["Content-Length: 1000\r\n", "Transfer-Encoding: chunked\r\n"] {
            let head = format!("{line} HTTP/1.1\r\nHost: a\r\n{headers}{length}\r\n");
            let client = Client::request(server.address(), &head).await;
            let expect = format!("HTTP/1.1 {status} ");
            assert!(client.response.starts_with(&expect), "{head}{}", client.response);
        }
    }
    server.shutdown().await;
}
