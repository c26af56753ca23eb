//! The shutdown of a server: 3001 for all clients, new requests refused, threads finished.
//! In: connected clients and a shutdown → out: close frames and a finished call.
//! Uses the test client.
//! Changed here: expectations of `server` and `shard::stop`.

use std::{net::TcpListener, time::Duration};

use fanwire::{Server, StartError, config::Config};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
};

use crate::client::{Client, start};

#[tokio::test]
async fn every_client_gets_3001_and_the_listener_is_closed() {
    let server = start(|_| {}).await;
    let address = server.address();
    let mut clients = Vec::new();
    for _ in 0..10 {
        clients.push(Client::subscribed(address, "", "a").await);
    }
    let shutdown = tokio::spawn(server.shutdown());
    for client in &mut clients {
        assert_eq!(client.closed().await, (3001, "shutdown".to_owned()));
        client.frame(0x88, &[0x0b, 0xb9]).await;
        assert_eq!(client.next().await, None);
    }
    shutdown.await.expect("a clean end");
    assert!(TcpStream::connect(address).await.is_err());
}

#[tokio::test]
async fn a_client_that_never_answers_the_close_does_not_delay_the_shutdown_beyond_its_timeout() {
    let server = start(|config| config.shutdown.timeout = Duration::from_millis(300)).await;
    let mut stubborn = Client::subscribed(server.address(), "", "a").await;
    server.shutdown().await;
    assert_eq!(stubborn.closed().await, (3001, "shutdown".to_owned()));
    assert_eq!(
        stubborn.next().await,
        None,
        "the shard dropped it, long before the 5 s for a close"
    );
}

#[tokio::test]
async fn a_handshake_during_a_shutdown_is_refused() {
    let server = start(|_| {}).await;
    let address = server.address();
    let mut late = TcpStream::connect(address).await.expect("it listens");
    late.write_all(b"GET /connection/websocket HTTP/1.1\r\n").await.expect("sent");
    let mut stubborn = Client::subscribed(address, "", "a").await; // accepted after the other
    let shutdown = tokio::spawn(server.shutdown());
    assert_eq!(stubborn.closed().await, (3001, "shutdown".to_owned()));
    let rest = b"Host: x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
        Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n";
    late.write_all(rest).await.expect("sent");
    let mut answer = String::new();
    late.read_to_string(&mut answer).await.expect("an answer and the end");
    assert!(answer.starts_with("HTTP/1.1 503 "), "{answer}");
    assert!(answer.contains("connection: close"), "{answer}");
    stubborn.frame(0x88, &[0x0b, 0xb9]).await;
    shutdown.await.expect("a clean end");
}

#[tokio::test]
async fn a_request_in_flight_is_answered_before_the_server_stops() {
    let server = start(|_| {}).await;
    let head = "POST /api/info HTTP/1.1\r\nHost: x\r\nX-API-Key: key\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n";
    let mut client = Client::request(server.address(), head).await;
    assert!(client.response.starts_with("HTTP/1.1 100 "), "its body is awaited");
    let shutdown = server.shutdown();
    tokio::pin!(shutdown);
    let ended = tokio::time::timeout(Duration::from_millis(100), &mut shutdown).await;
    assert!(ended.is_err(), "it waits for the request");
    client.raw(b"{}").await;
    shutdown.await;
    assert!(client.text_to_the_end().await.starts_with("HTTP/1.1 "));
}

#[tokio::test]
async fn a_port_in_use_is_an_error_that_names_key_and_remedy() {
    let taken = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let mut config = Config::default();
    config.http_server.address = "127.0.0.1".to_owned();
    config.http_server.port = taken.local_addr().expect("bound").port();
    let Err(error) = Server::start(config).await else { panic!("two listeners on one port") };
    assert!(matches!(error, StartError::Bind { .. }));
    let text = error.to_string();
    assert!(text.contains("http_server.port") && text.contains("another port"), "{text}");
}
