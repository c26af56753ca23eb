//! A client of the JSON protocol over a blocking socket, without compression.
//! In: commands → out: their results, and the pushes between them.
//! Uses std and serde_json. Never: `fanwire-ws`, so that a mistake there cannot hide here.
//! What is said is decided in `started.rs`.

use std::collections::VecDeque;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::time::Instant;

use serde_json::{Value, json};

use super::PATIENCE;

pub(crate) struct ChatClient {
    socket: BufReader<TcpStream>,
    id: u64,
    /// Longer than a conversation takes.
    until: Instant,
    pushes: VecDeque<Value>,
    /// Replies and pushes that came with the last one that was read.
    lines: VecDeque<Value>,
}

/// Asks for a WebSocket; the status of the answer, and the socket behind it.
pub(crate) fn handshake(address: &str, origin: &str) -> (u16, BufReader<TcpStream>) {
    let mut socket = TcpStream::connect(address).expect("the server listens");
    socket.set_read_timeout(Some(PATIENCE)).expect("a timeout");
    write!(
        socket,
        "GET /connection/websocket HTTP/1.1\r\nHost: {address}\r\nOrigin: {origin}\r\nUpgrade: websocket\r\n\
         Connection: Upgrade\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n"
    )
    .expect("the server reads");
    let mut socket = BufReader::new(socket);
    let mut lines = Vec::new();
    while lines.last().is_none_or(|line: &String| line != "\r\n") {
        let mut line = String::new();
        assert!(socket.read_line(&mut line).expect("a line") > 0, "the answer has an end");
        lines.push(line);
    }
    (lines[0][9..12].parse().expect("a status"), socket)
}

impl ChatClient {
    pub(crate) fn open(address: &str, origin: &str) -> Self {
        let (status, socket) = handshake(address, origin);
        assert_eq!(status, 101);
        let until = Instant::now() + PATIENCE;
        Self { socket, id: 0, until, pushes: VecDeque::new(), lines: VecDeque::new() }
    }

    /// The result of a command, which must succeed.
    pub(crate) fn ask(&mut self, method: &str, parameters: &Value) -> Value {
        let mut reply = self.reply(method, parameters);
        assert!(reply["error"].is_null(), "{method}: {reply}");
        reply[method].take()
    }

    /// The whole reply to a command.
    pub(crate) fn reply(&mut self, method: &str, parameters: &Value) -> Value {
        self.id += 1;
        self.send(&json!({ "id": self.id, method: parameters }).to_string());
        loop {
            let line = self.next();
            if line["id"] == self.id {
                return line;
            }
            self.pushes.push_back(line);
        }
    }

    /// Waits for a push to `channel` that is the expected one; those before it are dropped.
    pub(crate) fn pushed(&mut self, channel: &str, is_expected: impl Fn(&Value) -> bool) {
        loop {
            let line = self.pushes.pop_front().unwrap_or_else(|| self.next());
            if line["push"]["channel"] == channel && is_expected(&line["push"]) {
                return;
            }
        }
    }

    /// The next reply or push; pings are answered.
    fn next(&mut self) -> Value {
        loop {
            match self.lines.pop_front() {
                Some(line) if line == json!({}) => {
                    assert!(Instant::now() < self.until, "what is waited for does not come");
                    self.send("{}");
                }
                Some(line) => return line,
                None => {
                    let message = self.message();
                    let lines =
                        message.lines().map(|line| serde_json::from_str(line).expect("JSON"));
                    self.lines.extend(lines);
                }
            }
        }
    }

    /// The payload of the next frame, which must be a text message (RFC 6455 §5.2).
    fn message(&mut self) -> String {
        let [head, length] = self.bytes();
        let length = match length {
            126 => u64::from(u16::from_be_bytes(self.bytes())),
            127 => u64::from_be_bytes(self.bytes()),
            short => u64::from(short),
        };
        let mut payload = vec![0; usize::try_from(length).expect("a length")];
        self.socket.read_exact(&mut payload).expect("a whole frame");
        let text = String::from_utf8_lossy(&payload).into_owned();
        assert_eq!(head, 0x81, "not a text message: {text}");
        text
    }

    fn bytes<const COUNT: usize>(&mut self) -> [u8; COUNT] {
        let mut bytes = [0; COUNT];
        self.socket.read_exact(&mut bytes).expect("a frame in time");
        bytes
    }

    /// One masked text frame of less than 64 KiB; a mask of zeros leaves the bytes as they are.
    fn send(&mut self, text: &str) {
        let mut frame = vec![0x81];
        match u8::try_from(text.len()) {
            Ok(length) if length < 126 => frame.push(0x80 | length),
            _ => {
                let length = u16::try_from(text.len()).expect("a short command");
                frame.push(0x80 | 126);
                frame.extend_from_slice(&length.to_be_bytes());
            }
        }
        frame.extend_from_slice(&[0; 4]);
        frame.extend_from_slice(text.as_bytes());
        self.socket.get_mut().write_all(&frame).expect("the server reads");
    }
}
