//! Filters of the server over sockets: no byte of a hidden publication reaches a client, on any transport, in context.
//! In: publications of two teams, which differ little → out: what a decoder that starts empty reads of each connection.
//! Uses the test clients, stock zlib; hooks that let every client see the red team.
//! Changed here: expectations over sockets. What a filter lets through is tested in `fanwire-node`.

use std::time::Duration;

use axum::body::Body;
use fanwire::{
    Builder, ChannelGrant, ConnectEvent, ConnectGrant, Hooks, Server, SubscribeEvent,
    SubscribeGrant, config::Config,
};
use fanwire_node::options::RecoveryMode;
use flate2::{Decompress, FlushDecompress};
use http::Request;
use http_body_util::BodyExt;
use hyper::body::Incoming;
use tokio::net::TcpStream;

use crate::{
    client::{Client, upgrade_request},
    http2::connection,
};

const RED: &str = r#"{"key":"team","cmp":"eq","val":"red"}"#;

/// Every transport, with compression, in a channel whose subscribers get the newest publication at once.
fn options(config: &mut Config) {
    for (options, path) in [(&mut config.http_stream, "/stream"), (&mut config.sse, "/sse")] {
        options.enabled = true;
        options.handler_prefix = path.to_owned();
        options.compression = true;
    }
    let streams = [(&mut config.uni_http_stream, "/uni_stream"), (&mut config.uni_sse, "/uni_sse")];
    for (options, path) in streams {
        options.enabled = true;
        options.handler_prefix = path.to_owned();
    }
    config.uni_websocket.enabled = true;
    config.uni_websocket.handler_prefix = "/uni_websocket".to_owned();
    config.uni_websocket.compression = true;
    config.uni_grpc.enabled = true;
    config.uni_grpc.address = "127.0.0.1".to_owned();
    config.uni_grpc.port = 0;
    config.client.ping_interval = Duration::from_secs(600);
    let open = &mut config.channel.without_namespace;
    open.history_size = 20;
    open.history_ttl = Duration::from_secs(600);
    open.force_recovery = true;
    open.force_recovery_mode = RecoveryMode::Cache;
    open.auto_cache_recover = true;
}

async fn start() -> Server {
    let mut config = Config::default();
    config.http_server.address = "127.0.0.1".to_owned();
    config.http_server.port = 0;
    config.http_api.key = "key".into();
    config.shards = 2;
    config.websocket.compression_verify = true;
    options(&mut config);
    let connect = |event: ConnectEvent| async move {
        let channel = |name| {
            let grant = ChannelGrant { server_tags_filter: RED.into(), ..ChannelGrant::default() };
            (name, grant)
        };
        let channels = event.channels.into_iter().map(channel).collect();
        Ok(Some(ConnectGrant { channels, ..ConnectGrant::default() }))
    };
    let subscribe = |_: SubscribeEvent| async {
        Ok(Some(SubscribeGrant { server_tags_filter: RED.into(), ..SubscribeGrant::default() }))
    };
    let hooks = Hooks::new().connect(connect).subscribe(subscribe);
    Builder::new(config).hooks(hooks).start().await.expect("a free port")
}

/// Of all publications the most is equal, so a frame in context refers to the ones before.
fn state(team: &str, number: usize) -> String {
    let rows: Vec<_> = (0..20).map(|at| format!(r#"{{"row":{at},"points":{}}}"#, at * 7)).collect();
    format!(r#"{{"of":"{team} {number}","rows":[{}]}}"#, rows.join(","))
}

async fn publish(server: &Server, team: &str, number: usize) {
    let data = state(team, number);
    let body = format!(r#"{{"channel":"a","data":{data},"tags":{{"team":"{team}"}}}}"#);
    let request = format!(
        "POST /api/publish HTTP/1.1\r\nHost: x\r\nX-API-Key: key\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}",
        body.len()
    );
    let answer = Client::request(server.address(), &request).await.text_to_the_end().await;
    assert!(answer.contains(r#""offset":"#), "{answer}");
}

/// Bytes of a connection as they come.
enum Source {
    WebSocket(Client),
    Body(Client),
    Grpc(Incoming),
}

/// A connection, and what a decoder that starts empty made of it.
struct Subscriber {
    transport: &'static str,
    source: Source,
    decoder: Decompress,
    text: Vec<u8>,
    /// Bytes that the decoder got.
    compressed: usize,
}

impl Subscriber {
    fn new(transport: &'static str, source: Source, decoder: Decompress) -> Self {
        Self { transport, source, decoder, text: Vec::new(), compressed: 0 }
    }

    /// A WebSocket with context takeover. `format` is "" or begins with `?`.
    async fn websocket(server: &Server, transport: &'static str, path: &str, first: &[u8]) -> Self {
        let offer = "Sec-WebSocket-Extensions: permessage-deflate\r\n";
        let request = upgrade_request("localhost", offer).replace("/connection/websocket", path);
        let mut client = Client::request(server.address(), &request).await;
        assert!(client.response.starts_with("HTTP/1.1 101 "), "{}", client.response);
        let is_binary = path.ends_with("protobuf");
        client.frame(if is_binary { 0x82 } else { 0x81 }, first).await;
        Self::new(transport, Source::WebSocket(client), Decompress::new(false))
    }

    /// A response in gzip.
    async fn body(server: &Server, path: &'static str, first: &str) -> Self {
        let request = format!(
            "POST {path} HTTP/1.1\r\nHost: localhost\r\nAccept-Encoding: gzip\r\nContent-Length: {}\r\n\r\n{first}",
            first.len()
        );
        let client = Client::request(server.address(), &request).await;
        assert!(client.response.contains("\r\nContent-Encoding: gzip\r\n"), "{}", client.response);
        Self::new(path, Source::Body(client), Decompress::new_gzip(15))
    }

    async fn grpc(server: &Server, first: &[u8]) -> Self {
        let address = server.uni_grpc_address().expect("it is enabled");
        let mut sender = connection(TcpStream::connect(address).await.expect("it listens")).await;
        let path = "centrifugal.centrifugo.unistream.CentrifugoUniStream/Consume";
        let request = Request::post(format!("http://{address}/{path}"))
            .header("content-type", "application/grpc");
        let body = [&[0, 0, 0, 0, first.len() as u8], first].concat();
        let call = sender.send_request(request.body(Body::from(body)).expect("a request"));
        let body = call.await.expect("a response").into_body();
        Self::new("uni_grpc", Source::Grpc(body), Decompress::new(false))
    }

    /// Reads until the decoded bytes end with those of a publication, and returns all of them.
    async fn read_until(&mut self, end: &str) -> String {
        let is_there = |text: &[u8]| text.windows(end.len()).any(|part| part == end.as_bytes());
        while !is_there(&self.text) {
            self.read().await;
        }
        String::from_utf8_lossy(&self.text).into_owned()
    }

    async fn read(&mut self) {
        let bytes = match &mut self.source {
            Source::WebSocket(client) => {
                let frame = client.next().await.expect("a frame, not the end");
                match frame.head {
                    0x81 | 0x82 => return self.text.extend(frame.payload),
                    _ => [&frame.payload[..], &[0, 0, 0xff, 0xff]].concat(),
                }
            }
            Source::Body(client) => client.read().await,
            Source::Grpc(body) => {
                let frame = body.frame().await.expect("the call goes on").expect("a frame");
                return self.text.extend(frame.into_data().expect("no trailers"));
            }
        };
        assert!(!bytes.is_empty(), "{} ended", self.transport);
        self.compressed += bytes.len();
        let mut left = &bytes[..];
        while !left.is_empty() {
            let before = self.decoder.total_in();
            self.text.reserve(1 << 16);
            let flush = FlushDecompress::Sync;
            self.decoder.decompress_vec(left, &mut self.text, flush).expect("a reference to bytes");
            left = &left[(self.decoder.total_in() - before) as usize..];
        }
    }
}

/// A client of each transport, subscribed to the channel `a`.
async fn subscribers(server: &Server) -> Vec<Subscriber> {
    let commands = "{\"id\":1,\"connect\":{}}\n{\"id\":2,\"subscribe\":{\"channel\":\"a\"}}";
    let uni = r#"{"subs":{"a":{}}}"#;
    // Command { id: 1, connect: {} }, Command { id: 2, subscribe: { channel: "a" } }, each behind its length.
    let binary = b"\x04\x08\x01\x22\x00\x07\x08\x02\x2a\x03\x0a\x01a";
    // ConnectRequest { subs: { "a": {} } }
    let request = b"\x1a\x05\x0a\x01a\x12\x00";
    vec![
        Subscriber::websocket(server, "websocket", "/connection/websocket", commands.as_bytes())
            .await,
        Subscriber::websocket(
            server,
            "websocket with Protobuf",
            "/connection/websocket?format=protobuf",
            binary,
        )
        .await,
        Subscriber::body(server, "/stream", commands).await,
        Subscriber::body(server, "/sse", commands).await,
        Subscriber::websocket(server, "uni_websocket", "/uni_websocket", uni.as_bytes()).await,
        Subscriber::body(server, "/uni_stream", uni).await,
        Subscriber::body(server, "/uni_sse", uni).await,
        Subscriber::grpc(server, request).await,
    ]
}

#[tokio::test]
async fn no_byte_of_a_hidden_publication_arrives_on_any_transport() {
    let server = start().await;
    publish(&server, "red", 0).await;
    publish(&server, "blue", 0).await;
    let mut subscribers = subscribers(&server).await;
    for subscriber in &mut subscribers {
        subscriber.read_until("red 0").await;
    }
    // Pairs of each team: a frame may refer to the one before, and may not where one in between is hidden.
    for number in 1..=12 {
        let team = if number % 4 < 2 { "red" } else { "blue" };
        publish(&server, team, number).await;
    }
    publish(&server, "red", 99).await;
    let expected = [0, 1, 4, 5, 8, 9, 12, 99].map(|number| state("red", number));
    for subscriber in &mut subscribers {
        let last = subscriber.read_until(&expected[7]).await;
        let transport = subscriber.transport;
        assert!(!last.contains("blue"), "{transport}: {last}");
        let is_in_context = subscriber.compressed > 0 && subscriber.compressed < last.len() / 3;
        assert_eq!(
            is_in_context,
            transport != "uni_grpc",
            "{transport}: {}",
            subscriber.compressed
        );
        let mut rest = last.as_str();
        for publication in &expected {
            let (before, after) = rest.split_once(publication.as_str()).unwrap_or_else(|| {
                panic!("{transport}: no {publication} in {rest}");
            });
            assert!(!before.contains(r#""of":"#), "{transport}: {before}");
            rest = after;
        }
    }
    server.shutdown().await;
}
