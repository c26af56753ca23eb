//! Fetches JWKS documents (RFC 7517) for the node, which has no sockets.
//! In: a URL → out: the document, or a log line with the error.
//! Uses `get`; never parses documents, never decides when to fetch.
//! Changed here: the timeout and the number of attempts. The cache and its rules live in `node::token`.

mod get;

use std::sync::Arc;
use std::time::{Duration, Instant};

use fanwire_auth::{Fetch, KeySource};
use fanwire_telemetry::LogThrottle;
use tokio::runtime::Handle;

use crate::config::TlsOptions;
use crate::tls::TlsError;
use get::Origin;

/// Fetches with one section of TLS options, on the runtime in which it was created.
#[derive(Debug)]
pub(crate) struct Fetcher {
    origin: Arc<Origin>,
    runtime: Handle,
    log_throttle: Arc<LogThrottle>,
}

impl Fetcher {
    /// Must be called inside a tokio runtime.
    ///
    /// # Errors
    /// A PEM option that cannot be read or contains no certificate.
    pub(crate) fn new(options: &TlsOptions) -> Result<Self, TlsError> {
        let origin = Arc::new(Origin::new(options, ATTEMPT_TIMEOUT)?);
        Ok(Self { origin, runtime: Handle::current(), log_throttle: Arc::default() })
    }
}

impl KeySource for Fetcher {
    fn fetch(&self, fetch: Fetch) {
        let (origin, log_throttle) = (Arc::clone(&self.origin), Arc::clone(&self.log_throttle));
        self.runtime.spawn(async move {
            let url = fetch.url().to_owned();
            match origin.get_within(&url, ATTEMPTS).await {
                Ok(body) => {
                    tracing::debug!(%url, bytes = body.len(), "fetched the JWKS document");
                    fetch.done(body);
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

/// Clients wait for the result (same value as Centrifugo).
const ATTEMPT_TIMEOUT: Duration = Duration::from_secs(1);
const ATTEMPTS: usize = 2;
