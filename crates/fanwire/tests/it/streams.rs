//! HTTP streams, event streams and the path of their commands, over plain sockets (protocol §24).
//! In: requests, good and bad → out: statuses, headers, the bytes of bodies, and their ends.
//! Uses the test client without WebSocket; never an SDK, which tests/interop uses.
//! Changed here: expectations of `edge::clients::response_stream` and `edge::clients::emulation`.

use std::{net::SocketAddr, time::Duration};

use fanwire::{Server, config::Config};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};

use crate::client::{Client, fetch, metrics_when, publish, start, upgrade_request};

const COMMANDS: &str = "{\"id\":1,\"connect\":{}}\n{\"id\":2,\"subscribe\":{\"channel\":\"a\"}}";

fn streams(config: &mut Config) {
    for (options, path) in [(&mut config.http_stream, "/stream"), (&mut config.sse, "/sse")] {
        options.enabled = true;
        options.handler_prefix = path.to_owned();
        options.max_request_body_size = 1000;
    }
    config.emulation.handler_prefix = "/emulation".to_owned();
    config.emulation.max_request_body_size = 1000;
    config.client.ping_interval = Duration::from_secs(600);
}

fn post(path: &str, headers: &str, body: &str) -> String {
    let length = body.len();
    format!(
        "POST {path} HTTP/1.1\r\nHost: localhost\r\n{headers}Content-Length: {length}\r\n\r\n{body}"
    )
}

fn event_source(headers: &str) -> String {
    let commands = COMMANDS.replace('{', "%7B").replace('"', "%22").replace('\n', "%0A");
    format!("GET /sse?cf_connect={commands} HTTP/1.1\r\nHost: localhost\r\n{headers}\r\n")
}

/// Sends commands as an emulated client does; returns the status.
async fn emulate(server: &Server, session: &str, node: &str, commands: &str) -> u16 {
    let data = serde_json::json!({ "session": session, "node": node, "data": commands });
    status(server, &post("/emulation", "", &data.to_string())).await
}

async fn status(server: &Server, request: &str) -> u16 {
    let response = Client::request(server.address(), request).await.response;
    response[9..12].parse().unwrap_or_else(|_| panic!("{response}"))
}

/// Session and node of a connect reply.
fn ids(text: &str) -> (String, String) {
    let member = |name: &str| {
        let (_, rest) = text.split_once(&format!("\"{name}\":\"")).expect("a member");
        rest.split('"').next().expect("its value").to_owned()
    };
    (member("session"), member("node"))
}

#[tokio::test]
async fn an_event_stream_has_an_event_for_each_message() {
    let server = start(streams).await;
    let mut client = Client::request(server.address(), &event_source("")).await;
    let head = &client.response;
    assert!(head.starts_with("HTTP/1.1 200 OK\r\n"), "{head}");
    for line in ["Content-Type: text/event-stream; charset=utf-8", "X-Accel-Buffering: no"] {
        assert!(head.contains(&format!("\r\n{line}\r\n")), "{head}");
    }
    assert!(head.contains("\r\nDate: "), "{head}");
    assert!(!head.contains("Access-Control"), "{head}");
    let text = client.text_until("\"subscribe\":{}}\n\n").await;
    assert!(text.starts_with("\ndata: {\"id\":1,\"connect\":{\"client\":\""), "{text}");
    publish(server.address(), "a", "1").await;
    let pushed = "data: {\"push\":{\"channel\":\"a\",\"pub\":{\"data\":1}}}\n\n";
    assert_eq!(client.text_until("\n\n").await, pushed);
    let (session, node) = ids(&text);
    assert_eq!(
        emulate(&server, &session, &node, r#"{"id":3,"publish":{"channel":"b","data":1}}"#).await,
        204
    );
    assert_eq!(client.text_until("\n\n").await, "data: {\"id\":3,\"publish\":{}}\n\n");
    server.shutdown().await;
    let end = client.text_to_the_end().await;
    assert_eq!(
        end,
        "data: {\"push\":{\"disconnect\":{\"code\":3001,\"reason\":\"shutdown\"}}}\n\n"
    );
}

#[tokio::test]
async fn commands_share_a_connection_and_stay_in_order() {
    let server = start(streams).await;
    let mut stream = Client::request(server.address(), &event_source("")).await;
    let (session, node) = ids(&stream.text_until("\"subscribe\":{}}\n\n").await);
    let request = |id: usize| {
        let command = format!("{{\"id\":{id},\"publish\":{{\"channel\":\"b\",\"data\":{id}}}}}");
        let data = serde_json::json!({ "session": session, "node": node, "data": command });
        post("/emulation", "", &data.to_string())
    };
    let mut socket = TcpStream::connect(server.address()).await.expect("it listens");
    let mut next = 3;
    // A shard answers some; the last ones are too many at once, so that hyper serves them and what follows.
    for count in [1, 2, 40, 1] {
        let requests: String = (next..next + count).map(request).collect();
        let (first, second) = requests.split_at(requests.len() - 5);
        socket.write_all(first.as_bytes()).await.expect("it is open");
        for id in next..next + count {
            if id + 1 == next + count {
                socket.write_all(second.as_bytes()).await.expect("it is open");
            }
            let head = head_of(&mut socket).await.to_ascii_lowercase();
            assert!(head.starts_with("http/1.1 204 no content\r\n"), "{id}: {head}");
            let reply = format!("data: {{\"id\":{id},\"publish\":{{}}}}\n\n");
            assert_eq!(stream.text_until("\n\n").await, reply);
        }
        next += count;
    }
}

/// The next head that a socket receives.
async fn head_of(socket: &mut TcpStream) -> String {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(socket.read_u8().await.expect("a response"));
    }
    String::from_utf8(head).expect("text")
}

#[tokio::test]
async fn an_http_stream_has_a_line_for_each_message_also_in_http_1_0() {
    let server = start(streams).await;
    for version in ["1.1", "1.0"] {
        let request = post("/stream", "", COMMANDS).replace("HTTP/1.1", &format!("HTTP/{version}"));
        let mut client = Client::request(server.address(), &request).await;
        assert!(!client.response.contains("chunked"), "{}", client.response);
        let kind = "\r\nContent-Type: text/plain; charset=utf-8\r\n";
        assert!(client.response.contains(kind), "{}", client.response);
        let text = client.text_until("\"subscribe\":{}}\n").await;
        assert!(text.starts_with("{\"id\":1,\"connect\":"), "{text}");
        publish(server.address(), "a", "1").await;
        let pushed = "{\"push\":{\"channel\":\"a\",\"pub\":{\"data\":1}}}\n";
        assert_eq!(client.text_until("\n").await, pushed);
    }
}

#[tokio::test]
async fn protobuf_messages_follow_each_other_with_their_lengths() {
    let server = start(streams).await;
    let headers = "Content-Type: application/octet-stream\r\n";
    // Command { id: 1, connect: {} } behind its length.
    let mut client =
        Client::request(server.address(), &post("/stream", headers, "\x04\x08\x01\x22\x00")).await;
    assert!(client.response.contains(&format!("\r\n{headers}")), "{}", client.response);
    let text = client.text_until(" Fanwire").await;
    assert!(text.contains("\u{8}\u{1}*"), "Reply {{ id: 1, connect }}: {text:?}");
}

#[tokio::test]
async fn pages_of_allowed_origins_may_read_and_others_are_refused() {
    let server = start(|config| {
        streams(config);
        config.client.allowed_origins = vec!["https://good.example".to_owned()];
    })
    .await;
    let (good, bad) = ("Origin: https://good.example\r\n", "Origin: https://bad.example\r\n");
    let allowed = "access-control-allow-origin: https://good.example\r\n";
    let preflight = |path: &str, origin: &str| {
        let asked = "Access-Control-Request-Headers: content-type\r\n";
        format!("OPTIONS {path} HTTP/1.1\r\nHost: localhost\r\n{origin}{asked}\r\n")
    };
    let accepted = [
        event_source(good),
        post("/stream", good, COMMANDS),
        preflight("/stream", good),
        preflight("/emulation", good),
        post("/emulation", good, "{}"),
    ];
    for request in accepted {
        let head = Client::request(server.address(), &request).await.response.to_lowercase();
        assert!(head.starts_with("http/1.1 20") || head.starts_with("http/1.1 404"), "{head}");
        assert!(head.contains(allowed) && head.contains("allow-credentials: true"), "{head}");
    }
    let refused = [
        event_source(bad),
        post("/stream", bad, COMMANDS),
        preflight("/stream", bad),
        preflight("/emulation", bad),
        post("/emulation", bad, "{}"),
    ];
    for request in refused {
        let head = Client::request(server.address(), &request).await.response.to_lowercase();
        assert!(head.starts_with("http/1.1 403 ") && !head.contains("access-control"), "{head}");
    }
}

#[tokio::test]
async fn bad_requests_get_a_status_and_hold_no_connection() {
    let server = start(|config| {
        streams(config);
        config.prometheus.enabled = true;
    })
    .await;
    let long = "x".repeat(1001);
    let get = |path: &str| format!("GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n");
    for (request, expected) in [
        (get("/sse"), 400),
        (get("/sse?cf_connect="), 400),
        (get("/stream"), 405),
        (get("/emulation"), 405),
        (get("/sse?cf_connect=%7B").replace("GET", "HEAD"), 405),
        (get("/stream").replace("GET", "HEAD"), 405),
        (post("/stream", "", &long), 413),
        (post("/sse", "", &long), 413),
        (post("/emulation", "", &long), 413),
        (post("/stream", "", "part").replace("Length: 4", "Length: 10000000000"), 413),
        (post("/emulation", "", "nothing"), 400),
        (post("/emulation", "Content-Type: application/octet-stream\r\n", "nothing"), 400),
        (post("/emulation", "", r#"{"session":"a","node":"nowhere","data":"{}"}"#), 404),
        (get(&format!("/sse?cf_connect={}", "x".repeat(20_000))), 431),
    ] {
        assert_eq!(
            status(&server, &request).await,
            expected,
            "{}",
            &request[..60.min(request.len())]
        );
    }
    metrics_when(server.address(), |page| page.contains("fanwire_transport_connections 0\n")).await;
}

#[tokio::test]
async fn a_session_that_is_foreign_old_or_empty_is_without_effect() {
    let server = start(streams).await;
    let mut client = Client::request(server.address(), &post("/stream", "", COMMANDS)).await;
    let text = client.text_until("\"subscribe\":{}}\n").await;
    let (session, node) = ids(&text);
    let (id, secret) = session.split_once('.').expect("two parts");
    let command = r#"{"id":3,"publish":{"channel":"a","data":"foreign"}}"#;
    let foreign = [
        String::new(),
        ".".to_owned(),
        id.to_owned(),
        format!("{id}."),
        format!("{id}.{id}"),
        format!("{secret}.{secret}"),
        format!("{secret}.{id}"),
        "\u{0}".repeat(100),
    ];
    for session in &foreign {
        assert_eq!(emulate(&server, session, &node, command).await, 204);
    }
    let mut other = Client::subscribed(server.address(), "", "a").await;
    assert_eq!(emulate(&server, &session, &node, &command.replace("foreign", "own")).await, 204);
    assert!(other.next_text().await.contains("\"data\":\"own\""));
    client.text_until("\"own\"").await;
    drop(client);
    assert_eq!(emulate(&server, &session, &node, command).await, 204);
}

#[tokio::test]
async fn what_is_no_command_ends_the_stream_with_a_code() {
    let server = start(|config| {
        streams(config);
        config.client.stale_close_delay = Duration::from_secs(600);
    })
    .await;
    let expected = "{\"push\":{\"disconnect\":{\"code\":3501,\"reason\":\"";
    for body in ["nothing", "{\"id\":1,\"ping\":{}}", "", " ", "\n", "\r\n \r\n"] {
        // The second is read by hyper.
        for more in ["", "Expect: 100-continue\r\n"] {
            let request = |path| post(path, more, body);
            let client = Client::request(server.address(), &request("/stream")).await;
            let text = after_continue(client).await;
            assert!(text.starts_with(expected) && text.ends_with("\"}}}\n"), "{body}: {text}");
            let client = Client::request(server.address(), &request("/sse")).await;
            let text = after_continue(client).await;
            let expected = format!("\ndata: {expected}");
            assert!(text.starts_with(&expected) && text.ends_with("\"}}}\n\n"), "{body}: {text}");
        }
    }
    let protobuf = post("/stream", "Content-Type: application/octet-stream\r\n", "");
    let mut client = Client::request(server.address(), &protobuf).await;
    client.text_until("bad request").await;
}

/// The body of a stream, also behind a 100.
async fn after_continue(mut client: Client) -> String {
    if client.response.starts_with("HTTP/1.1 100 ") {
        client.text_until("\r\n\r\n").await;
    }
    client.text_to_the_end().await
}

/// HTML Standard §9.2.6: CR, LF and CRLF each end a line, so none of them may be in what a client is sent.
#[tokio::test]
async fn no_json_from_outside_ends_a_line_or_an_event() {
    let server = start(|config| {
        streams(config);
        let open = &mut config.channel.without_namespace;
        (open.presence, open.join_leave, open.force_push_join_leave) = (true, true, true);
        (open.history_size, open.history_ttl) = (10, Duration::from_secs(60));
        open.allow_history_for_subscriber = true;
    })
    .await;
    let mut events = Client::request(server.address(), &event_source("")).await;
    let (session, node) = ids(&events.text_until("\"subscribe\":{}}\n\n").await);
    let mut other = Client::request(server.address(), &event_source("")).await;
    let (other_session, _) = ids(&other.text_until("\"subscribe\":{}}\n\n").await);
    publish(server.address(), "a", "{\r\"by\":\n\r\"api\"\r\n}").await;
    let commands = "{\"id\":3,\"publish\":{\"channel\":\"a\",\"data\":[\r\"client\"\r]}}\n        {\"id\":4,\"history\":{\"channel\":\"a\",\"limit\":9}}";
    emulate(&server, &session, &node, commands).await;
    let subscribe = format!(
        "{{\"user\":\"\",\"session\":\"{other_session}\",\"channel\":\"a\",\"info\":{{\r\"of\":\r\n1}}}}"
    );
    call(server.address(), "unsubscribe", &subscribe).await;
    let subscribe = subscribe.replace("\"info\"", "\"data\":[\r\n2\r],\"info\"");
    call(server.address(), "subscribe", &subscribe).await;
    let text = events.text_until("\"chan_info\":").await + &events.text_until("\n\n").await;
    let other = other.text_until("\"subscribe\":{").await + &other.text_until("\n\n").await;
    for (text, data) in [
        (&text, "\"pub\":{\"data\":{\"by\":\"api\"}"),
        (&text, "\"pub\":{\"data\":[\"client\"]"),
        (&text, "\"publications\":[{\"data\":{\"by\":\"api\"}"),
        (&text, "\"chan_info\":{\"of\":1}"),
        (&other, "\"data\":[2]"),
    ] {
        assert!(text.contains(data), "{data} in {text}");
    }
    for text in [text, other] {
        assert!(!text.contains('\r'), "{text:?}");
        let lines = text.split("\n\n").skip(1).filter(|event| !event.is_empty());
        lines.for_each(|event| assert!(!event.contains('\n'), "{event:?}"));
    }
}

/// Calls a method of the server API.
async fn call(address: SocketAddr, method: &str, body: &str) {
    let headers = "X-API-Key: key\r\nConnection: close\r\n";
    let request = post(&format!("/api/{method}"), headers, body);
    let answer = Client::request(address, &request).await.text_to_the_end().await;
    assert!(!answer.contains("error"), "{answer}");
}

/// Images and links of other pages send no `Origin`, and `EventSource` and `fetch` always do (Fetch Metadata §2.4).
#[tokio::test]
async fn a_get_of_another_sites_page_without_an_origin_is_refused() {
    let server = start(|config| {
        streams(config);
        config.uni_sse.enabled = true;
        config.client.allowed_origins = vec!["https://good.example".to_owned()];
    })
    .await;
    let good = "Origin: https://good.example\r\n";
    for (site, origin, status_expected) in [
        ("cross-site", "", 403),
        ("same-site", "", 403),
        ("same-origin", "", 200),
        ("none", "", 200),
        ("cross-site", good, 200),
        ("same-site", good, 200),
    ] {
        // The second is read by hyper.
        for more in ["", "Expect: 100-continue\r\n"] {
            let headers = format!("{origin}Sec-Fetch-Site: {site}\r\n{more}");
            let uni = "GET /connection/uni_sse HTTP/1.1\r\nHost: localhost\r\n";
            for request in [event_source(&headers), format!("{uni}{headers}\r\n")] {
                assert_eq!(status(&server, &request).await, status_expected, "{request}");
            }
        }
    }
    let headers = "Sec-Fetch-Site: cross-site\r\n";
    assert_eq!(status(&server, &post("/stream", headers, COMMANDS)).await, 200, "no program");
}

#[tokio::test]
async fn responses_of_shards_have_a_date() {
    let server = start(streams).await;
    for (request, line) in [
        (upgrade_request("localhost", ""), "HTTP/1.1 101 "),
        (upgrade_request("localhost", "").replace("Version: 13", "Version: 8"), "HTTP/1.1 426 "),
        (post("/emulation", "", "nothing"), "HTTP/1.1 400 "),
        (event_source(""), "HTTP/1.1 200 "),
        (event_source("Expect: 100-continue\r\n"), "HTTP/1.1 200 "),
    ] {
        let head = Client::request(server.address(), &request).await.response;
        assert!(head.starts_with(line), "{head}");
        assert_eq!(head.to_lowercase().matches("\r\ndate: ").count(), 1, "{head}");
    }
}

#[tokio::test]
async fn what_follows_the_request_is_discarded() {
    let server = start(streams).await;
    let mut client = Client::request(server.address(), &event_source("")).await;
    client.text_until("\"subscribe\":{}}\n\n").await;
    client.raw(post("/stream", "", COMMANDS).as_bytes()).await;
    client.raw(&[0x81; 5000]).await;
    publish(server.address(), "a", "1").await;
    assert!(client.text_until("\n\n").await.starts_with("data: {\"push\":"));
}

#[tokio::test]
async fn a_stream_that_is_not_read_ends_and_others_get_everything() {
    let server = start(|config| {
        streams(config);
        config.client.queue_max_size = 64 * 1024;
        config.prometheus.enabled = true;
    })
    .await;
    let address = server.address();
    let mut stopped = Client::request(address, &event_source("")).await;
    stopped.text_until("\"subscribe\":{}}\n\n").await;
    let mut reader = Client::request(address, &post("/stream", "", COMMANDS)).await;
    reader.text_until("\"subscribe\":{}}\n").await;
    let data = format!("\"{}\"", "x".repeat(100_000));
    let mut published = 0;
    while fetch(address, "/metrics").await.contains("fanwire_transport_connections 2\n") {
        published += 1;
        assert!(published < 1000, "the stopped reader is still there");
        publish(address, "a", &data).await;
        assert!(reader.text_until("}}}\n").await.contains(&data));
    }
    publish(address, "a", "\"last\"").await;
    assert!(reader.text_until("}}}\n").await.contains("\"last\""));
}
