//! The opening handshake of a WebSocket client (RFC 6455 §4.1, RFC 7692 §7.1).
//! In: path and whether compression is wanted → the request; the server's bytes → what was agreed.
//! Pure. Never touches a socket.
//! Changed here: what is offered and accepted; what follows from it lives in `connection`.

use anyhow::{Result, bail, ensure};

/// Result of the negotiation of permessage-deflate.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CompressionAgreement {
    Raw,
    /// `server_no_context_takeover`: each message stands alone.
    Standalone,
    /// The server may refer back to earlier messages.
    Context,
}

/// The upgrade request; `compression` offers permessage-deflate as browsers do.
pub fn request(host: &str, path: &str, compression: bool) -> Vec<u8> {
    let extension = if compression {
        "Sec-WebSocket-Extensions: permessage-deflate; client_max_window_bits\r\n"
    } else {
        ""
    };
    format!(
        "GET {path} HTTP/1.1\r\nHost: {host}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
         Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: {KEY}\r\n{extension}\r\n"
    )
    .into_bytes()
}

/// The agreement and the length of the answer, `None` when it is not complete yet.
///
/// # Errors
/// Any answer but 101 with the right `Sec-WebSocket-Accept`; the message carries the answer.
pub fn answer(bytes: &[u8]) -> Result<Option<(CompressionAgreement, usize)>> {
    let Some(end) = bytes.windows(4).position(|window| window == b"\r\n\r\n") else {
        ensure!(bytes.len() < HEAD_BYTES_MAX, "the upgrade was refused: {}", first_line(bytes));
        return Ok(None);
    };
    let head = std::str::from_utf8(&bytes[..end])?;
    let value = |name: &str| {
        let mut fields = head.lines().skip(1).filter_map(|line| line.split_once(':'));
        fields.find(|(field, _)| field.eq_ignore_ascii_case(name)).map(|(_, value)| value.trim())
    };
    if !head.starts_with("HTTP/1.1 101 ") || value("Sec-WebSocket-Accept") != Some(ACCEPT) {
        let body = first_line(&bytes[end + 4..]);
        bail!("the upgrade was refused: {} {body}", first_line(bytes));
    }
    let agreement = match value("Sec-WebSocket-Extensions") {
        None => CompressionAgreement::Raw,
        Some(value) if value.contains("server_no_context_takeover") => {
            CompressionAgreement::Standalone
        }
        Some(_) => CompressionAgreement::Context,
    };
    Ok(Some((agreement, end + 4)))
}

fn first_line(bytes: &[u8]) -> String {
    let line = bytes.split(|byte| *byte == b'\r' || *byte == b'\n').next().unwrap_or_default();
    line[..line.len().min(LINE_BYTES_SHOWN)].escape_ascii().to_string()
}

/// A longer head is none.
const HEAD_BYTES_MAX: usize = 64 << 10;
const LINE_BYTES_SHOWN: usize = 200;

/// The key of the example in RFC 6455 §1.3, so that its accept value is known without SHA-1.
pub const KEY: &str = "dGhlIHNhbXBsZSBub25jZQ==";
pub const ACCEPT: &str = "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=";

#[cfg(test)]
mod tests;
