//! Compression with context through a whole server (RFC 7692 §7.1.1): which connections get it, and its counters.
//! In: offers and publications → out: frames, decompressed by one inflater per connection.
//! Uses the test client and stock zlib; `websocket.compression_verify` is on, as in all tests here.
//! Changed here: expectations over sockets. Random traffic is in `realtime::frames`, sizes are in `fanwire-bench`.

use std::{net::SocketAddr, time::Duration};

use fanwire::Server;
use fanwire_node::options::RecoveryMode;
use flate2::{Decompress, FlushDecompress};

use crate::client::{Client, inflate, metrics_when, publish, start};

/// A client with context takeover, like browsers.
struct ContextClient {
    client: Client,
    zlib: Decompress,
}

impl ContextClient {
    async fn open(address: SocketAddr) -> Self {
        Self { client: Client::open(address, OFFER).await, zlib: Decompress::new(false) }
    }

    async fn subscribed(address: SocketAddr, channel: &str) -> Self {
        let mut keeper = Self::open(address).await;
        keeper.client.text("{\"id\":1,\"connect\":{}}").await;
        keeper.next().await;
        let command = format!("{{\"id\":2,\"subscribe\":{{\"channel\":\"{channel}\"}}}}");
        keeper.client.text(&command).await;
        assert!(keeper.next().await.1.contains("subscribe"));
        keeper
    }

    /// The payload size of the next frame, and its message.
    async fn next(&mut self) -> (usize, String) {
        let frame = self.client.next().await.expect("a frame, not the end");
        let size = frame.payload.len();
        let message = match frame.head {
            0x81 => frame.payload,
            0xc1 => {
                let input = [&frame.payload[..], &[0, 0, 0xff, 0xff]].concat();
                let mut message = Vec::with_capacity(1 << 16);
                let flush = FlushDecompress::Sync;
                self.zlib.decompress_vec(&input, &mut message, flush).expect("a good payload");
                message
            }
            head => panic!("not a text message: {head:#x}"),
        };
        (size, String::from_utf8(message).expect("text is UTF-8"))
    }
}

#[tokio::test]
async fn each_publication_after_the_first_refers_to_the_previous_one() {
    let server = start(|config| config.prometheus.enabled = true).await;
    let address = server.address();
    let mut early = ContextClient::subscribed(address, "news").await;
    let mut late = None;
    for n in 0..30 {
        publish(address, "news", &state(n)).await;
        let (size, message) = early.next().await;
        assert!(message.contains(&state(n)), "{message}");
        assert!(n < 2 || size < 60, "publication {n} took {size} B");
        if let Some((since, late)) = &mut late {
            let late: &mut ContextClient = late;
            let (size, message) = late.next().await;
            assert!(message.contains(&state(n)), "{message}");
            assert!(n == *since || size < 60, "publication {n} took {size} B");
        } else if n == 9 {
            late = Some((10, ContextClient::subscribed(address, "news").await));
        }
    }
    let in_context = |metrics: &str| -> u64 {
        let of = |kind| {
            sum(metrics, "fanwire_compression_deliveries_total{", &format!("kind=\"{kind}\""))
        };
        ["run", "several", "newest"].map(of).iter().sum()
    };
    let metrics = metrics_when(address, |metrics| in_context(metrics) >= 28 + 19).await;
    assert_eq!(in_context(&metrics), 28 + 19, "{metrics}");
    assert_eq!(sum(&metrics, "fanwire_transport_verify_failures_total", ""), 0);
    assert!(sum(&metrics, "fanwire_compression_memory_bytes", "") > 0);
    assert_eq!(sum(&metrics, "fanwire_compression_publications_total{", "namespace=\"\""), 30);
}

#[tokio::test]
async fn the_first_publication_after_a_recovered_subscribe_refers_to_the_reply() {
    for (mode, offset) in [(RecoveryMode::Cache, 0), (RecoveryMode::Stream, 5)] {
        let server = start(|config| {
            let open = &mut config.channel.without_namespace;
            (open.history_size, open.history_ttl) = (10, Duration::from_secs(60));
            (open.force_recovery, open.force_recovery_mode) = (true, mode);
        })
        .await;
        let address = server.address();
        let mut early = ContextClient::subscribed(address, "news").await;
        for n in 0..7 {
            publish(address, "news", &state(n)).await;
            early.next().await;
        }
        // Subscribe as a separate message, in one message with the connect, and in the connect.
        let claim = format!("\"recover\":true,\"offset\":{offset}");
        let subscribe = format!("{{\"id\":2,\"subscribe\":{{\"channel\":\"news\",{claim}}}}}");
        let connect = "{\"id\":1,\"connect\":{}}";
        let server_side = format!("{{\"id\":1,\"connect\":{{\"subs\":{{\"news\":{{{claim}}}}}}}}}");
        let mut returning = Vec::new();
        for messages in
            [&[connect, &subscribe][..], &[&format!("{connect}\n{subscribe}")], &[&server_side]]
        {
            let mut keeper = ContextClient::open(address).await;
            let mut reply = String::new();
            for message in messages {
                keeper.client.text(message).await;
                reply = keeper.next().await.1;
            }
            assert!(reply.contains(&state(6)), "{reply}");
            returning.push(keeper);
        }
        for n in 7..9 {
            publish(address, "news", &state(n)).await;
            for keeper in &mut returning {
                let (size, message) = keeper.next().await;
                assert!(message.contains(&state(n)), "{message}");
                // The first push contains an envelope that the reply did not have.
                assert!(size < 95 && (n == 7 || size < 60), "publication {n} took {size} B");
            }
        }
    }
}

#[tokio::test]
async fn the_first_publication_refers_to_a_reply_of_the_encode_worker() {
    let server = start(|config| {
        let open = &mut config.channel.without_namespace;
        (open.history_size, open.history_ttl) = (200, Duration::from_secs(600));
        open.force_recovery = true;
    })
    .await;
    let address = server.address();
    let _early = ContextClient::subscribed(address, "news").await;
    for n in 0..140 {
        publish(address, "news", &state(n)).await;
    }
    let mut returning = ContextClient::open(address).await;
    for message in [
        r#"{"id":1,"connect":{}}"#,
        r#"{"id":2,"subscribe":{"channel":"news","recover":true,"offset":5}}"#,
    ] {
        returning.client.text(message).await;
        let (_, reply) = returning.next().await;
        let missed = reply.matches(r#""offset":"#).count();
        assert!(reply.contains("connect") || missed > 135, "{missed} in {reply}");
    }
    publish(address, "news", &state(140)).await;
    let (size, message) = returning.next().await;
    assert!(message.contains(&state(140)), "{message}");
    assert!(size < 95, "it took {size} B");
}

#[tokio::test]
async fn a_client_without_context_takeover_gets_standalone_frames() {
    let server = start(|_| {}).await;
    let address = server.address();
    let offer = "Sec-WebSocket-Extensions: permessage-deflate; server_no_context_takeover\r\n";
    let mut client = Client::subscribed(address, offer, "news").await;
    assert!(client.response.contains("server_no_context_takeover"), "{}", client.response);
    assert_standalone(&server, &mut client).await;
}

#[tokio::test]
async fn a_peer_that_could_not_decode_gets_no_context_the_next_time() {
    for code in [1002u16, 1007] {
        let server = start(|_| {}).await;
        let address = server.address();
        let mut client = Client::subscribed(address, OFFER, "news").await;
        client.frame(0x88, &code.to_be_bytes()).await;
        client.closed().await;
        let mut client = Client::subscribed(address, OFFER, "news").await;
        assert_standalone(&server, &mut client).await;
        // Another user agent at the same address gets context.
        let offer = format!("User-Agent: another\r\n{OFFER}");
        let mut other = Client::subscribed(address, &offer, "else").await;
        let mut sizes = Vec::new();
        for n in 0..3 {
            publish(address, "else", &state(n)).await;
            sizes.push(other.next().await.expect("a frame").payload.len());
        }
        assert!(sizes[2] < 60, "{sizes:?}");
    }
}

#[tokio::test]
async fn with_dedicated_contexts_replies_and_publications_are_one_stream() {
    let server = start(|config| {
        config.websocket.compression_dedicated.enabled = true;
        config.websocket.compression_min_size = 32;
        config.prometheus.enabled = true;
    })
    .await;
    let address = server.address();
    let mut keeper = ContextClient::subscribed(address, "news").await;
    for n in 0..10 {
        publish(address, "news", &state(n)).await;
        let (size, message) = keeper.next().await;
        assert!(message.contains(&state(n)), "{message}");
        assert!(n == 0 || size < 60, "publication {n} took {size} B");
        keeper.client.text("{\"id\":3,\"rpc\":{\"method\":\"none\"}}").await;
        let (size, reply) = keeper.next().await;
        assert!(reply.contains("108"), "{reply}");
        assert!(n == 0 || size < 20, "a reply took {size} B");
    }
    let dedicated =
        |metrics: &str| sum(metrics, "fanwire_compression_deliveries_total{", "kind=\"dedicated\"");
    metrics_when(address, |metrics| dedicated(metrics) == 10).await;
}

#[tokio::test]
async fn without_memory_all_publications_are_still_sent() {
    for is_dedicated in [false, true] {
        let server = start(|config| {
            config.websocket.compression_memory_max = 0;
            config.websocket.compression_dedicated.enabled = is_dedicated;
        })
        .await;
        let mut client = Client::subscribed(server.address(), OFFER, "news").await;
        assert_standalone(&server, &mut client).await;
    }
}

/// Asserts that publications are compressed, each in a standalone frame.
async fn assert_standalone(server: &Server, client: &mut Client) {
    for n in 0..4 {
        publish(server.address(), "news", &state(n)).await;
        let frame = client.next().await.expect("a frame");
        assert_eq!(frame.head, 0xc1);
        let message = String::from_utf8(inflate(&frame.payload)).expect("UTF-8");
        assert!(message.contains(&state(n)), "{message}");
    }
}

/// 400 bytes, of which one or two differ between messages.
fn state(n: usize) -> String {
    let rows =
        (0..16).map(|row| format!("{{\"row\":{row},\"score\":{}}}", if row == 3 { n } else { 7 }));
    format!("[{}]", rows.collect::<Vec<_>>().join(","))
}

/// The sum of a metric's rows that contain `part`.
fn sum(metrics: &str, name: &str, part: &str) -> u64 {
    let rows = metrics.lines().filter(|line| line.starts_with(name) && line.contains(part));
    rows.filter_map(|line| line.rsplit(' ').next()?.parse::<u64>().ok()).sum()
}

const OFFER: &str = "Sec-WebSocket-Extensions: permessage-deflate\r\n";
