//! HTTP streaming and Server-Sent Events: a response whose body ends with the connection (protocol §24).
//! In: a request with the first commands → out: its socket with the head of the response for a shard, or an HTTP error.
//! Uses `admission`, `cors` and `exchange`; never answers a request that a shard has taken over.
//! Changed here: the checks before a stream. What is sent on it lives in `shard::transport`, later commands in `emulation`.

use std::{
    convert::Infallible,
    future,
    sync::Arc,
    time::{Duration, Instant},
};

use axum::{
    body::{Body, Bytes},
    extract::{Query, Request, State},
    http::{HeaderMap, Method, StatusCode, header},
    response::{IntoResponse, Response},
};
use fanwire_node::Hello;
use fanwire_protocol::Encoding;
use http_body_util::{BodyExt, LengthLimitError, Limited};

use super::{
    cors,
    exchange::Exchange,
    routes::{RealtimeEndpoint, user_of},
    socket::ReleasedSocket,
    upgrade::{Endpoint, address, peer},
};
use crate::shard::{Application, Arrival, Compression, OpenResponse, Transport};

/// A response instead of the stream.
pub(super) type Refusal = Box<Response>;

/// The endpoint of one transport.
pub(super) struct StreamEndpoint {
    pub(super) realtime: Arc<RealtimeEndpoint>,
    /// Not [`Transport::WebSocket`].
    pub(super) transport: Transport,
    pub(super) body_bytes_max: usize,
}

/// Serves one request. The response is sent by a shard; the returned one is an error, or the answer to a preflight.
pub(super) async fn serve(
    State(endpoint): State<Arc<StreamEndpoint>>,
    request: Request,
) -> Response {
    let headers = request.headers().clone();
    match endpoint.begin(request).await {
        Ok(never) => match never {},
        Err(refusal) => cors::allow(*refusal, &headers),
    }
}

impl StreamEndpoint {
    async fn begin(&self, request: Request) -> Result<Infallible, Refusal> {
        let endpoint = &self.realtime.endpoint;
        let is_preflight = request.method() == Method::OPTIONS;
        if is_preflight && self.transport == Transport::HttpStream {
            return Err(endpoint.preflight(&request));
        }
        self.check_method(request.method())?;
        if endpoint.shards.are_stopping() {
            return Err(refuse(StatusCode::SERVICE_UNAVAILABLE, "this node is stopping"));
        }
        let address = address(&request);
        let (parts, body) = request.into_parts();
        let permit = |max| endpoint.shards.permit(max);
        let permit = endpoint.admission.admit(&parts.headers, address, Instant::now(), permit);
        let permit = permit.map_err(|(status, text)| refuse(status, text))?;
        let exchange = parts.extensions.get::<Arc<Exchange>>().cloned();
        let exchange =
            exchange.ok_or_else(|| refuse(StatusCode::HTTP_VERSION_NOT_SUPPORTED, ""))?;
        let request = Request::from_parts(parts, Body::empty());
        let message = if request.method() == Method::GET {
            connect_parameter(&request)?.into()
        } else {
            read(body, self.body_bytes_max).await?
        };
        let is_binary =
            self.transport == Transport::HttpStream && is_octet_stream(request.headers());
        let encoding = if is_binary { Encoding::Protobuf } else { Encoding::Json };
        let hello = Hello {
            encoding,
            frame_ping: false,
            transport: self.transport.name(),
            is_emulated: true,
            user: user_of(&request, &self.realtime.user_id_header),
        };
        let response = OpenResponse {
            transport: self.transport,
            head: self.head(request.headers()),
            message: message.into(),
        };
        let peer = peer(&request);
        let shards = Arc::clone(&endpoint.shards);
        exchange.hand_over(Box::new(move |ReleasedSocket { socket, tls, .. }| {
            shards.open(Arrival {
                socket,
                tls,
                early: Vec::new(),
                response: Some(response),
                is_binary,
                compression: Compression::Raw,
                may_inflate: false,
                peer,
                hello,
                permit,
            });
        }));
        // The task of the connection takes its socket now, and drops this future.
        future::pending().await
    }

    fn check_method(&self, method: &Method) -> Result<(), Refusal> {
        match (self.transport, method) {
            (_, &Method::POST) | (Transport::EventStream, &Method::GET) => Ok(()),
            (Transport::EventStream, _) => Err(Box::new(cors::refuse_method("GET, POST"))),
            _ => Err(Box::new(cors::refuse_method("POST, OPTIONS"))),
        }
    }

    /// Status, headers and the first bytes of the body. The body ends with the connection, which every version of HTTP/1
    /// knows (RFC 9112 §6.3), so that no byte is spent on chunks.
    fn head(&self, headers: &HeaderMap) -> Vec<u8> {
        let mut head = String::from(HEAD);
        if self.transport == Transport::EventStream {
            head.push_str("Content-Type: text/event-stream; charset=utf-8\r\n");
        }
        for (name, value) in cors::headers(headers) {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
        head.push_str("\r\n");
        if self.transport == Transport::EventStream {
            head.push_str("\r\n"); // makes proxies and browsers begin the stream
        }
        head.into_bytes()
    }
}

impl<A: Application> Endpoint<A> {
    /// # Errors
    /// 403.
    pub(super) fn check_origin(&self, request: &Request) -> Result<(), Refusal> {
        let checked =
            self.admission.check_origin(request.headers(), address(request), Instant::now());
        checked.map_err(|(status, text)| refuse(status, text))
    }

    pub(super) fn preflight(&self, request: &Request) -> Refusal {
        self.check_origin(request).err().unwrap_or_else(|| Box::new(cors::preflight()))
    }
}

/// The commands in the query of an event stream, as `EventSource` sends them.
fn connect_parameter(request: &Request) -> Result<String, Refusal> {
    let query = Query::<Vec<(String, String)>>::try_from_uri(request.uri());
    let query = query.map(|Query(options)| options).unwrap_or_default();
    let commands = query.into_iter().find(|(name, _)| name == "cf_connect").map(|(_, value)| value);
    let missing = || refuse(StatusCode::BAD_REQUEST, "the parameter cf_connect is missing");
    commands.filter(|commands| !commands.is_empty()).ok_or_else(missing)
}

/// Reads the body of a request.
pub(super) async fn read(body: Body, bytes_max: usize) -> Result<Bytes, Refusal> {
    let collected = tokio::time::timeout(BODY_TIMEOUT, Limited::new(body, bytes_max).collect());
    match collected.await {
        Ok(Ok(body)) => Ok(body.to_bytes()),
        Ok(Err(error)) if error.is::<LengthLimitError>() => {
            Err(refuse(StatusCode::PAYLOAD_TOO_LARGE, "the body is too long"))
        }
        Ok(Err(_)) => Err(refuse(StatusCode::BAD_REQUEST, "the body ends early")),
        Err(_) => Err(refuse(StatusCode::REQUEST_TIMEOUT, "the body takes too long")),
    }
}

/// Whether a request has a body in Protobuf.
pub(super) fn is_octet_stream(headers: &HeaderMap) -> bool {
    headers.get(header::CONTENT_TYPE).is_some_and(|kind| kind == "application/octet-stream")
}

/// Refuses and closes the connection, whose body may not be read.
pub(super) fn refuse(status: StatusCode, text: &'static str) -> Refusal {
    Box::new((status, [(header::CONNECTION, "close")], format!("{text}\n")).into_response())
}

/// `X-Accel-Buffering` is for nginx; `Expire` is what Centrifugo sends.
const HEAD: &str = "HTTP/1.1 200 OK\r\n\
    X-Accel-Buffering: no\r\n\
    Cache-Control: private, no-cache, no-store, must-revalidate, max-age=0\r\n\
    Pragma: no-cache\r\n\
    Expire: 0\r\n\
    Connection: close\r\n";

/// Limit for a complete body, as for the server API.
const BODY_TIMEOUT: Duration = Duration::from_secs(30);
