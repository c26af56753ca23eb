//! HTTP streaming and Server-Sent Events: a response whose body ends with the connection (protocol §24).
//! In: a request with the first commands → out: its socket with the head of the response for a shard, or an HTTP error.
//! Uses `admission`, `cors` and `exchange`; never answers a request that a shard has taken over.
//! Changed here: the checks before a stream. What is sent on it lives in `shard::transport`, later commands in `emulation`.

use std::{
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
use fanwire_fanout::Opening;
use fanwire_node::{Hello, Uplink};
use fanwire_protocol::Encoding;
use fanwire_ws::extension;
use http_body_util::{BodyExt, LengthLimitError, Limited};

use super::{
    content_coding, cors,
    exchange::Exchange,
    http2,
    routes::{RealtimeEndpoint, user_of},
    socket::ReleasedSocket,
    unidirectional,
    upgrade::{Endpoint, address_of, peer_of},
};
use crate::config::ConnectCodeResponse;
use crate::shard::{
    Application, Arrival, Coding, Compression, Framing, Negotiated, OpenResponse, Transport,
};

/// A response instead of the stream.
pub(super) type Refusal = Box<Response>;

/// The endpoint of one transport.
pub(super) struct StreamEndpoint {
    pub(super) realtime: Arc<RealtimeEndpoint>,
    /// Not one of WebSockets.
    pub(super) transport: Transport,
    pub(super) body_bytes_max: usize,
    /// Statuses for refused connects of unidirectional clients; `None`: the stream begins before connect is decided.
    pub(super) connect_responses: Option<Arc<[ConnectCodeResponse]>>,
    /// Compresses bodies for clients that accept it.
    pub(super) compression: bool,
}

/// Serves one request. The response is sent by a shard; the returned one is an error, or the answer to a preflight.
pub(super) async fn serve(
    State(endpoint): State<Arc<StreamEndpoint>>,
    request: Request,
) -> Response {
    let headers = request.headers().clone();
    match endpoint.begin(request).await {
        Ok(response) => response,
        Err(refusal) => cors::allow(*refusal, &headers),
    }
}

impl StreamEndpoint {
    async fn begin(&self, request: Request) -> Result<Response, Refusal> {
        let endpoint = &self.realtime.endpoint;
        let is_preflight = request.method() == Method::OPTIONS;
        if is_preflight && self.transport.framing() == Framing::Lines {
            return Err(endpoint.preflight(&request));
        }
        self.check_method(request.method())?;
        if endpoint.shards.are_stopping() {
            return Err(refuse(StatusCode::SERVICE_UNAVAILABLE, "this node is stopping"));
        }
        let address = address_of(request.extensions());
        let (parts, body) = request.into_parts();
        let permit = |max| endpoint.shards.permit(max);
        let permit = endpoint.admission.admit(&parts.headers, address, Instant::now(), permit);
        let permit = permit.map_err(|(status, text)| refuse(status, text))?;
        let exchange = parts.extensions.get::<Arc<Exchange>>().cloned();
        let request = Request::from_parts(parts, Body::empty());
        let message = if request.method() == Method::GET {
            self.parameter(&request)?
        } else {
            read(body, self.body_bytes_max).await?.into()
        };
        let message = self.first_message(message)?;
        let is_binary =
            self.transport == Transport::HttpStream && is_octet_stream(request.headers());
        let coding = self.coding(request.headers());
        let (opening, head) = self.opening(&request, is_binary, coding);
        let response = OpenResponse { transport: self.transport, coding, head, message };
        let peer = peer_of(request.headers(), address);
        let shards = Arc::clone(&endpoint.shards);
        let negotiated = Negotiated {
            is_binary,
            compression: Compression::Raw,
            may_inflate: false,
            client_window: None,
            peer,
            // Without an exchange the socket is one of a pair.
            address: address.filter(|_| exchange.is_none()),
            hello: opening,
            permit,
        };
        let open = move |socket, tls| {
            let (early, response) = (Vec::new(), Some(response));
            shards.open(Arrival { socket, tls, early, response, negotiated });
        };
        let Some(exchange) = exchange else {
            return http2::response_of_shard(|socket| open(socket, None)).await.map_err(|error| {
                tracing::warn!(%error, "no response of a shard for a stream of HTTP/2");
                refuse(StatusCode::SERVICE_UNAVAILABLE, "this node has no sockets left")
            });
        };
        exchange.hand_over(Box::new(move |ReleasedSocket { socket, tls, .. }| open(socket, tls)));
        // The task of the connection takes its socket now, and drops this future.
        future::pending().await
    }

    /// The message in the query, which a unidirectional client may leave out.
    fn parameter(&self, request: &Request) -> Result<Vec<u8>, Refusal> {
        match connect_parameter(request) {
            Some(message) => Ok(message.into_bytes()),
            None if self.transport.is_unidirectional() => Ok(Vec::new()),
            None => Err(refuse(StatusCode::BAD_REQUEST, "the parameter cf_connect is missing")),
        }
    }

    fn first_message(&self, message: Vec<u8>) -> Result<Vec<u8>, Refusal> {
        match self.transport {
            // Its credentials may be in a header.
            Transport::UniEventStream if message.is_empty() => Ok(b"{}".to_vec()),
            transport if transport.is_unidirectional() => unidirectional::connect_request(message),
            _ => Ok(message),
        }
    }

    /// How the session opens, and the head of the response, empty if that waits for connect.
    fn opening(
        &self,
        request: &Request,
        is_binary: bool,
        coding: Option<Coding>,
    ) -> (Opening, Vec<u8>) {
        let hello = Hello {
            encoding: if is_binary { Encoding::Protobuf } else { Encoding::Json },
            frame_ping: false,
            transport: self.transport.name(),
            uplink: match self.transport.is_unidirectional() {
                true => Uplink::None,
                false => Uplink::Requests,
            },
            user: user_of(request.headers(), &self.realtime.user_id_header),
        };
        let head = self.head(request.headers(), coding);
        match self.connect_responses.clone() {
            None => (hello.into(), head),
            Some(transforms) => {
                let headers = request.headers();
                let response = unidirectional::pending_response(head, headers, transforms);
                (Opening { hello, response: Some(response) }, Vec::new())
            }
        }
    }

    fn check_method(&self, method: &Method) -> Result<(), Refusal> {
        match (self.transport.framing(), method) {
            (_, &Method::POST) | (Framing::Events, &Method::GET) => Ok(()),
            (Framing::Events, _) => Err(Box::new(cors::refuse_method("GET, POST"))),
            _ => Err(Box::new(cors::refuse_method("POST, OPTIONS"))),
        }
    }

    /// The coding of the body. None for Apple's NSURLSession, which is known to keep the first 512 bytes of a text until
    /// more arrive: compressed messages take long to be so many. Its events are delayed less without compression.
    fn coding(&self, headers: &HeaderMap) -> Option<Coding> {
        let agent = headers.get(header::USER_AGENT).and_then(|agent| agent.to_str().ok());
        let is_apple = agent.is_some_and(extension::is_apple_nsurlsession);
        let compresses =
            self.compression && (!is_apple || self.realtime.endpoint.compression_apple);
        if compresses { content_coding::accepted(headers) } else { None }
    }

    /// Status and headers. The body ends with the connection, which every version of HTTP/1
    /// knows (RFC 9112 §6.3), so that no byte is spent on chunks.
    fn head(&self, headers: &HeaderMap, coding: Option<Coding>) -> Vec<u8> {
        let mut head = String::from(HEAD);
        if self.transport.framing() == Framing::Events {
            head.push_str("Content-Type: text/event-stream; charset=utf-8\r\n");
        }
        if self.compression {
            head.push_str("Vary: Accept-Encoding\r\n");
        }
        if let Some(coding) = coding {
            head.push_str(&format!("Content-Encoding: {}\r\n", coding.name()));
        }
        head.push_str(&cors::lines(headers));
        head.push_str("\r\n");
        head.into_bytes()
    }
}

impl<A: Application> Endpoint<A> {
    /// # Errors
    /// 403.
    pub(super) fn check_origin(&self, request: &Request) -> Result<(), Refusal> {
        let checked = self.admission.check_origin(
            request.headers(),
            address_of(request.extensions()),
            Instant::now(),
        );
        checked.map_err(|(status, text)| refuse(status, text))
    }

    pub(super) fn preflight(&self, request: &Request) -> Refusal {
        self.check_origin(request).err().unwrap_or_else(|| Box::new(cors::preflight()))
    }
}

/// The commands in the query of an event stream, as `EventSource` sends them, or a connect request.
pub(super) fn connect_parameter(request: &Request) -> Option<String> {
    let query = Query::<Vec<(String, String)>>::try_from_uri(request.uri());
    let query = query.map(|Query(options)| options).unwrap_or_default();
    let commands = query.into_iter().find(|(name, _)| name == "cf_connect").map(|(_, value)| value);
    commands.filter(|commands| !commands.is_empty())
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
