//! From an HTTP request to a WebSocket on a shard (RFC 6455 §4.2, RFC 7692 §7).
//! In: a request on an endpoint → out: 101 and a socket for a shard, or an HTTP error with its reason.
//! Uses `ws` for the rules and hyper for the switch; never limits clients.
//! Changed here: the checks of a handshake; limits on new clients live in `admission`, the open connection in the shard's application.

use std::{net::SocketAddr, sync::Arc, time::Instant};

use axum::{
    body::{Body, HttpBody},
    extract::ConnectInfo,
    http::{HeaderMap, Request, Response, StatusCode, Version, header},
};
use fanwire_ws::{
    Compression,
    extension::{self, Agreement},
    handshake,
};
use hyper_util::rt::TokioIo;

use super::{
    admission::Admission,
    socket::{ReleasedSocket, Socket},
    timeout_stream::TimeoutStream,
};
use crate::refusals::Cause;
use crate::shard::{Application, Arrival, DecodeFailures, Peer, Permit, Shards};

/// One WebSocket endpoint in front of the shards of an application.
pub struct Endpoint<A: Application> {
    pub shards: Arc<Shards<A>>,
    pub compression: extension::ExtensionSettings,
    /// Offer compression to Apple's NSURLSession stack too, although its inflater is known to fail.
    pub compression_apple: bool,
    /// Use a dedicated compressor for connections that allow it.
    pub compression_dedicated: bool,
    /// Peers that failed to decode references between messages, and so get none.
    pub decode_failures: Arc<DecodeFailures>,
    /// Subprotocols this endpoint speaks.
    pub subprotocols: &'static [&'static str],
    /// Limits on new connections.
    pub admission: Admission,
}

/// How the application opens the connection of a request.
pub struct ConnectionSetup<H> {
    pub hello: H,
    pub is_binary: bool,
}

impl<A: Application> Endpoint<A> {
    /// Serves one request. `setup` is called with the head of the request and the chosen subprotocol.
    pub fn upgrade(
        &self,
        mut request: Request<Body>,
        setup: impl FnOnce(&Request<Body>, Option<&'static str>) -> ConnectionSetup<A::Hello>,
    ) -> Response<Body> {
        let accept = match check(&request) {
            Ok(accept) => accept,
            Err(error) => {
                self.admission.refuse_request(
                    Cause::Malformed,
                    &error.to_string(),
                    request.headers(),
                    address(&request),
                    Instant::now(),
                );
                return refuse_handshake(&error);
            }
        };
        if self.shards.are_stopping() {
            return refuse_and_close(StatusCode::SERVICE_UNAVAILABLE, STOPPING);
        }
        let permit = |max| self.shards.permit(max);
        let (headers, address) = (request.headers(), address(&request));
        let permit = match self.admission.admit(headers, address, Instant::now(), permit) {
            Ok(permit) => permit,
            Err((status, text)) => return refuse_and_close(status, text),
        };
        let offers = values(request.headers(), header::SEC_WEBSOCKET_PROTOCOL);
        let subprotocol = handshake::choose_subprotocol(offers, self.subprotocols);
        let agreement = self.negotiate(request.headers());
        let peer = peer(&request);
        let compression = self.compression_of(agreement, peer);
        let ConnectionSetup { hello, is_binary } = setup(&request, subprotocol);
        let on_upgrade = hyper::upgrade::on(&mut request);
        let shards = self.shards.clone();
        let may_inflate = agreement.is_some();
        let pending = PendingUpgrade { hello, is_binary, compression, may_inflate, peer, permit };
        tokio::spawn(async move {
            match on_upgrade.await {
                Ok(upgraded) => move_to_shard(&shards, upgraded, pending),
                Err(error) => tracing::debug!(%error, "a peer left during its handshake"),
            }
        });
        switch(&accept, subprotocol, agreement)
    }

    fn negotiate(&self, headers: &HeaderMap) -> Option<Agreement> {
        let user_agent = headers.get(header::USER_AGENT).and_then(|agent| agent.to_str().ok());
        if !self.compression_apple && user_agent.is_some_and(extension::is_apple_nsurlsession) {
            return None;
        }
        let offers = values(headers, header::SEC_WEBSOCKET_EXTENSIONS);
        extension::negotiate(offers, self.compression)
    }

    fn compression_of(&self, agreement: Option<Agreement>, peer: Peer) -> Compression {
        let compression = Compression::of(agreement);
        if self.decode_failures.failed_recently(peer, Instant::now()) {
            return compression.without_context();
        }
        if self.compression_dedicated { compression.dedicated() } else { compression }
    }
}

/// Identifies a peer across connections: by address, user agent and forwarded address.
pub(super) fn peer(request: &Request<Body>) -> Peer {
    let address = address(request).map(|address| address.ip());
    let identifying = [header::USER_AGENT, FORWARDED_FOR].map(|name| request.headers().get(name));
    Peer::of(&(address, identifying))
}

pub(super) fn address(request: &Request<Body>) -> Option<SocketAddr> {
    request.extensions().get::<ConnectInfo<SocketAddr>>().map(|info| info.0)
}

const FORWARDED_FOR: header::HeaderName = header::HeaderName::from_static("x-forwarded-for");

/// The result of a handshake, kept until its socket can move to a shard.
struct PendingUpgrade<H> {
    hello: H,
    is_binary: bool,
    compression: Compression,
    may_inflate: bool,
    peer: Peer,
    permit: Permit,
}

fn move_to_shard<A: Application>(
    shards: &Shards<A>,
    upgraded: hyper::upgrade::Upgraded,
    pending: PendingUpgrade<A::Hello>,
) {
    let Ok(parts) = upgraded.downcast::<TokioIo<TimeoutStream<Socket>>>() else {
        tracing::error!("an upgraded connection is not one of the listener");
        return;
    };
    match parts.io.into_inner().into_socket().release() {
        Ok(ReleasedSocket { socket, tls, unread }) => shards.open(Arrival {
            socket,
            tls,
            early: [&parts.read_buf[..], &unread].concat(),
            response: None,
            is_binary: pending.is_binary,
            compression: pending.compression,
            may_inflate: pending.may_inflate,
            peer: pending.peer,
            hello: pending.hello,
            permit: pending.permit,
        }),
        Err(error) => tracing::debug!(%error, "a peer left before its socket moved to a shard"),
    }
}

fn check(request: &Request<Body>) -> Result<String, handshake::HandshakeError> {
    // List headers may be split over several lines (RFC 9110 §5.3): Upgrade and Connection are lists.
    let joined = |name| values(request.headers(), name).collect::<Vec<_>>().join(", ");
    let joined = [
        header::UPGRADE,
        header::CONNECTION,
        header::SEC_WEBSOCKET_KEY,
        header::SEC_WEBSOCKET_VERSION,
    ]
    .map(joined);
    let [upgrade, connection, key, version] =
        joined.each_ref().map(|value| (!value.is_empty()).then_some(value.as_str()));
    handshake::check(&handshake::Request {
        method: request.method().as_str(),
        http_1_1_or_newer: request.version() >= Version::HTTP_11,
        has_body: !request.body().is_end_stream(),
        upgrade,
        connection,
        key,
        version,
    })
}

fn values(headers: &HeaderMap, name: header::HeaderName) -> impl Iterator<Item = &str> {
    headers.get_all(name).into_iter().filter_map(|value| value.to_str().ok())
}

fn switch(accept: &str, subprotocol: Option<&str>, agreement: Option<Agreement>) -> Response<Body> {
    let mut response = Response::builder()
        .status(StatusCode::SWITCHING_PROTOCOLS)
        .header(header::UPGRADE, "websocket")
        .header(header::CONNECTION, "Upgrade")
        .header(header::SEC_WEBSOCKET_ACCEPT, accept);
    if let Some(subprotocol) = subprotocol {
        response = response.header(header::SEC_WEBSOCKET_PROTOCOL, subprotocol);
    }
    if let Some(agreement) = agreement {
        response = response.header(header::SEC_WEBSOCKET_EXTENSIONS, agreement.response());
    }
    response.body(Body::empty()).expect("every header value is made of printable ASCII")
}

fn refuse_handshake(error: &handshake::HandshakeError) -> Response<Body> {
    let status =
        StatusCode::from_u16(error.status()).expect("a status of the handshake's own table");
    let mut response = refuse(status, error.to_string());
    for (name, value) in error.headers() {
        response.headers_mut().insert(*name, header::HeaderValue::from_static(value));
    }
    response
}

/// Refuses and closes the connection: it would keep a slot and a descriptor, or delay the shutdown.
fn refuse_and_close(status: StatusCode, text: &'static str) -> Response<Body> {
    let mut refusal = refuse(status, text);
    let close = header::HeaderValue::from_static("close");
    refusal.headers_mut().insert(header::CONNECTION, close);
    refusal
}

const STOPPING: &str = "this node is stopping, connect to another one";

fn refuse(status: StatusCode, text: impl Into<String>) -> Response<Body> {
    let mut text = text.into();
    text.push('\n');
    let response = Response::builder()
        .status(status)
        .header(header::CONTENT_TYPE, "text/plain; charset=utf-8");
    response.body(Body::from(text)).expect("static headers are valid")
}
