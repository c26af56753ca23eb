//! Messages of one stream of the client protocol: a WebSocket, an HTTP stream, SSE.
//! In: an upgraded connection or the body of a response → out: one message after the other, or how the stream ended.
//! Uses frames of the load generator's client, because a checker must not share the server's code. Never: requests.
//! A transport is added here; what its messages mean is decided in `probe`.

use bytes::Bytes;
use fanwire_load::generator::frame;
use http_body_util::BodyExt as _;
use hyper::body::Incoming;
use hyper::upgrade::Upgraded;
use hyper_util::rt::TokioIo;
use serde_json::Value;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

pub(crate) struct MessageStream {
    source: MessageSource,
    /// Bytes of a message whose end has not come.
    partial: Vec<u8>,
}

enum MessageSource {
    WebSocket(TokioIo<Upgraded>),
    /// Messages are lines, those of SSE with `data: `.
    Body(Incoming),
}

impl MessageStream {
    pub(crate) fn of_websocket(upgraded: Upgraded) -> Self {
        Self { source: MessageSource::WebSocket(TokioIo::new(upgraded)), partial: Vec::new() }
    }

    pub(crate) fn of_body(body: Incoming) -> Self {
        Self { source: MessageSource::Body(body), partial: Vec::new() }
    }

    pub(crate) fn is_websocket(&self) -> bool {
        matches!(self.source, MessageSource::WebSocket(_))
    }

    /// Sends a message; the answer of a stream that cannot is ignored, because its end is seen by the next read.
    pub(crate) async fn send(&mut self, message: &str) {
        if let MessageSource::WebSocket(socket) = &mut self.source {
            let mut bytes = Vec::new();
            frame::encode_masked(frame::TEXT, message.as_bytes(), &mut bytes);
            let _ = socket.write_all(&bytes).await;
            let _ = socket.flush().await;
        }
    }

    /// Waits for the next message.
    ///
    /// # Errors
    /// The end of the stream: a code of the server, or `None`.
    pub(crate) async fn next(&mut self) -> Result<String, Option<(u64, String)>> {
        loop {
            let message = match &self.source {
                MessageSource::WebSocket(_) => front_frame(&mut self.partial)?,
                MessageSource::Body(_) => front_line(&mut self.partial),
            };
            match message {
                Some(text) => match disconnect(&text) {
                    Some(end) => return Err(Some(end)),
                    None => return Ok(text),
                },
                None if self.partial.len() > MESSAGE_BYTES_MAX => return Err(None),
                None => self.read().await?,
            }
        }
    }

    async fn read(&mut self) -> Result<(), Option<(u64, String)>> {
        let bytes = match &mut self.source {
            MessageSource::WebSocket(socket) => {
                let mut buffer = [0; 4096];
                let length = socket.read(&mut buffer).await.unwrap_or(0);
                Bytes::copy_from_slice(&buffer[..length])
            }
            MessageSource::Body(body) => match body.frame().await {
                Some(Ok(frame)) => frame.into_data().unwrap_or_default(),
                _ => Bytes::new(),
            },
        };
        self.partial.extend_from_slice(&bytes);
        if bytes.is_empty() { Err(None) } else { Ok(()) }
    }
}

/// The text of the first frame with a message; an end is a close frame, or what is no frame.
fn front_frame(partial: &mut Vec<u8>) -> Result<Option<String>, Option<(u64, String)>> {
    while let Some((first, length)) = frame::front(partial).map_err(|_| None)? {
        let opcode = first.opcode;
        let payload = first.payload.to_vec();
        partial.drain(..length);
        match (opcode, &payload[..]) {
            (frame::TEXT, text) => return Ok(Some(String::from_utf8_lossy(text).into_owned())),
            // Below 3000 proxies send codes, too.
            (frame::CLOSE, [high, low, reason @ ..]) if *high >= 0x0b => {
                let code = u64::from(u16::from_be_bytes([*high, *low]));
                return Err(Some((code, String::from_utf8_lossy(reason).into_owned())));
            }
            (frame::CLOSE, _) => return Err(None),
            _ => {}
        }
    }
    Ok(None)
}

fn front_line(partial: &mut Vec<u8>) -> Option<String> {
    while let Some(end) = partial.iter().position(|byte| *byte == b'\n') {
        let line: Vec<u8> = partial.drain(..=end).collect();
        let line = String::from_utf8_lossy(line.trim_ascii()).into_owned();
        let line = line.strip_prefix("data: ").unwrap_or(&line);
        if !line.is_empty() {
            return Some(line.to_owned());
        }
    }
    None
}

/// The code and the reason of a disconnect push, which ends streams without frames.
fn disconnect(message: &str) -> Option<(u64, String)> {
    let message: Value = serde_json::from_str(message).ok()?;
    let disconnect = &message["push"]["disconnect"];
    let reason = disconnect["reason"].as_str().unwrap_or_default();
    Some((disconnect["code"].as_u64()?, reason.to_owned()))
}

/// More without an end is no message of a doctor's connection.
const MESSAGE_BYTES_MAX: usize = 64 << 10;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_and_events_are_messages() {
        let mut partial = b"\r\ndata: {\"id\":1}\n\n{}\n{\"half".to_vec();
        assert_eq!(front_line(&mut partial).as_deref(), Some("{\"id\":1}"));
        assert_eq!(front_line(&mut partial).as_deref(), Some("{}"));
        assert_eq!(front_line(&mut partial), None);
        assert_eq!(partial, b"{\"half");
    }

    #[test]
    fn a_close_frame_has_the_code_of_the_server_or_none() {
        let close = |payload: &[u8]| {
            let mut bytes = vec![0x88, payload.len() as u8];
            bytes.extend_from_slice(payload);
            front_frame(&mut bytes).expect_err("the end")
        };
        assert_eq!(close(b"\x0b\xb9shutdown"), Some((3001, "shutdown".to_owned())));
        assert_eq!(close(b"\x03\xe9"), None, "1001 comes from proxies, too");
        assert_eq!(close(b""), None);
        assert_eq!(front_frame(&mut vec![0xff, 0xff]), Err(None));
        let mut text = b"\x8a\x00\x81\x02{}\x81".to_vec();
        assert_eq!(front_frame(&mut text), Ok(Some("{}".to_owned())));
        assert_eq!(front_frame(&mut text), Ok(None));
    }

    #[test]
    fn a_disconnect_push_is_an_end() {
        let push = r#"{"push":{"disconnect":{"code":3500,"reason":"invalid token"}}}"#;
        assert_eq!(disconnect(push), Some((3500, "invalid token".to_owned())));
        assert_eq!(disconnect("{}"), None);
        assert_eq!(disconnect("<html>"), None);
    }
}
