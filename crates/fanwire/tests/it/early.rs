//! Responses that are sent before the body of their request was read (RFC 9112 §9.6).
//! In: requests of a client that sends everything before it reads → out: their responses.
//! Uses the test client; never internals.
//! Changed here: which responses are early. How long the rest of a request is discarded is tested in `edge::accept::timeout_stream`.

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};

use crate::client::start;

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_sends_all_before_it_reads_gets_an_early_response() {
    let server = start(|config| {
        (config.development, config.demo.enabled, config.health.enabled) = (true, true, true);
        config.http_api.max_request_body_size = 1 << 20;
    })
    .await;
    const KEY: &str = "X-API-Key: key\r\n";
    const UPGRADE: &str = "Upgrade: websocket\r\nConnection: Upgrade\r\n\
        Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n";
    let long_head = format!("X: {}\r\n", "a".repeat(32 << 10));
    let socket = "GET /connection/websocket";
    for (line, host, headers, status) in [
        ("POST /api/publish", "localhost", KEY, "413"),
        ("POST /api/publish", "localhost", "", "401"),
        ("POST /api/publish", "evil.example", KEY, "421"),
        ("POST /api/publish", "a, b", KEY, "400"),
        ("POST /nowhere", "localhost", "", "404"),
        ("PUT /api/publish", "localhost", KEY, "405"),
        ("POST /health", "localhost", "", "405"),
        ("GET /health", "localhost", "", "200"),
        ("POST /connection/websocket", "localhost", UPGRADE, "405"),
        (socket, "localhost", "", "400"),
        (socket, "localhost", UPGRADE, "400"),
        ("POST /api/publish", "localhost", &long_head, "431"),
    ] {
        for is_chunked in [false, true] {
            let request = format!("{line} HTTP/1.1\r\nHost: {host}\r\n{headers}");
            // Less is discarded of a refused head.
            let bytes = if status == "431" { BODY_BYTES / 32 } else { BODY_BYTES };
            let answer = answer(server.address(), &request, is_chunked, bytes).await;
            assert_eq!(answer.get(9..12), Some(status), "{request}{is_chunked}: {answer}");
        }
    }
    server.shutdown().await;
}

/// The response to a request with a body larger than socket buffers.
async fn answer(
    address: std::net::SocketAddr,
    head: &str,
    is_chunked: bool,
    bytes: usize,
) -> String {
    let mut request = head.as_bytes().to_vec();
    if is_chunked {
        request.extend_from_slice(b"Transfer-Encoding: chunked\r\n\r\n");
        let chunk = [&b"10000\r\n"[..], &[b' '; 0x10000], b"\r\n"].concat();
        (0..bytes / 0x10000).for_each(|_| request.extend_from_slice(&chunk));
        request.extend_from_slice(b"0\r\n\r\n");
    } else {
        request.extend_from_slice(format!("Content-Length: {bytes}\r\n\r\n").as_bytes());
        request.resize(request.len() + bytes, b' ');
    }
    let mut client = TcpStream::connect(address).await.expect("the server listens");
    let mut answer = String::new();
    client.write_all(&request).await.unwrap_or_else(|error| panic!("{head}: {error}"));
    client.read_to_string(&mut answer).await.unwrap_or_else(|error| panic!("{head}: {error}"));
    answer
}

const BODY_BYTES: usize = 16 << 20;
