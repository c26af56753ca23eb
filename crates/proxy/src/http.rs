//! Calls over HTTP: a POST of JSON, answered with 200 and JSON.
//! In: a request message and headers → out: the response message, or why there is none.
//! Uses the pooled client of `tls`, which follows no redirect. Never: what a response means.
//! Changed here: how a call looks on the wire.

use bytes::Bytes;
use fanwire_config::ProxyOptions;
use fanwire_protocol::proxy as pb;
use fanwire_tls::{HttpsClient, RequestError, RequestLimits, Tls};
use http::{HeaderMap, HeaderValue, Method, StatusCode, Uri, header};
use http_body_util::Full;

use crate::ProxyError;
use crate::backend::CallFailure;
use crate::event::ProxyRequest;

/// A backend that is called over HTTP.
#[derive(Debug)]
pub(crate) struct HttpBackend {
    client: HttpsClient,
    uri: Uri,
}

impl HttpBackend {
    pub(crate) fn new(name: &str, options: &ProxyOptions) -> Result<Self, ProxyError> {
        let endpoint = || ProxyError::Endpoint { proxy: name.to_owned() };
        let uri: Uri = options.endpoint.parse().map_err(|_| endpoint())?;
        let tls = |source| ProxyError::Tls { proxy: name.to_owned(), source };
        let tls = Tls::new(&options.http.tls).map_err(tls)?;
        let limits = RequestLimits { timeout: options.timeout, body_bytes_max: ANSWER_BYTES_MAX };
        Ok(Self { client: HttpsClient::pooled(tls, limits, super::POOL), uri })
    }

    pub(crate) async fn call<R: ProxyRequest>(
        &self,
        message: &R,
        mut headers: HeaderMap,
    ) -> Result<R::Response, CallFailure> {
        let body = pb::write(message).ok_or(CallFailure::Payload)?;
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
        let mut request = http::Request::new(Full::new(Bytes::from(body)));
        *request.method_mut() = Method::POST;
        *request.uri_mut() = self.uri.clone();
        *request.headers_mut() = headers;
        let response = self.client.send(request).await.map_err(|error| match error {
            RequestError::Timeout => CallFailure::Timeout,
            error => CallFailure::Transport(error.to_string()),
        })?;
        match response.status() {
            StatusCode::OK => {
                pb::read(response.body()).map_err(|error| CallFailure::Answer(error.to_string()))
            }
            status => Err(CallFailure::Status(status.as_u16())),
        }
    }
}

/// The longest answer.
const ANSWER_BYTES_MAX: usize = 4 << 20;
