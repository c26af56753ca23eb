//! Unidirectional transports over plain sockets (protocol §25): one connect request, then bare pushes.
//! In: requests, good and bad → out: statuses, frames and bodies, and how they end.
//! Uses the test client; never an SDK: tests/interop has other clients of these transports.
//! Changed here: what the tests share. Each transport, and refused connects, have a file.

mod refusals;
mod resume;
mod streams;
mod websocket;

use std::{net::SocketAddr, time::Duration};

use fanwire::{
    Builder, ConnectEvent, ConnectGrant, Disconnect, Hooks, ProtocolError, Rejection, Server,
    config::Config,
};

use crate::client::Client;

/// Paths of one word, and no pings.
fn unidirectional(config: &mut Config) {
    config.uni_websocket.enabled = true;
    config.uni_websocket.handler_prefix = "/websocket".to_owned();
    for (options, path) in [(&mut config.uni_sse, "/sse"), (&mut config.uni_http_stream, "/stream")]
    {
        options.enabled = true;
        options.handler_prefix = path.to_owned();
        options.max_request_body_size = 9000;
    }
    config.client.ping_interval = Duration::from_secs(600);
    config.prometheus.enabled = true;
}

/// A server whose connect hook is told by `data` what to decide: `"109"` is an error, `"4000"` a disconnect, `"expire"` a
/// connection that expires in a second; anything else is granted.
async fn start_with_hook(change: impl FnOnce(&mut Config)) -> Server {
    let mut config = Config::default();
    config.http_server.address = "127.0.0.1".to_owned();
    config.http_server.port = 0;
    config.http_api.key = "key".into();
    config.shards = 2;
    config.client.expired_close_delay = Duration::ZERO;
    let open = &mut config.channel.without_namespace;
    (open.allow_subscribe_for_client, open.allow_subscribe_for_anonymous) = (true, true);
    unidirectional(&mut config);
    change(&mut config);
    let decide = |event: ConnectEvent| async move {
        let text = String::from_utf8_lossy(&event.data);
        let text = text.trim_matches('"');
        match text.parse() {
            Ok(code @ 3000..) => {
                Err(Rejection::Disconnect(Disconnect { code, reason: "said the hook".into() }))
            }
            Ok(code) => {
                let message = "said the hook".to_owned();
                Err(ProtocolError { code: code.into(), message, temporary: false }.into())
            }
            Err(_) if text == "expire" => {
                let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
                let expire_at = Some(now.expect("after 1970").as_secs() + 2);
                Ok(Some(ConnectGrant { expire_at, ..ConnectGrant::default() }))
            }
            Err(_) => Ok(Some(ConnectGrant::default())),
        }
    };
    Builder::new(config).hooks(Hooks::new().connect(decide)).start().await.expect("a free port")
}

fn post(path: &str, headers: &str, body: &str) -> String {
    let length = body.len();
    format!(
        "POST {path} HTTP/1.1\r\nHost: localhost\r\n{headers}Content-Length: {length}\r\n\r\n{body}"
    )
}

/// A GET with this connect request in the query.
fn get(path: &str, headers: &str, request: &str) -> String {
    format!("GET {path}?{} HTTP/1.1\r\nHost: localhost\r\n{headers}\r\n", query(request))
}

fn query(request: &str) -> String {
    let request = request.replace('%', "%25").replace('{', "%7B").replace('"', "%22");
    format!("cf_connect={}", request.replace('}', "%7D").replace('$', "%24").replace(' ', "+"))
}

/// Opens a unidirectional WebSocket; `query` is "" or begins with `?`.
async fn websocket(address: SocketAddr, query: &str, headers: &str) -> Client {
    let client = Client::request(address, &upgrade(query, headers)).await;
    assert!(client.response.starts_with("HTTP/1.1 101 "), "{}", client.response);
    client
}

fn upgrade(query: &str, headers: &str) -> String {
    format!(
        "GET /websocket{query} HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
         Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n{headers}\r\n"
    )
}

/// Each transport with this connect request: the bytes before a push, and those after it.
async fn each_stream(server: &Server, request: &str) -> [(Client, &'static str, &'static str); 3] {
    let address = server.address();
    [
        (Client::request(address, &get("/sse", "", request)).await, "data: ", "\n\n"),
        (Client::request(address, &post("/sse", "", request)).await, "data: ", "\n\n"),
        (Client::request(address, &post("/stream", "", request)).await, "", "\n"),
    ]
}

/// The value of a member of a connect push, which is a text.
fn member<'a>(push: &'a str, name: &str) -> &'a str {
    let (_, rest) = push.split_once(&format!("\"{name}\":\"")).expect("a member");
    rest.split('"').next().expect("its value")
}

/// Subscribes user "" to a channel through the server API; returns the body of the response.
async fn api(address: SocketAddr, method: &str, body: &str) -> String {
    let headers = "X-API-Key: key\r\nConnection: close\r\n";
    let request = post(&format!("/api/{method}"), headers, body);
    Client::request(address, &request).await.text_to_the_end().await
}

const DISCONNECT_3001: &str = r#"{"disconnect":{"code":3001,"reason":"shutdown"}}"#;
