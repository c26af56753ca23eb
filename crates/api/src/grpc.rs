//! The gRPC form of the server API: authentication, error modes, statuses, and the messages of streams.
//! In: paths, metadata and messages of calls. Out: response messages, or the status of a call without one.
//! Uses `Api` and `protobuf`; never a socket, never HTTP/2: the shell frames calls.
//! Changed here: calls over gRPC. Methods are in `method/NAME.rs`, fields of messages in `proto/api.proto`, statuses of errors in `error`.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::Arc;

use bytes::{Buf as _, Bytes, BytesMut};
use http::header::AUTHORIZATION;
use http::{HeaderMap, HeaderValue, StatusCode};

use crate::counters::RequestErrorKind;
use crate::http::{reply::error_mode, request::find};
use crate::protobuf::{self, schema::Rpc};
use crate::stream::Line;
use crate::{Api, ApiError, ErrorMode, KeyHolder, Method, traced};

/// The API over gRPC. The options of `api` are its own: an empty key lets everyone call, and its limits are those of messages.
pub struct GrpcApi {
    api: Arc<Api>,
}

/// A method of the service `CentrifugoApi`.
#[derive(Clone, Copy)]
pub struct GrpcMethod(&'static Rpc);

/// The status of a call without a response message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GrpcError {
    /// A status code of gRPC.
    pub code: u8,
    /// A text for people.
    pub message: String,
    /// A `google.rpc.Status`; empty unless the status is that of an application error.
    pub details: Vec<u8>,
}

impl GrpcApi {
    /// Serves `api` over gRPC.
    pub fn new(api: Arc<Api>) -> Self {
        Self { api }
    }

    /// The methods behind the service.
    pub fn api(&self) -> &Arc<Api> {
        &self.api
    }

    /// The method of a path, if the service has it.
    pub fn method(&self, path: &str) -> Option<GrpcMethod> {
        path.strip_prefix(SERVICE).and_then(protobuf::rpc).map(GrpcMethod)
    }

    /// Largest request message in bytes.
    pub fn message_bytes_max(&self) -> usize {
        self.api.options.body_bytes_max
    }

    /// Checks the key in the metadata of a call, `authorization: apikey KEY`, exactly. Returns whose it is.
    ///
    /// # Errors
    /// UNAUTHENTICATED for another key or none; UNAVAILABLE while the process shuts down.
    pub fn authorize(
        &self,
        metadata: &HeaderMap,
        path: &str,
        peer: SocketAddr,
    ) -> Result<Arc<KeyHolder>, GrpcError> {
        if self.api.is_closing() {
            return Err(status(UNAVAILABLE, "the server stops"));
        }
        let given = metadata
            .get(AUTHORIZATION)
            .map(HeaderValue::as_bytes)
            .and_then(|value| value.strip_prefix(b"apikey "));
        let keys = self.api.keys();
        let caller = given.and_then(|key| find(&keys, key)).or_else(|| keys.anonymous());
        if let Some(caller) = caller {
            return Ok(Arc::clone(caller));
        }
        self.api.counters().record_refusal(RequestErrorKind::Unauthorized);
        self.api.log_refused(StatusCode::UNAUTHORIZED, path, UNAUTHORIZED, peer);
        Err(status(UNAUTHENTICATED, "unauthenticated"))
    }

    /// The status of a call whose message is larger than the limit. Counts and logs it.
    pub fn too_large(&self, path: &str, peer: SocketAddr) -> GrpcError {
        let bytes_max = self.message_bytes_max();
        let cause = format!("grpc_api.max_receive_message_size is {bytes_max} bytes");
        self.api.counters().record_refusal(RequestErrorKind::TooLarge);
        self.api.log_refused(StatusCode::PAYLOAD_TOO_LARGE, path, &cause, peer);
        status(RESOURCE_EXHAUSTED, &cause)
    }

    /// Runs a call. Returns its response message.
    ///
    /// # Errors
    /// INTERNAL for bytes that are not the request message; in transport error mode the status of an application error.
    pub async fn call(
        &self,
        GrpcMethod(rpc): GrpcMethod,
        metadata: &HeaderMap,
        message: &[u8],
        peer: SocketAddr,
        caller: &KeyHolder,
    ) -> Result<Vec<u8>, GrpcError> {
        let mut command = protobuf::request(rpc, message).map_err(|error| {
            let cause = format!("the request message is invalid: {error}");
            self.api.counters().record_refusal(RequestErrorKind::Malformed);
            self.api.log_refused(StatusCode::BAD_REQUEST, rpc.name, &cause, peer);
            status(INTERNAL, &cause)
        })?;
        command.write_replies_by(protobuf::reply);
        let path = |_: &str| format!("{}{}", SERVICE.trim_start_matches('/'), rpc.name);
        let outcome = traced::run(&self.api, caller, command, metadata, path).await;
        if let Err(error) = &outcome {
            let named = || protobuf::named(rpc, message);
            self.api.log_error(rpc.method.name(), error, named, Some(peer), &caller.name);
            let mode = error_mode(self.api.options.error_mode, metadata);
            // The response of a batch has no error.
            if mode == ErrorMode::Transport || rpc.method == Method::Batch {
                return Err(application_error(*error));
            }
        }
        Ok(protobuf::response(rpc, &outcome))
    }

    /// A splitter for the body of a stream of commands.
    pub fn messages(&self) -> Messages {
        Messages { rest: BytesMut::new(), bytes_max: self.message_bytes_max(), failure: None }
    }
}

/// Splits the body of a gRPC stream into messages.
pub struct Messages {
    /// The beginning of a message whose end has not arrived.
    rest: BytesMut,
    bytes_max: usize,
    failure: Option<GrpcError>,
}

impl Messages {
    /// Takes the next piece of the body. Returns the messages that it completes; none from the first invalid one on.
    pub fn push(&mut self, piece: Bytes) -> VecDeque<Line> {
        let mut messages = VecDeque::new();
        self.rest.extend_from_slice(&piece);
        while self.failure.is_none()
            && let Some((prefix, _)) = self.rest.split_first_chunk::<PREFIX_BYTES>()
        {
            let [flag, length @ ..] = *prefix;
            let length = u32::from_be_bytes(length) as usize;
            if flag != 0 {
                self.failure =
                    Some(status(UNIMPLEMENTED, "messages of a stream are not compressed"));
            } else if length > self.bytes_max {
                let bytes_max = self.bytes_max;
                let cause = format!("grpc_api.max_receive_message_size is {bytes_max} bytes");
                self.failure = Some(status(RESOURCE_EXHAUSTED, &cause));
            } else if self.rest.len() >= PREFIX_BYTES + length {
                self.rest.advance(PREFIX_BYTES);
                messages.push_back(Line::Message(self.rest.split_to(length).freeze()));
            } else {
                break;
            }
        }
        if self.failure.is_some() {
            self.rest.clear();
        }
        messages
    }

    /// Why the stream ends after the messages so far.
    pub fn failure(&self) -> Option<&GrpcError> {
        self.failure.as_ref()
    }

    /// The end of the body.
    pub fn end(&mut self) {
        if !self.rest.is_empty() && self.failure.is_none() {
            self.failure = Some(status(INTERNAL, "the stream ends within a message"));
        }
    }
}

fn application_error(error: ApiError) -> GrpcError {
    let code = error.grpc_status;
    let message = error.message.to_owned();
    let details = protobuf::status(code, &message, error);
    GrpcError { code, message, details }
}

fn status(code: u8, message: &str) -> GrpcError {
    GrpcError { code, message: message.to_owned(), details: Vec::new() }
}

const SERVICE: &str = "/centrifugal.centrifugo.api.CentrifugoApi/";

/// The path of a stream of commands.
pub const STREAM_PATH: &str = "/fanwire.api.FanwireApi/CommandStream";

/// The descriptors of both services, as a `FileDescriptorSet`.
pub const DESCRIPTORS: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/api.bin"));

const UNAUTHORIZED: &str =
    "send grpc_api.key of the server in the metadata, as authorization: apikey KEY";

/// Bytes before a message: a flag and the length.
const PREFIX_BYTES: usize = 5;

const RESOURCE_EXHAUSTED: u8 = 8;
const UNIMPLEMENTED: u8 = 12;
const INTERNAL: u8 = 13;
const UNAVAILABLE: u8 = 14;
const UNAUTHENTICATED: u8 = 16;

#[cfg(test)]
mod tests;
