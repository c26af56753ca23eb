//! Fetches JWKS documents (RFC 7517) for the node, which has no sockets.
//! In: a URL → out: the document, or a log line with the error.
//! Uses the HTTP client; never parses documents, never decides when to fetch.
//! Changed here: the timeout and the number of attempts. The cache and its rules live in `auth::jwks`.

use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::TlsOptions;
use fanwire_auth::{Fetch, KEY_SET_BYTES_MAX, KeySource};
use fanwire_telemetry::LogThrottle;
use http::{Request, StatusCode, header};
use http_body_util::Empty;
use hyper::body::Bytes;
use tokio::runtime::Handle;

use crate::{HttpsClient, RequestError, RequestLimits, Tls, TlsError};

/// Fetches with one section of TLS options, on the runtime in which it was created.
#[derive(Debug)]
pub struct KeyFetcher {
    client: Arc<HttpsClient>,
    runtime: Handle,
    log_throttle: Arc<LogThrottle>,
}

impl KeyFetcher {
    /// Must be called inside a tokio runtime.
    ///
    /// # Errors
    /// A PEM option that cannot be read or contains no certificate.
    pub fn new(options: &TlsOptions) -> Result<Self, TlsError> {
        let client = Arc::new(HttpsClient::new(Tls::new(options)?, LIMITS));
        Ok(Self { client, runtime: Handle::current(), log_throttle: Arc::default() })
    }
}

impl KeySource for KeyFetcher {
    fn fetch(&self, fetch: Fetch) {
        let client = Arc::clone(&self.client);
        let log_throttle = Arc::clone(&self.log_throttle);
        self.runtime.spawn(async move {
            let url = fetch.url().to_owned();
            match get(&client, &url).await {
                Ok(body) => {
                    tracing::debug!(%url, bytes = body.len(), "fetched the JWKS document");
                    fetch.done(body.into());
                }
                Err(error) => {
                    // The node fetches again every 5 s while clients need a key, so the lines are throttled.
                    if let Some(repeats) = log_throttle.record(&url, Instant::now()) {
                        tracing::warn!(%url, %error, "cannot fetch the JWKS document: clients whose key is not cached yet get error 100; check jwks_public_endpoint and that it answers{repeats}");
                    }
                }
            }
        });
    }
}

/// The document of a URL.
///
/// # Errors
/// The error of the last attempt.
async fn get(client: &HttpsClient, url: &str) -> Result<Bytes, RequestError> {
    let mut last = RequestError::Timeout;
    for _ in 0..ATTEMPTS {
        match get_once(client, url).await {
            Ok(body) => return Ok(body),
            Err(error) => last = error,
        }
    }
    Err(last)
}

async fn get_once(client: &HttpsClient, url: &str) -> Result<Bytes, RequestError> {
    let request = Request::get(url)
        .header(header::ACCEPT, "application/json")
        .body(Empty::<Bytes>::new())
        .map_err(|_| RequestError::Url)?;
    let response = client.send(request).await?;
    match response.status() {
        StatusCode::OK => Ok(response.into_body()),
        status => Err(RequestError::Status(status)),
    }
}

/// Clients wait for the result; the time is that of Centrifugo.
const LIMITS: RequestLimits =
    RequestLimits { timeout: Duration::from_secs(1), body_bytes_max: KEY_SET_BYTES_MAX };
const ATTEMPTS: usize = 2;

#[cfg(test)]
mod tests;
