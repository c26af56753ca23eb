//! WebSockets whose upgrade a shard reads itself: a plain GET in one piece. Everything else is read by hyper (RFC 9112 §2, RFC 6455 §4.2).
//! In: an accepted socket, then its first bytes → out: 101 or a refusal for the shard to send, or the socket for hyper.
//! Uses httparse and the checks of `upgrade`; never judges a request that is not such an upgrade, however wrong it is.
//! Changed here: which requests are plain enough. Their checks live in `upgrade` and `host`, the socket in `shard::handshake`.

use std::{
    net::{SocketAddr, TcpStream},
    sync::Arc,
    time::Instant,
};

use axum::{
    body::Bytes,
    http::{HeaderMap, HeaderName, HeaderValue, Request, Response, Uri, Version, header, request},
};
use fanwire_fanout::Opening;
use httparse::{EMPTY_HEADER, Status};

use super::{host, routes::RealtimeEndpoint, upgrade::Upgrade};
use crate::shard::{Handshake, HandshakeOutcome};

/// Serves a socket of which nothing has been read over HTTP.
pub(super) type HttpFallback = Box<dyn FnOnce(TcpStream) + Send>;

/// The endpoints whose upgrades shards read.
pub struct FirstRequests {
    pub(super) realtime: Arc<RealtimeEndpoint>,
    /// Of the WebSocket endpoint.
    pub(super) path: String,
    /// As in [`RootService`](super::root_service::RootService).
    pub(super) local_hosts_only: bool,
}

impl FirstRequests {
    /// Gives an accepted nonblocking socket to a shard. `http` serves it if its request is not a plain upgrade.
    pub(super) fn accept(
        self: &Arc<Self>,
        socket: TcpStream,
        peer: SocketAddr,
        http: HttpFallback,
    ) {
        let first_request = FirstRequest { endpoints: Arc::clone(self), peer, http };
        self.realtime.endpoint.shards.accept(socket, Box::new(first_request));
    }
}

/// The upgrade on `path` that `bytes` begin with, and its length; `None` for hyper.
fn plain_upgrade(
    bytes: &[u8],
    path: &str,
    local_hosts_only: bool,
) -> Option<(request::Parts, usize)> {
    let (head, length) = parse(bytes)?;
    let is_plain = head.version == Version::HTTP_11
        && head.uri.path() == path
        && head.uri.authority().is_none()
        && head.headers.contains_key(header::UPGRADE)
        && !BODY_HEADERS.iter().any(|name| head.headers.contains_key(name))
        && host::check(head.version, &head.headers, local_hosts_only).is_ok();
    is_plain.then_some((head, length))
}

/// The first request of one socket.
struct FirstRequest {
    endpoints: Arc<FirstRequests>,
    peer: SocketAddr,
    http: HttpFallback,
}

impl Handshake<Opening> for FirstRequest {
    fn decide(&mut self, bytes: &[u8], _now: Instant) -> HandshakeOutcome<Opening> {
        let FirstRequests { realtime, path, local_hosts_only } = &*self.endpoints;
        let Some((head, request_bytes)) = plain_upgrade(bytes, path, *local_hosts_only) else {
            return HandshakeOutcome::Decline;
        };
        let setup = |head: &request::Parts, subprotocol| realtime.websocket(head, subprotocol);
        match realtime.endpoint.decide(&head, false, Some(self.peer), setup) {
            Ok(Upgrade { negotiated, response, .. }) => HandshakeOutcome::Open {
                request_bytes,
                response: encode(&response, ""),
                negotiated,
            },
            Err(refusal) => HandshakeOutcome::Refuse {
                request_bytes,
                response: encode(&refusal, refusal.body()),
            },
        }
    }

    fn decline(self: Box<Self>, socket: TcpStream) {
        (self.http)(socket);
    }
}

/// The head of a complete GET request, and its length. `None` if it is incomplete, malformed or too long.
fn parse(bytes: &[u8]) -> Option<(request::Parts, usize)> {
    if !bytes.starts_with(b"GET ") {
        return None;
    }
    // One copy, of which all values are slices.
    let bytes = Bytes::copy_from_slice(bytes);
    let mut headers = [EMPTY_HEADER; HEADERS_MAX];
    let mut parsed = httparse::Request::new(&mut headers);
    let Ok(Status::Complete(length)) = parsed.parse(&bytes) else { return None };
    let (mut head, ()) = Request::new(()).into_parts();
    head.version = if parsed.version? == 1 { Version::HTTP_11 } else { Version::HTTP_10 };
    head.uri = Uri::from_maybe_shared(bytes.slice_ref(parsed.path?.as_bytes())).ok()?;
    head.headers = HeaderMap::with_capacity(parsed.headers.len());
    for header in parsed.headers.iter() {
        let name = HeaderName::from_bytes(header.name.as_bytes()).ok()?;
        let value = HeaderValue::from_maybe_shared(bytes.slice_ref(header.value)).ok()?;
        head.headers.append(name, value);
    }
    Some((head, length))
}

/// Status line, headers and body of a response (RFC 9112 §4).
fn encode<T>(response: &Response<T>, body: &str) -> Vec<u8> {
    let status = response.status();
    let mut bytes = Vec::with_capacity(RESPONSE_BYTES + body.len());
    let reason = status.canonical_reason().unwrap_or_default();
    bytes.extend_from_slice(format!("HTTP/1.1 {} {reason}\r\n", status.as_str()).as_bytes());
    for (name, value) in response.headers() {
        for part in [name.as_str().as_bytes(), b": ", value.as_bytes(), b"\r\n"] {
            bytes.extend_from_slice(part);
        }
    }
    if !status.is_informational() {
        // The shard closes; a client that keeps connections would send its next request into the closed one.
        if !has_token(response.headers(), header::CONNECTION, "close") {
            bytes.extend_from_slice(b"connection: close\r\n");
        }
        bytes.extend_from_slice(format!("content-length: {}\r\n", body.len()).as_bytes());
    }
    bytes.extend_from_slice(b"\r\n");
    bytes.extend_from_slice(body.as_bytes());
    bytes
}

fn has_token(headers: &HeaderMap, name: HeaderName, token: &str) -> bool {
    headers.get_all(name).into_iter().any(|value| value.as_bytes() == token.as_bytes())
}

/// A request with one of these may have a body, which hyper reads.
const BODY_HEADERS: [HeaderName; 2] = [header::CONTENT_LENGTH, header::TRANSFER_ENCODING];

/// Browsers behind two proxies send some thirty.
const HEADERS_MAX: usize = 64;

/// An answer to an upgrade, with some space.
const RESPONSE_BYTES: usize = 256;

#[cfg(test)]
mod tests;
