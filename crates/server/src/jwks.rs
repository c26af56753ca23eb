//! Fetching documents of keys (JWKS, RFC 7517) for the node, which has no sockets.
//! In: an address → out: the document, or a line in the log why there is none.
//! Uses `get`; never reads documents, never decides when to fetch.
//! Changed here: how long and how often is tried. What is fetched when, and what is believed, lives in `node::token`.

mod get;

use std::sync::Arc;
use std::time::{Duration, Instant};

use fanwire_auth::{Fetch, KeySource};
use fanwire_telemetry::LogThrottle;
use tokio::runtime::Handle;

use crate::config::TlsOptions;
use crate::tls::TlsError;
use get::Origin;

/// Fetches with one section of TLS options, on the runtime it was made in.
#[derive(Debug)]
pub(crate) struct Fetcher {
    origin: Arc<Origin>,
    runtime: Handle,
    told: Arc<LogThrottle>,
}

impl Fetcher {
    /// Must be called inside a tokio runtime.
    ///
    /// # Errors
    /// A PEM that cannot be read, or no authority to believe.
    pub(crate) fn new(options: &TlsOptions) -> Result<Self, TlsError> {
        let origin = Arc::new(Origin::new(options, ATTEMPT_TIMEOUT)?);
        Ok(Self { origin, runtime: Handle::current(), told: Arc::default() })
    }
}

impl KeySource for Fetcher {
    fn fetch(&self, fetch: Fetch) {
        let (origin, told) = (Arc::clone(&self.origin), Arc::clone(&self.told));
        self.runtime.spawn(async move {
            let url = fetch.url().to_owned();
            match origin.get_within(&url, ATTEMPTS).await {
                Ok(body) => {
                    tracing::debug!(%url, bytes = body.len(), "fetched keys of tokens");
                    fetch.done(body);
                }
                Err(error) => {
                    // A fetch is tried every 5 s while clients need it.
                    if let Some(cases) = told.happens(&url, Instant::now()) {
                        tracing::warn!(%url, %error, "cannot fetch keys of tokens: clients whose key is not known yet get error 100; check jwks_public_endpoint, and that it answers{cases}");
                    }
                }
            }
        });
    }
}

/// Clients wait for the answer (Centrifugo: the same).
const ATTEMPT_TIMEOUT: Duration = Duration::from_secs(1);
const ATTEMPTS: usize = 2;
