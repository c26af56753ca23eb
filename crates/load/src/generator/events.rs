//! Server-Sent Events from the client's side (WHATWG HTML §9.2), as a server of the protocol sends them.
//! In: commands → the request; bytes of the response → where its head ends, and one event after the other.
//! Pure. Never touches a socket.
//! Changed here: what is accepted; what follows from a message lives in `connection`.

use anyhow::{Result, bail, ensure};
use std::fmt::Write as _;

use super::SubscriberTransport;

/// The beginning of a response.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Head {
    /// Bytes before the first event, or before the first block of gzip.
    pub length: usize,
    /// The body is compressed with gzip, whose header is part of the length.
    pub is_gzip: bool,
}

/// Fanwire's path by default.
pub fn path(transport: SubscriberTransport) -> &'static str {
    match transport {
        SubscriberTransport::UniEventStream => "/connection/uni_sse",
        _ => "/connection/sse",
    }
}

/// The request that opens a stream with these commands; `compression` accepts gzip.
pub fn request(host: &str, path: &str, commands: &[u8], compression: bool) -> Vec<u8> {
    let mut encoded = String::with_capacity(commands.len() * 3);
    for byte in commands {
        let _ = write!(encoded, "%{byte:02X}"); // never fails
    }
    let accepted = if compression { "Accept-Encoding: gzip\r\n" } else { "" };
    format!("GET {path}?cf_connect={encoded} HTTP/1.1\r\nHost: {host}\r\n{accepted}\r\n")
        .into_bytes()
}

/// The request that answers a ping, for the session of this connect reply; `None` if it is none.
pub fn pong(host: &str, reply: &[u8]) -> Option<Vec<u8>> {
    let reply: serde_json::Value = serde_json::from_slice(reply).ok()?;
    let [session, node] = ["session", "node"].map(|name| reply["connect"][name].as_str());
    let body = serde_json::json!({ "session": session?, "node": node?, "data": "{}" }).to_string();
    let length = body.len();
    let head = format!("POST {UPLINK_PATH} HTTP/1.1\r\nHost: {host}\r\nContent-Length: {length}");
    Some(format!("{head}\r\n\r\n{body}").into_bytes())
}

/// The head of the response, with the header of gzip; `None` when it is not complete yet.
///
/// # Errors
/// Any answer but 200.
pub fn head(bytes: &[u8]) -> Result<Option<Head>> {
    const END: &[u8] = b"\r\n\r\n";
    let Some(end) = bytes.windows(END.len()).position(|window| window == END) else {
        ensure!(bytes.len() < HEAD_BYTES_MAX, "a head without an end");
        return Ok(None);
    };
    let status = bytes.split(|byte| *byte == b'\r').next().unwrap_or_default();
    ensure!(
        status.starts_with(b"HTTP/1.1 200 "),
        "the stream was refused: {}",
        status.escape_ascii()
    );
    let is_gzip = bytes[..end].windows(GZIP.len()).any(|window| window == GZIP);
    let begins = if is_gzip { &GZIP_HEADER[..] } else { b"" };
    let body = &bytes[end + END.len()..];
    if body.len() < begins.len() {
        return Ok(None);
    }
    ensure!(body.starts_with(begins), "no gzip: {}", body[..begins.len()].escape_ascii());
    Ok(Some(Head { length: end + END.len() + begins.len(), is_gzip }))
}

/// The first message of a compressed stream up to the end of its sync flush, and its length; `None` when it is not complete
/// yet. The bytes of the flush may be in a message by accident, but not in a text that is stored.
pub fn front_sealed(bytes: &[u8]) -> Option<(&[u8], usize)> {
    let end = bytes.windows(FLUSH.len()).position(|window| window == FLUSH)? + FLUSH.len();
    Some((&bytes[..end], end))
}

/// Whether the bytes end with a whole message of a compressed stream.
pub fn is_flushed(bytes: &[u8]) -> bool {
    bytes.ends_with(FLUSH)
}

/// The data of the first event, and the length of the event with empty lines before it; `None` when it is not complete
/// yet.
///
/// # Errors
/// Anything but an event with one line of data, and perhaps an id behind it.
pub fn front(bytes: &[u8]) -> Result<Option<(&[u8], usize)>> {
    let Some(end) = bytes.windows(2).position(|window| window == b"\n\n") else { return Ok(None) };
    let event = bytes[..end].trim_ascii_start();
    let (data, id) = match event.iter().position(|byte| *byte == b'\n') {
        Some(at) => (&event[..at], &event[at + 1..]),
        None => (event, &b"id: "[..]),
    };
    match data.strip_prefix(b"data: ") {
        Some(data) if id.starts_with(b"id: ") => Ok(Some((data, end + 2))),
        _ => bail!("no event: {}", bytes[..end.min(100)].escape_ascii()),
    }
}

const UPLINK_PATH: &str = "/emulation";
const HEAD_BYTES_MAX: usize = 16 << 10;
const GZIP: &[u8] = b"\r\nContent-Encoding: gzip";
/// RFC 1952 §2.3, as Fanwire writes it.
const GZIP_HEADER: [u8; 10] = [0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 0xff];
/// The end of a sync flush (RFC 7692 §7.2.1).
const FLUSH: &[u8] = &[0, 0, 0xff, 0xff];

#[cfg(test)]
mod tests {
    use super::{Head, front, front_sealed, head, is_flushed, pong, request};

    #[test]
    fn a_response_is_read_piece_by_piece() {
        assert_eq!(
            request("h", "/connection/sse", b"{}", false),
            b"GET /connection/sse?cf_connect=%7B%7D HTTP/1.1\r\nHost: h\r\n\r\n"
        );
        let reply = br#"{"id":1,"connect":{"client":"c","session":"s","node":"n"}}"#;
        let pong = String::from_utf8(pong("h", reply).expect("a session")).expect("text");
        assert!(pong.starts_with("POST /emulation HTTP/1.1\r\nHost: h\r\nContent-Length: "));
        assert!(pong.ends_with(r#"{"data":"{}","node":"n","session":"s"}"#), "{pong}");
        let response = b"HTTP/1.1 200 OK\r\nA: b\r\n\r\n\r\ndata: {}\n\ndata: 1";
        for length in 0..25 {
            assert_eq!(head(&response[..length]).expect("no error"), None);
        }
        let length = 25;
        assert_eq!(head(response).expect("a head"), Some(Head { length, is_gzip: false }));
        let body = &response[length..];
        assert_eq!(front(body).expect("an event"), Some((&b"{}"[..], 12)));
        assert_eq!(front(&body[12..]).expect("no error"), None);
        let with_id = b"data: {}\nid: 7.AbCdEfGh\n\n";
        assert_eq!(front(with_id).expect("an event"), Some((&b"{}"[..], with_id.len())));
        assert!(front(b"event: x\n\n").is_err() && front(b"data: a\nb\n\n").is_err());
        assert!(head(b"HTTP/1.1 503 X\r\n\r\n\r\n").is_err());
    }

    #[test]
    fn a_compressed_response_is_cut_at_its_flushes() {
        let asked = request("h", "/", b"", true);
        assert!(asked.ends_with(b"\r\nAccept-Encoding: gzip\r\n\r\n"));
        let response = b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\n\r\n\x1f\x8b\x08\0\0\0\0\0\0\xff1\0\0\xff\xff2\0";
        assert_eq!(head(&response[..50]).expect("no error"), None);
        let length = response.len() - 7;
        assert_eq!(head(response).expect("a head"), Some(Head { length, is_gzip: true }));
        let body = &response[length..];
        assert_eq!(front_sealed(body), Some((&b"1\0\0\xff\xff"[..], 5)));
        assert_eq!(front_sealed(&body[5..]), None);
        assert!(is_flushed(&body[..5]) && !is_flushed(body));
    }
}
