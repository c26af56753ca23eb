//! TLS on the listeners: handshakes good and bad, connections that move to a shard with their session (RFC 8446, RFC 5246).
//! In: clients of rustls, raw bytes → out: messages, alerts, statuses, metrics.
//! Uses the test client over tokio-rustls; never certificates of files, which `certificates` reloads.
//! Changed here: expectations of `edge::accept::tls_accept`, `edge::accept::tls_stream` and the shards.

pub(crate) mod authority;
mod certificates;
mod refusals;

use std::{
    io,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use fanwire::{Server, config::Config};
use fanwire_testing::wait_for_async;
use rustls::{
    ClientConfig, HandshakeKind, SupportedProtocolVersion,
    version::{TLS12, TLS13},
};
use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, ReadBuf},
    net::TcpStream,
};
use tokio_rustls::client::TlsStream;

use crate::client::{Client, start, upgrade_request};
use crate::http2;
use authority::{Authority, connect, handshake};

type TlsClient = Client<TlsStream<TcpStream>>;

const VERSIONS: [&SupportedProtocolVersion; 2] = [&TLS13, &TLS12];

/// A server with TLS, and a client's configuration that trusts it.
async fn secure(
    version: &'static SupportedProtocolVersion,
    change: impl FnOnce(&mut Config),
) -> (Server, Arc<ClientConfig>) {
    let authority = Authority::new();
    let server = start(|config| {
        config.http_server.tls = authority.server();
        config.client.ping_interval = Duration::from_secs(600);
        change(config);
    })
    .await;
    (server, Arc::new(authority.client(version, None)))
}

async fn open(server: &Server, config: &Arc<ClientConfig>) -> TlsClient {
    let socket = connect(server.address(), config).await;
    let client = Client::over(socket, upgrade_request("localhost", "").as_bytes()).await;
    assert!(client.response.starts_with("HTTP/1.1 101 "), "{}", client.response);
    client
}

async fn subscribed(server: &Server, config: &Arc<ClientConfig>) -> TlsClient {
    let mut client = open(server, config).await;
    client.subscribe("a").await;
    client
}

/// The body of `GET path`.
async fn fetch(server: &Server, config: &Arc<ClientConfig>, path: &str) -> String {
    let request = format!("GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
    let socket = connect(server.address(), config).await;
    Client::over(socket, request.as_bytes()).await.text_to_the_end().await
}

fn publish(server: &Server, data: &str) {
    server.handle().publish("a", data.to_owned()).wait().expect("it is accepted");
}

/// Waits until the server has this many connections.
async fn connections_become(server: &Server, count: usize) {
    let attempt = async || {
        let counts = server.handle().counts();
        if counts.connections == count { Ok(()) } else { Err(counts) }
    };
    wait_for_async(attempt, Duration::from_secs(20)).await;
}

#[tokio::test]
async fn websockets_send_and_receive() {
    // RFC 6455 §4.2.2a, §10.6a
    for version in VERSIONS {
        let (server, config) = secure(version, |_| {}).await;
        let mut client = subscribed(&server, &config).await;
        publish(&server, "1");
        assert_eq!(client.next_text().await, r#"{"push":{"channel":"a","pub":{"data":1}}}"#);
        client.text(r#"{"id":3,"publish":{"channel":"a","data":2}}"#).await;
        let mut received = [client.next_text().await, client.next_text().await];
        received.sort_unstable();
        assert!(received[0].contains(r#""id":3"#) && received[1].contains(r#""data":2"#));
        assert_eq!(client.socket.get_ref().1.protocol_version(), Some(version.version));
        client.frame(0x88, &[0x03, 0xe8]).await;
        assert_eq!(client.closed().await.0, 1000);
        let ended = client.socket.read(&mut [0]).await.expect("close_notify before the end");
        assert_eq!(ended, 0);
    }
}

#[tokio::test]
async fn event_streams_and_the_server_api_are_served() {
    for version in VERSIONS {
        let (server, config) = secure(version, |config| {
            config.sse.enabled = true;
            config.sse.handler_prefix = "/sse".to_owned();
            config.sse.max_request_body_size = 1000;
        })
        .await;
        let body = "{\"id\":1,\"connect\":{}}\n{\"id\":2,\"subscribe\":{\"channel\":\"a\"}}";
        let post = |path: &str, headers: &str, body: &str| {
            format!(
                "POST {path} HTTP/1.1\r\nHost: localhost\r\n{headers}Content-Length: {}\r\n\r\n{body}",
                body.len()
            )
        };
        let socket = connect(server.address(), &config).await;
        let mut stream = Client::over(socket, post("/sse", "", body).as_bytes()).await;
        assert!(stream.response.starts_with("HTTP/1.1 200 "), "{}", stream.response);
        stream.text_until("\"subscribe\":{}}\n\n").await;
        let socket = connect(server.address(), &config).await;
        let call = post("/api/publish", "X-API-Key: key\r\n", r#"{"channel":"a","data":1}"#);
        let mut api = Client::over(socket, call.as_bytes()).await;
        assert_eq!(api.text_until("}").await, r#"{"result":{}"#);
        let pushed = "data: {\"push\":{\"channel\":\"a\",\"pub\":{\"data\":1}}}\n\n";
        assert_eq!(stream.text_until("\n\n").await, pushed);
        server.shutdown().await;
        stream.text_until("\"shutdown\"}}}\n\n").await;
        let ended = stream.socket.read(&mut [0]).await.expect("close_notify before the end");
        assert_eq!(ended, 0);
    }
}

#[tokio::test]
async fn the_first_frame_may_come_with_the_request() {
    let (server, config) = secure(&TLS13, |_| {}).await;
    let socket = connect(server.address(), &config).await;
    let frame = b"\x81\x97\0\0\0\0{\"id\":1,\"connect\":{}} \n";
    let request = [upgrade_request("localhost", "").as_bytes(), frame].concat();
    let mut client = Client::over(socket, &request).await;
    assert!(client.next_text().await.starts_with(r#"{"id":1,"connect":"#));
}

#[tokio::test]
async fn the_page_of_the_server_itself_may_connect() {
    let (server, config) = secure(&TLS13, |config| config.demo.enabled = true).await;
    for (origin, status) in [("https://localhost", " 101 "), ("https://elsewhere", " 403 ")] {
        let socket = connect(server.address(), &config).await;
        let request = upgrade_request("localhost", &format!("Origin: {origin}\r\n"));
        let client = Client::over(socket, request.as_bytes()).await;
        assert!(client.response.contains(status), "{origin}: {}", client.response);
    }
}

#[tokio::test]
async fn large_messages_arrive_in_both_directions() {
    for version in VERSIONS {
        let (server, config) = secure(version, |config| {
            config.websocket.message_size_limit = 4 << 20;
        })
        .await;
        let mut client = subscribed(&server, &config).await;
        let data = "x".repeat(3 << 20);
        client.text(&format!(r#"{{"id":3,"publish":{{"channel":"a","data":"{data}"}}}}"#)).await;
        let mut received = [client.next_text().await, client.next_text().await];
        received.sort_unstable();
        assert!(received[1].contains(&data), "{}", received[1].len());
    }
}

#[tokio::test]
async fn a_slow_reader_is_closed_with_3008() {
    for version in VERSIONS {
        let (server, config) = secure(version, |config| {
            config.client.queue_max_size = 100_000;
            config.websocket.write_timeout = Duration::from_secs(60);
        })
        .await;
        let mut client = subscribed(&server, &config).await;
        let data = format!("\"{}\"", "x".repeat(50_000));
        let is_closed = async || {
            // A shard that is behind may refuse one of them.
            _ = server.handle().publish("a", data.clone()).wait();
            server.handle().counts().connections == 0
        };
        wait_for_async(is_closed, Duration::from_secs(60)).await;
        assert_eq!(client.closed().await, (3008, "slow".to_owned()), "behind whole messages");
    }
}

#[tokio::test]
async fn a_reader_that_stops_is_dropped_after_the_write_timeout() {
    let (server, config) = secure(&TLS13, |config| {
        config.client.queue_max_size = 1 << 30;
        config.websocket.write_timeout = Duration::from_millis(50);
    })
    .await;
    let _client = subscribed(&server, &config).await;
    publish(&server, &format!("\"{}\"", "x".repeat(32 << 20)));
    connections_become(&server, 0).await;
}

#[tokio::test]
async fn a_shutdown_ends_with_close_notify() {
    for version in VERSIONS {
        let (server, config) = secure(version, |_| {}).await;
        let mut client = subscribed(&server, &config).await;
        let shutdown = tokio::spawn(server.shutdown());
        assert_eq!(client.closed().await, (3001, "shutdown".to_owned()));
        client.frame(0x88, &[0x0b, 0xb9]).await;
        let ended = client.socket.read(&mut [0]).await.expect("close_notify before the end");
        assert_eq!(ended, 0);
        shutdown.await.expect("a clean end");
    }
}

#[tokio::test]
async fn clients_leave_with_and_without_close_notify() {
    let (server, config) = secure(&TLS13, |_| {}).await;
    let mut polite = subscribed(&server, &config).await;
    connections_become(&server, 1).await;
    polite.socket.shutdown().await.expect("it is open");
    connections_become(&server, 0).await;
    assert_eq!(polite.socket.read(&mut [0]).await.expect("an answer in kind"), 0);

    let abrupt = subscribed(&server, &config).await;
    connections_become(&server, 1).await;
    drop(abrupt.socket.into_inner().0);
    connections_become(&server, 0).await;
}

#[tokio::test]
async fn a_client_updates_its_keys() {
    let (server, config) = secure(&TLS13, |_| {}).await;
    let mut client = subscribed(&server, &config).await;
    for id in 3..6 {
        client.socket.get_mut().1.refresh_traffic_keys().expect("TLS 1.3");
        client.text(&format!(r#"{{"id":{id},"publish":{{"channel":"b","data":1}}}}"#)).await;
        assert_eq!(client.next_text().await, format!(r#"{{"id":{id},"publish":{{}}}}"#));
    }
}

#[tokio::test]
async fn records_arrive_byte_by_byte() {
    for version in VERSIONS {
        let (server, config) = secure(version, |_| {}).await;
        let socket = TcpStream::connect(server.address()).await.expect("the server listens");
        socket.set_nodelay(true).expect("a socket");
        let stream = handshake(Bytewise(socket), &config).await.expect("a handshake");
        let mut client = Client::over(stream, upgrade_request("localhost", "").as_bytes()).await;
        client.subscribe("a").await;
        publish(&server, "1");
        assert_eq!(client.next_text().await, r#"{"push":{"channel":"a","pub":{"data":1}}}"#);
    }
}

#[tokio::test]
async fn sessions_are_resumed() {
    for version in VERSIONS {
        let (server, config) = secure(version, |config| config.prometheus.enabled = true).await;
        for kind in [HandshakeKind::Full, HandshakeKind::Resumed, HandshakeKind::Resumed] {
            let client = subscribed(&server, &config).await;
            assert_eq!(client.socket.get_ref().1.handshake_kind(), Some(kind));
        }
        let metrics = fetch(&server, &config, "/metrics").await;
        for line in [
            "fanwire_tls_handshakes_total{result=\"full\"} 1\n",
            "fanwire_tls_handshakes_total{result=\"resumed\"} 3\n",
            "fanwire_tls_certificate_end_seconds{section=\"http_server.tls\"} ",
        ] {
            assert!(metrics.contains(line), "{line}: {metrics}");
        }
    }
}

#[tokio::test]
async fn a_client_without_a_server_name_is_served() {
    for version in VERSIONS {
        let authority = Authority::new();
        let server = start(|config| config.http_server.tls = authority.server()).await;
        let mut config = authority.client(version, None);
        config.enable_sni = false;
        subscribed(&server, &Arc::new(config)).await;
    }
}

#[tokio::test]
async fn the_protocol_above_tls_is_the_one_that_the_client_prefers() {
    let authority = Authority::new();
    let server = start(|config| config.http_server.tls = authority.server()).await;
    let mut config = authority.client(&TLS13, None);
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    let client = subscribed(&server, &Arc::new(config.clone())).await;
    assert_eq!(client.socket.get_ref().1.alpn_protocol(), Some(b"http/1.1".as_slice()));
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    let socket = connect(server.address(), &Arc::new(config.clone())).await;
    assert_eq!(socket.get_ref().1.alpn_protocol(), Some(b"h2".as_slice()));
    let mut sender = http2::connection(socket).await;
    let client = http2::websocket(&mut sender, server.address(), &[http2::VERSION]).await;
    let mut client = client.expect("it is accepted");
    client.subscribe("a").await;
    http2::publish_in_stream(&mut sender, server.address(), "a", "\"over TLS\"").await;
    assert!(client.next_text().await.contains("over TLS"));
    config.alpn_protocols = vec![b"imap".to_vec()];
    let socket = TcpStream::connect(server.address()).await.expect("the server listens");
    let error = handshake(socket, &Arc::new(config)).await.expect_err("nothing in common");
    assert!(error.to_string().contains("NoApplicationProtocol"), "{error}");
}

/// Writes one byte at a time.
struct Bytewise(TcpStream);

impl AsyncRead for Bytewise {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_read(context, buffer)
    }
}

impl AsyncWrite for Bytewise {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write(context, &bytes[..bytes.len().min(1)])
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_shutdown(context)
    }
}
