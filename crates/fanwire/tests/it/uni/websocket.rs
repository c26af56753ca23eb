//! `uni_websocket`: the connect request in the query or in the first message, pushes in text messages.
//! In: handshakes, frames → out: frames, close codes and ends of connections.
//! Uses the test client, which makes every frame itself (RFC 6455).
//! Changed here: expectations of unidirectional WebSockets.

use std::time::Duration;

use flate2::{Decompress, FlushDecompress};

use super::*;
use crate::client::{Received, publish, start};

const SUBS: &str = r#"{"subs":{"a":{}}}"#;

async fn connected(server: &Server) -> Client {
    let mut client = websocket(server.address(), &format!("?{}", query(SUBS)), "").await;
    let push = client.next_text().await;
    assert!(push.starts_with(r#"{"connect":{"client":""#), "{push}");
    client
}

#[tokio::test]
async fn the_connect_request_is_in_the_query_or_the_first_message() {
    let server = start(unidirectional).await;
    let address = server.address();
    for is_in_query in [true, false] {
        let query = if is_in_query { format!("?{}", query(SUBS)) } else { String::new() };
        let headers = "Sec-WebSocket-Protocol: centrifuge-json\r\n";
        let mut client = websocket(address, &query, headers).await;
        if !is_in_query {
            client.text(SUBS).await;
        }
        let head = client.response.to_lowercase();
        assert!(!head.contains("sec-websocket-protocol"), "{head}");
        let push = client.next_text().await;
        let (session, node) = (member(&push, "session"), member(&push, "node"));
        let end =
            format!(r#""subs":{{"a":{{}}}},"ping":600,"session":"{session}","node":"{node}"}}}}"#);
        assert!(push.ends_with(&end), "{push}");
        client.text("anything").await;
        client.text("").await;
        client.frame(0x82, b"\x00\xff").await;
        client.text(r#"{"id":1,"publish":{"channel":"a","data":5}}"#).await;
        client.frame(0x89, b"ping").await;
        let pong = client.next().await;
        assert_eq!(pong, Some(Received { head: 0x8a, payload: b"ping".to_vec() }));
        publish(address, "a", "1").await;
        assert_eq!(client.next_text().await, r#"{"channel":"a","pub":{"data":1}}"#);
    }
}

#[tokio::test]
async fn null_is_an_empty_request_and_another_first_message_is_3501() {
    let server = start(|config| {
        unidirectional(config);
        config.client.stale_close_delay = Duration::from_millis(300);
    })
    .await;
    let mut client = websocket(server.address(), "", "").await;
    client.text(" null ").await;
    assert!(client.next_text().await.starts_with(r#"{"connect":"#));
    for message in ["", "nothing", r#"{"id":1,"connect":{}}{}"#, "[]"] {
        let mut client = websocket(server.address(), "", "").await;
        client.text(message).await;
        let push = client.next_text().await;
        assert!(push.starts_with(r#"{"disconnect":{"code":3501,"reason":"bad request"#), "{push}");
        assert_eq!(client.closed().await.0, 3501);
    }
    let mut silent = websocket(server.address(), "", "").await;
    let push = r#"{"disconnect":{"code":3502,"reason":"stale"}}"#;
    assert_eq!(silent.next_text().await, push);
    assert_eq!(silent.closed().await, (3502, "stale".to_owned()));
}

#[tokio::test]
async fn it_ends_with_a_push_and_a_close_frame_that_the_peer_answers() {
    let server = start(unidirectional).await;
    let mut client = connected(&server).await;
    let shutdown = tokio::spawn(server.shutdown());
    assert_eq!(client.next_text().await, DISCONNECT_3001);
    assert_eq!(client.closed().await, (3001, "shutdown".to_owned()));
    client.frame(0x88, &[0x0b, 0xb9]).await;
    assert_eq!(client.next().await, None);
    shutdown.await.expect("no panic");
}

#[tokio::test]
async fn push_and_close_frame_can_be_off() {
    for (without_push, without_close) in [(true, false), (false, true), (true, true)] {
        let server = start(|config| {
            unidirectional(config);
            config.uni_websocket.disable_disconnect_push = without_push;
            config.uni_websocket.disable_closing_handshake = without_close;
        })
        .await;
        let mut client = connected(&server).await;
        let shutdown = tokio::spawn(server.shutdown());
        if !without_push {
            assert_eq!(client.next_text().await, DISCONNECT_3001);
        }
        if !without_close {
            assert_eq!(client.closed().await, (3001, "shutdown".to_owned()));
            client.frame(0x88, &[0x0b, 0xb9]).await;
        }
        assert_eq!(client.next().await, None);
        shutdown.await.expect("no panic");
    }
}

#[tokio::test]
async fn code_3000_is_sent_in_no_frame() {
    let server = start(unidirectional).await;
    let mut client = connected(&server).await;
    let order = r#"{"user":"","disconnect":{"code":3000,"reason":"x"}}"#;
    api(server.address(), "disconnect", order).await;
    assert_eq!(client.next().await, None);
}

#[tokio::test]
async fn both_kinds_of_pings_come_and_a_missing_pong_ends_it() {
    let server = start(|config| {
        unidirectional(config);
        config.client.ping_interval = Duration::from_millis(300);
        config.client.pong_timeout = Duration::from_millis(200);
    })
    .await;
    let mut client = connected(&server).await;
    for _ in 0..3 {
        let ping = client.next().await.expect("a ping frame");
        assert_eq!(ping.head, 0x89);
        client.frame(0x8a, &ping.payload).await;
        assert_eq!(client.next_text().await, "{}");
    }
    assert_eq!(client.next().await.expect("a ping frame").head, 0x89);
    assert_eq!(client.next_text().await, "{}");
    client.text("{}").await; // the pong of the protocol is none here
    assert_eq!(client.next_text().await, r#"{"disconnect":{"code":3012,"reason":"no pong"}}"#);
    assert_eq!(client.closed().await, (3012, "no pong".to_owned()));
}

#[tokio::test]
async fn a_message_that_is_too_long_is_1009() {
    let server = start(|config| {
        unidirectional(config);
        config.uni_websocket.message_size_limit = 100;
    })
    .await;
    let mut client = connected(&server).await;
    client.text(&"x".repeat(100)).await;
    client.text(&"x".repeat(101)).await;
    assert_eq!(client.closed().await.0, 1009);
    let mut other = Client::subscribed(server.address(), "", "a").await;
    other.text(&format!(r#"{{"id":3,"rpc":{{"method":"{}"}}}}"#, "x".repeat(200))).await;
    let reply = other.next_text().await;
    assert!(reply.starts_with(r#"{"id":3,"error":"#), "its own limit: {reply}");
}

/// The pushes of a subscription that recovers two publications, by message.
async fn recovered(joins: bool) -> Vec<String> {
    let server = start(|config| {
        unidirectional(config);
        config.uni_websocket.join_push_messages = joins;
        let open = &mut config.channel.without_namespace;
        (open.history_size, open.history_ttl) = (10, Duration::from_secs(60));
        open.force_recovery = true;
    })
    .await;
    let mut client = websocket(server.address(), "?cf_connect=null", "").await;
    client.next_text().await;
    publish(server.address(), "a", "1").await;
    publish(server.address(), "a", "2").await;
    let history = api(server.address(), "history", r#"{"channel":"a"}"#).await;
    let epoch = member(&history, "epoch");
    let since = format!(r#"{{"offset":0,"epoch":"{epoch}"}}"#);
    let order = format!(r#"{{"user":"","channel":"a","recover_since":{since}}}"#);
    api(server.address(), "subscribe", &order).await;
    let mut messages = Vec::new();
    while !messages.last().is_some_and(|last: &String| last.ends_with(r#""offset":2}}"#)) {
        messages.push(client.next_text().await.replace(epoch, "E"));
    }
    messages
}

#[tokio::test]
async fn pushes_that_leave_together_are_joined_where_configured() {
    let pushes = [
        r#"{"channel":"a","subscribe":{"recoverable":true,"epoch":"E","positioned":true}}"#,
        r#"{"channel":"a","pub":{"data":1,"offset":1}}"#,
        r#"{"channel":"a","pub":{"data":2,"offset":2}}"#,
    ];
    assert_eq!(recovered(false).await, pushes);
    assert_eq!(recovered(true).await, [pushes.join("\n")]);
}

#[tokio::test]
async fn compression_is_agreed_where_configured_and_refers_to_earlier_publications() {
    let offer = "Sec-WebSocket-Extensions: permessage-deflate\r\n";
    for compression in [false, true] {
        let server = start(|config| {
            unidirectional(config);
            config.uni_websocket.compression = compression;
            config.uni_websocket.compression_min_size = 0;
        })
        .await;
        let mut client = websocket(server.address(), &format!("?{}", query(SUBS)), offer).await;
        let agreed = client.response.to_lowercase().contains("permessage-deflate");
        assert_eq!(agreed, compression);
        client.next_text().await;
        let mut inflater = Decompress::new(false);
        for number in 0..6 {
            let data = format!("\"{number}{}\"", noise(400));
            publish(server.address(), "a", &data).await;
            let frame = client.next().await.expect("a frame");
            assert_eq!(frame.head, if compression { 0xc1 } else { 0x81 });
            if compression && number > 1 {
                assert!(frame.payload.len() < 40, "{} B", frame.payload.len());
            }
            let message = match compression {
                true => inflate_next(&mut inflater, &frame.payload),
                false => frame.payload,
            };
            let push = format!(r#"{{"channel":"a","pub":{{"data":{data}}}}}"#);
            assert_eq!(String::from_utf8(message).expect("text"), push);
        }
    }
}

/// Decodes a message in the window of those before it (RFC 7692 §7.2.2).
fn inflate_next(inflater: &mut Decompress, payload: &[u8]) -> Vec<u8> {
    let mut message = Vec::with_capacity(1 << 16);
    let payload = [payload, &[0, 0, 0xff, 0xff]].concat();
    let decoded = inflater.decompress_vec(&payload, &mut message, FlushDecompress::Sync);
    decoded.expect("a valid stream");
    message
}

/// Digits that hardly repeat.
fn noise(digits: usize) -> String {
    let mut state = 1_u64;
    let mut digit = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        char::from(b'0' + (state >> 33) as u8 % 10)
    };
    (0..digits).map(|_| digit()).collect()
}
