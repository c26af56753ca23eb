//! From an HTTP request to a WebSocket on a shard (RFC 6455 §4.2, RFC 7692 §7).
//! In: a request on an endpoint → out: 101 and a socket for a shard, or an HTTP error with its reason.
//! Uses `ws` for the rules and hyper for the switch; never limits clients.
//! Changed here: the checks of a handshake; limits on new clients live in `admission`, the open connection in the shard's application.

use std::{net::SocketAddr, sync::Arc, time::Instant};

use axum::{
    body::{Body, HttpBody},
    http::{HeaderMap, Method, Request, Response, StatusCode, Version, header, request},
};
use fanwire_ws::{
    Compression,
    extension::{self, Agreement},
    handshake,
};
use hyper::ext::Protocol;
use hyper_util::rt::TokioIo;

use super::{
    admission::{Admission, Admitted},
    refusals::{Cause, retry_later},
};
use crate::accept::{
    forwarded::{address_of, is_forwarded, peer_of},
    http2,
    plain_request::{self, PlainOutcome},
    socket::{ReleasedSocket, Socket},
    timeout_stream::TimeoutStream,
};
use fanwire_shard::{
    Application, Arrival, Budget, ClientWindow, DecodeFailures, NewConnection, Peer, Shards,
    Transport,
};

/// One WebSocket endpoint in front of the shards of an application.
pub struct Endpoint<A: Application> {
    pub shards: Arc<Shards<A>>,
    pub compression: extension::ExtensionSettings,
    /// Offer compression to Apple's NSURLSession stack too, although its inflater is known to fail.
    pub compression_apple: bool,
    /// Use a dedicated compressor for connections that allow it.
    pub compression_dedicated: bool,
    /// Memory for the windows of clients that refer to their earlier messages.
    pub compression_memory: Arc<Budget>,
    /// Peers that failed to decode references between messages, and so get none.
    pub decode_failures: Arc<DecodeFailures>,
    /// Subprotocols this endpoint speaks.
    pub subprotocols: &'static [&'static str],
    /// [`Transport::WebSocket`] or [`Transport::UniWebSocket`].
    pub transport: Transport,
    /// Limits on new connections.
    pub admission: Admission,
}

/// How the application opens the connection of a request.
pub struct ConnectionSetup<H> {
    pub opening: H,
    pub is_binary: bool,
    /// The first message of the client, which was in its request; none if empty.
    pub message: Vec<u8>,
}

/// How the application opens the connection of a request, or the response of a refusal.
pub type Setup<H> = Result<ConnectionSetup<H>, Box<Response<String>>>;

/// An accepted handshake: the connection, and its response without a body, which is 101, or 200 in HTTP/2.
type Accepted<H> = (NewConnection<H>, Response<()>);

impl<A: Application> Endpoint<A> {
    /// Serves one request. `setup` is called with the head of the request and the chosen subprotocol.
    pub fn upgrade(
        &self,
        mut request: Request<Body>,
        setup: impl FnOnce(&request::Parts, Option<&'static str>) -> Setup<A::Opening>,
    ) -> Response<Body> {
        let on_upgrade = hyper::upgrade::on(&mut request);
        let (head, body) = request.into_parts();
        let address = address_of(&head.extensions);
        let is_stream = is_extended_connect(&head);
        match self.decide(&head, !body.is_end_stream(), address, setup) {
            Err(refusal) => refusal.map(Body::from),
            Ok((connection, response)) => {
                let shards = self.shards.clone();
                let open = head.extensions.get::<Arc<http2::OpenStream>>().cloned();
                tokio::spawn(async move {
                    let _open = open; // until the WebSocket ends
                    match on_upgrade.await {
                        Ok(upgraded) if is_stream => {
                            copy_to_shard(&shards, upgraded, connection).await
                        }
                        Ok(upgraded) => move_to_shard(&shards, upgraded, connection),
                        Err(error) => tracing::debug!(%error, "a peer left during its handshake"),
                    }
                });
                response.map(|()| Body::empty())
            }
        }
    }

    /// Returns the next step after a plain request; `None` if it is not an upgrade.
    pub(crate) fn answer(
        &self,
        head: &request::Parts,
        peer: SocketAddr,
        setup: impl FnOnce(&request::Parts, Option<&'static str>) -> Setup<A::Opening>,
    ) -> Option<PlainOutcome<A::Opening>> {
        if head.method != Method::GET || !head.headers.contains_key(header::UPGRADE) {
            return None;
        }
        Some(match self.decide(head, false, Some(peer), setup) {
            Ok((connection, response)) => {
                let head = plain_request::encode(&response, "");
                PlainOutcome::Open(Box::new(NewConnection { head, ..connection }))
            }
            Err(refusal) => PlainOutcome::Refuse(*refusal),
        })
    }

    /// Checks a request and the limits on new clients.
    ///
    /// # Errors
    /// The response of a refusal (RFC 6455 §4.2.2b).
    fn decide(
        &self,
        head: &request::Parts,
        has_body: bool,
        address: Option<SocketAddr>,
        setup: impl FnOnce(&request::Parts, Option<&'static str>) -> Setup<A::Opening>,
    ) -> Result<Accepted<A::Opening>, Box<Response<String>>> {
        let headers = &head.headers;
        let handshake = if is_extended_connect(head) {
            check_extended_connect(head)
        } else {
            check(head, has_body).map(Some)
        };
        let accept = handshake.map_err(|error| {
            let text = error.to_string();
            let now = Instant::now();
            self.admission.refuse_request(Cause::Malformed, &text, headers, address, now);
            Box::new(refuse_handshake(&error))
        })?;
        if self.shards.are_stopping() {
            return Err(Box::new(refuse_and_close(StatusCode::SERVICE_UNAVAILABLE, STOPPING)));
        }
        let permit = |max| self.shards.permit(max);
        let Admitted { permit, place } = self
            .admission
            .admit(headers, address, Instant::now(), permit)
            .map_err(|(status, text)| Box::new(refuse_and_close(status, text)))?;
        let offers = values(headers, header::SEC_WEBSOCKET_PROTOCOL);
        let subprotocol = handshake::choose_subprotocol(offers, self.subprotocols);
        let (agreement, client_window) = self.negotiate(headers).unzip();
        let peer = peer_of(headers, address);
        let compression = self.compression_of(agreement, peer);
        let ConnectionSetup { opening, is_binary, message } = setup(head, subprotocol)?;
        let connection = NewConnection {
            transport: self.transport,
            is_binary,
            compression,
            coding: None,
            may_inflate: agreement.is_some(),
            client_window: client_window.flatten(),
            peer,
            // The socket of a stream is one of a pair.
            address: address.filter(|_| is_extended_connect(head) || is_forwarded(head)),
            head: Vec::new(),
            message,
            opening,
            permit,
            place,
        };
        let response = switch(accept.as_deref(), subprotocol, agreement);
        Ok((connection, response))
    }

    /// The agreement, and the memory for the window of the client if it may refer to its earlier messages. Without
    /// memory it may not: after the 101 the window could not be refused any more.
    fn negotiate(&self, headers: &HeaderMap) -> Option<(Agreement, Option<ClientWindow>)> {
        let user_agent = headers.get(header::USER_AGENT).and_then(|agent| agent.to_str().ok());
        if !self.compression_apple && user_agent.is_some_and(extension::is_apple_nsurlsession) {
            return None;
        }
        let offers = values(headers, header::SEC_WEBSOCKET_EXTENSIONS);
        let agreement = extension::negotiate(offers, self.compression)?;
        let reserve = |window_bits| ClientWindow::reserve(&self.compression_memory, window_bits);
        match agreement.client_window_bits.and_then(reserve) {
            Some(window) => Some((agreement, Some(window))),
            None => Some((agreement.without_client_takeover(), None)),
        }
    }

    fn compression_of(&self, agreement: Option<Agreement>, peer: Peer) -> Compression {
        let compression = Compression::of(agreement);
        if self.decode_failures.failed_recently(peer, Instant::now()) {
            return compression.without_context();
        }
        if self.compression_dedicated { compression.dedicated() } else { compression }
    }
}

/// Opens a WebSocket in a stream of HTTP/2 on a shard, and copies until it ends.
async fn copy_to_shard<A: Application>(
    shards: &Shards<A>,
    upgraded: hyper::upgrade::Upgraded,
    connection: NewConnection<A::Opening>,
) {
    match http2::socket_pair() {
        Ok((socket, other)) => {
            shards.open(Arrival { socket, tls: None, early: Vec::new(), connection });
            http2::copy(other, upgraded).await;
        }
        Err(error) => tracing::warn!(%error, "no sockets for a WebSocket in a stream of HTTP/2"),
    }
}

/// A socket of TLS moves with its session, and its WebSocket stays in it (RFC 6455 §4.2.2a, §10.6a).
fn move_to_shard<A: Application>(
    shards: &Shards<A>,
    upgraded: hyper::upgrade::Upgraded,
    connection: NewConnection<A::Opening>,
) {
    let Ok(parts) = upgraded.downcast::<TokioIo<TimeoutStream<Socket>>>() else {
        tracing::error!("an upgraded connection is not one of the listener");
        return;
    };
    match parts.io.into_inner().into_socket().release() {
        Ok(ReleasedSocket { socket, tls, unread }) => {
            let early = [&parts.read_buf[..], &unread].concat();
            shards.open(Arrival { socket, tls, early, connection });
        }
        Err(error) => tracing::debug!(%error, "a peer left before its socket moved to a shard"),
    }
}

/// Whether the request opens a WebSocket in a stream of HTTP/2 (RFC 8441 §4).
fn is_extended_connect(head: &request::Parts) -> bool {
    let protocol = head.extensions.get::<Protocol>();
    head.method == Method::CONNECT && protocol.is_some_and(|it| it.as_str() == "websocket")
}

fn check_extended_connect(
    head: &request::Parts,
) -> Result<Option<String>, handshake::HandshakeError> {
    let version = values(&head.headers, header::SEC_WEBSOCKET_VERSION).next();
    handshake::check_extended_connect(version).map(|()| None)
}

fn check(head: &request::Parts, has_body: bool) -> Result<String, handshake::HandshakeError> {
    // List headers may be split over several lines (RFC 9110 §5.3): Upgrade and Connection are lists.
    let joined = |name| values(&head.headers, name).collect::<Vec<_>>().join(", ");
    let joined = [
        header::UPGRADE,
        header::CONNECTION,
        header::SEC_WEBSOCKET_KEY,
        header::SEC_WEBSOCKET_VERSION,
    ]
    .map(joined);
    let [upgrade, connection, key, version] =
        joined.each_ref().map(|value| (!value.is_empty()).then_some(value.as_str()));
    handshake::check(&handshake::HandshakeRequest {
        method: head.method.as_str(),
        http_1_1_or_newer: head.version >= Version::HTTP_11,
        has_body,
        upgrade,
        connection,
        key,
        version,
    })
}

fn values(headers: &HeaderMap, name: header::HeaderName) -> impl Iterator<Item = &str> {
    headers.get_all(name).into_iter().filter_map(|value| value.to_str().ok())
}

/// The response that begins a WebSocket (RFC 6455 §4.2.2i). `accept` is `None` in HTTP/2 (RFC 8441 §5).
///
/// Without a subprotocol it does not name one (RFC 6455 §4.2.2f). No header occurs twice (RFC 6455 §11.3.2a, §11.3.3a, §11.3.4a).
fn switch(
    accept: Option<&str>,
    subprotocol: Option<&str>,
    agreement: Option<Agreement>,
) -> Response<()> {
    let mut response = Response::builder();
    if let Some(accept) = accept {
        response = response
            .status(StatusCode::SWITCHING_PROTOCOLS)
            .header(header::UPGRADE, "websocket")
            .header(header::CONNECTION, "Upgrade")
            .header(header::SEC_WEBSOCKET_ACCEPT, accept);
    }
    if let Some(subprotocol) = subprotocol {
        response = response.header(header::SEC_WEBSOCKET_PROTOCOL, subprotocol);
    }
    if let Some(agreement) = agreement {
        response = response.header(header::SEC_WEBSOCKET_EXTENSIONS, agreement.response());
    }
    response.body(()).expect("every header value is made of printable ASCII")
}

fn refuse_handshake(error: &handshake::HandshakeError) -> Response<String> {
    let status =
        StatusCode::from_u16(error.status()).expect("a status of the handshake's own table");
    let mut response = refuse(status, error.to_string());
    for (name, value) in error.headers() {
        response.headers_mut().insert(*name, header::HeaderValue::from_static(value));
    }
    response
}

/// Refuses and closes the connection: it would keep a slot and a descriptor, or delay the shutdown.
fn refuse_and_close(status: StatusCode, text: &'static str) -> Response<String> {
    let mut refusal = refuse(status, text);
    let close = header::HeaderValue::from_static("close");
    refusal.headers_mut().insert(header::CONNECTION, close);
    retry_later(&mut refusal);
    refusal
}

const STOPPING: &str = "this node is stopping, connect to another one";

fn refuse(status: StatusCode, text: impl Into<String>) -> Response<String> {
    let mut text = text.into();
    text.push('\n');
    let response = Response::builder()
        .status(status)
        .header(header::CONTENT_TYPE, "text/plain; charset=utf-8");
    response.body(text).expect("static headers are valid")
}
