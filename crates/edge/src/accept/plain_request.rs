//! Requests that a shard reads itself: plain ones to the endpoints of clients, in one piece. hyper reads all others (RFC 9112 §2),
//! those to the stream of commands on the shard.
//! In: an accepted socket, then the bytes of its requests → out: a connection or a response of an endpoint, or the socket for hyper.
//! Uses httparse and the endpoints; never judges a request that is not plain, however wrong it is.
//! Changed here: which requests are plain. Their checks live in the endpoints and in `host`, the socket in `shard::accepted`.

use std::{
    net::{SocketAddr, TcpStream},
    sync::Arc,
};

use axum::{
    body::Bytes,
    http::{
        HeaderMap, HeaderName, HeaderValue, Method, Request, Response, StatusCode, Uri, Version,
        header, request,
    },
};
use fanwire_fanout::{NewSession, Shards};
use httparse::{EMPTY_HEADER, Status};

use super::{
    date,
    forwarded::{ClientAddress, TrustedProxies},
    host,
    limits::IDLE_TIMEOUT,
    slots::{ConnectionSlots, IdleOnShard},
};
use fanwire_shard::{NewConnection, RequestHandler, RequestOutcome, ShardSocket, SocketTask};

/// Serves a socket over HTTP, of which no byte of the next request has been read.
pub(crate) trait HttpServer: Send {
    /// Serves it on the runtime.
    fn serve_on_runtime(self: Box<Self>, socket: TcpStream);

    /// Returns the task that serves one request on a shard.
    fn serve_on_shard(self: Box<Self>, socket: ShardSocket) -> SocketTask;
}

/// An endpoint whose plain requests shards read.
pub trait PlainEndpoint: Send + Sync {
    /// Returns the next step after a request of `peer`; `None` if hyper is to read it. Called on a shard's thread. Must not block.
    fn answer(&self, head: &request::Parts, body: &[u8], peer: SocketAddr) -> Option<PlainOutcome>;
}

/// The next step after a plain request.
pub enum PlainOutcome<H = NewSession> {
    /// A connection begins.
    Open(Box<NewConnection<H>>),
    /// The socket waits for its next request after this response, if it may be kept.
    Answer(Response<String>),
    /// The socket closes after this response.
    Refuse(Response<String>),
}

/// The endpoints whose requests shards read.
pub struct PlainRequests {
    pub shards: Arc<Shards>,
    /// The endpoints with their paths.
    pub endpoints: Vec<(String, Arc<dyn PlainEndpoint>)>,
    /// The path of the stream of commands, whose connections are served on shards.
    pub stream_path: Option<String>,
    /// Refuse a `Host` other than `localhost` and IP addresses.
    pub local_hosts_only: bool,
    pub trusted_proxies: TrustedProxies,
}

impl PlainRequests {
    /// Gives an accepted nonblocking socket to a shard. `http` serves it from the first request that is not plain.
    pub(crate) fn accept(
        self: &Arc<Self>,
        socket: TcpStream,
        client: ClientAddress,
        slots: &Arc<ConnectionSlots>,
        http: Box<dyn HttpServer>,
    ) {
        let requests = Arc::clone(self);
        let slots = Arc::clone(slots);
        let requests = SocketRequests { requests, client, http, slots, idle: None };
        self.shards.accept(socket, Box::new(requests));
    }

    /// Makes room on each shard.
    pub(crate) fn close_longest_idle(&self) {
        self.shards.close_longest_idle();
    }

    /// Whether a request is a long one to the stream of commands. One whose length is known may be followed by other requests.
    fn is_stream(&self, head: &request::Parts) -> bool {
        head.method == Method::POST
            && self.stream_path.as_deref() == Some(head.uri.path())
            && head.headers.contains_key(header::TRANSFER_ENCODING)
    }

    fn endpoint(&self, head: &request::Parts) -> Option<&dyn PlainEndpoint> {
        let (_, endpoint) = self.endpoints.iter().find(|(path, _)| path == head.uri.path())?;
        let is_accepted = host::check(head.version, &head.headers, self.local_hosts_only).is_ok();
        is_accepted.then_some(&**endpoint)
    }
}

/// The requests of one socket.
struct SocketRequests {
    requests: Arc<PlainRequests>,
    client: ClientAddress,
    http: Box<dyn HttpServer>,
    slots: Arc<ConnectionSlots>,
    /// Between two requests.
    idle: Option<IdleOnShard>,
}

impl RequestHandler<NewSession> for SocketRequests {
    fn handle(&mut self, bytes: &[u8]) -> Option<(usize, RequestOutcome<NewSession>)> {
        let (head, head_length) = parse_head(bytes)?;
        if self.requests.is_stream(&head) {
            return Some((0, RequestOutcome::Serve));
        }
        let PlainRequest { mut head, body, length } = with_body(head, head_length, bytes)?;
        self.idle = None;
        let client = self.requests.trusted_proxies.of_request(self.client, &head.headers);
        client.mark(&mut head.extensions);
        let endpoint = self.requests.endpoint(&head)?;
        let outcome = match endpoint.answer(&head, body, client.address)? {
            PlainOutcome::Open(connection) => RequestOutcome::Open(connection),
            PlainOutcome::Answer(response) if self.slots.may_keep() => {
                self.idle = Some(self.slots.idle_on_shard());
                let response = encode(&response, response.body());
                RequestOutcome::Answer(response, self.slots.limit(IDLE_TIMEOUT))
            }
            PlainOutcome::Answer(response) | PlainOutcome::Refuse(response) => refuse(response),
        };
        Some((length, outcome))
    }

    fn decline(self: Box<Self>, socket: TcpStream) {
        self.http.serve_on_runtime(socket);
    }

    fn serve(self: Box<Self>, socket: ShardSocket) -> SocketTask {
        self.http.serve_on_shard(socket)
    }
}

/// A request that is complete.
struct PlainRequest<'a> {
    head: request::Parts,
    body: &'a [u8],
    /// Bytes of the head and the body.
    length: usize,
}

/// The complete head of a GET or POST request that `bytes` begin with, and its length. `None` if it is incomplete or malformed.
fn parse_head(bytes: &[u8]) -> Option<(request::Parts, usize)> {
    if !bytes.starts_with(b"GET ") && !bytes.starts_with(b"POST ") {
        return None;
    }
    let mut headers = [EMPTY_HEADER; HEADERS_MAX];
    let mut parsed = httparse::Request::new(&mut headers);
    let Ok(Status::Complete(head_length)) = parsed.parse(bytes) else { return None };
    // One copy, of which all values are slices.
    let copy = Bytes::copy_from_slice(&bytes[..head_length]);
    let slice = |part: &[u8]| {
        let start = part.as_ptr().addr() - bytes.as_ptr().addr();
        copy.slice(start..start + part.len())
    };
    let (mut head, ()) = Request::new(()).into_parts();
    let is_1_1 = parsed.version? == 1;
    head.version = if is_1_1 { Version::HTTP_11 } else { return None };
    head.method = if parsed.method? == "GET" { Method::GET } else { Method::POST };
    head.uri = Uri::from_maybe_shared(slice(parsed.path?.as_bytes())).ok()?;
    head.headers = HeaderMap::with_capacity(parsed.headers.len());
    for header in parsed.headers.iter() {
        let name = HeaderName::from_bytes(header.name.as_bytes()).ok()?;
        let value = HeaderValue::from_maybe_shared(slice(header.value)).ok()?;
        head.headers.append(name, value);
    }
    head.uri.authority().is_none().then_some((head, head_length))
}

/// The request with this head, which `bytes` begin with. `None` if it is incomplete, malformed or not plain.
fn with_body(head: request::Parts, head_length: usize, bytes: &[u8]) -> Option<PlainRequest<'_>> {
    if SPECIAL_HEADERS.iter().any(|name| head.headers.contains_key(name)) {
        return None;
    }
    let length = head_length.checked_add(body_length(&head)?)?;
    Some(PlainRequest { body: bytes.get(head_length..length)?, head, length })
}

/// The length of the body (RFC 9112 §6.3). `None` if it is wrong, or unusual: a GET has no body, a POST has one.
fn body_length(head: &request::Parts) -> Option<usize> {
    let mut lengths = head.headers.get_all(header::CONTENT_LENGTH).iter();
    match (head.method == Method::GET, lengths.next(), lengths.next()) {
        (true, None, _) => Some(0),
        (false, Some(length), None) if length.as_bytes().iter().all(u8::is_ascii_digit) => {
            length.to_str().ok()?.parse().ok()
        }
        _ => None,
    }
}

/// Whether a client wants the connection for more requests, of which none is an upgrade.
pub fn keeps_connection(headers: &HeaderMap) -> bool {
    let connection = headers.get_all(header::CONNECTION);
    connection.iter().all(|value| value.as_bytes().eq_ignore_ascii_case(b"keep-alive"))
}

/// The outcome of a refused request: the shard closes, and says so to clients that keep connections.
fn refuse<H>(mut response: Response<String>) -> RequestOutcome<H> {
    let connection = response.headers().get_all(header::CONNECTION);
    if !connection.iter().any(|value| value == "close") {
        response.headers_mut().append(header::CONNECTION, HeaderValue::from_static("close"));
    }
    RequestOutcome::Refuse(encode(&response, response.body()))
}

/// Status line, headers and body of a response (RFC 9112 §4).
pub(crate) fn encode<T>(response: &Response<T>, body: &str) -> Vec<u8> {
    let status = response.status();
    let mut bytes = Vec::with_capacity(RESPONSE_BYTES + body.len());
    let reason = status.canonical_reason().unwrap_or_default();
    let date = date::line();
    bytes.extend_from_slice(format!("HTTP/1.1 {} {reason}\r\n{date}", status.as_str()).as_bytes());
    for (name, value) in response.headers() {
        for part in [name.as_str().as_bytes(), b": ", value.as_bytes(), b"\r\n"] {
            bytes.extend_from_slice(part);
        }
    }
    // These have no body, and must not have a length (RFC 9110 §8.6).
    if !status.is_informational() && status != StatusCode::NO_CONTENT {
        bytes.extend_from_slice(format!("content-length: {}\r\n", body.len()).as_bytes());
    }
    bytes.extend_from_slice(b"\r\n");
    bytes.extend_from_slice(body.as_bytes());
    bytes
}

/// A request with one of these is read by hyper: `Transfer-Encoding` frames its body, `Expect` wants an answer before it.
const SPECIAL_HEADERS: [HeaderName; 2] = [header::TRANSFER_ENCODING, header::EXPECT];

/// Browsers behind two proxies send some thirty.
const HEADERS_MAX: usize = 64;

/// An answer to an upgrade, with some space.
const RESPONSE_BYTES: usize = 256;

#[cfg(test)]
mod tests;
