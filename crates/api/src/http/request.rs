//! Authentication and body limit of the HTTP API.
//! In: a request. Out: its body, or a `RequestError` in plain text.
//! Uses the configured key and limit; never parses the body.
//! Keys are changed in the configuration (`http_api`); errors of methods live in `ApiError`.

use std::borrow::Cow;
use std::pin::pin;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use axum::body::HttpBody;
use axum::extract::Query;
use bytes::{Bytes, BytesMut};
use http::header::{AUTHORIZATION, CONNECTION, CONTENT_TYPE, WWW_AUTHENTICATE};
use http::{HeaderMap, HeaderName, HeaderValue, Response, StatusCode, Uri};
use http_body_util::BodyExt as _;
use serde::Deserialize;

use crate::counters::{Counters, RequestErrorKind};
use crate::{Api, keys::ApiKeys, keys::KeyHolder};

/// Why a request is refused before a method is called.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum RequestError {
    Closing,
    Unauthorized,
    /// The body is larger than this number of bytes.
    TooLarge(usize),
    /// The body is not JSON of the method's types, or incomplete, or has invalid chunks (RFC 9112 §7.1, §8). With a text for
    /// the sender.
    Malformed(String),
}

/// Checks the key, then reads the body: requests without a valid key use no memory for a body.
pub(super) async fn receive<B>(
    api: &Api,
    headers: &HeaderMap,
    uri: &Uri,
    body: B,
) -> Result<(Arc<KeyHolder>, Bytes), RequestError>
where
    B: HttpBody<Data = Bytes>,
{
    let caller = authorize(api, headers, uri)?;
    Ok((caller, read(body, api.options.body_bytes_max).await?))
}

/// Checks the key of a request, and says whose it is.
pub(super) fn authorize(
    api: &Api,
    headers: &HeaderMap,
    uri: &Uri,
) -> Result<Arc<KeyHolder>, RequestError> {
    if api.is_closing() {
        return Err(RequestError::Closing);
    }
    let keys = api.keys();
    let caller = caller(&keys, headers, uri).or_else(|| keys.anonymous());
    caller.cloned().ok_or(RequestError::Unauthorized)
}

/// Reads a whole body. Refuses a too large `Content-Length` at once; does not copy a body that arrives in one piece.
async fn read<B>(body: B, bytes_max: usize) -> Result<Bytes, RequestError>
where
    B: HttpBody<Data = Bytes>,
{
    if body.size_hint().lower() > bytes_max as u64 {
        return Err(RequestError::TooLarge(bytes_max));
    }
    let mut body = pin!(body);
    let mut whole = Bytes::new();
    // With a `Content-Length` the end is known after the last piece, which saves one more poll.
    while !body.is_end_stream() {
        let Some(frame) = body.frame().await else { break };
        let Ok(piece) = frame
            .map_err(|_| RequestError::Malformed("the body is incomplete".to_owned()))?
            .into_data()
        else {
            continue;
        };
        if piece.len() > bytes_max - whole.len() {
            return Err(RequestError::TooLarge(bytes_max));
        }
        whole = joined(whole, piece);
    }
    Ok(whole)
}

/// Appends a piece. From the second piece on, the pieces are copied to a growing buffer.
fn joined(whole: Bytes, piece: Bytes) -> Bytes {
    if whole.is_empty() {
        return piece;
    }
    let mut buffer = BytesMut::from(whole);
    buffer.extend_from_slice(&piece);
    buffer.freeze()
}

/// The caller whose key a request has: in `X-API-Key`, else in `Authorization: apikey …`; if that fails, in `?api_key=`.
/// No request is authorized while the configured keys are empty. A key may have any bytes that a header may have.
fn caller<'a>(keys: &'a ApiKeys, headers: &HeaderMap, uri: &Uri) -> Option<&'a Arc<KeyHolder>> {
    let from_headers = match headers.get(&X_API_KEY).map(HeaderValue::as_bytes) {
        Some(given) if !given.is_empty() => Some(given),
        _ => headers.get(AUTHORIZATION).and_then(|value| authorization_key(value.as_bytes())),
    };
    let found = from_headers.and_then(|given| find(keys, given));
    found.or_else(|| find(keys, query_key(uri)?.as_bytes()))
}

/// The caller whose key is valid now.
pub(crate) fn find<'a>(keys: &'a ApiKeys, given: &[u8]) -> Option<&'a Arc<KeyHolder>> {
    let now_unix = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
    keys.find(given, now_unix)
}

impl RequestError {
    pub(super) fn record(&self, counters: &Counters) {
        match self {
            Self::Unauthorized => counters.record_refusal(RequestErrorKind::Unauthorized),
            Self::TooLarge(_) => counters.record_refusal(RequestErrorKind::TooLarge),
            Self::Malformed(_) => counters.record_refusal(RequestErrorKind::Malformed),
            Self::Closing => (),
        }
    }

    /// Returns why the request was refused, as advice on what to change.
    pub(super) fn cause(&self) -> Cow<'_, str> {
        match self {
            Self::Closing => "the server stops".into(),
            Self::Unauthorized => UNAUTHORIZED.into(),
            Self::TooLarge(bytes_max) => {
                format!("http_api.max_request_body_size is {bytes_max} bytes").into()
            }
            Self::Malformed(why) => why.into(),
        }
    }

    pub(super) fn status(&self) -> StatusCode {
        match self {
            Self::Closing => StatusCode::SERVICE_UNAVAILABLE,
            Self::Unauthorized => StatusCode::UNAUTHORIZED,
            Self::TooLarge(_) => StatusCode::PAYLOAD_TOO_LARGE,
            Self::Malformed(_) => StatusCode::BAD_REQUEST,
        }
    }

    pub(super) fn response(self) -> Response<Bytes> {
        let status = self.status();
        let name = status.canonical_reason().expect("every status above has a reason phrase");
        let mut response = Response::new(format!("{name}: {}", self.cause()).into());
        *response.status_mut() = status;
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
        if self == Self::Unauthorized {
            // The scheme of `authorization_key`; every 401 must name one (RFC 9110 §11.6.1).
            headers.insert(WWW_AUTHENTICATE, HeaderValue::from_static("apikey"));
        }
        if matches!(self, Self::TooLarge(_)) {
            // The rest of the body is not read, so no further request can come on this connection (RFC 9110 §15.5.14).
            headers.insert(CONNECTION, HeaderValue::from_static("close"));
        }
        response
    }
}

/// The key of `apikey KEY`; the scheme is case-insensitive.
fn authorization_key(value: &[u8]) -> Option<&[u8]> {
    let words = value.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty());
    let [scheme, key] = words.collect::<Vec<_>>()[..] else { return None };
    scheme.eq_ignore_ascii_case(b"apikey").then_some(key)
}

fn query_key(uri: &Uri) -> Option<String> {
    let query = Query::<KeyQuery>::try_from_uri(uri).ok()?;
    query.0.api_key
}

#[derive(Deserialize)]
struct KeyQuery {
    api_key: Option<String>,
}

const UNAUTHORIZED: &str =
    "send http_api.key of the server in the header X-API-Key, or as Authorization: apikey KEY";

const X_API_KEY: HeaderName = HeaderName::from_static("x-api-key");

#[cfg(test)]
mod tests;
