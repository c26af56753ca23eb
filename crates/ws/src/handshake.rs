//! The opening handshake on the server's side (RFC 6455 §4.2).
//! A view of the request's headers → `Sec-WebSocket-Accept` and the subprotocol, or an error.
//! Uses sha1 and base64; never an HTTP library, never the origin (that is the server's policy).
//! Changed here: the rules of a valid upgrade request. The extension header is `extension`, the client's side `client`.

use std::fmt;

use base64::Engine as _;
use base64::alphabet;
use base64::engine::general_purpose::{GeneralPurpose, GeneralPurposeConfig, STANDARD};
use sha1::{Digest, Sha1};

use crate::list;

/// The parts of an HTTP request that decide an upgrade (RFC 6455 §4.2.1).
///
/// A header that occurs several times is one value, joined with commas (RFC 9110 §5.3). `Host` (RFC 6455 §4.2.1, 2)
/// is not part of it: the HTTP server checks it for every request (RFC 9112 §3.2).
#[derive(Clone, Copy, Debug)]
pub struct HandshakeRequest<'a> {
    pub method: &'a str,
    pub http_1_1_or_newer: bool,
    /// `Content-Length` is above 0, or `Transfer-Encoding` is there.
    pub has_body: bool,
    /// `Upgrade`
    pub upgrade: Option<&'a str>,
    /// `Connection`
    pub connection: Option<&'a str>,
    /// `Sec-WebSocket-Key`
    pub key: Option<&'a str>,
    /// `Sec-WebSocket-Version`
    pub version: Option<&'a str>,
}

/// Checks the request; returns the 28 characters of `Sec-WebSocket-Accept` (RFC 6455 §4.2.2).
///
/// # Errors
/// The first violated rule (RFC 6455 §4.2.1a), in the order of that section.
pub fn check(request: &HandshakeRequest<'_>) -> Result<String, HandshakeError> {
    if request.method != "GET" {
        return Err(HandshakeError::Method { found: excerpt(request.method) });
    }
    if !request.http_1_1_or_newer {
        return Err(HandshakeError::HttpVersion);
    }
    if request.has_body {
        return Err(HandshakeError::Body);
    }
    if !request.upgrade.is_some_and(|value| list::has_token(value, "websocket")) {
        return Err(HandshakeError::Upgrade { found: request.upgrade.map(excerpt) });
    }
    if !request.connection.is_some_and(|value| list::has_token(value, "upgrade")) {
        return Err(HandshakeError::Connection { found: request.connection.map(excerpt) });
    }
    // The version comes before the key: a client of another version may have another kind of key.
    if request.version.map(list::trim) != Some("13") {
        return Err(HandshakeError::Version { found: request.version.map(excerpt) });
    }
    // Several headers of a name are one value with commas, which is no version and no key (RFC 6455 §11.3.1a, §11.3.5a).
    match request.key.map(list::trim) {
        Some(key) if is_key(key) => Ok(accept(key)),
        key => Err(HandshakeError::Key { found: key.map(excerpt) }),
    }
}

/// Checks an extended CONNECT for a WebSocket in a stream of HTTP/2, which has no key (RFC 8441 §5); `version` is
/// `Sec-WebSocket-Version`.
///
/// # Errors
/// Another version.
pub fn check_extended_connect(version: Option<&str>) -> Result<(), HandshakeError> {
    match version.map(list::trim) {
        Some("13") => Ok(()),
        found => Err(HandshakeError::Version { found: found.map(excerpt) }),
    }
}

/// The first subprotocol of the client's list that is in `known` (RFC 6455 §4.2.2e).
///
/// `offers` are the values of `Sec-WebSocket-Protocol` in order, the client's first choice first.
pub fn choose_subprotocol<'a>(
    offers: impl Iterator<Item = &'a str>,
    known: &[&'static str],
) -> Option<&'static str> {
    offers
        .flat_map(|value| value.split(',').map(list::trim))
        .find_map(|offer| known.iter().find(|known| **known == offer).copied())
}

/// An invalid request; the text states the valid value.
///
/// `found` is the beginning of the offending value, `None` when the header is missing.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum HandshakeError {
    /// Not a GET request (RFC 6455 §4.2.1, 1).
    Method { found: String },
    /// HTTP/1.0 or older (RFC 6455 §4.2.1, 1).
    HttpVersion,
    /// The request has a body, whose bytes would be in the place of the first frame (RFC 9110 §7.8, §9.3.1).
    Body,
    /// No `websocket` in `Upgrade` (RFC 6455 §4.2.1, 3).
    Upgrade { found: Option<String> },
    /// No `upgrade` in `Connection` (RFC 6455 §4.2.1, 4).
    Connection { found: Option<String> },
    /// `Sec-WebSocket-Key` is not 16 bytes in base64 (RFC 6455 §4.2.1, 5).
    Key { found: Option<String> },
    /// `Sec-WebSocket-Version` is not 13 (RFC 6455 §4.2.1, 6; §4.4).
    Version { found: Option<String> },
}

impl HandshakeError {
    /// The HTTP status of the answer: 400, 405 or 426.
    pub fn status(&self) -> u16 {
        match self {
            Self::Method { .. } => 405,
            Self::HttpVersion | Self::Body | Self::Key { .. } => 400,
            Self::Upgrade { .. } | Self::Connection { .. } | Self::Version { .. } => 426,
        }
    }

    /// Headers that the answer must carry (RFC 9110 §15.5.6, §15.5.22; RFC 6455 §4.2.2c, §4.4a).
    pub fn headers(&self) -> &'static [(&'static str, &'static str)] {
        match self.status() {
            405 => &[("allow", "GET")],
            426 => &[
                ("upgrade", "websocket"),
                ("connection", "upgrade"),
                ("sec-websocket-version", "13"),
            ],
            _ => &[],
        }
    }
}

impl fmt::Display for HandshakeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (name, found, right) = match self {
            Self::Method { found } => {
                return write!(
                    f,
                    "the method is {found:?}, a WebSocket handshake is a GET request"
                );
            }
            Self::HttpVersion => {
                return f.write_str("a WebSocket handshake needs HTTP/1.1 or newer");
            }
            Self::Body => return f.write_str("a WebSocket handshake has no body"),
            Self::Upgrade { found } => ("Upgrade", found, "must contain \"websocket\""),
            Self::Connection { found } => ("Connection", found, "must contain \"Upgrade\""),
            Self::Key { found } => ("Sec-WebSocket-Key", found, "must be 16 bytes in base64"),
            Self::Version { found } => ("Sec-WebSocket-Version", found, "must be \"13\""),
        };
        match found {
            Some(found) => write!(f, "the header {name} is {found:?}, it {right}"),
            None => write!(f, "the header {name} is missing, it {right}"),
        }
    }
}

impl std::error::Error for HandshakeError {}

/// Whether `key` is the base64 of 16 bytes.
fn is_key(key: &str) -> bool {
    // Four bits of the last character have no meaning, and clients may put anything there.
    const LENIENT: GeneralPurpose = GeneralPurpose::new(
        &alphabet::STANDARD,
        GeneralPurposeConfig::new().with_decode_allow_trailing_bits(true),
    );
    // 16 bytes decode to 18 at most before the padding is checked.
    matches!(LENIENT.decode_slice(key, &mut [0; 18]), Ok(16))
}

/// RFC 6455 §4.2.2, 5, 4.
pub(crate) fn accept(key: &str) -> String {
    let hash = Sha1::new().chain_update(key).chain_update(GUID).finalize();
    STANDARD.encode(hash)
}

fn excerpt(value: &str) -> String {
    value[..value.floor_char_boundary(EXCERPT_BYTES_MAX)].to_owned()
}

/// RFC 6455 §1.3.
const GUID: &str = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";

/// The largest part of a wrong header value that an error repeats.
const EXCERPT_BYTES_MAX: usize = 64;

#[cfg(test)]
mod tests;
