//! Refused connects of unidirectional clients: disconnects, and HTTP statuses where configured.
//! In: connect requests that a hook refuses → out: codes, reasons and statuses.
//! Uses the test client, a server with a hook.
//! Changed here: expectations of refused connects.

use fanwire_edge::{ConnectCodeResponse, StatusAndBody};
use fanwire_node::options::ConnectCodeTransform;

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};

use super::*;

/// The first push that each transport receives for a connect request.
async fn first_pushes(server: &Server, request: &str) -> Vec<String> {
    let mut pushes = Vec::new();
    for (client, before, after) in each_stream(server, request).await {
        let text = client.text_to_the_end().await;
        let text = text.trim_start_matches('\n');
        let push = text.strip_prefix(before).and_then(|text| text.strip_suffix(after));
        pushes.push(push.unwrap_or_else(|| panic!("{text}")).to_owned());
    }
    let mut client = websocket(server.address(), "", "").await;
    client.text(request).await;
    let push = client.next_text().await;
    let (code, reason) = client.closed().await;
    let is_same = push == format!(r#"{{"disconnect":{{"code":{code},"reason":"{reason}"}}}}"#);
    assert!(is_same, "{push} {code} {reason}");
    pushes.push(push);
    pushes
}

#[tokio::test]
async fn errors_of_connect_are_disconnect_pushes() {
    let server = start_with_hook(|config| {
        config.channel.private_prefix = "$".to_owned();
        let to = Disconnect { code: 4400, reason: "configured".into() };
        let transforms = vec![ConnectCodeTransform { code: 400, to }];
        let codes = &mut config.client.connect_code_to_unidirectional_disconnect;
        (codes.enabled, codes.transforms) = (true, transforms);
    })
    .await;
    for (request, code, reason) in [
        (r#"{"data":"109"}"#, 3005, "connection expired"),
        (r#"{"data":"110"}"#, 3005, "connection expired"),
        (r#"{"data":"111"}"#, 3013, "too many requests"),
        (r#"{"data":"103"}"#, 3507, "permission denied"),
        (r#"{"data":"100"}"#, 3004, "internal server error"),
        (r#"{"data":"1999"}"#, 3004, "internal server error"),
        (r#"{"data":"400"}"#, 4400, "configured"),
        (r#"{"data":"4000"}"#, 4000, "said the hook"),
        (r#"{"subs":{"unknown:a":{}}}"#, 3501, "bad request"),
    ] {
        let expected = format!(r#"{{"disconnect":{{"code":{code},"reason":"{reason}"}}}}"#);
        assert_eq!(first_pushes(&server, request).await, [expected.as_str(); 4], "{request}");
    }
    let request = r#"{"subs":{"a":{},"$private":{}}}"#;
    for (mut client, _, after) in each_stream(&server, request).await {
        let push = client.text_until(&format!("\"}}}}{after}")).await;
        assert!(push.contains(r#""subs":{"a":{}},"#), "{push}");
    }
}

#[tokio::test]
async fn a_connection_that_expires_ends_with_3005() {
    let server = start_with_hook(|_| {}).await;
    let [(mut events, ..), _, (stream, ..)] = each_stream(&server, r#"{"data":"expire"}"#).await;
    let push = events.text_until("\n\n").await;
    assert!(push.contains(r#""expires":true,"ttl":"#), "{push}");
    let end = r#"{"disconnect":{"code":3005,"reason":"connection expired"}}"#;
    assert_eq!(events.text_to_the_end().await, format!("data: {end}\n\n"));
    assert!(stream.text_to_the_end().await.ends_with(&format!("{end}\n")));
}

fn statuses(config: &mut Config) {
    let row = |code, status_code, body: &str| ConnectCodeResponse {
        code,
        to: StatusAndBody { status_code, body: body.to_owned() },
    };
    let rows =
        [row(109, 401, "expired"), row(3501, 403, ""), row(400, 499, ""), row(4000, 204, "unused")];
    for options in [&mut config.uni_sse, &mut config.uni_http_stream] {
        options.connect_code_to_http_response.enabled = true;
        options.connect_code_to_http_response.transforms = rows.to_vec();
    }
    let to = Disconnect { code: 3501, reason: "never used by streams then".into() };
    let transforms = vec![ConnectCodeTransform { code: 400, to }];
    let codes = &mut config.client.connect_code_to_unidirectional_disconnect;
    (codes.enabled, codes.transforms) = (true, transforms);
    config.client.allowed_origins = vec!["*".to_owned()];
}

#[tokio::test]
async fn refused_connects_have_statuses_where_configured() {
    let server = start_with_hook(statuses).await;
    for (request, status, body) in [
        (r#"{"data":"109"}"#, "401 Unauthorized", "expired"),
        (r#"{"data":"400"}"#, "499 ", "said the hook"),
        (r#"{"subs":{"unknown:a":{}}}"#, "403 Forbidden", "bad request"),
        (r#"{"data":"103"}"#, "500 Internal Server Error", "Internal Server Error"),
        (r#"{"data":"4001"}"#, "500 Internal Server Error", "Internal Server Error"),
        (r#"{"data":"4000"}"#, "204 No Content", ""),
    ] {
        for (client, ..) in each_stream(&server, request).await {
            let head = client.response.clone();
            assert!(head.starts_with(&format!("HTTP/1.1 {status}\r\nDate: ")), "{head}");
            assert!(head.contains("\r\nConnection: close\r\n"), "{head}");
            let length = format!("\r\nContent-Length: {}\r\n", body.len());
            assert_eq!(head.contains(&length), !body.is_empty(), "{head}");
            assert_eq!(client.text_to_the_end().await, body);
        }
    }
    let origin = "Origin: https://a.example\r\n";
    let refused = post("/stream", origin, r#"{"data":"109"}"#);
    let head = Client::request(server.address(), &refused).await.response.to_lowercase();
    assert!(head.contains("\r\naccess-control-allow-origin: https://a.example\r\n"), "{head}");
}

/// RFC 9112 §9.6: a close with unread bytes would reset the connection, and the peer would lose the response.
#[tokio::test]
async fn a_refusal_is_not_lost_with_what_a_client_sends_behind_its_request() {
    let server = start_with_hook(|config| {
        statuses(config);
        config.client.allowed_origins.clear();
    })
    .await;
    let decided = get("/sse", "", r#"{"data":"109"}"#);
    let foreign = get("/sse", "Origin: https://a.example\r\n", "{}");
    for (request, status) in [(decided, "401 "), (foreign, "403 ")] {
        let mut socket = TcpStream::connect(server.address()).await.expect("it listens");
        let behind = "x".repeat(300_000);
        socket.write_all((request + &behind).as_bytes()).await.expect("room in both buffers");
        let mut response = String::new();
        socket.read_to_string(&mut response).await.expect("an orderly end");
        assert!(response.starts_with(&format!("HTTP/1.1 {status}")), "{response}");
    }
}

#[tokio::test]
async fn a_connect_that_is_not_refused_begins_its_stream_and_ends_it_with_a_push() {
    let server = start_with_hook(statuses).await;
    let mut clients = each_stream(&server, r#"{"subs":{"a":{}}}"#).await;
    for (client, before, after) in &mut clients {
        assert!(client.response.starts_with("HTTP/1.1 200 OK\r\n"), "{}", client.response);
        let push = client.text_until(&format!("\"}}}}{after}")).await;
        let push = push.trim_start_matches('\n');
        assert!(push.starts_with(&format!("{before}{{\"connect\":")), "{push}");
    }
    crate::client::publish(server.address(), "a", "1").await;
    for (client, before, after) in &mut clients {
        let push = format!(r#"{before}{{"channel":"a","pub":{{"data":1}}}}{after}"#);
        assert_eq!(client.text_until(after).await, push);
    }
    server.shutdown().await;
    for (client, before, after) in clients {
        let end = format!("{before}{DISCONNECT_3001}{after}");
        assert_eq!(client.text_to_the_end().await, end);
    }
}
