//! Server-Sent Events from the client's side (WHATWG HTML §9.2), as a server of the protocol sends them.
//! In: commands → the request; bytes of the response → where its head ends, and one event after the other.
//! Pure. Never touches a socket.
//! Change here what is accepted; what follows from a message lives in `connection`.

use anyhow::{Result, bail, ensure};
use std::fmt::Write as _;

/// The request that opens a stream with these commands.
pub fn request(host: &str, commands: &[u8]) -> Vec<u8> {
    let mut encoded = String::with_capacity(commands.len() * 3);
    for byte in commands {
        let _ = write!(encoded, "%{byte:02X}"); // never fails
    }
    format!("GET {PATH}?cf_connect={encoded} HTTP/1.1\r\nHost: {host}\r\n\r\n").into_bytes()
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

/// The length of the head of the response, with the empty line that begins the body; `None` when it is not complete yet.
///
/// # Errors
/// Any answer but 200.
pub fn head(bytes: &[u8]) -> Result<Option<usize>> {
    const END: &[u8] = b"\r\n\r\n\r\n";
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
    Ok(Some(end + END.len()))
}

/// The data of the first event, and the length of the event; `None` when it is not complete yet.
///
/// # Errors
/// Anything but an event with one line of data.
pub fn front(bytes: &[u8]) -> Result<Option<(&[u8], usize)>> {
    let Some(end) = bytes.windows(2).position(|window| window == b"\n\n") else { return Ok(None) };
    match bytes[..end].strip_prefix(b"data: ") {
        Some(data) if !data.contains(&b'\n') => Ok(Some((data, end + 2))),
        _ => bail!("no event: {}", bytes[..end.min(100)].escape_ascii()),
    }
}

/// Fanwire's path by default.
const PATH: &str = "/connection/sse";
const UPLINK_PATH: &str = "/emulation";
const HEAD_BYTES_MAX: usize = 16 << 10;

#[cfg(test)]
mod tests {
    use super::{front, head, pong, request};

    #[test]
    fn a_response_is_read_piece_by_piece() {
        assert_eq!(
            request("h", b"{}"),
            b"GET /connection/sse?cf_connect=%7B%7D HTTP/1.1\r\nHost: h\r\n\r\n"
        );
        let reply = br#"{"id":1,"connect":{"client":"c","session":"s","node":"n"}}"#;
        let pong = String::from_utf8(pong("h", reply).expect("a session")).expect("text");
        assert!(pong.starts_with("POST /emulation HTTP/1.1\r\nHost: h\r\nContent-Length: "));
        assert!(pong.ends_with(r#"{"data":"{}","node":"n","session":"s"}"#), "{pong}");
        let response = b"HTTP/1.1 200 OK\r\nA: b\r\n\r\n\r\ndata: {}\n\ndata: 1";
        for length in 0..27 {
            assert_eq!(head(&response[..length]).expect("no error"), None);
        }
        let body = &response[head(response).expect("a head").expect("all of it")..];
        assert_eq!(front(body).expect("an event"), Some((&b"{}"[..], 10)));
        assert_eq!(front(&body[10..]).expect("no error"), None);
        assert!(front(b"event: x\n\n").is_err() && front(b"data: a\nb\n\n").is_err());
        assert!(head(b"HTTP/1.1 503 X\r\n\r\n\r\n").is_err());
    }
}
