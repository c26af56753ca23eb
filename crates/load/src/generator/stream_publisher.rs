//! The publisher of a stream: one long request to `POST /api/stream`.
//! In: channels and data → out: chunks of lines; answers are checked, in their order, and counted.
//! Uses one nonblocking socket, which its owner polls.
//! Changed here: how a publication is written into a stream; what it contains is the scenario's business.

use anyhow::{Context, Result, bail, ensure};
use std::io::ErrorKind;

use super::publisher::send;
use super::tls::{self, PlainOrTls};
use crate::address::ServerAddress;

/// One long request with chunks of lines.
pub struct StreamPublisher {
    socket: Box<dyn PlainOrTls>,
    /// Bytes that are not sent yet.
    pending: Vec<u8>,
    missing: usize,
    next_id: u64,
    /// The beginning of an answer.
    partial: Vec<u8>,
}

impl StreamPublisher {
    /// Connects and sends the head of the request.
    ///
    /// # Errors
    /// No server listens, or the TLS handshake fails.
    pub fn open(
        address: impl Into<ServerAddress>,
        host: &str,
        path: &str,
        key: &str,
    ) -> Result<Self> {
        let socket = tls::connect(&address.into(), |_| Ok(()))?;
        let head = format!(
            "POST {path} HTTP/1.1\r\nHost: {host}\r\nX-API-Key: {key}\r\nTransfer-Encoding: chunked\r\n\r\n"
        );
        let pending = head.into_bytes();
        let mut stream = Self { socket, pending, missing: 0, next_id: 0, partial: Vec::new() };
        // Fanwire decides by the first bytes which thread serves a connection, and waits for them for a second.
        stream.flush()?;
        Ok(stream)
    }

    /// Sends a publication for each channel, in one chunk; `field` has the data.
    ///
    /// # Errors
    /// The socket has failed.
    pub fn publish(&mut self, channels: impl Iterator<Item = String>, field: &str) -> Result<()> {
        let request = |channel| format!("{{\"channel\":\"{channel}\",{field}}}");
        self.publish_all(channels.map(request))
    }

    /// Sends publish requests (JSON objects) in one chunk; what the socket does not take is sent by `flush`.
    ///
    /// # Errors
    /// The socket has failed.
    pub fn publish_all(&mut self, requests: impl Iterator<Item = String>) -> Result<()> {
        let mut lines = String::new();
        for request in requests {
            let id = self.next_id;
            lines += &format!("{{\"id\":{id},\"publish\":{request}}}\n");
            self.next_id = id + 1;
            self.missing += 1;
        }
        self.pending.extend(format!("{:x}\r\n{lines}\r\n", lines.len()).into_bytes());
        self.flush()
    }

    /// Sends what the socket did not take before.
    ///
    /// # Errors
    /// The socket has failed.
    pub fn flush(&mut self) -> Result<()> {
        send(&mut self.socket, &mut self.pending).context("publishing")
    }

    /// Answers that have not arrived.
    pub fn missing(&self) -> usize {
        self.missing
    }

    /// Reads the answers that are there; between two of them may be the limits of chunks.
    ///
    /// # Errors
    /// An answer out of order, an error, or the end of the stream.
    pub fn receive(&mut self) -> Result<()> {
        let mut buffer = [0; 1 << 16];
        match self.socket.read(&mut buffer) {
            Ok(0) => bail!("the server ended the stream"),
            Ok(count) => self.partial.extend_from_slice(&buffer[..count]),
            Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
            Err(error) => return Err(error).context("reading answers"),
        }
        while let Some(end) = self.partial.iter().position(|byte| *byte == b'\n') {
            let line: Vec<u8> = self.partial.drain(..=end).collect();
            if line.starts_with(b"HTTP/1.1 ") && !line.starts_with(b"HTTP/1.1 200 ") {
                bail!("the API answers {}", String::from_utf8_lossy(&line).trim_end());
            }
            if line.starts_with(b"{") {
                let first = self.next_id - self.missing as u64;
                let expected = format!("{{\"id\":{first},\"publish\":{{");
                let text = String::from_utf8_lossy(&line);
                ensure!(text.starts_with(&expected), "the answer {text} instead of {expected}");
                self.missing -= 1;
            }
        }
        Ok(())
    }
}
