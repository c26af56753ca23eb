//! Responses: the headers that each of them has, and refusals.
//! In: statuses, refusals of streams → out: responses.
//! Pure. Never: requests, streams.
//! Changed here: which status a refusal has, and what pages of other origins may see.

use axum::body::Body;
use axum::response::Response;
use fanwire_node::ReadError;
use fanwire_node::hooks::Rejection;
use fanwire_node::protocol::ErrorCode;
use http::header::{CONTENT_TYPE, RETRY_AFTER, WWW_AUTHENTICATE};
use http::response::Builder;
use http::{HeaderName, HeaderValue, StatusCode};

use crate::header::{EXPECTED_SEQ, NEXT_OFFSET, PRODUCER_EPOCH, RECEIVED_SEQ, STREAM_CLOSED};
use crate::stream::StreamError;

/// A request that is not executed.
#[derive(Debug)]
pub(crate) struct ErrorResponse {
    pub(crate) status: StatusCode,
    pub(crate) text: String,
    headers: Vec<(HeaderName, String)>,
}

impl ErrorResponse {
    pub(crate) fn new(status: u16, text: impl Into<String>) -> Self {
        let status = StatusCode::from_u16(status).expect("a status of this crate");
        Self { status, text: text.into(), headers: Vec::new() }
    }

    pub(crate) fn with(mut self, name: HeaderName, value: impl ToString) -> Self {
        self.headers.push((name, value.to_string()));
        self
    }

    /// Whether an operator should know: all but what the protocol answers every day, as that a stream is missing or closed.
    pub(crate) fn is_mistake(&self) -> bool {
        !matches!(self.status.as_u16(), 404 | 409 | 410)
    }

    /// The refusal of an append, with the offset of the tail.
    pub(crate) fn of_append(refusal: &StreamError, tail: &str) -> Self {
        match refusal {
            StreamError::Closed => Self::new(409, "the stream is closed")
                .with(STREAM_CLOSED, "true")
                .with(NEXT_OFFSET, tail),
            StreamError::ContentType(own) => {
                Self::new(409, format!("the Content-Type of the stream is {own}"))
            }
            StreamError::StaleEpoch(epoch) => {
                Self::new(403, format!("the producer has epoch {epoch} now"))
                    .with(PRODUCER_EPOCH, epoch)
            }
            StreamError::EpochBegins => {
                Self::new(400, "a new Producer-Epoch begins with Producer-Seq 0")
            }
            StreamError::Gap { expected, received } => {
                Self::new(409, format!("Producer-Seq is {received}, expected {expected}"))
                    .with(EXPECTED_SEQ, expected)
                    .with(RECEIVED_SEQ, received)
            }
            StreamError::Sequence(last) => {
                Self::new(409, format!("Stream-Seq is not above {last:?}, compared as bytes"))
            }
            StreamError::Producers => {
                Self::new(429, "the stream has durable_streams.max_producers producers")
            }
        }
    }

    /// The refusal of a channel, or of a reader.
    pub(crate) fn of_channel(error: ErrorCode) -> Self {
        match error {
            ErrorCode::UNAUTHORIZED => {
                Self::new(401, "the token is not valid here: sign one for the channel or its user")
            }
            ErrorCode::TOKEN_EXPIRED | ErrorCode::EXPIRED => Self::new(401, error.message),
            ErrorCode::PERMISSION_DENIED => Self::new(403, error.message),
            ErrorCode::UNKNOWN_CHANNEL | ErrorCode::NOT_AVAILABLE => Self::new(404, error.message),
            ErrorCode::BAD_REQUEST => Self::new(
                400,
                "the name is no channel of the namespace, or the content has another format than it demands, or is nested too deep",
            ),
            _ => Self::new(503, error.message).with(RETRY_AFTER, 1),
        }
    }

    /// The refusal of a reader, by the node or by a hook.
    pub(crate) fn of_reader(refusal: ReadError) -> Self {
        match refusal {
            ReadError::Error(error) => Self::of_channel(error),
            ReadError::Hook(Rejection::Error(error)) if error.temporary => {
                Self::new(503, error.message).with(RETRY_AFTER, 1)
            }
            ReadError::Hook(Rejection::Error(error)) => Self::new(403, error.message),
            ReadError::Hook(Rejection::Disconnect(end)) => Self::new(403, end.reason),
            ReadError::Hook(Rejection::Failed(_) | Rejection::Unavailable(_)) => {
                Self::of_channel(ErrorCode::INTERNAL)
            }
        }
    }

    pub(crate) fn into_response(self) -> Response {
        let mut response = reply(self.status.as_u16());
        response = response.header(CONTENT_TYPE, "text/plain; charset=utf-8");
        if self.status == StatusCode::UNAUTHORIZED {
            response = response.header(WWW_AUTHENTICATE, "Bearer, apikey");
        }
        for (name, value) in self.headers {
            response = response.header(name, value);
        }
        finish(response, Body::from(format!("{}\n", self.text)))
    }
}

pub(crate) fn bad_request(text: &str) -> ErrorResponse {
    ErrorResponse::new(400, text)
}

/// A response with the headers of every response.
pub(crate) fn reply(status: u16) -> Builder {
    Response::builder()
        .status(status)
        .header("x-content-type-options", "nosniff")
        .header("cross-origin-resource-policy", "cross-origin")
        .header("access-control-allow-origin", "*")
        .header("access-control-expose-headers", EXPOSED)
}

/// The end of a response. Values of headers come from clients' headers, or are ASCII.
pub(crate) fn finish(response: Builder, body: Body) -> Response {
    response.body(body).unwrap_or_else(|_| {
        let mut failed = Response::new(Body::empty());
        *failed.status_mut() = StatusCode::INTERNAL_SERVER_ERROR;
        failed
    })
}

/// The answer to a preflight.
pub(crate) fn preflight(requested: Option<&HeaderValue>) -> Response {
    let allowed = requested.cloned().unwrap_or(HeaderValue::from_static("content-type"));
    let response = reply(204)
        .header("access-control-allow-methods", METHODS)
        .header("access-control-allow-headers", allowed)
        .header("access-control-max-age", "300");
    finish(response, Body::empty())
}

pub(crate) const METHODS: &str = "GET, HEAD, POST, PUT, DELETE, OPTIONS";
const EXPOSED: &str = "Stream-Next-Offset, Stream-Up-To-Date, Stream-Closed, Stream-Cursor, Stream-TTL, Stream-Expires-At, ETag, \
                       Location, Producer-Epoch, Producer-Seq, Producer-Expected-Seq, Producer-Received-Seq, \
                       Stream-SSE-Data-Encoding";
