//! A minimal WebSocket client for tests; the test controls every byte (RFC 6455).
//! In: frames to send → out: frames received.
//! Uses tokio's sockets and zlib-rs; never the crate `ws`, whose errors it must find.
//! Changed here: the client. The messages are in the tests.

use std::{
    net::SocketAddr,
    time::{Duration, Instant},
};

use fanwire::{Server, config::Config};
use fanwire_deflate::Inflater;
use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt},
    net::TcpStream,
};

/// A received frame: first header byte, payload.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Received {
    pub(crate) head: u8,
    pub(crate) payload: Vec<u8>,
}

pub(crate) struct Client<S = TcpStream> {
    pub(crate) socket: S,
    pub(crate) response: String,
    buffer: Vec<u8>,
}

/// A server on a free port, with changes to the configuration.
pub(crate) async fn start(change: impl FnOnce(&mut Config)) -> Server {
    let mut config = Config::default();
    config.http_server.address = "127.0.0.1".to_owned();
    config.http_server.port = 0;
    config.client.insecure = true;
    config.http_api.key = "key".into();
    config.shards = 2;
    config.websocket.compression_verify = true;
    change(&mut config);
    Server::start(config).await.expect("a free port is free")
}

impl Client {
    /// Opens a WebSocket; `headers` are more header lines, each with its CRLF.
    pub(crate) async fn open(address: SocketAddr, headers: &str) -> Self {
        let client = Self::request(address, &upgrade_request(&address.to_string(), headers)).await;
        assert!(client.response.starts_with("HTTP/1.1 101 "), "{}", client.response);
        client
    }

    /// Sends a request and reads the head of the response.
    pub(crate) async fn request(address: SocketAddr, request: &str) -> Self {
        Self::raw_request(address, request.as_bytes()).await
    }

    /// Like [`Client::request`], with arbitrary bytes.
    pub(crate) async fn raw_request(address: SocketAddr, request: &[u8]) -> Self {
        Self::over(TcpStream::connect(address).await.expect("the server listens"), request).await
    }

    /// Connects a session and subscribes it, in one message of two commands.
    pub(crate) async fn subscribed(address: SocketAddr, headers: &str, channel: &str) -> Self {
        let mut client = Self::open(address, headers).await;
        client.subscribe(channel).await;
        client
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> Client<S> {
    /// A client whose handshake is done.
    pub(crate) fn upgraded(socket: S) -> Self {
        Self { socket, response: String::new(), buffer: Vec::new() }
    }

    /// Sends a request on a connected socket and reads the head of the response.
    pub(crate) async fn over(socket: S, request: &[u8]) -> Self {
        let mut client = Self::upgraded(socket);
        client.raw(request).await;
        loop {
            if let Some(end) = client.buffer.windows(4).position(|window| window == b"\r\n\r\n") {
                let rest = client.buffer.split_off(end + 4);
                client.response =
                    String::from_utf8(std::mem::replace(&mut client.buffer, rest)).unwrap();
                return client;
            }
            assert!(client.fill().await, "the server closed before it answered");
        }
    }

    /// Connects the session and subscribes it, in one message of two commands.
    pub(crate) async fn subscribe(&mut self, channel: &str) {
        self.text(&format!("{{\"id\":1,\"connect\":{{}}}}\n{{\"id\":2,\"subscribe\":{{\"channel\":\"{channel}\"}}}}")).await;
        let replies = self.next_text().await;
        assert!(
            replies.lines().nth(1).is_some_and(|line| line.starts_with("{\"id\":2,\"subscribe\":")),
            "{replies}"
        );
    }

    pub(crate) async fn text(&mut self, text: &str) {
        self.frame(0x81, text.as_bytes()).await;
    }

    /// One masked frame with the given first byte.
    pub(crate) async fn frame(&mut self, head: u8, payload: &[u8]) {
        let mut bytes = vec![head];
        match payload.len() {
            len @ 0..126 => bytes.push(0x80 | len as u8),
            len @ 126..65536 => {
                bytes.push(0x80 | 126);
                bytes.extend_from_slice(&(len as u16).to_be_bytes());
            }
            len => {
                bytes.push(0x80 | 127);
                bytes.extend_from_slice(&(len as u64).to_be_bytes());
            }
        }
        let mask = [0x12, 0x34, 0x56, 0x78];
        bytes.extend_from_slice(&mask);
        bytes.extend(payload.iter().zip(mask.iter().cycle()).map(|(byte, mask)| byte ^ mask));
        self.raw(&bytes).await;
    }

    pub(crate) async fn raw(&mut self, bytes: &[u8]) {
        self.socket.write_all(bytes).await.expect("the server reads");
        self.socket.flush().await.expect("the server reads");
    }

    /// The next frame; `None` at the end of the stream.
    pub(crate) async fn next(&mut self) -> Option<Received> {
        loop {
            if let Some(frame) = self.parse() {
                return Some(frame);
            }
            if !self.fill().await {
                return None;
            }
        }
    }

    pub(crate) async fn next_text(&mut self) -> String {
        let frame = self.next().await.expect("a frame, not the end");
        let text = match frame.head {
            0x81 => frame.payload,
            0xc1 => inflate(&frame.payload),
            _ => panic!("not a text message: {frame:?}"),
        };
        String::from_utf8(text).expect("text is UTF-8")
    }

    /// Reads up to the close frame; returns its code and reason.
    pub(crate) async fn closed(&mut self) -> (u16, String) {
        while let Some(frame) = self.next().await {
            if frame.head == 0x88 {
                let code = u16::from_be_bytes([frame.payload[0], frame.payload[1]]);
                return (code, String::from_utf8(frame.payload[2..].to_vec()).unwrap());
            }
        }
        panic!("the stream ended without a close frame");
    }

    /// Reads a response that goes on up to the first `end` and with it; bytes that are no text are replaced.
    pub(crate) async fn text_until(&mut self, end: &str) -> String {
        loop {
            let found = self.buffer.windows(end.len()).position(|part| part == end.as_bytes());
            if let Some(at) = found {
                let text = self.buffer.drain(..at + end.len()).collect::<Vec<_>>();
                return String::from_utf8_lossy(&text).into_owned();
            }
            let so_far = String::from_utf8_lossy(&self.buffer).into_owned();
            assert!(self.fill().await, "the stream ended after {so_far}");
        }
    }

    /// Everything up to the end of the stream, as text.
    pub(crate) async fn text_to_the_end(mut self) -> String {
        while self.fill().await {}
        String::from_utf8(self.buffer).expect("text")
    }

    /// The next bytes as they come; none at the end of the stream.
    pub(crate) async fn read(&mut self) -> Vec<u8> {
        if self.buffer.is_empty() {
            self.fill().await;
        }
        std::mem::take(&mut self.buffer)
    }

    fn parse(&mut self) -> Option<Received> {
        let (len, start) = match *self.buffer.get(1)? {
            126 => (usize::from(u16::from_be_bytes(self.buffer.get(2..4)?.try_into().ok()?)), 4),
            127 => (u64::from_be_bytes(self.buffer.get(2..10)?.try_into().ok()?) as usize, 10),
            len => (usize::from(len), 2),
        };
        let payload = self.buffer.get(start..start + len)?.to_vec();
        let head = self.buffer[0];
        self.buffer.drain(..start + len);
        Some(Received { head, payload })
    }

    async fn fill(&mut self) -> bool {
        let mut chunk = [0; 16384];
        match self.socket.read(&mut chunk).await {
            Ok(0) | Err(_) => false,
            Ok(count) => {
                self.buffer.extend_from_slice(&chunk[..count]);
                true
            }
        }
    }
}

/// The request of a WebSocket; `headers` are more header lines, each with its CRLF.
pub(crate) fn upgrade_request(host: &str, headers: &str) -> String {
    format!(
        "GET /connection/websocket HTTP/1.1\r\nHost: {host}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
         Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n{headers}\r\n"
    )
}

/// The message inside a standalone compressed frame.
pub(crate) fn inflate(payload: &[u8]) -> Vec<u8> {
    let (mut inflater, mut message) = (Inflater::new(), Vec::new());
    inflater.reset();
    inflater.push(payload, &mut message, 1 << 20).expect("valid deflate data");
    inflater.finish(&mut message, 1 << 20).expect("a whole message");
    message
}

/// Publishes through the HTTP API; returns the body of the response.
pub(crate) async fn publish(address: SocketAddr, channel: &str, data: &str) -> String {
    let body = format!("{{\"channel\":\"{channel}\",\"data\":{data}}}");
    let request = format!(
        "POST /api/publish HTTP/1.1\r\nHost: x\r\nX-API-Key: key\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}",
        body.len()
    );
    Client::request(address, &request).await.text_to_the_end().await
}

/// The text of `GET path`.
pub(crate) async fn fetch(address: SocketAddr, path: &str) -> String {
    let request = format!("GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
    Client::request(address, &request).await.text_to_the_end().await
}

/// Reads metrics until they satisfy a condition: a client may receive a message before its shard has counted it.
pub(crate) async fn metrics_when(address: SocketAddr, is_wanted: impl Fn(&str) -> bool) -> String {
    let give_up = Instant::now() + PATIENCE;
    loop {
        let metrics = fetch(address, "/metrics").await;
        if is_wanted(&metrics) {
            return metrics;
        }
        assert!(Instant::now() < give_up, "{metrics}");
    }
}

const PATIENCE: Duration = Duration::from_secs(20);
