//! The door of the HTTP face: who may come in, and how much they may bring.
//! In: a request. Out: its body, or a `Refusal` in plain text.
//! Uses the configured key and limit; never looks into the body.
//! Keys are changed in the configuration (`http_api`); errors of methods live in `ApiError`.

use std::hint::black_box;

use axum::BoxError;
use axum::body::{Bytes, HttpBody};
use axum::extract::Query;
use axum::response::{IntoResponse, Response};
use http::header::{AUTHORIZATION, CONNECTION, CONTENT_LENGTH};
use http::{HeaderMap, HeaderName, HeaderValue, Request, StatusCode, Uri};
use http_body_util::{BodyExt as _, Collected, LengthLimitError, Limited};
use serde::Deserialize;

use crate::Api;
use crate::counters::{Counters, RefusalKind};

/// Why a request does not reach a method.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Refusal {
    Closing,
    Unauthorized,
    TooLarge,
    /// No JSON of a method's types, or not all of it: the body broke off, or its chunks are none (RFC 9112 §7.1, §8).
    Malformed,
}

/// Checks the key and reads the body, in this order, so that strangers cost no memory. A body that says that it is too long
/// is not waited for. What came in one piece is not copied.
pub(super) async fn receive<B>(api: &Api, request: Request<B>) -> Result<Bytes, Refusal>
where
    B: HttpBody<Data = Bytes>,
    B::Error: Into<BoxError>,
{
    if api.is_closing() {
        return Err(Refusal::Closing);
    }
    if !api.options.insecure && !is_authorized(&api.options.key, request.headers(), request.uri()) {
        return Err(Refusal::Unauthorized);
    }
    if announced_bytes(request.headers()) > api.options.body_bytes_max as u64 {
        return Err(Refusal::TooLarge);
    }
    let body = Limited::new(request.into_body(), api.options.body_bytes_max).collect().await;
    body.map(Collected::to_bytes).map_err(|error| match error.is::<LengthLimitError>() {
        true => Refusal::TooLarge,
        false => Refusal::Malformed,
    })
}

/// Whether a request shows the key: in `X-API-Key`, else in `Authorization: apikey …`; if that failed, in `?api_key=`.
/// An empty configured key lets nobody in.
fn is_authorized(key: &str, headers: &HeaderMap, uri: &Uri) -> bool {
    if key.is_empty() {
        return false;
    }
    let from_headers = match text(headers, &X_API_KEY) {
        Some(given) if !given.is_empty() => Some(given),
        _ => text(headers, &AUTHORIZATION).and_then(authorization_key),
    };
    from_headers.is_some_and(|given| is_equal(key, given))
        || query_key(uri).is_some_and(|given| is_equal(key, &given))
}

impl Refusal {
    pub(super) fn record(self, counters: &Counters) {
        match self {
            Self::Unauthorized => counters.record_refusal(RefusalKind::Unauthorized),
            Self::TooLarge => counters.record_refusal(RefusalKind::TooLarge),
            Self::Malformed => counters.record_refusal(RefusalKind::Malformed),
            Self::Closing => (),
        }
    }

    fn status(self) -> StatusCode {
        match self {
            Self::Closing => StatusCode::SERVICE_UNAVAILABLE,
            Self::Unauthorized => StatusCode::UNAUTHORIZED,
            Self::TooLarge => StatusCode::PAYLOAD_TOO_LARGE,
            Self::Malformed => StatusCode::BAD_REQUEST,
        }
    }
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        let status = self.status();
        let text = status.canonical_reason().expect("every status above has a name");
        let mut response = (status, text).into_response();
        if self == Self::TooLarge {
            // The rest of the body is not read, so no further request can come on this connection (RFC 9110 §15.5.14).
            response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
        }
        response
    }
}

/// `Content-Length`; 0 when the body comes in chunks, which are counted as they come.
fn announced_bytes(headers: &HeaderMap) -> u64 {
    text(headers, &CONTENT_LENGTH).and_then(|length| length.parse().ok()).unwrap_or(0)
}

fn text<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Option<&'a str> {
    headers.get(name).and_then(|value| value.to_str().ok())
}

/// The key of `apikey KEY`; the scheme's case does not matter.
fn authorization_key(value: &str) -> Option<&str> {
    let mut words = value.split_ascii_whitespace();
    let scheme = words.next()?;
    let key = words.next()?;
    (scheme.eq_ignore_ascii_case("apikey") && words.next().is_none()).then_some(key)
}

fn query_key(uri: &Uri) -> Option<String> {
    let query = Query::<KeyQuery>::try_from_uri(uri).ok()?;
    query.0.api_key
}

#[derive(Deserialize)]
struct KeyQuery {
    api_key: Option<String>,
}

/// Compares in a time that depends on the length of what was given, not on where it differs.
fn is_equal(key: &str, given: &str) -> bool {
    let key = key.as_bytes();
    let mut difference = key.len() ^ given.len();
    for (index, byte) in given.bytes().enumerate() {
        difference |= usize::from(byte ^ key[index % key.len()]);
    }
    black_box(difference) == 0
}

const X_API_KEY: HeaderName = HeaderName::from_static("x-api-key");

#[cfg(test)]
mod tests;
