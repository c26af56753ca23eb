//! The life of a connection on a shard: close handshakes, failures, slow and stuck peers (RFC 6455 §5.5.1, §7).
//! In: valid and invalid frames, and peers that do not read → out: close codes; other connections are not affected.
//! Uses the test client; never a clock.
//! Changed here: expectations of `shard` over sockets.

use std::time::Duration;

use tokio::io::AsyncWriteExt;

use crate::client::{Client, fetch, metrics_when, publish, start};

#[tokio::test]
async fn a_peers_close_is_answered_with_its_code_and_the_end_of_the_stream() {
    // RFC 6455 §5.5.1c, §5.5.1d, §5.5.1e
    let server = start(|_| {}).await;
    let mut client = Client::subscribed(server.address(), "", "a").await;
    client.frame(0x88, &[0x03, 0xe9]).await;
    let answer = client.next().await.expect("a close frame");
    assert_eq!((answer.head, answer.payload), (0x88, vec![0x03, 0xe9]));
    assert_eq!(client.next().await, None);
}

#[tokio::test]
async fn a_peer_that_closes_its_sending_side_gets_its_replies_and_the_close_frame() {
    let server = start(|_| {}).await;
    let mut client = Client::open(server.address(), "").await;
    client.raw(b"\x81\x95\0\0\0\0{\"id\":1,\"connect\":{}}\x88\x82\0\0\0\0\x03\xe9").await;
    client.socket.shutdown().await.expect("an open socket");
    assert!(client.next_text().await.starts_with("{\"id\":1,\"connect\":"));
    assert_eq!(client.closed().await.0, 1001);
    assert_eq!(client.next().await, None);
}

#[tokio::test]
async fn an_unmasked_frame_fails_with_1002() {
    // RFC 6455 §5.1a, §7.1.7a
    let server = start(|_| {}).await;
    let mut client = Client::open(server.address(), "").await;
    client.raw(&[0x81, 0x02, b'{', b'}']).await;
    assert_eq!(client.closed().await.0, 1002);
    assert_eq!(client.next().await, None);
}

#[tokio::test]
async fn broken_json_is_3501_and_does_not_affect_others() {
    let server = start(|_| {}).await;
    let address = server.address();
    let mut other = Client::subscribed(address, "", "a").await;
    let mut client = Client::subscribed(address, "", "a").await;
    client.text("{\"id\":3,").await;
    assert_eq!(client.closed().await, (3501, "bad request".to_owned()));
    publish(address, "a", "1").await;
    assert!(other.next_text().await.contains("\"data\":1"));
}

#[tokio::test]
async fn a_native_ping_is_answered_with_its_payload() {
    // RFC 6455 §5.5.2a, without RSV1 (RFC 7692 §6.1a)
    let server = start(|_| {}).await;
    let offer = "Sec-WebSocket-Extensions: permessage-deflate\r\n";
    let mut client = Client::open(server.address(), offer).await;
    client.frame(0x89, b"are you there").await;
    let pong = client.next().await.expect("a pong");
    assert_eq!((pong.head, pong.payload.as_slice()), (0x8a, &b"are you there"[..]));
}

#[tokio::test]
async fn a_slow_subscriber_is_disconnected_with_3008_while_others_get_everything() {
    let server = start(|config| {
        config.client.queue_max_size = 256 * 1024;
        config.websocket.compression = false;
        config.websocket.write_timeout = Duration::from_secs(60);
        config.prometheus.enabled = true;
    })
    .await;
    let address = server.address();
    let mut slow = Client::subscribed(address, "", "a").await;
    let mut quick = Client::subscribed(address, "", "a").await;
    let payload = format!("\"{}\"", "x".repeat(60_000));
    while !fetch(address, "/metrics").await.contains("fanwire_transport_queue_overflows_total 1\n")
    {
        for _ in 0..2 {
            publish(address, "a", &payload).await;
            assert!(quick.next_text().await.len() > 60_000);
        }
    }
    assert_eq!(slow.closed().await, (3008, "slow".to_owned()));
}

#[tokio::test]
async fn one_message_larger_than_the_queue_arrives_and_what_follows_it_too() {
    let server = start(|config| {
        config.client.queue_max_size = 4 * 1024;
        config.websocket.compression = false;
        config.websocket.write_timeout = Duration::from_secs(60);
    })
    .await;
    let address = server.address();
    let mut client = Client::subscribed(address, "", "a").await;
    for bytes in [100_000, 10, 3_000_000, 10] {
        publish(address, "a", &format!("\"{}\"", "x".repeat(bytes))).await;
        assert!(client.next_text().await.len() > bytes);
    }
}

#[tokio::test]
async fn a_stuck_subscriber_is_dropped_after_the_write_timeout() {
    // RFC 6455 §7.2.2a
    let server = start(|config| {
        config.client.queue_max_size = 64 << 20;
        config.websocket.compression = false;
        config.websocket.write_timeout = Duration::from_millis(50);
        config.prometheus.enabled = true;
    })
    .await;
    let address = server.address();
    let _stuck = Client::subscribed(address, "", "a").await;
    let payload = format!("\"{}\"", "x".repeat(60_000));
    while !fetch(address, "/metrics").await.contains("fanwire_node_num_clients 0\n") {
        publish(address, "a", &payload).await;
    }
    let timed_out = "fanwire_transport_write_timeouts_total 1\n";
    let metrics = metrics_when(address, |metrics| metrics.contains(timed_out)).await;
    let disconnects = "fanwire_client_num_server_disconnects_total{code=\"3009\"} 1\n";
    assert!(metrics.contains(disconnects), "{metrics}");
}
