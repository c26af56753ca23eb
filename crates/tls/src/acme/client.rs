//! HTTPS requests to the authority (RFC 8555 §6.1), for instant-acme.
//! In: requests of instant-acme → out: responses; the time that the last refusal asked to wait.
//! Uses the client of the server; speaks no plain HTTP.
//! Changed here: limits of a request. Which authorities are believed is in `crate::client`.

use std::{future::Future, pin::Pin, sync::Arc, time::Duration};

use bytes::Bytes;
use http::{Request, header};
use instant_acme::{BodyWrapper, BytesResponse, Error, HttpClient};
use parking_lot::Mutex;

use crate::{
    Tls,
    https_client::{HttpsClient, RequestError, RequestLimits},
};

/// Clones share their connections' settings and the time to wait.
#[derive(Clone, Debug)]
pub(super) struct AuthorityClient(Arc<Requests>);

#[derive(Debug)]
struct Requests {
    client: HttpsClient,
    retry_after: Mutex<Option<Duration>>,
}

impl AuthorityClient {
    pub(super) fn new(tls: Tls) -> Self {
        let client = HttpsClient::new(tls, LIMITS);
        Self(Arc::new(Requests { client, retry_after: Mutex::default() }))
    }

    /// The time that a refusal since the last call asked to wait.
    pub(super) fn take_retry_after(&self) -> Option<Duration> {
        self.0.retry_after.lock().take()
    }
}

impl HttpClient for AuthorityClient {
    fn request(
        &self,
        request: Request<BodyWrapper<Bytes>>,
    ) -> Pin<Box<dyn Future<Output = Result<BytesResponse, Error>> + Send>> {
        let requests = self.0.clone();
        let answer = async move { requests.exchange(request).await };
        Box::pin(async { answer.await.map_err(|error| Error::Other(Box::new(error))) })
    }
}

impl Requests {
    async fn exchange(
        &self,
        mut request: Request<BodyWrapper<Bytes>>,
    ) -> Result<BytesResponse, RequestError> {
        // The authority learns the name of this server, not that of the library (RFC 8555 §6.1).
        request.headers_mut().remove(header::USER_AGENT);
        if request.uri().scheme_str() != Some("https") {
            return Err(RequestError::Url);
        }
        let (parts, body) = self.client.send(request).await?.into_parts();
        if !parts.status.is_success()
            && let Some(seconds) = parts.headers.get(header::RETRY_AFTER)
        {
            let seconds = seconds.to_str().ok().and_then(|seconds| seconds.trim().parse().ok());
            *self.retry_after.lock() = seconds.map(Duration::from_secs);
        }
        Ok(BytesResponse { parts, body: Box::new(body) })
    }
}

/// A directory, an order or a chain has a few KiB.
const LIMITS: RequestLimits =
    RequestLimits { timeout: Duration::from_secs(30), body_bytes_max: 256 * 1024 };
