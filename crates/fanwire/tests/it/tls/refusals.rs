//! Handshakes that a listener with TLS refuses: other versions, garbage, plain HTTP, wrong certificates of clients.
//! In: raw bytes, clients without a right certificate → out: alerts, 400, metrics, and a server that goes on.
//! Uses sockets and rustls; never a timer of the server, which the tests of `edge::accept::tls_accept` have.
//! Changed here: expectations of `edge::accept::tls_accept`.

use std::sync::Arc;

use rustls::version::TLS13;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};

use super::{
    VERSIONS,
    authority::{Authority, handshake},
    fetch, secure, subscribed,
};
use crate::client::{Client, start};

/// Everything that the server answers to these bytes.
async fn answer(server: &fanwire::Server, bytes: &[u8]) -> Vec<u8> {
    let mut socket = TcpStream::connect(server.address()).await.expect("the server listens");
    socket.write_all(bytes).await.expect("it is open");
    let mut answer = Vec::new();
    // The end may be a reset, because not all bytes were read.
    let _ = socket.read_to_end(&mut answer).await;
    answer
}

/// RFC 5246 §7.4.1.2: a ClientHello whose only extension is signature_algorithms.
fn client_hello(version: [u8; 2]) -> Vec<u8> {
    let mut hello = version.to_vec();
    hello.extend([7; 32]); // random
    hello.push(0); // session id
    hello.extend([0, 4, 0xc0, 0x13, 0xc0, 0x2f]); // cipher suites
    hello.extend([1, 0]); // compression methods
    hello.extend([0, 8, 0, 13, 0, 4, 0, 2, 4, 3]); // ecdsa_secp256r1_sha256
    let mut bytes = vec![22, 3, 1, 0, hello.len() as u8 + 4, 1, 0, 0, hello.len() as u8];
    bytes.extend(hello);
    bytes
}

#[tokio::test]
async fn versions_before_1_2_are_refused_with_protocol_version() {
    let (server, config) = secure(&TLS13, |_| {}).await;
    for version in [[3, 0], [3, 1], [3, 2]] {
        // Alert, fatal, protocol_version.
        assert_eq!(answer(&server, &client_hello(version)).await, [21, 3, 3, 0, 2, 2, 70]);
    }
    // With version 1.2 the same hello lacks other extensions, which is another alert.
    let alert = answer(&server, &client_hello([3, 3])).await;
    assert!(alert.starts_with(&[21, 3, 3, 0, 2, 2]) && alert[6] != 70, "{alert:?}");
    subscribed(&server, &config).await;
}

#[tokio::test]
async fn garbage_is_refused_and_others_are_served() {
    let (server, config) = secure(&TLS13, |config| config.prometheus.enabled = true).await;
    for bytes in
        [&b"\0"[..], &[0xff; 100_000], b"\x16\x03\x01\xff\xff", b"\x16\x03\x01\0\x04\x01\0\0\0"]
    {
        let alert = answer(&server, bytes).await;
        assert!(alert.is_empty() || alert.starts_with(&[21, 3]), "{alert:?}");
    }
    subscribed(&server, &config).await;
    let metrics = fetch(&server, &config, "/metrics").await;
    assert!(metrics.contains("fanwire_tls_handshakes_total{result=\"failed\"} 4\n"), "{metrics}");
}

#[tokio::test]
async fn a_plain_request_gets_400_with_the_reason() {
    let (server, config) = secure(&TLS13, |config| config.prometheus.enabled = true).await;
    let body = "x".repeat(100_000);
    let post =
        format!("POST /api/publish HTTP/1.1\r\nHost: x\r\nContent-Length: 100000\r\n\r\n{body}");
    for request in ["GET / HTTP/1.1\r\nHost: x\r\n\r\n", &post] {
        let client = Client::request(server.address(), request).await;
        assert!(client.response.starts_with("HTTP/1.1 400 "), "{}", client.response);
        let text = client.text_to_the_end().await;
        assert_eq!(text, "The plain HTTP request was sent to HTTPS port\n");
    }
    let metrics = fetch(&server, &config, "/metrics").await;
    let line = "fanwire_tls_handshakes_total{result=\"plain_http\"} 2\n";
    assert!(metrics.contains(line), "{metrics}");
}

#[tokio::test]
async fn clients_need_a_certificate_of_the_authority_where_one_is_configured() {
    for version in VERSIONS {
        let (authority, foreign) = (Authority::new(), Authority::new());
        let server = start(|config| {
            config.http_server.tls = authority.server();
            config.http_server.tls.client_ca_pem = authority.pem().to_owned();
        })
        .await;
        for (own, alert) in [(None, "CertificateRequired"), (Some(&foreign), "UnknownCA")] {
            let config = Arc::new(authority.client(version, own));
            let socket = TcpStream::connect(server.address()).await.expect("it listens");
            let refused = match handshake(socket, &config).await {
                Err(error) => error,
                // In TLS 1.3 the client's side of the handshake is over before the server has seen its certificate.
                Ok(mut stream) => stream.read(&mut [0]).await.expect_err("an alert"),
            };
            let refused = refused.to_string();
            let is_refused = refused.contains(alert) || refused.contains("HandshakeFailure");
            assert!(is_refused, "{refused}");
        }
        let config = Arc::new(authority.client(version, Some(&authority)));
        for _ in 0..2 {
            subscribed(&server, &config).await; // the second one resumes the session of the first
        }
    }
}

#[tokio::test]
async fn a_shutdown_does_not_wait_for_a_handshake() {
    let (server, config) = secure(&TLS13, |_| {}).await;
    let mut half = TcpStream::connect(server.address()).await.expect("the server listens");
    half.write_all(&client_hello([3, 3])[..20]).await.expect("it is open");
    subscribed(&server, &config).await; // accepted after the other
    server.shutdown().await;
    let mut rest = Vec::new();
    let _ = half.read_to_end(&mut rest).await;
    assert!(rest.is_empty(), "its connection has ended");
}
