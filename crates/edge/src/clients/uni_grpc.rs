//! Unidirectional gRPC: calls with one connect request, whose responses are pushes in Protobuf, on a listener of their own (protocol §25).
//! In: calls of `Consume` → out: responses that shards write, with the status OK at their end; statuses for refused calls.
//! Uses `admission`, and the sockets of streams of HTTP/2. Never: decides about a connect.
//! Changed here: the checks of a call. What a client receives is made by `fanout`, prefixes of messages by `shard::transport`.

use std::{future, net::SocketAddr, sync::Arc, time::Instant};

use axum::{
    body::{Body, Bytes},
    http::{HeaderMap, HeaderName, HeaderValue, Request, Response, StatusCode, Version, header},
};
use fanwire_protocol::{ConnectRequest, Encoding};
use fanwire_shard::{Arrival, NewConnection, Transport};
use http_body_util::BodyExt;
use hyper::body::Incoming;

use super::admission::Admitted;
use super::endpoint::{ErrorResponse, RealtimeEndpoint, read, refuse};
use crate::accept::{bodies::TrackedBody, forwarded::peer_of, http2, listener::Service};

/// The service of the listener.
pub struct UniGrpcService {
    pub(crate) realtime: Arc<RealtimeEndpoint>,
    pub(crate) message_bytes_max: usize,
}

impl Service for UniGrpcService {
    type Body = Body;

    async fn answer(
        &self,
        request: Request<TrackedBody<Incoming>>,
        peer: SocketAddr,
    ) -> Response<Body> {
        if !is_grpc(request.headers()) || request.version() != Version::HTTP_2 {
            let mut response = Response::new(Body::from("this port speaks gRPC\n"));
            *response.status_mut() = StatusCode::UNSUPPORTED_MEDIA_TYPE;
            return response;
        }
        self.begin(request.map(Body::new), peer)
            .await
            .unwrap_or_else(|response| status_of(*response))
    }

    fn late(&self) -> Response<Body> {
        status_of(*refuse(StatusCode::REQUEST_TIMEOUT, "the body takes too long"))
    }
}

impl UniGrpcService {
    async fn begin(
        &self,
        request: Request<Body>,
        peer: SocketAddr,
    ) -> Result<Response<Body>, ErrorResponse> {
        let endpoint = &self.realtime.endpoint;
        let (head, body) = request.into_parts();
        if head.uri.path() != PATH {
            return Err(refuse(StatusCode::NOT_FOUND, "the server has no such method"));
        }
        if endpoint.shards.are_stopping() {
            return Err(refuse(StatusCode::SERVICE_UNAVAILABLE, "this node is stopping"));
        }
        let permit = |max| endpoint.shards.permit(max);
        let Admitted { permit, place } = endpoint
            .admission
            .admit(&head.headers, Some(peer), Instant::now(), permit)
            .map_err(|(status, text)| refuse(status, text))?;
        let body = read(body, self.message_bytes_max.saturating_add(PREFIX_BYTES)).await?;
        let message = connect_request(&body)?;
        let opening =
            self.realtime.connection_info(&head.headers, Encoding::Protobuf, Transport::UniGrpc)?;
        let connection = NewConnection {
            transport: Transport::UniGrpc,
            is_binary: true,
            address: Some(peer),
            head: HEAD.to_vec(),
            message,
            place,
            ..NewConnection::raw(peer_of(&head.headers, Some(peer)), opening.into(), permit)
        };
        let shards = Arc::clone(&endpoint.shards);
        let open = move |socket| {
            shards.open(Arrival { socket, tls: None, early: Vec::new(), connection });
        };
        let response = http2::response_of_shard(open).await.map_err(|error| {
            tracing::warn!(%error, "no response of a shard for a call of gRPC");
            refuse(StatusCode::SERVICE_UNAVAILABLE, "this node has no sockets left")
        })?;
        // Also after a disconnect push, which says more than a status.
        let trailers = HeaderMap::from_iter([(STATUS, HeaderValue::from_static("0"))]);
        let trailers = future::ready(Some(Ok(trailers)));
        Ok(response.map(|body| Body::new(body.with_trailers(trailers))))
    }
}

/// Whether the content type of a request is that of gRPC, with any encoding of its messages.
pub fn is_grpc(headers: &HeaderMap) -> bool {
    let kind = headers.get(header::CONTENT_TYPE).map(HeaderValue::as_bytes);
    kind.is_some_and(|kind| kind.starts_with(GRPC.as_bytes()))
}

/// The connect request in the body of a call, which the session reads again.
fn connect_request(body: &Bytes) -> Result<Vec<u8>, ErrorResponse> {
    let invalid = |text| refuse(StatusCode::BAD_REQUEST, text);
    let Some(([flag, length @ ..], message)) = body.split_first_chunk::<PREFIX_BYTES>() else {
        return Err(invalid("the call has no connect request"));
    };
    if *flag != 0 {
        return Err(refuse(StatusCode::NOT_FOUND, "connect requests are not compressed"));
    }
    if u32::from_be_bytes(*length) as usize != message.len() {
        return Err(invalid("the call has not one connect request"));
    }
    match ConnectRequest::read(Encoding::Protobuf, message) {
        Ok(_) => Ok(message.to_vec()),
        Err(_) => Err(invalid("invalid connect request")),
    }
}

/// The error response of an endpoint as the status of a call.
fn status_of(refused: Response<String>) -> Response<Body> {
    let code = match refused.status() {
        StatusCode::BAD_REQUEST => "13",      // INTERNAL
        StatusCode::FORBIDDEN => "7",         // PERMISSION_DENIED
        StatusCode::NOT_FOUND => "12",        // UNIMPLEMENTED
        StatusCode::REQUEST_TIMEOUT => "4",   // DEADLINE_EXCEEDED
        StatusCode::PAYLOAD_TOO_LARGE => "8", // RESOURCE_EXHAUSTED
        StatusCode::TOO_MANY_REQUESTS => "8",
        _ => "14", // UNAVAILABLE
    };
    let mut response = Response::new(Body::empty());
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(GRPC));
    headers.insert(STATUS, HeaderValue::from_static(code));
    headers.extend(HeaderValue::from_str(refused.body().trim_end()).map(|text| (MESSAGE, text)));
    response
}

const PATH: &str = "/centrifugal.centrifugo.unistream.CentrifugoUniStream/Consume";

/// The head of a response, which [`http2::response_of_shard`] reads.
const HEAD: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Type: application/grpc\r\n\r\n";

const GRPC: &str = "application/grpc";

const STATUS: HeaderName = HeaderName::from_static("grpc-status");
const MESSAGE: HeaderName = HeaderName::from_static("grpc-message");

/// Bytes before a message: a flag and the length.
const PREFIX_BYTES: usize = 5;
