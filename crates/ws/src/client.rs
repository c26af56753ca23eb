//! The opening handshake on the client's side (RFC 6455 §4.1).
//! A key, a host and a path → the head of the request; the headers of the response → subprotocol and extension, or an error.
//! Uses `handshake` and `list`; never an HTTP library, never a source of chance: the caller chooses the key.
//! Changed here: which response a client accepts. Its offers of permessage-deflate are `client/offer`.

mod offer;

use std::fmt::{self, Write as _};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

pub use self::offer::{ClientAgreement, ExtensionOffer, TakeoverOffer};
use crate::{handshake, list};

/// One handshake of a client.
#[derive(Clone, Debug)]
pub struct ClientHandshake {
    /// `Sec-WebSocket-Key`
    key: String,
    subprotocol: Option<&'static str>,
    offer: Option<ExtensionOffer>,
}

impl ClientHandshake {
    /// A handshake with 16 bytes of chance, a fresh number for each connection (RFC 6455 §4.1), the one subprotocol that the
    /// client speaks, and its offer of permessage-deflate.
    pub fn new(
        chance: [u8; 16],
        subprotocol: Option<&'static str>,
        offer: Option<ExtensionOffer>,
    ) -> Self {
        Self { key: STANDARD.encode(chance), subprotocol, offer }
    }

    /// The head of the request, up to its empty line. `headers` are the application's.
    ///
    /// # Errors
    /// [`LineEnd`] when the host, the path or a header contains a character that would end its line.
    pub fn request(
        &self,
        host: &str,
        path: &str,
        headers: &[(String, String)],
    ) -> Result<String, LineEnd> {
        let given = headers.iter().flat_map(|(name, value)| [name.as_str(), value.as_str()]);
        if given.chain([host, path]).any(|text| text.contains(['\r', '\n', '\0'])) {
            return Err(LineEnd);
        }
        let mut head = format!("GET {path} HTTP/1.1\r\nHost: {host}\r\n");
        head += "Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n";
        let _ = write!(head, "Sec-WebSocket-Key: {}\r\n", self.key);
        if let Some(subprotocol) = self.subprotocol {
            let _ = write!(head, "Sec-WebSocket-Protocol: {subprotocol}\r\n");
        }
        if let Some(offer) = &self.offer {
            let _ = write!(head, "Sec-WebSocket-Extensions: {}\r\n", offer.header());
        }
        for (name, value) in headers {
            let _ = write!(head, "{name}: {value}\r\n");
        }
        head += "\r\n";
        Ok(head)
    }

    /// Checks the response; returns the agreed compression, `None` for none.
    ///
    /// # Errors
    /// The first rule of RFC 6455 §4.1 that the response breaks; the connection must be closed then.
    pub fn check(
        &self,
        response: &HandshakeResponse<'_>,
    ) -> Result<Option<ClientAgreement>, ResponseError> {
        if response.status != 101 {
            return Err(ResponseError::Status { status: response.status });
        }
        if !response.upgrade.is_some_and(|value| value.trim().eq_ignore_ascii_case("websocket")) {
            return Err(ResponseError::Upgrade);
        }
        if !response.connection.is_some_and(|value| list::has_token(value, "upgrade")) {
            return Err(ResponseError::Connection);
        }
        if response.accept.map(list::trim) != Some(handshake::accept(&self.key).as_str()) {
            return Err(ResponseError::Accept);
        }
        if response.subprotocol.map(list::trim) != self.subprotocol {
            return Err(ResponseError::Subprotocol);
        }
        match (response.extensions, &self.offer) {
            (None, _) => Ok(None),
            (Some(extensions), Some(offer)) => {
                offer.accept(extensions).map(Some).ok_or(ResponseError::Extension)
            }
            (Some(_), None) => Err(ResponseError::Extension),
        }
    }
}

/// The parts of an HTTP response that decide an upgrade (RFC 6455 §4.1). A header that occurs several times is one value,
/// joined with commas.
#[derive(Clone, Copy, Debug, Default)]
pub struct HandshakeResponse<'a> {
    pub status: u16,
    /// `Upgrade`
    pub upgrade: Option<&'a str>,
    /// `Connection`
    pub connection: Option<&'a str>,
    /// `Sec-WebSocket-Accept`
    pub accept: Option<&'a str>,
    /// `Sec-WebSocket-Protocol`
    pub subprotocol: Option<&'a str>,
    /// `Sec-WebSocket-Extensions`
    pub extensions: Option<&'a str>,
}

/// A part of a request contains a character that ends its line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LineEnd;

impl fmt::Display for LineEnd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a part of the request has a line end in it")
    }
}

impl std::error::Error for LineEnd {}

/// A response that is not the answer to the client's handshake (RFC 6455 §4.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ResponseError {
    /// Another status than 101.
    Status { status: u16 },
    /// `Upgrade` is not `websocket`.
    Upgrade,
    /// `Connection` has no `upgrade`.
    Connection,
    /// `Sec-WebSocket-Accept` does not belong to our key.
    Accept,
    /// Another subprotocol than the offered one, or none.
    Subprotocol,
    /// An extension that was not offered, or parameters that do not fit the offer (RFC 7692 §5.1, §7.1).
    Extension,
}

impl fmt::Display for ResponseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Status { status } => write!(f, "the server answered with status {status}"),
            Self::Upgrade => f.write_str("the response does not upgrade to WebSocket"),
            Self::Connection => f.write_str("the response's Connection header has no `upgrade`"),
            Self::Accept => f.write_str("Sec-WebSocket-Accept does not belong to our key"),
            Self::Subprotocol => f.write_str("the server did not choose the offered subprotocol"),
            Self::Extension => {
                f.write_str("the server agreed to an extension that was not offered")
            }
        }
    }
}

impl std::error::Error for ResponseError {}

#[cfg(test)]
mod tests;
