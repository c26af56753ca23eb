//! Calls over HTTP: a POST of JSON, answered with 200 and JSON.
//! In: a request message and headers → out: the response message, or why there is none.
//! Uses the pooled client of `tls`, which follows no redirect. Never: what a response means.
//! Changed here: how a call looks on the wire.

use crate::options::ProxyOptions;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use fanwire_protocol::proxy as pb;
use fanwire_tls::{HttpsClient, RequestError, RequestLimits, Tls};
use http::{HeaderMap, HeaderValue, Method, StatusCode, Uri, header};
use http_body_util::Full;
use percent_encoding::percent_decode_str;

use crate::ProxyError;
use crate::backend::CallFailure;
use crate::event::ProxyRequest;

/// A backend that is called over HTTP.
#[derive(Debug)]
pub(crate) struct HttpBackend {
    client: HttpsClient,
    uri: Uri,
    /// Credentials of the endpoint (RFC 7617), which a header of the same name replaces.
    authorization: Option<HeaderValue>,
}

impl HttpBackend {
    pub(crate) fn new(name: &str, options: &ProxyOptions) -> Result<Self, ProxyError> {
        let endpoint = || ProxyError::Endpoint { proxy: name.to_owned() };
        let (uri, authorization) = without_credentials(&options.endpoint).ok_or_else(endpoint)?;
        let tls = |source| ProxyError::Tls { proxy: name.to_owned(), source };
        let tls = Tls::new(&options.http.tls).map_err(tls)?;
        let limits = RequestLimits { timeout: options.timeout, body_bytes_max: ANSWER_BYTES_MAX };
        Ok(Self { client: HttpsClient::pooled(tls, limits, super::POOL), uri, authorization })
    }

    pub(crate) async fn call<R: ProxyRequest>(
        &self,
        message: &R,
        mut headers: HeaderMap,
    ) -> Result<R::Response, CallFailure> {
        let body = pb::write(message).ok_or(CallFailure::Payload)?;
        if let Some(authorization) = &self.authorization {
            headers.entry(header::AUTHORIZATION).or_insert_with(|| authorization.clone());
        }
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
        let mut request = http::Request::new(Full::new(Bytes::from(body)));
        *request.method_mut() = Method::POST;
        *request.uri_mut() = self.uri.clone();
        *request.headers_mut() = headers;
        let response = self.client.send(request).await.map_err(|error| match error {
            RequestError::Timeout => CallFailure::Timeout,
            error if error.is_unprocessed() => CallFailure::Unprocessed,
            error => CallFailure::Transport(error.to_string()),
        })?;
        match response.status() {
            StatusCode::OK => pb::read_response(response.body())
                .map_err(|error| CallFailure::Answer(error.to_string())),
            status => Err(CallFailure::Status(status.as_u16())),
        }
    }
}

/// The URL without `user:password@`, and these as a header.
fn without_credentials(endpoint: &str) -> Option<(Uri, Option<HeaderValue>)> {
    let uri: Uri = endpoint.parse().ok()?;
    let Some((credentials, address)) = uri.authority()?.as_str().rsplit_once('@') else {
        return Some((uri, None));
    };
    let credentials = percent_decode_str(credentials).decode_utf8().ok()?;
    let header = format!("Basic {}", STANDARD.encode(&*credentials)).parse().ok()?;
    let mut parts = uri.clone().into_parts();
    parts.authority = Some(address.parse().ok()?);
    Some((Uri::from_parts(parts).ok()?, Some(header)))
}

/// The longest answer.
const ANSWER_BYTES_MAX: usize = 4 << 20;
