//! The server API over gRPC on its own listener: calls, streams of commands, the description of the services.
//! In: requests of HTTP/2 → out: responses with the status of gRPC in their trailers.
//! Uses `GrpcApi` of the API, and tonic for compressed messages and reflection. Never: the fields of a message.
//! Changed here: how a call looks on the wire (<https://github.com/grpc/grpc/blob/master/doc/PROTOCOL-HTTP2.md>). Methods: `api`.

use std::{convert::Infallible, net::SocketAddr, sync::Arc};

use axum::body::Bytes;
use bytes::{Buf as _, BufMut as _};
use fanwire_api::KeyHolder;
use fanwire_api::grpc::{DESCRIPTORS, GrpcApi, GrpcMethod, STREAM_PATH};
use fanwire_edge::{REQUEST_TIMEOUT, Service, TrackedBody, is_grpc, wait_for_shards};
use fanwire_fanout::Shards;
use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode, header};
use http_body_util::{BodyExt, Full, LengthLimitError, Limited};
use hyper::body::Incoming;
use tokio::time::timeout;
use tonic::Status;
use tonic::body::Body;
use tonic::codec::{Codec, CompressionEncoding, DecodeBuf, Decoder, EncodeBuf, Encoder};
use tonic::server::Grpc;
use tonic_reflection::pb::{v1, v1alpha};
use tonic_reflection::server::Builder as Descriptions;
use tower::ServiceExt;
use tower::util::BoxCloneSyncService;

use crate::http::api_service::with_one_wake_up;
use crate::http::command_stream::{CommandStream, Executor, Splitter, to_status};

/// The service of the listener.
pub(crate) struct GrpcService {
    api: GrpcApi,
    shards: Arc<Shards>,
    /// Both versions of the service that describes the others.
    reflection: Option<[(&'static str, Reflection); 2]>,
}

type GrpcRequest = Request<TrackedBody<Incoming>>;
type Reflection = BoxCloneSyncService<Request<Body>, Response<Body>, Infallible>;

impl GrpcService {
    pub(crate) fn new(api: GrpcApi, shards: Arc<Shards>, has_reflection: bool) -> Self {
        Self { api, shards, reflection: has_reflection.then(reflection) }
    }

    /// Runs a call.
    async fn call(
        &self,
        method: GrpcMethod,
        request: GrpcRequest,
        peer: SocketAddr,
    ) -> Result<Response<Body>, Status> {
        let path = request.uri().path().to_owned();
        let caller = self.api.authorize(request.headers(), &path, peer).map_err(to_status)?;
        let caught_up = timeout(REQUEST_TIMEOUT, wait_for_shards(&self.shards)).await;
        caught_up.map_err(|_| {
            Status::unavailable("the server is overloaded, the call was not executed")
        })?;
        let (head, body) = request.into_parts();
        let bytes_max = self.api.message_bytes_max().saturating_add(PREFIX_BYTES);
        let body = match Limited::new(body, bytes_max).collect().await {
            Ok(body) => body.to_bytes(),
            Err(error) if error.is::<LengthLimitError>() => {
                return Err(to_status(self.api.too_large(&path, peer)));
            }
            Err(_) => return Err(Status::cancelled("the message ends early")),
        };
        if let Some(message) = unframed(&body) {
            let call = self.api.call(method, &head.headers, &message, peer, &caller);
            let called = with_one_wake_up(call).await;
            return Ok(whole(called.map_err(to_status)?));
        }
        let request = Request::from_parts(head, Full::new(body));
        Ok(self.call_compressed(method, request, peer, &caller).await)
    }

    /// Runs a call whose message is compressed, and so is the answer; or has an invalid prefix.
    async fn call_compressed(
        &self,
        method: GrpcMethod,
        request: Request<Full<Bytes>>,
        peer: SocketAddr,
        caller: &KeyHolder,
    ) -> Response<Body> {
        let metadata = request.headers().clone();
        let answer = async |request: tonic::Request<Bytes>| {
            let called = self.api.call(method, &metadata, request.get_ref(), peer, caller).await;
            called.map(|message| tonic::Response::new(Bytes::from(message))).map_err(to_status)
        };
        let mut grpc = Grpc::new(BytesCodec)
            .accept_compressed(CompressionEncoding::Gzip)
            .send_compressed(CompressionEncoding::Gzip)
            .max_decoding_message_size(self.api.message_bytes_max());
        grpc.unary(tower::service_fn(answer), request).await
    }

    /// Starts the answers to a stream of commands.
    fn stream(&self, request: GrpcRequest, peer: SocketAddr) -> Result<Response<Body>, Status> {
        let authorized = self.api.authorize(request.headers(), STREAM_PATH, peer);
        let caller = authorized.map_err(to_status)?;
        let executor =
            Executor { api: self.api.api().clone(), caller, shards: self.shards.clone() };
        let splitter = Splitter::Messages(self.api.messages());
        let body = CommandStream::new(executor, request.into_body().endless(), splitter);
        Ok(response(Body::new(body)))
    }

    async fn answer_any(
        &self,
        request: GrpcRequest,
        peer: SocketAddr,
    ) -> Result<Response<Body>, Status> {
        let path = request.uri().path();
        if let Some(method) = self.api.method(path) {
            return self.call(method, request, peer).await;
        }
        if path == STREAM_PATH {
            return self.stream(request, peer);
        }
        let mut reflection = self.reflection.iter().flatten().filter(|(service, _)| {
            path.strip_prefix('/').is_some_and(|path| path.starts_with(service))
        });
        match reflection.next() {
            Some((_, service)) => {
                let response = service.clone().oneshot(request.map(Body::new)).await;
                Ok(response.unwrap_or_else(|never| match never {}))
            }
            None => Err(Status::unimplemented(format!("the server has no method {path}"))),
        }
    }
}

impl Service for GrpcService {
    type Body = Body;

    async fn answer(&self, request: GrpcRequest, peer: SocketAddr) -> Response<Body> {
        if !is_grpc(request.headers()) || request.method() != Method::POST {
            let mut response = Response::new(Body::empty());
            *response.status_mut() = StatusCode::UNSUPPORTED_MEDIA_TYPE;
            return response;
        }
        self.answer_any(request, peer).await.unwrap_or_else(Status::into_http)
    }

    fn late(&self) -> Response<Body> {
        Status::deadline_exceeded("the message takes too long").into_http()
    }
}

/// The message of a body with one that is not compressed.
fn unframed(body: &Bytes) -> Option<Bytes> {
    let ([0, length @ ..], _) = body.split_first_chunk::<PREFIX_BYTES>()? else { return None };
    let length = u32::from_be_bytes(*length) as usize;
    (body.len() == PREFIX_BYTES + length).then(|| body.slice(PREFIX_BYTES..))
}

/// The response with one message, and the status OK.
fn whole(message: Vec<u8>) -> Response<Body> {
    let mut framed = Vec::with_capacity(PREFIX_BYTES + message.len());
    framed.push(0);
    framed.extend_from_slice(&(message.len() as u32).to_be_bytes());
    framed.extend_from_slice(&message);
    let trailers = HeaderMap::from_iter([(Status::GRPC_STATUS, HeaderValue::from_static("0"))]);
    let body = Full::new(Bytes::from(framed)).with_trailers(std::future::ready(Some(Ok(trailers))));
    response(Body::new(body))
}

fn response(body: Body) -> Response<Body> {
    let mut response = Response::new(body);
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(GRPC));
    response
}

fn reflection() -> [(&'static str, Reflection); 2] {
    // Both versions name both, because tools look for the one that they know.
    let descriptions = || {
        [DESCRIPTORS, v1::FILE_DESCRIPTOR_SET, v1alpha::FILE_DESCRIPTOR_SET]
            .into_iter()
            .fold(Descriptions::configure(), Descriptions::register_encoded_file_descriptor_set)
            .include_reflection_service(false)
    };
    let valid = "build.rs has compiled the descriptors";
    [
        ("grpc.reflection.v1.", Reflection::new(descriptions().build_v1().expect(valid))),
        ("grpc.reflection.v1alpha.", Reflection::new(descriptions().build_v1alpha().expect(valid))),
    ]
}

/// Messages as their bytes.
struct BytesCodec;

impl Codec for BytesCodec {
    type Encode = Bytes;
    type Decode = Bytes;
    type Encoder = Self;
    type Decoder = Self;

    fn encoder(&mut self) -> Self {
        Self
    }

    fn decoder(&mut self) -> Self {
        Self
    }
}

impl Encoder for BytesCodec {
    type Item = Bytes;
    type Error = Status;

    fn encode(&mut self, message: Bytes, out: &mut EncodeBuf<'_>) -> Result<(), Status> {
        out.put(message);
        Ok(())
    }
}

impl Decoder for BytesCodec {
    type Item = Bytes;
    type Error = Status;

    fn decode(&mut self, from: &mut DecodeBuf<'_>) -> Result<Option<Bytes>, Status> {
        Ok(Some(from.copy_to_bytes(from.remaining())))
    }
}

const GRPC: &str = "application/grpc";

/// Bytes before a message: a flag and the length.
const PREFIX_BYTES: usize = 5;
