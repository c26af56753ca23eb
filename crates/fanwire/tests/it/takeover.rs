//! Clients that refer to their earlier messages, through a whole server (RFC 7692 §7.1.1.2, §7.1.2.2).
//! In: offers, and commands that stock zlib compressed in one context → out: responses, replies, memory in the metrics.
//! Uses the test client and stock zlib. Never: frames that break the rules of RFC 6455.
//! Changed here: expectations over sockets. Offers and random traffic are in `ws`.

use std::net::SocketAddr;

use fanwire::config::Config;
use fanwire_deflate::SenderWindow;
use flate2::{Compress, Compression, Decompress, FlushCompress, FlushDecompress};

use crate::client::{Client, metrics_when, publish, start};

/// A client that takes its window over from message to message.
struct TakeoverClient {
    client: Client,
    zlib: Compress,
    commands: u32,
}

impl TakeoverClient {
    async fn open(address: SocketAddr, offer: &str, window_bits: u8) -> Self {
        let client = Client::open(address, &format!("Sec-WebSocket-Extensions: {offer}\r\n")).await;
        let zlib = Compress::new_with_window_bits(Compression::new(9), false, window_bits);
        Self { client, zlib, commands: 0 }
    }

    fn compress(&mut self, message: &str) -> Vec<u8> {
        let mut payload = Vec::with_capacity(message.len() + 1_000);
        let flush = FlushCompress::Sync;
        self.zlib.compress_vec(message.as_bytes(), &mut payload, flush).expect("room enough");
        payload.truncate(payload.len() - 4);
        payload
    }

    /// Sends a command of some 200 bytes and reads its reply; returns the bytes of the compressed payload.
    async fn command(&mut self) -> usize {
        self.commands += 1;
        let id = self.commands;
        let what = if id == 1 { r#""connect":{}"# } else { READING };
        let payload = self.compress(&format!("{{\"id\":{id},{what}}}"));
        self.client.frame(0xc1, &payload).await;
        let reply = self.client.next_text().await;
        assert!(reply.contains(&format!("\"id\":{id}")), "{reply}");
        payload.len()
    }
}

#[tokio::test]
async fn commands_refer_to_earlier_ones_and_their_window_is_in_the_metrics() {
    let server = start(with_takeover).await;
    let address = server.address();
    let gauge = |bytes| format!("fanwire_compression_client_window_bytes {bytes}\n");
    let mut client = TakeoverClient::open(address, CHOICE, 12).await;
    let answer = "permessage-deflate; client_max_window_bits=12\r\n";
    assert!(client.client.response.contains(answer), "{}", client.client.response);
    let reserved = format!("fanwire_compression_memory_bytes {}\n", SenderWindow::memory_for(12));
    let metrics = metrics_when(address, |metrics| metrics.contains(&reserved)).await;
    assert!(metrics.contains(&gauge(0)), "{metrics}");
    client.command().await;
    let first = client.command().await;
    for _ in 0..50 {
        let size = client.command().await;
        assert!(size * 4 < first, "{size} bytes after {first}");
    }
    metrics_when(address, |metrics| metrics.contains(&gauge(4096))).await;
    // Messages that are not compressed, and fragments, in between.
    client.client.text(r#"{"id":1000,"rpc":{"method":"none"}}"#).await;
    assert!(client.client.next_text().await.contains("1000"));
    let payload = client.compress(&format!("{{\"id\":1001,{READING}}}"));
    let (start, end) = payload.split_at(payload.len() / 2);
    client.client.frame(0x41, start).await;
    client.client.frame(0x89, b"ping").await;
    client.client.frame(0x80, end).await;
    assert_eq!(client.client.next().await.expect("a pong").head, 0x8a);
    assert!(client.client.next_text().await.contains("1001"));
    drop(client);
    let none = "fanwire_compression_memory_bytes 0\n";
    metrics_when(address, |metrics| metrics.contains(&gauge(0)) && metrics.contains(none)).await;
}

#[tokio::test]
async fn without_memory_for_a_window_new_connections_do_without() {
    let server = start(|config| {
        with_takeover(config);
        config.websocket.compression_memory_max = SenderWindow::memory_for(12);
    })
    .await;
    let address = server.address();
    let mut first = TakeoverClient::open(address, CHOICE, 12).await;
    assert!(!first.client.response.contains("no_context_takeover"), "{}", first.client.response);
    for _ in 0..2 {
        let mut second = TakeoverClient::open(address, CHOICE, 12).await;
        let answer = "permessage-deflate; client_no_context_takeover\r\n";
        assert!(second.client.response.contains(answer), "{}", second.client.response);
        second.command().await;
        second.zlib.reset();
        second.command().await;
        first.command().await;
    }
    // A window of 32 KiB does not fit either, whoever is gone.
    drop(first);
    metrics_when(address, |metrics| metrics.contains("fanwire_compression_memory_bytes 0\n")).await;
    let large = TakeoverClient::open(address, "permessage-deflate", 15).await;
    assert!(large.client.response.contains("client_no_context"), "{}", large.client.response);
    let third = TakeoverClient::open(address, CHOICE, 12).await;
    assert!(third.client.response.contains("client_max_window_bits=12"));
}

#[tokio::test]
async fn a_required_choice_leaves_other_clients_without_compression() {
    let server = start(|config| {
        with_takeover(config);
        config.websocket.require_client_max_window_bits = true;
    })
    .await;
    let address = server.address();
    let offer = "Sec-WebSocket-Extensions: permessage-deflate\r\n";
    let client = Client::open(address, offer).await;
    assert!(!client.response.contains("permessage-deflate"), "{}", client.response);
    let mut client =
        TakeoverClient::open(address, "permessage-deflate; client_max_window_bits=9", 9).await;
    assert!(client.client.response.contains("client_max_window_bits=9\r\n"));
    for _ in 0..20 {
        client.command().await;
    }
}

#[tokio::test]
async fn messages_that_do_not_inflate_within_the_window_or_the_limit_end_the_connection() {
    let server = start(|config| {
        with_takeover(config);
        config.websocket.client_max_window_bits = 9;
        config.websocket.decompressed_message_size_limit = 3_000;
    })
    .await;
    let noise: String = (0..2_000u32)
        .map(|n| char::from(b' ' + (n.wrapping_mul(2_654_435_761) >> 26) as u8))
        .collect();
    // A client that ignores the agreement and refers to 32 KiB.
    let mut client = TakeoverClient::open(server.address(), CHOICE, 15).await;
    client.command().await;
    let reply = format!("{{\"id\":2,\"rpc\":{{\"method\":\"none\",\"data\":{:?}}}}}", &noise);
    let payload = client.compress(&reply);
    client.client.frame(0xc1, &payload).await;
    client.client.next_text().await;
    let payload = client.compress(&reply.replace("\"id\":2", "\"id\":3"));
    client.client.frame(0xc1, &payload).await;
    assert_eq!(client.client.closed().await.0, 1007);
    let mut client = TakeoverClient::open(server.address(), CHOICE, 9).await;
    client.command().await;
    let payload = client.compress(&" ".repeat(3_001));
    client.client.frame(0xc1, &payload).await;
    assert_eq!(client.client.closed().await.0, 1009);
    let empty = "fanwire_compression_memory_bytes 0\n";
    drop(client);
    metrics_when(server.address(), |metrics| metrics.contains(empty)).await;
}

#[tokio::test]
async fn a_small_window_of_the_server_is_named_and_kept() {
    let server = start(|config| config.websocket.server_max_window_bits = 10).await;
    let address = server.address();
    let offer = "Sec-WebSocket-Extensions: permessage-deflate\r\n";
    let mut client = Client::subscribed(address, offer, "news").await;
    let answer = "client_no_context_takeover; server_max_window_bits=10\r\n";
    assert!(client.response.contains(answer), "{}", client.response);
    // An inflater with that window and no more, which fails on distances beyond it.
    let mut zlib = Decompress::new_with_window_bits(false, 10);
    let mut compressed = 0;
    for n in 0..20 {
        let readings = (0..60 - n).map(|row| format!("\"{row}-{}\"", (n * row) % 13));
        let data = format!("[{}]", readings.collect::<Vec<_>>().join(","));
        publish(address, "news", &data).await;
        let frame = client.next().await.expect("a publication");
        let message = if frame.head == 0xc1 {
            let payload = [&frame.payload[..], &[0, 0, 0xff, 0xff]].concat();
            let mut message = Vec::with_capacity(1 << 16);
            let flush = FlushDecompress::Sync;
            zlib.decompress_vec(&payload, &mut message, flush).expect("within the window");
            compressed += 1;
            message
        } else {
            frame.payload
        };
        assert!(String::from_utf8(message).expect("text is UTF-8").contains(&data));
    }
    assert!(compressed > 0);
}

fn with_takeover(config: &mut Config) {
    config.websocket.client_context_takeover = true;
    config.prometheus.enabled = true;
}

/// The offer of browsers.
const CHOICE: &str = "permessage-deflate; client_max_window_bits";

/// A command that is answered with an error, 108.
const READING: &str = r#""rpc":{"method":"reading","data":{"sensor":"north-17","temperature":21.5,"humidity":0.48,"pressure":1013.2,"battery":3.71,"position":[52.52,13.405],"state":"ok"}}"#;
