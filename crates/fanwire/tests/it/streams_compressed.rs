//! Compressed HTTP streams and event streams, over plain sockets (RFC 1952, RFC 1950, RFC 9110 §12.5.3; protocol §24).
//! In: requests with `Accept-Encoding`, publications, slow readers, stops → out: headers, and bodies as a decoder returns them.
//! Uses the test client, stock zlib and the program gzip; never an SDK or a browser, which tests/interop uses.
//! Changed here: expectations of whole streams. Random ones are in `shard` and `fanout`.

use std::{
    io::Write as _,
    process::{Command, Stdio},
    time::Duration,
};

use fanwire::{Server, config::Config};
use flate2::{Decompress, FlushDecompress, Status};

use crate::client::{Client, fetch, metrics_when, publish, start};

/// The connect request of clients without commands.
const REQUEST: &str = r#"{"subs":{"a":{}}}"#;

const COMMANDS: &str = "{\"id\":1,\"connect\":{}}\n{\"id\":2,\"subscribe\":{\"channel\":\"a\"}}";

fn compressed(config: &mut Config) {
    for (options, path) in [(&mut config.http_stream, "/stream"), (&mut config.sse, "/sse")] {
        options.enabled = true;
        options.handler_prefix = path.to_owned();
        options.max_request_body_size = 1000;
        options.compression = true;
    }
    let unidirectional =
        [(&mut config.uni_http_stream, "/uni_stream"), (&mut config.uni_sse, "/uni_sse")];
    for (options, path) in unidirectional {
        options.enabled = true;
        options.handler_prefix = path.to_owned();
        assert!(options.compression, "it is the default");
    }
    config.client.ping_interval = Duration::from_secs(600);
    config.prometheus.enabled = true;
}

fn post(path: &str, headers: &str) -> String {
    post_commands(path, headers, if path.starts_with("/uni_") { REQUEST } else { COMMANDS })
}

fn post_commands(path: &str, headers: &str, commands: &str) -> String {
    let length = commands.len();
    format!(
        "POST {path} HTTP/1.1\r\nHost: localhost\r\n{headers}Content-Length: {length}\r\n\r\n{commands}"
    )
}

/// A state of a game, of which little changes.
fn state(number: usize) -> String {
    let players = (0..40).map(|at| format!(r#"{{"player":"player {at}","score":{}}}"#, at * 7));
    let players = players.collect::<Vec<_>>().join(",");
    format!(r#"{{"number":{number},"players":[{players}]}}"#)
}

/// A stream, and its decoder.
struct Stream {
    client: Client,
    zlib: Decompress,
    raw: Vec<u8>,
    text: Vec<u8>,
    status: Status,
}

impl Stream {
    async fn open(server: &Server, path: &str, coding: &str) -> Self {
        let headers = format!("Accept-Encoding: {coding}\r\n");
        let client = Client::request(server.address(), &post(path, &headers)).await;
        let head = &client.response;
        let line = format!("\r\nContent-Encoding: {coding}\r\n");
        assert!(head.starts_with("HTTP/1.1 200 ") && head.contains(&line), "{head}");
        assert!(head.contains("\r\nVary: Accept-Encoding\r\n"), "{head}");
        let zlib = match coding {
            "gzip" => Decompress::new_gzip(15),
            _ => Decompress::new(true),
        };
        let (raw, text) = Default::default();
        Self { client, zlib, raw, text, status: Status::Ok }
    }

    /// The plaintext up to `end`, with which it must end: nothing more, and nothing is kept for later.
    async fn text_until(&mut self, end: &str) -> String {
        while !self.text.ends_with(end.as_bytes()) {
            assert!(self.read().await, "the stream ended after {:?}", self.text());
        }
        self.text()
    }

    async fn text_to_the_end(&mut self) -> String {
        while self.read().await {}
        self.text()
    }

    fn text(&mut self) -> String {
        String::from_utf8(std::mem::take(&mut self.text)).expect("text")
    }

    async fn read(&mut self) -> bool {
        let bytes = self.client.read().await;
        let mut left = &bytes[..];
        while !left.is_empty() {
            let before = self.zlib.total_in();
            self.text.reserve(1 << 16);
            let flush = FlushDecompress::Sync;
            let status = self.zlib.decompress_vec(left, &mut self.text, flush);
            self.status = status.expect("a valid stream");
            left = &left[(self.zlib.total_in() - before) as usize..];
        }
        self.raw.extend_from_slice(&bytes);
        !bytes.is_empty()
    }
}

#[tokio::test]
async fn each_event_arrives_when_it_is_published_and_gzip_accepts_the_whole_stream() {
    let server = start(compressed).await;
    let mut streams = Vec::new();
    for (path, coding, first, end) in [
        ("/sse", "gzip", "\ndata: {\"id\":1,", "\"subscribe\":{}}\n\n"),
        ("/sse", "deflate", "\ndata: {\"id\":1,", "\"subscribe\":{}}\n\n"),
        ("/stream", "gzip", "{\"id\":1,", "\"subscribe\":{}}\n"),
        ("/uni_sse", "gzip", "\ndata: {\"connect\":{", "\"}}\n\n"),
        ("/uni_sse", "deflate", "\ndata: {\"connect\":{", "\"}}\n\n"),
        ("/uni_stream", "gzip", "{\"connect\":{", "\"}}\n"),
    ] {
        let mut stream = Stream::open(&server, path, coding).await;
        let text = stream.text_until(end).await;
        assert!(text.starts_with(first), "{text}");
        streams.push((path, stream));
    }
    let mut plain = Client::subscribed(server.address(), "", "a").await;
    for number in 0..20 {
        publish(server.address(), "a", &state(number)).await;
        let push = plain.next_text().await;
        for (path, stream) in &mut streams {
            let bare = push.strip_prefix("{\"push\":").and_then(|it| it.strip_suffix('}'));
            let text = if path.starts_with("/uni_") { bare.expect("a push") } else { &push };
            let is_event = path.ends_with("sse");
            let event = if is_event { format!("data: {text}\n\n") } else { format!("{text}\n") };
            let before = stream.raw.len();
            assert_eq!(stream.text_until(&event[event.len() - 4..]).await, event);
            let bytes = stream.raw.len() - before;
            assert!(number < 2 || bytes < 60, "{path}: event {number} takes {bytes} B");
        }
    }
    server.shutdown().await;
    for (path, mut stream) in streams {
        let end = stream.text_to_the_end().await;
        assert!(end.contains("\"disconnect\":{\"code\":3001,"), "{path}: {end}");
        assert_eq!(stream.status, Status::StreamEnd, "{path}: the trailer is right");
        if stream.raw.starts_with(&[0x1f, 0x8b]) {
            test_with_gzip(&stream.raw);
        }
    }
}

#[tokio::test]
async fn clients_get_a_coding_only_if_they_accept_it_and_are_not_known_to_wait() {
    let server = start(compressed).await;
    let apple = "Accept-Encoding: gzip\r\nUser-Agent: App/1 CFNetwork/1494 Darwin/23.4.0\r\n";
    for headers in ["", "Accept-Encoding: br\r\n", "Accept-Encoding: gzip;q=0, identity\r\n", apple]
    {
        for path in ["/sse", "/stream"] {
            let mut client = Client::request(server.address(), &post(path, headers)).await;
            assert!(!client.response.contains("Content-Encoding"), "{}", client.response);
            assert!(client.response.contains("\r\nVary: Accept-Encoding\r\n"));
            assert!(client.text_until("}}").await.contains("{\"id\":1,\"connect\":"));
        }
    }
    let server = start(|config| {
        compressed(config);
        config.websocket.compression_apple = true;
        config.http_stream.compression = false;
    })
    .await;
    let client = Client::request(server.address(), &post("/sse", apple)).await;
    assert!(client.response.contains("\r\nContent-Encoding: gzip\r\n"), "{}", client.response);
    let client = Client::request(server.address(), &post("/stream", apple)).await;
    assert!(!client.response.contains("Encoding"), "{}", client.response);
}

#[tokio::test]
async fn protobuf_streams_are_compressed_too() {
    let server = start(compressed).await;
    // Command { id: 1, connect: {} } behind its length.
    let commands = "\x04\x08\x01\x22\x00";
    let headers = "Content-Type: application/octet-stream\r\nAccept-Encoding: gzip\r\n";
    let request = post_commands("/stream", headers, commands);
    let client = Client::request(server.address(), &request).await;
    assert!(client.response.contains("Content-Encoding: gzip"), "{}", client.response);
    let (zlib, raw, text) = (Decompress::new_gzip(15), Vec::new(), Vec::new());
    let mut stream = Stream { client, zlib, raw, text, status: Status::Ok };
    while !stream.text.windows(8).any(|part| part == b" Fanwire") {
        assert!(stream.read().await, "the reply names the server");
    }
    let text = String::from_utf8_lossy(&stream.text);
    assert!(text.contains("\u{8}\u{1}*"), "Reply {{ id: 1, connect }}: {text:?}");
}

#[tokio::test]
async fn a_reply_with_missed_publications_is_in_the_window_of_the_next_ones() {
    let server = start(|config| {
        compressed(config);
        let channel = &mut config.channel.without_namespace;
        (channel.history_size, channel.history_ttl) = (5, Duration::from_secs(60));
        channel.force_recovery = true;
    })
    .await;
    let mut first = Stream::open(&server, "/sse", "gzip").await;
    let text = first.text_until("}}\n\n").await;
    let (_, epoch) = text.split_once("\"epoch\":\"").expect("an epoch");
    let epoch = epoch.split('"').next().expect("its value");
    for number in 0..3 {
        publish(server.address(), "a", &state(number)).await;
        first.text_until("}}}\n\n").await;
    }
    let commands = format!(
        "{{\"id\":1,\"connect\":{{}}}}\n{{\"id\":2,\"subscribe\":{{\"channel\":\"a\",\"recover\":true,\"epoch\":\"{epoch}\"}}}}"
    );
    let request = post_commands("/sse", "Accept-Encoding: gzip\r\n", &commands);
    let client = Client::request(server.address(), &request).await;
    let (zlib, raw, text) = (Decompress::new_gzip(15), Vec::new(), Vec::new());
    let mut second = Stream { client, zlib, raw, text, status: Status::Ok };
    let reply = second.text_until("}}\n\n").await;
    assert!(reply.contains("\"recovered\":true") && reply.contains("player 39"), "{reply}");
    let before = second.raw.len();
    publish(server.address(), "a", &state(3)).await;
    let event = second.text_until("}}}\n\n").await;
    assert!(event.contains("{\"number\":3,"), "{event}");
    let bytes = second.raw.len() - before;
    assert!(bytes < 130, "{bytes} B, as the reply has the publication before");
}

#[tokio::test]
async fn ids_take_few_bytes_and_missed_events_are_in_the_window_too() {
    let server = start(|config| {
        compressed(config);
        let channel = &mut config.channel.without_namespace;
        (channel.history_size, channel.history_ttl) = (50, Duration::from_secs(60));
        channel.force_recovery = true;
        config.uni_sse.connect_code_to_http_response.enabled = true;
    })
    .await;
    let mut first = Stream::open(&server, "/uni_sse", "gzip").await;
    let text = first.text_until("\n\n").await;
    let (_, epoch) = text.split_once("\nid: 0.").expect("an id");
    let epoch = epoch.split('\n').next().expect("its epoch").to_owned();
    for number in 1..=30 {
        let before = first.raw.len();
        publish(server.address(), "a", &state(number)).await;
        let event = first.text_until(&format!("}}}}\nid: {number}.{epoch}\n\n")).await;
        assert!(event.starts_with("data: {\"channel\":\"a\",\"pub\":"), "{event}");
        let bytes = first.raw.len() - before;
        assert!(number < 4 || bytes < 60, "event {number} takes {bytes} B");
    }
    let headers = format!("Accept-Encoding: gzip\r\nLast-Event-ID: 28.{epoch}\r\n");
    let request = post_commands("/uni_sse", &headers, REQUEST);
    let client = Client::request(server.address(), &request).await;
    assert!(client.response.contains("\r\nContent-Encoding: gzip\r\n"), "{}", client.response);
    let (zlib, raw, text) = (Decompress::new_gzip(15), Vec::new(), Vec::new());
    let mut second = Stream { client, zlib, raw, text, status: Status::Ok };
    let missed = second.text_until(&format!("\nid: 30.{epoch}\n\n")).await;
    let ids = missed.lines().filter_map(|line| line.strip_prefix("id: ")).collect::<Vec<_>>();
    assert_eq!(ids, [28, 29, 30].map(|offset| format!("{offset}.{epoch}")));
    let before = second.raw.len();
    publish(server.address(), "a", &state(31)).await;
    second.text_until(&format!("\nid: 31.{epoch}\n\n")).await;
    let bytes = second.raw.len() - before;
    assert!(bytes < 130, "{bytes} B, as the client has the publication before");
    let refused = post_commands("/uni_sse", "Accept-Encoding: gzip\r\n", r#"{"token":"x"}"#);
    let refused = Client::request(server.address(), &refused).await;
    assert!(refused.response.starts_with("HTTP/1.1 500 "), "{}", refused.response);
    assert!(!refused.response.contains("Content-Encoding"), "{}", refused.response);
}

#[tokio::test]
async fn a_stream_that_is_not_read_ends_and_others_get_everything() {
    let server = start(|config| {
        compressed(config);
        config.client.queue_max_size = 64 * 1024;
        // On a slow machine its end would come from there.
        config.websocket.write_timeout = Duration::from_secs(60);
    })
    .await;
    let address = server.address();
    let mut stopped = Stream::open(&server, "/sse", "gzip").await;
    stopped.text_until("\"subscribe\":{}}\n\n").await;
    let mut reader = Stream::open(&server, "/stream", "gzip").await;
    reader.text_until("\"subscribe\":{}}\n").await;
    let mut published = 0;
    // Its entry stays until it has read the last message.
    let is_slow = |line: &str| line.contains("code=\"3008\"") && line.ends_with(" 1");
    while !fetch(address, "/metrics").await.lines().any(is_slow) {
        published += 1;
        assert!(published < 10_000, "the stopped reader is still there");
        publish(address, "a", &noise(published)).await;
        reader.text_until("}}}\n").await;
    }
    publish(address, "a", "\"last\"").await;
    assert!(reader.text_until("}}}\n").await.contains("\"last\""));
    let end = stopped.text_to_the_end().await;
    assert!(end.ends_with("\"}}}\n\n") && end.contains("\"code\":3008,"), "the last message");
    assert_ne!(stopped.status, Status::StreamEnd, "no trailer could be right");
}

#[tokio::test]
async fn deliveries_are_counted_by_kind() {
    let server = start(compressed).await;
    let mut stream = Stream::open(&server, "/sse", "gzip").await;
    stream.text_until("\"subscribe\":{}}\n\n").await;
    for number in 0..10 {
        publish(server.address(), "a", &state(number)).await;
        stream.text_until("}}}\n\n").await;
    }
    let counted = |page: &str, kind: &str, deliveries: usize| {
        page.lines().any(|line| {
            line.starts_with("fanwire_compression_deliveries_total{")
                && line.contains(&format!("kind=\"{kind}\""))
                && line.ends_with(&format!(" {deliveries}"))
        })
    };
    metrics_when(server.address(), |page| {
        // The first two have nothing to refer to, the last five four publications each.
        counted(page, "standalone", 2) && counted(page, "newest", 1) && counted(page, "several", 5)
    })
    .await;
}

/// A string of 30,000 characters that take most of their bytes also when they are compressed.
fn noise(seed: usize) -> String {
    let mut state = seed as u64 | 1;
    let mut letter = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        char::from(b'0' + (state >> 58) as u8)
    };
    let letters = (0..30_000).map(|_| letter()).filter(|letter| *letter != '\\');
    format!("\"{}\"", letters.collect::<String>())
}

/// Checks a stream with the program that everyone has.
fn test_with_gzip(stream: &[u8]) {
    let program = Command::new("gzip").arg("-t").stdin(Stdio::piped()).spawn();
    let Ok(mut program) = program else {
        return println!("NOT RUN: gzip -t: the program is missing");
    };
    program.stdin.take().expect("piped").write_all(stream).expect("it reads");
    assert!(program.wait().expect("it ends").success(), "gzip -t");
}
