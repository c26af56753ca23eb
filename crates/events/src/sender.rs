//! Requests with events: signed, tried again with a growing pause.
//! In: the body of a batch → out: accepted, or the error.
//! Uses the pooled client of `tls`, HMAC of aws-lc. Never: the content of a batch.
//! Changed here: the signature, when a request has failed.

use std::fmt::Write;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::time::{Duration, Instant};

use aws_lc_rs::hmac;
use bytes::Bytes;
use fanwire_config::EventsHttpOptions;
use fanwire_telemetry::LogThrottle;
use fanwire_tls::{Http2, HttpsClient, PoolOptions, RequestError, RequestLimits, Tls, TlsError};
use http::{Request, header};
use http_body_util::Full;

#[derive(Debug)]
pub(crate) struct Sender {
    client: HttpsClient,
    endpoint: String,
    key: Option<hmac::Key>,
    failures: AtomicU32,
    log_throttle: LogThrottle,
}

impl Sender {
    pub(crate) fn new(options: &EventsHttpOptions) -> Result<Self, TlsError> {
        let limits = RequestLimits { timeout: options.timeout, body_bytes_max: ANSWER_BYTES_MAX };
        let pool = PoolOptions {
            idle_per_host_max: 1,
            idle_timeout: Duration::from_secs(4),
            http2: Http2::Negotiated,
        };
        let secret = options.secret.as_bytes();
        Ok(Self {
            client: HttpsClient::pooled(Tls::new(&options.tls)?, limits, pool),
            endpoint: options.endpoint.clone(),
            key: (!secret.is_empty()).then(|| hmac::Key::new(hmac::HMAC_SHA256, secret)),
            failures: AtomicU32::new(0),
            log_throttle: LogThrottle::default(),
        })
    }

    /// Sends a body; accepted are responses with a status 2xx.
    ///
    /// # Errors
    /// See [`RequestError`].
    pub(crate) async fn send(&self, body: Bytes) -> Result<(), RequestError> {
        let mut request =
            Request::post(&self.endpoint).header(header::CONTENT_TYPE, "application/json");
        if let Some(key) = &self.key {
            request = request.header(SIGNATURE, signature(key, &body));
        }
        let request = request.body(Full::new(body)).map_err(|_| RequestError::Url)?;
        let status = self.client.send(request).await?.status();
        if status.is_success() { Ok(()) } else { Err(RequestError::Status(status)) }
    }

    /// Waits after a failed request.
    pub(crate) async fn pause(&self, error: &RequestError) {
        let failures = self.failures.fetch_add(1, Relaxed).min(6);
        if let Some(repeats) = self.log_throttle.record("events", Instant::now()) {
            tracing::warn!(%error, "the backend did not take a batch of events, which is sent again{repeats}");
        }
        tokio::time::sleep(PAUSE.saturating_mul(1 << failures).min(PAUSE_MAX)).await;
    }

    pub(crate) fn succeeded(&self) {
        self.failures.store(0, Relaxed);
    }
}

/// HMAC-SHA256 of the body, in hexadecimal digits.
fn signature(key: &hmac::Key, body: &[u8]) -> String {
    let tag = hmac::sign(key, body);
    tag.as_ref().iter().fold("sha256=".to_owned(), |mut text, byte| {
        write!(text, "{byte:02x}").expect("writing to a String does not fail");
        text
    })
}

const SIGNATURE: &str = "x-fanwire-signature";
const PAUSE: Duration = Duration::from_millis(200);
const PAUSE_MAX: Duration = Duration::from_secs(10);
const ANSWER_BYTES_MAX: usize = 64 * 1024;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_signature_is_that_of_rfc_4231() {
        let key = hmac::Key::new(hmac::HMAC_SHA256, b"Jefe");
        let expected = "sha256=5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843";
        assert_eq!(signature(&key, b"what do ya want for nothing?"), expected);
    }
}
