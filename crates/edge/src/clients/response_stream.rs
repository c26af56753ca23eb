//! HTTP streaming and Server-Sent Events: a response whose body ends with the connection (protocol §24).
//! In: a request with the first commands → out: its socket with the head of the response for a shard, or an HTTP error.
//! Uses `admission`, `cors` and `exchange`; never answers a request that a shard has taken over.
//! Changed here: the checks before a stream. What is sent on it lives in `shard::transport`, later commands in `emulation`.

use std::{future, net::SocketAddr, sync::Arc, time::Instant};

use axum::{
    body::{Body, Bytes},
    extract::{Request, State},
    http::{HeaderMap, Method, StatusCode, Uri, header, request},
    response::Response,
};
use fanwire_fanout::NewSession;
use fanwire_protocol::Encoding;
use fanwire_ws::extension;

use super::{
    admission::Admitted,
    content_coding, cors,
    endpoint::{
        ErrorResponse, RealtimeEndpoint, connect_parameter, is_octet_stream, last_event_id, read,
        refuse,
    },
    unidirectional,
};
use crate::accept::{
    date,
    exchange::Exchange,
    forwarded::{address_of, is_forwarded, peer_of},
    http2,
    plain_request::{PlainEndpoint, PlainOutcome},
    socket::ReleasedSocket,
};
use crate::options::ConnectCodeResponse;
use fanwire_shard::{Arrival, Coding, Framing, NewConnection, Permit, Transport};

/// The endpoint of one transport.
pub(crate) struct StreamEndpoint {
    pub(crate) realtime: Arc<RealtimeEndpoint>,
    /// Any transport but those of WebSockets.
    pub(crate) transport: Transport,
    pub(crate) body_bytes_max: usize,
    /// Statuses for refused connects of unidirectional clients; `None`: the stream begins before connect is decided.
    pub(crate) connect_responses: Option<Arc<[ConnectCodeResponse]>>,
    /// Compresses bodies for clients that accept it.
    pub(crate) compression: bool,
}

/// Serves one request. The response is sent by a shard; the returned one is an error, or the answer to a preflight.
pub(crate) async fn serve(
    State(endpoint): State<Arc<StreamEndpoint>>,
    request: Request,
) -> Response {
    let headers = request.headers().clone();
    match endpoint.begin(request).await {
        Ok(response) => response,
        Err(response) => cors::allow(*response, &headers).map(Body::from),
    }
}

impl PlainEndpoint for StreamEndpoint {
    fn answer(&self, head: &request::Parts, body: &[u8], peer: SocketAddr) -> Option<PlainOutcome> {
        if body.len() > self.body_bytes_max || head.headers.contains_key(header::UPGRADE) {
            return None;
        }
        let opened = self
            .admit(head, Some(peer))
            .and_then(|admitted| self.open(head, body.into(), admitted, Some(peer)));
        Some(match opened {
            Ok(connection) => PlainOutcome::Open(Box::new(connection)),
            Err(response) => PlainOutcome::Refuse(cors::allow(*response, &head.headers)),
        })
    }
}

impl StreamEndpoint {
    async fn begin(&self, request: Request) -> Result<Response, ErrorResponse> {
        let endpoint = &self.realtime.endpoint;
        let (head, body) = request.into_parts();
        let address = address_of(&head.extensions);
        if head.method == Method::OPTIONS && self.transport.framing() == Framing::Lines {
            return Err(endpoint.preflight(&head.headers, address));
        }
        let admitted = self.admit(&head, address)?;
        let body = if head.method == Method::GET {
            Bytes::new()
        } else {
            read(body, self.body_bytes_max).await?
        };
        let mut connection = self.open(&head, body.into(), admitted, address)?;
        let exchange = head.extensions.get::<Arc<Exchange>>();
        // Without an exchange the socket is one of a pair.
        connection.address = connection.address.or(address.filter(|_| exchange.is_none()));
        let shards = Arc::clone(&endpoint.shards);
        let open = move |socket, tls| {
            shards.open(Arrival { socket, tls, early: Vec::new(), connection });
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

    /// Checks a request before its body is read, and counts the connection that it opens.
    fn admit(
        &self,
        head: &request::Parts,
        address: Option<SocketAddr>,
    ) -> Result<Admitted<Permit>, ErrorResponse> {
        let endpoint = &self.realtime.endpoint;
        self.check_method(&head.method)?;
        if head.method == Method::GET {
            let checked = endpoint.admission.check_site(&head.headers, address, Instant::now());
            checked.map_err(|(status, text)| refuse(status, text))?;
        }
        if endpoint.shards.are_stopping() {
            return Err(refuse(StatusCode::SERVICE_UNAVAILABLE, "this node is stopping"));
        }
        let permit = |max| endpoint.shards.permit(max);
        let admitted = endpoint.admission.admit(&head.headers, address, Instant::now(), permit);
        admitted.map_err(|(status, text)| refuse(status, text))
    }

    /// How the connection of a request begins.
    fn open(
        &self,
        head: &request::Parts,
        body: Vec<u8>,
        Admitted { permit, place }: Admitted<Permit>,
        address: Option<SocketAddr>,
    ) -> Result<NewConnection<NewSession>, ErrorResponse> {
        let message = if head.method == Method::GET { self.parameter(&head.uri)? } else { body };
        let message = self.first_message(message)?;
        let is_binary = self.transport == Transport::HttpStream && is_octet_stream(&head.headers);
        let coding = self.coding(&head.headers);
        let (opening, response_head) = self.opening(head, is_binary, coding)?;
        let peer = peer_of(&head.headers, address);
        Ok(NewConnection {
            transport: self.transport,
            is_binary,
            coding,
            address: address.filter(|_| is_forwarded(head)),
            head: response_head,
            message,
            place,
            ..NewConnection::raw(peer, opening, permit)
        })
    }

    /// The message in the query, which a unidirectional client may leave out.
    fn parameter(&self, uri: &Uri) -> Result<Vec<u8>, ErrorResponse> {
        match connect_parameter(uri) {
            Some(message) => Ok(message.into_bytes()),
            None if self.transport.is_unidirectional() => Ok(Vec::new()),
            None => Err(refuse(StatusCode::BAD_REQUEST, "the parameter cf_connect is missing")),
        }
    }

    fn first_message(&self, message: Vec<u8>) -> Result<Vec<u8>, ErrorResponse> {
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
        request: &request::Parts,
        is_binary: bool,
        coding: Option<Coding>,
    ) -> Result<(NewSession, Vec<u8>), ErrorResponse> {
        let headers = &request.headers;
        let encoding = if is_binary { Encoding::Protobuf } else { Encoding::Json };
        let mut opening = self.realtime.connection_info(headers, encoding, self.transport)?;
        if self.transport.is_unidirectional() {
            opening.last_event_id = last_event_id(request);
        }
        let head = self.head(headers, is_binary, coding);
        Ok(match self.connect_responses.clone() {
            None => (opening.into(), head),
            Some(transforms) => {
                let response = unidirectional::pending_response(head, coding, headers, transforms);
                (NewSession { connection: opening, response: Some(response) }, Vec::new())
            }
        })
    }

    fn check_method(&self, method: &Method) -> Result<(), ErrorResponse> {
        match (self.transport.framing().is_events(), method) {
            (_, &Method::POST) | (true, &Method::GET) => Ok(()),
            (true, _) => Err(Box::new(cors::refuse_method("GET, POST"))),
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
    fn head(&self, headers: &HeaderMap, is_binary: bool, coding: Option<Coding>) -> Vec<u8> {
        let kind = match self.transport.framing() {
            framing if framing.is_events() => "text/event-stream; charset=utf-8",
            _ if is_binary => "application/octet-stream",
            _ => "text/plain; charset=utf-8",
        };
        let mut head = format!("{HEAD}{}Content-Type: {kind}\r\n", date::line());
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

/// `X-Accel-Buffering` is for nginx; `Expire` is what Centrifugo sends.
const HEAD: &str = "HTTP/1.1 200 OK\r\n\
    X-Accel-Buffering: no\r\n\
    Cache-Control: private, no-cache, no-store, must-revalidate, max-age=0\r\n\
    Pragma: no-cache\r\n\
    Expire: 0\r\n\
    Connection: close\r\n";
