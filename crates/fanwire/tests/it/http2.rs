//! HTTP/2: requests, and WebSockets in its streams (RFC 9113, RFC 8441).
//! In: a server with `http_server.h2c_external`, hyper's client → out: responses, frames, and the ends of both.
//! Uses the test client on a stream.
//! Changed here: expectations of `edge::accept::http2`.

use std::net::SocketAddr;

use axum::body::Body;
use fanwire::{Server, config::Config};
use http::{Method, Request, StatusCode, Version};
use http_body_util::BodyExt;
use hyper::{client::conn::http2::SendRequest, ext::Protocol, upgrade::Upgraded};
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt},
    net::TcpStream,
};

use crate::{
    client::{Client, publish, start},
    log,
};

fn cleartext(config: &mut Config) {
    config.http_server.h2c_external = true;
    config.http_server.internal_address = "127.0.0.2".to_owned();
    config.http_server.internal_port = "0".to_owned();
    config.http_api.external = true;
}

/// A connection of hyper's client.
async fn connect(server: &Server) -> SendRequest<Body> {
    connection(TcpStream::connect(server.address()).await.expect("the server listens")).await
}

/// A connection on a socket.
pub(crate) async fn connection<S>(socket: S) -> SendRequest<Body>
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let handshake = hyper::client::conn::http2::Builder::new(TokioExecutor::new());
    let (sender, connection) = handshake.handshake(TokioIo::new(socket)).await.expect("HTTP/2");
    tokio::spawn(connection);
    sender
}

/// Publishes through the server API in a stream.
pub(crate) async fn publish_in_stream(
    sender: &mut SendRequest<Body>,
    address: SocketAddr,
    channel: &str,
    data: &str,
) {
    let body = format!("{{\"channel\":\"{channel}\",\"data\":{data}}}");
    let call = request(address, Method::POST, "/api/publish").header("x-api-key", "key");
    sender.ready().await.expect("a connection");
    let call = call.body(Body::from(body)).expect("a request");
    let response = sender.send_request(call).await.expect("a response");
    assert_eq!((response.version(), response.status()), (Version::HTTP_2, StatusCode::OK));
    let body = response.into_body().collect().await.expect("a body").to_bytes();
    assert_eq!(body, "{\"result\":{}}");
}

fn request(address: SocketAddr, method: Method, path: &str) -> http::request::Builder {
    let uri = format!("http://{address}{path}");
    Request::builder().version(Version::HTTP_2).method(method).uri(uri)
}

/// An extended CONNECT with these headers; a client of its stream if it is accepted.
pub(crate) async fn websocket(
    sender: &mut SendRequest<Body>,
    address: SocketAddr,
    headers: &[(&str, &str)],
) -> Result<Client<TokioIo<Upgraded>>, StatusCode> {
    let mut request = request(address, Method::CONNECT, "/connection/websocket")
        .extension(Protocol::from_static("websocket"));
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    sender.ready().await.expect("a connection");
    let request = request.body(Body::empty()).expect("a request");
    let mut response = sender.send_request(request).await.expect("a response");
    if response.status() != StatusCode::OK {
        return Err(response.status());
    }
    assert!(!response.headers().contains_key("sec-websocket-accept"));
    let upgraded = hyper::upgrade::on(&mut response).await.expect("a stream");
    Ok(Client::upgraded(TokioIo::new(upgraded)))
}

pub(crate) const VERSION: (&str, &str) = ("sec-websocket-version", "13");

#[tokio::test]
async fn the_api_answers_in_a_stream() {
    let server = start(cleartext).await;
    let mut sender = connect(&server).await;
    for _ in 0..3 {
        publish_in_stream(&mut sender, server.address(), "a", "{}").await;
    }
    server.shutdown().await;
}

#[tokio::test]
async fn streams_of_one_connection_are_websockets_of_their_own() {
    let server = start(cleartext).await;
    let mut sender = connect(&server).await;
    let mut clients = Vec::new();
    for number in 0..20 {
        let client = websocket(&mut sender, server.address(), &[VERSION]).await;
        let mut client = client.expect("it is accepted");
        client.subscribe(if number % 2 == 0 { "even" } else { "odd" }).await;
        clients.push(client);
    }
    publish(server.address(), "even", "{\"n\":1}").await;
    for client in clients.iter_mut().step_by(2) {
        assert!(client.next_text().await.contains("\"data\":{\"n\":1}"));
    }
    // One that leaves takes no other with it.
    drop(clients.remove(0));
    publish(server.address(), "odd", "{\"n\":2}").await;
    for client in clients.iter_mut().step_by(2) {
        assert!(client.next_text().await.contains("\"data\":{\"n\":2}"));
    }
    let last = clients.pop().expect("one is left");
    drop(sender);
    let closing = tokio::spawn(async move {
        let mut last = last;
        last.closed().await.0
    });
    server.shutdown().await;
    assert_eq!(closing.await.expect("a close frame"), 3001);
}

#[tokio::test]
async fn compression_is_agreed_and_large_messages_pass_both_ways() {
    let server = start(|config| {
        cleartext(config);
        config.websocket.message_size_limit = 1 << 20;
    })
    .await;
    let mut sender = connect(&server).await;
    let offer = ("sec-websocket-extensions", "permessage-deflate");
    let client = websocket(&mut sender, server.address(), &[VERSION, offer]).await;
    let mut client = client.expect("it is accepted");
    client.subscribe("a").await;
    let text = "0123456789abcdef".repeat(20_000);
    client
        .text(&format!("{{\"id\":3,\"publish\":{{\"channel\":\"a\",\"data\":\"{text}\"}}}}"))
        .await;
    let mut received = String::new();
    while !received.contains("\"id\":3") || !received.contains(&text) {
        received.push_str(&client.next_text().await);
    }
    drop((client, sender));
    server.shutdown().await;
}

#[tokio::test]
async fn wrong_requests_are_refused_in_their_stream_alone() {
    let server = start(|config| {
        cleartext(config);
        config.client.allowed_origins = vec!["https://good.example".to_owned()];
    })
    .await;
    let mut sender = connect(&server).await;
    for (headers, status) in [
        (&[][..], 426),
        (&[("sec-websocket-version", "12")], 426),
        (&[VERSION, ("origin", "https://bad.example")], 403),
    ] {
        let refused = websocket(&mut sender, server.address(), headers).await;
        assert_eq!(refused.err().expect("refused"), status, "{headers:?}");
    }
    let headers = [VERSION, ("origin", "https://good.example")];
    let client = websocket(&mut sender, server.address(), &headers).await;
    client.expect("it is accepted").subscribe("a").await;
    let get = request(server.address(), Method::GET, "/connection/websocket").body(Body::empty());
    let response = sender.send_request(get.expect("a request")).await.expect("a response");
    assert_eq!(response.status(), 426);
    server.shutdown().await;
}

#[tokio::test]
async fn a_client_that_does_not_read_is_slow_and_others_go_on() {
    let server = start(|config| {
        cleartext(config);
        config.prometheus.enabled = true;
        config.client.queue_max_size = 100_000;
    })
    .await;
    let mut sender = connect(&server).await;
    // Its connection has windows of 64 KiB, so that the server cannot send more.
    let mut small = hyper::client::conn::http2::Builder::new(TokioExecutor::new());
    small.initial_stream_window_size(65_535).initial_connection_window_size(65_535);
    let socket = TcpStream::connect(server.address()).await.expect("the server listens");
    let (mut stalled, connection) = small.handshake(TokioIo::new(socket)).await.expect("HTTP/2");
    tokio::spawn(connection);
    let open = request(server.address(), Method::CONNECT, "/connection/websocket")
        .extension(Protocol::from_static("websocket"))
        .header(VERSION.0, VERSION.1)
        .body(Body::empty());
    stalled.ready().await.expect("a connection");
    let mut response = stalled.send_request(open.expect("a request")).await.expect("a response");
    let upgraded = hyper::upgrade::on(&mut response).await.expect("a stream");
    let mut upgraded = TokioIo::new(upgraded);
    let commands = b"{\"id\":1,\"connect\":{}}\n{\"id\":2,\"subscribe\":{\"channel\":\"a\"}}";
    let frame = [&[0x81, 0x80 | commands.len() as u8, 0, 0, 0, 0], &commands[..]].concat();
    upgraded.write_all(&frame).await.expect("an open stream");
    let client = websocket(&mut sender, server.address(), &[VERSION]).await;
    let mut client = client.expect("it is accepted");
    client.subscribe("a").await;
    let data = format!("\"{}\"", "x".repeat(40_000));
    for _ in 0..60 {
        publish(server.address(), "a", &data).await;
        assert!(client.next_text().await.contains("xxxx"));
    }
    crate::client::metrics_when(server.internal_address(), |metrics| {
        metrics.lines().any(|line| line.contains("code=\"3008\"") && line.ends_with(" 1"))
    })
    .await;
    server.shutdown().await;
}

#[tokio::test]
async fn other_versions_are_served_on_the_same_port() {
    let server = start(cleartext).await;
    let mut client = Client::subscribed(server.address(), "", "a").await;
    publish(server.address(), "a", "{}").await;
    assert!(client.next_text().await.contains("\"pub\""));
    for wrong in ["PRI", "PRI * HTTP/1.1\r\n\r\n", "PRIZE"] {
        let mut socket = TcpStream::connect(server.address()).await.expect("the server listens");
        socket.write_all(wrong.as_bytes()).await.expect("open");
        drop(socket);
    }
    drop(client);
    server.shutdown().await;
}

#[tokio::test]
async fn a_flood_of_frames_without_content_is_ended() {
    let server = start(cleartext).await;
    let ping = [&[0, 0, 8, 6, 0, 0, 0, 0, 0][..], b"12345678"].concat();
    let priority = [&[0, 0, 5, 2, 0, 0, 0, 0, 1][..], &[0, 0, 0, 0, 16]].concat();
    let window_update = [&[0, 0, 4, 8, 0, 0, 0, 0, 0][..], &[0, 0, 0, 1]].concat();
    let unknown = vec![0, 0, 0, 200, 0, 0, 0, 0, 0];
    for frame in [ping, priority, window_update, unknown] {
        let mut socket = TcpStream::connect(server.address()).await.expect("the server listens");
        let settings = [0, 0, 0, 4, 0, 0, 0, 0, 0];
        socket.write_all(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n").await.expect("open");
        socket.write_all(&settings).await.expect("open");
        let (mut from_server, mut to_server) = socket.into_split();
        let flood = async {
            // The kernel may take more than the server reads.
            for sent in 0..200_000 {
                if to_server.write_all(&frame.repeat(50)).await.is_err() {
                    return sent * 50;
                }
            }
            panic!("the server takes frames of type {} for ever", frame[3]);
        };
        let read = async {
            let _ = tokio::io::copy(&mut from_server, &mut tokio::io::sink()).await;
        };
        let (sent, ()) = tokio::join!(flood, read);
        assert!(sent >= 10_000, "ended after {sent} frames of type {}", frame[3]);
    }
    let mut sender = connect(&server).await;
    publish_in_stream(&mut sender, server.address(), "a", "1").await;
    server.shutdown().await;
}

fn streams(config: &mut Config) {
    cleartext(config);
    for (options, path) in [(&mut config.http_stream, "/stream"), (&mut config.sse, "/sse")] {
        options.enabled = true;
        options.handler_prefix = path.to_owned();
        options.max_request_body_size = 1000;
    }
    config.emulation.handler_prefix = "/emulation".to_owned();
    config.emulation.max_request_body_size = 1000;
}

/// The body of an event stream, whose session subscribes to `channel`.
async fn event_stream(
    sender: &mut SendRequest<Body>,
    address: SocketAddr,
    channel: &str,
) -> hyper::body::Incoming {
    let commands = format!(
        "%7B%22id%22:1,%22connect%22:%7B%7D%7D%0A\
         %7B%22id%22:2,%22subscribe%22:%7B%22channel%22:%22{channel}%22%7D%7D"
    );
    let get = request(address, Method::GET, &format!("/sse?cf_connect={commands}"));
    sender.ready().await.expect("a connection");
    let get = get.body(Body::empty()).expect("a request");
    let response = sender.send_request(get).await.expect("a response");
    assert_eq!(response.status(), StatusCode::OK);
    assert_eq!(response.headers()["content-type"], "text/event-stream; charset=utf-8");
    assert!(!response.headers().contains_key("connection"));
    response.into_body()
}

/// Reads until the text contains `end`; returns what came behind the last read.
async fn text_until(body: &mut hyper::body::Incoming, end: &str) -> String {
    let mut text = String::new();
    while !text.contains(end) {
        let frame = body.frame().await.expect("not the end").expect("an open stream");
        text.push_str(&String::from_utf8_lossy(&frame.into_data().expect("data")));
    }
    text
}

#[tokio::test]
async fn event_streams_share_a_connection_with_requests() {
    let server = start(streams).await;
    let mut sender = connect(&server).await;
    let mut first = event_stream(&mut sender, server.address(), "a").await;
    let mut second = event_stream(&mut sender, server.address(), "a").await;
    let replies = text_until(&mut first, "\"id\":2").await;
    text_until(&mut second, "\"id\":2").await;
    for number in 0..3 {
        publish(server.address(), "a", &format!("{{\"n\":{number}}}")).await;
        for body in [&mut first, &mut second] {
            let event = text_until(body, "}\n\n").await;
            assert!(event.contains(&format!("\"data\":{{\"n\":{number}}}")), "{event}");
        }
    }
    // A command by a request of the same connection is answered in its stream.
    let member = |name: &str| {
        let (_, rest) = replies.split_once(&format!("\"{name}\":\"")).expect("a member");
        rest.split('"').next().expect("its value").to_owned()
    };
    let commands = r#"{"id":3,"publish":{"channel":"a","data":"own"}}"#;
    let (session, node) = (member("session"), member("node"));
    let body = serde_json::json!({ "session": session, "node": node, "data": commands });
    let post = request(server.address(), Method::POST, "/emulation");
    let post = post.body(Body::from(body.to_string())).expect("a request");
    sender.ready().await.expect("a connection");
    let response = sender.send_request(post).await.expect("a response");
    assert_eq!(response.status(), StatusCode::NO_CONTENT);
    text_until(&mut first, "\"id\":3").await;
    // A client that drops its stream is gone, and the other one goes on.
    drop(first);
    text_until(&mut second, "own").await;
    publish(server.address(), "a", "\"last\"").await;
    text_until(&mut second, "last").await;
    let ending = tokio::spawn(async move { text_until(&mut second, "\"code\":3001").await });
    server.shutdown().await;
    ending.await.expect("the disconnect push");
}

#[tokio::test]
async fn a_refused_connect_has_its_status_in_a_stream_too() {
    let server = start(|config| {
        streams(config);
        let options = &mut config.uni_sse;
        options.enabled = true;
        options.handler_prefix = "/uni_sse".to_owned();
        options.max_request_body_size = 1000;
        options.connect_code_to_http_response.enabled = true;
        config.client.insecure = false;
    })
    .await;
    let mut sender = connect(&server).await;
    let get = request(server.address(), Method::GET, "/uni_sse").body(Body::empty());
    let response = sender.send_request(get.expect("a request")).await.expect("a response");
    assert_eq!(response.status(), StatusCode::INTERNAL_SERVER_ERROR);
    let body = response.into_body().collect().await.expect("a body").to_bytes();
    assert_eq!(body, "Internal Server Error");
    server.shutdown().await;
}

#[tokio::test]
async fn log_lines_have_the_address_of_the_connection_that_a_stream_is_in() {
    log::keep();
    let server = start(streams).await;
    let socket = TcpStream::connect(server.address()).await.expect("the server listens");
    let field = format!(" address={}", socket.local_addr().expect("connected"));
    let mut sender = connection(socket).await;
    let mut client = websocket(&mut sender, server.address(), &[VERSION]).await.expect("accepted");
    client.subscribe("twice").await;
    client.text(r#"{"id":3,"subscribe":{"channel":"twice"}}"#).await;
    client.text_until("\"code\":105").await;
    let line = log::line_about("twice");
    assert!(line.ends_with(&field), "{line}");
    let mut body = event_stream(&mut sender, server.address(), "unknown:in_a_stream").await;
    text_until(&mut body, "\"code\":102").await;
    let line = log::line_about("unknown:in_a_stream");
    assert!(line.ends_with(&field), "{line}");
    drop((client, body, sender));
    server.shutdown().await;
}

#[tokio::test]
async fn a_host_that_differs_from_the_authority_is_malformed() {
    let server = start(cleartext).await;
    let mut sender = connect(&server).await;
    let address = server.address();
    for (host, status) in [
        (address.to_string(), StatusCode::NOT_FOUND),
        ("other.example".to_owned(), StatusCode::BAD_REQUEST),
    ] {
        let request = request(address, Method::GET, "/nothing").header("host", host);
        sender.ready().await.expect("a connection");
        let response = sender.send_request(request.body(Body::empty()).expect("a request")).await;
        assert_eq!(response.expect("a response").status(), status);
    }
    server.shutdown().await;
}

/// RFC 9113 §5.4.2: a page that is left resets its requests, and others of the connection go on.
#[tokio::test]
async fn as_many_streams_as_there_may_be_are_reset_at_once_and_the_connection_goes_on() {
    let server = start(cleartext).await;
    let head = [0x82, 0x86, 0x84, 0x41, 1, b'a']; // GET, http, /, an authority (RFC 7541 §A, §6.2.1)
    let frame = |kind: u8, stream: u32, payload: &[u8]| {
        let flags = if kind == 1 { 0x5 } else { 0 }; // END_STREAM and END_HEADERS
        let length = payload.len() as u8;
        [&[0, 0, length, kind, flags][..], &stream.to_be_bytes(), payload].concat()
    };
    let mut bytes = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec();
    bytes.extend(frame(4, 0, &[]));
    let streams = (0..256).map(|number| 2 * number + 1);
    streams.clone().for_each(|stream| bytes.extend(frame(1, stream, &head)));
    streams.for_each(|stream| bytes.extend(frame(3, stream, &[0, 0, 0, 8])));
    let last = 2 * 256 + 1;
    bytes.extend(frame(1, last, &head));
    let mut socket = TcpStream::connect(server.address()).await.expect("the server listens");
    socket.write_all(&bytes).await.expect("room in the socket");
    loop {
        let mut header = [0; 9];
        socket.read_exact(&mut header).await.expect("the connection goes on");
        let [high, middle, low, kind, _, stream @ ..] = header;
        assert_ne!(kind, 7, "GOAWAY");
        let length = u32::from_be_bytes([0, high, middle, low]);
        let mut payload = vec![0; length as usize];
        socket.read_exact(&mut payload).await.expect("the connection goes on");
        if (kind, u32::from_be_bytes(stream)) == (1, last) {
            break; // its response
        }
    }
    drop(socket);
    server.shutdown().await;
}

/// RFC 9113 §8.2.3.
#[tokio::test]
async fn a_backend_gets_one_field_with_all_cookies() {
    let backend = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let endpoint = format!("http://{}/connect", backend.local_addr().expect("bound"));
    let server = start(|config| {
        streams(config);
        let http_headers = vec!["Cookie".to_owned()];
        let timeout = std::time::Duration::from_secs(60);
        let proxy =
            fanwire_proxy::ProxyOptions { endpoint, timeout, http_headers, ..Default::default() };
        config.client.proxy.connect = Some(proxy);
    })
    .await;
    let mut sender = connect(&server).await;
    let cookies = [("cookie", "a=1"), VERSION, ("cookie", "b=2; c=3"), ("cookie", "d=")];
    let client = websocket(&mut sender, server.address(), &cookies).await;
    let mut client = client.expect("it is accepted");
    client.text("{\"id\":1,\"connect\":{}}").await;
    let (mut call, _) = backend.accept().await.expect("a call");
    let mut bytes = Vec::new();
    while !bytes.windows(4).any(|part| part == b"\r\n\r\n") {
        let length = call.read_buf(&mut bytes).await.expect("a request");
        assert_ne!(length, 0, "a connection without a request");
    }
    let head = String::from_utf8_lossy(&bytes).to_lowercase();
    let cookies: Vec<_> = head.lines().filter(|line| line.starts_with("cookie:")).collect();
    assert_eq!(cookies, ["cookie: a=1; b=2; c=3; d="]);
    drop(call);
    drop((client, sender));
    server.shutdown().await;
}
