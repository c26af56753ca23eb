//! `uni_sse` and `uni_http_stream`: the connect request in query or body, pushes in the response.
//! In: requests → out: heads, events, lines, and ends of bodies.
//! Uses the test client.
//! Changed here: expectations of `edge::clients::response_stream` and `edge::clients::unidirectional` for streams.

use std::time::Duration;

use super::*;
use crate::client::{fetch, metrics_when, publish, start};

#[tokio::test]
async fn a_stream_begins_with_the_connect_push_and_ends_with_a_disconnect_push() {
    let server = start(unidirectional).await;
    let mut clients = each_stream(&server, r#"{"subs":{"a":{}}}"#).await;
    let mut sessions = Vec::new();
    for (client, before, after) in &mut clients {
        let head = client.response.clone();
        assert!(head.starts_with("HTTP/1.1 200 OK\r\nX-Accel-Buffering: no\r\n"), "{head}");
        assert!(head.contains("\r\nDate: "), "{head}");
        let is_text = head.contains("\r\nContent-Type: text/plain; charset=utf-8\r\n");
        assert_eq!(is_text, before.is_empty(), "{head}");
        let is_events = head.contains("\r\nContent-Type: text/event-stream; charset=utf-8\r\n");
        assert_eq!(is_events, *before == "data: ", "{head}");
        if is_events {
            assert_eq!(client.text_until("\n").await, "\n");
        }
        let push = client.text_until(after).await;
        let start = format!(r#"{before}{{"connect":{{"client":"{}","#, member(&push, "client"));
        assert!(push.starts_with(&start), "{push}");
        let (session, node) = (member(&push, "session"), member(&push, "node"));
        let end = format!(
            r#""subs":{{"a":{{}}}},"ping":600,"session":"{session}","node":"{node}"}}}}{after}"#
        );
        assert!(push.ends_with(&end) && session.len() > 36, "{push}");
        sessions.push(session.to_owned());
    }
    publish(server.address(), "a", "{\"n\": 1}").await;
    for ((mut client, before, after), session) in clients.into_iter().zip(sessions) {
        let push = format!(r#"{before}{{"channel":"a","pub":{{"data":{{"n": 1}}}}}}{after}"#);
        assert_eq!(client.text_until(after).await, push);
        let target = format!(r#"{{"user":"","session":"{session}","channel":"a"}}"#);
        api(server.address(), "unsubscribe", &target).await;
        let push = client.text_until(after).await;
        assert!(push.contains(r#"{"channel":"a","unsubscribe":{"code":2000"#), "{push}");
        let target = format!(r#"{{"user":"","session":"{session}"}}"#);
        api(server.address(), "disconnect", &target).await;
        let push = r#"{"disconnect":{"code":3503,"reason":"force disconnect"}}"#;
        assert_eq!(client.text_to_the_end().await, format!("{before}{push}{after}"));
    }
}

#[tokio::test]
async fn a_stop_of_the_server_ends_streams_with_3001() {
    let server = start(unidirectional).await;
    let mut clients = each_stream(&server, "null").await;
    for (client, _, _) in &mut clients {
        client.text_until("\"node\":\"").await;
    }
    server.shutdown().await;
    for (client, before, after) in clients {
        let text = client.text_to_the_end().await;
        assert!(text.ends_with(&format!("{before}{DISCONNECT_3001}{after}")), "{text}");
    }
}

#[tokio::test]
async fn pings_are_empty_pushes_that_nobody_answers() {
    let server = start(|config| {
        unidirectional(config);
        config.client.ping_interval = Duration::from_millis(100);
        config.client.pong_timeout = Duration::from_millis(20);
    })
    .await;
    for (mut client, before, after) in each_stream(&server, "{}").await {
        client.text_until(&format!("\"}}}}{after}")).await;
        for _ in 0..3 {
            assert_eq!(client.text_until(after).await, format!("{before}{{}}{after}"));
        }
    }
}

#[tokio::test]
async fn an_event_source_needs_no_parameter_where_other_credentials_do() {
    let server = start(|config| {
        unidirectional(config);
        config.client.insecure = false;
        config.client.user_id_http_header = "X-User-Id".to_owned();
        config.channel.without_namespace.presence = true;
        config.client.subscribe_to_user_personal_channel.enabled = true;
    })
    .await;
    for request in [
        "GET /sse HTTP/1.1\r\nHost: x\r\nX-User-Id: 42\r\n\r\n".to_owned(),
        "GET /sse?cf_connect= HTTP/1.0\r\nHost: x\r\nX-User-Id: 42\r\n\r\n".to_owned(),
        post("/sse", "X-User-Id: 42\r\n", ""),
        post("/stream", "X-User-Id: 42\r\n", "null"),
    ] {
        let mut client = Client::request(server.address(), &request).await;
        let text = client.text_until("\"node\":\"").await;
        assert!(text.contains(r##""subs":{"#42":{}}"##), "{text}");
    }
    let client = Client::request(server.address(), "GET /sse HTTP/1.1\r\nHost: x\r\n\r\n").await;
    let text = client.text_to_the_end().await;
    assert!(text.starts_with("\ndata: {\"disconnect\":{\"code\":3501,"), "{text}");
}

#[tokio::test]
async fn missed_publications_are_in_the_connect_push() {
    let server = start(|config| {
        unidirectional(config);
        let open = &mut config.channel.without_namespace;
        (open.history_size, open.history_ttl) = (10, Duration::from_secs(60));
        open.force_recovery = true;
    })
    .await;
    let [(mut first, ..), ..] = each_stream(&server, r#"{"subs":{"a":{}}}"#).await;
    let push = first.text_until("\n\n").await;
    let epoch = member(&push, "epoch").to_owned();
    for number in 1..=3 {
        publish(server.address(), "a", &number.to_string()).await;
    }
    let subs = |epoch: &str| {
        format!(r#"{{"subs":{{"a":{{"recover":true,"offset":1,"epoch":"{epoch}"}}}}}}"#)
    };
    for (mut client, _, after) in each_stream(&server, &subs(&epoch)).await {
        let push = client.text_until(after).await;
        let missed = r#""publications":[{"data":2,"offset":2},{"data":3,"offset":3}],"recovered":true,"offset":1"#;
        assert!(push.contains(missed), "{push}");
    }
    for (mut client, _, after) in each_stream(&server, &subs("old")).await {
        let push = client.text_until(after).await;
        assert!(push.contains(r#""offset":3,"positioned":true,"was_recovering":true}"#), "{push}");
    }
}

#[tokio::test]
async fn bad_requests_get_a_status_and_hold_no_connection() {
    let server = start(unidirectional).await;
    let long = "x".repeat(9001);
    let plain = |method: &str, path: &str| format!("{method} {path} HTTP/1.1\r\nHost: x\r\n\r\n");
    for (request, expected) in [
        (get("/sse", "", "{"), 400),
        (get("/sse", "", "[]"), 400),
        (get("/sse", "", r#"{"token":5}"#), 400),
        (post("/sse", "", "nothing"), 400),
        (post("/stream", "", ""), 400),
        (post("/stream", "", "{}{}"), 400),
        (post("/stream", "", &long), 413),
        (post("/sse", "", &long), 413),
        (plain("GET", "/stream"), 405),
        (plain("HEAD", "/stream"), 405),
        (plain("HEAD", "/sse"), 405),
        (plain("OPTIONS", "/sse"), 405),
        (plain("PUT", "/sse"), 405),
        (plain("OPTIONS", "/stream"), 204),
        (get("/sse", "", &"x".repeat(20_000)), 431),
        (plain("GET", "/websocket"), 426),
        (upgrade(&format!("?{}", query("{")), ""), 400),
    ] {
        let head = Client::request(server.address(), &request).await.response;
        let (_, status) = head.split_at("HTTP/1.1 ".len());
        assert!(status.starts_with(&expected.to_string()), "{head}{request:.60}");
    }
    metrics_when(server.address(), |page| page.contains("fanwire_transport_connections 0\n")).await;
}

#[tokio::test]
async fn a_connect_request_of_8_kb_fits_into_a_query() {
    let server = start(unidirectional).await;
    let request = format!(r#"{{"name":"{}"}}"#, "x".repeat(8000));
    for (mut client, _, after) in each_stream(&server, &request).await {
        client.text_until(&format!("\"}}}}{after}")).await;
    }
}

#[tokio::test]
async fn pages_of_allowed_origins_may_read_and_others_are_refused() {
    let server = start(|config| {
        unidirectional(config);
        config.client.allowed_origins = vec!["https://good.example".to_owned()];
    })
    .await;
    let requests = |origin: &str| {
        [
            get("/sse", origin, "{}"),
            post("/stream", origin, "{}"),
            format!("OPTIONS /stream HTTP/1.1\r\nHost: x\r\n{origin}\r\n"),
            upgrade("", origin),
        ]
    };
    for (number, request) in requests("Origin: https://good.example\r\n").iter().enumerate() {
        let head = Client::request(server.address(), request).await.response.to_lowercase();
        let allows = head.contains("access-control-allow-origin: https://good.example\r\n");
        assert!(allows || number == 3 && head.starts_with("http/1.1 101 "), "{head}");
    }
    for request in requests("Origin: https://bad.example\r\n") {
        let head = Client::request(server.address(), &request).await.response;
        assert!(head.starts_with("HTTP/1.1 403 "), "{head}");
    }
}

#[tokio::test]
async fn a_stream_that_is_not_read_ends_with_3008_and_others_get_everything() {
    let server = start(|config| {
        unidirectional(config);
        config.client.queue_max_size = 64 * 1024;
    })
    .await;
    let address = server.address();
    let [(mut slow, ..), _, (mut reader, ..)] = each_stream(&server, r#"{"subs":{"a":{}}}"#).await;
    slow.text_until("\n\n").await;
    reader.text_until("\"node\":\"").await;
    reader.text_until("\n").await;
    let data = format!("\"{}\"", "x".repeat(100_000));
    let mut published = 0;
    while fetch(address, "/metrics").await.contains("fanwire_transport_queue_overflows_total 0\n") {
        published += 1;
        assert!(published < 1000, "the stopped reader is still there");
        publish(address, "a", &data).await;
        assert!(reader.text_until("}}\n").await.contains(&data));
    }
    let text = slow.text_to_the_end().await;
    let end = "data: {\"disconnect\":{\"code\":3008,\"reason\":\"slow\"}}\n\n";
    assert!(text.ends_with(end), "{}", &text[text.len().saturating_sub(200)..]);
    publish(address, "a", "\"last\"").await;
    assert!(reader.text_until("}}\n").await.contains("\"last\""));
}

#[tokio::test]
async fn what_is_sent_is_counted_by_transport() {
    let server = start(unidirectional).await;
    let mut clients = each_stream(&server, r#"{"subs":{"a":{}}}"#).await;
    let mut uni = websocket(server.address(), "?cf_connect=null", "").await;
    uni.next_text().await;
    for (client, _, after) in &mut clients {
        client.text_until(&format!("\"}}}}{after}")).await;
    }
    let counted = |transport: &str, count: u64| {
        format!(
            "fanwire_transport_messages_sent_total{{transport=\"{transport}\",encoding=\"json\"}} {count}\n"
        )
    };
    let expected =
        [counted("uni_sse", 2), counted("uni_http_stream", 1), counted("uni_websocket", 1)];
    metrics_when(server.address(), |page| expected.iter().all(|line| page.contains(line))).await;
}
