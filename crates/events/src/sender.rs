//! Sends batches of events: signed requests, or entries of a Redis stream; tried again with a growing pause.
//! In: the body of a batch → out: accepted, or the error.
//! Uses the pooled client of `tls`, HMAC of aws-lc, the Redis client of `redis`. Never: the content of a batch.
//! Changed here: the signatures, the entry, when a request has failed, the pause after it.

use std::fmt::{self, Write};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use aws_lc_rs::hmac;
use bytes::Bytes;
use fanwire_redis::{RedisError, RedisOptions, RedisTls, StreamAppender};
use fanwire_telemetry::LogThrottle;
use fanwire_tls::{Http2, HttpsClient, PoolOptions, RequestError, RequestLimits, Tls, TlsError};
use http::{Request, header};
use http_body_util::{BodyExt, Full, Limited};
use tokio::runtime::Handle;
use tokio::time::{sleep, timeout};

use crate::options::{EventsHttpOptions, EventsOptions, EventsRedisStreamOptions};

#[derive(Debug)]
pub(crate) struct Sender {
    target: EventTarget,
    failures: AtomicU32,
    log_throttle: LogThrottle,
}

/// The place that gets batches.
enum EventTarget {
    Http(Box<HttpTarget>),
    RedisStream(Box<StreamTarget>),
}

struct HttpTarget {
    client: HttpsClient,
    url: String,
    timeout: Duration,
    key: Option<hmac::Key>,
}

struct StreamTarget {
    options: RedisOptions,
    stream: String,
    max_len: u64,
    /// Connects at the first batch.
    appender: OnceLock<StreamAppender>,
}

/// An option of the target that is wrong.
#[derive(Debug)]
pub enum EventsError {
    /// `events.http.tls`
    HttpTls(TlsError),
    /// `events.redis_stream.tls`
    RedisTls(TlsError),
    /// `events.redis_stream.address`
    Redis(RedisError),
}

impl Sender {
    /// The sender of a server; `None` without a place for events.
    ///
    /// # Errors
    /// See [`EventsError`].
    pub(crate) fn new(options: &EventsOptions) -> Result<Option<Self>, EventsError> {
        let target = if !options.redis_stream.address.is_empty() {
            EventTarget::RedisStream(Box::new(StreamTarget::new(&options.redis_stream)?))
        } else if !options.http.endpoint.is_empty() {
            let http = HttpTarget::new(&options.http).map_err(EventsError::HttpTls)?;
            EventTarget::Http(Box::new(http))
        } else {
            return Ok(None);
        };
        let failures = AtomicU32::new(0);
        let log_throttle = LogThrottle::default();
        Ok(Some(Self { target, failures, log_throttle }))
    }

    /// Sends a batch, and returns when it was accepted.
    ///
    /// # Errors
    /// A sentence that says why it may not have been.
    pub(crate) async fn send(&self, body: Bytes) -> Result<(), String> {
        match &self.target {
            EventTarget::Http(endpoint) => {
                endpoint.send(body).await.map_err(|error| error.to_string())
            }
            EventTarget::RedisStream(stream) => stream.appender().append(FIELD, body).await,
        }
    }

    /// Waits after a failed request.
    pub(crate) async fn pause(&self, error: &str) {
        let failures = self.failures.fetch_add(1, Relaxed);
        if let Some(repeats) = self.log_throttle.record("events", Instant::now()) {
            tracing::warn!(%error, "the backend did not take a batch of events, which is sent again{repeats}");
        }
        sleep(pause_after(failures)).await;
    }

    pub(crate) fn succeeded(&self) {
        self.failures.store(0, Relaxed);
    }
}

impl HttpTarget {
    fn new(options: &EventsHttpOptions) -> Result<Self, TlsError> {
        let limits = RequestLimits { timeout: options.timeout, body_bytes_max: ANSWER_BYTES_MAX };
        let pool = PoolOptions {
            idle_per_host_max: 1,
            idle_timeout: Duration::from_secs(4),
            http2: Http2::Negotiated,
        };
        let secret = options.secret.as_bytes();
        Ok(Self {
            client: HttpsClient::pooled(Tls::new(&options.tls)?, limits, pool),
            url: options.endpoint.clone(),
            timeout: options.timeout,
            key: (!secret.is_empty()).then(|| hmac::Key::new(hmac::HMAC_SHA256, secret)),
        })
    }

    /// Accepted are responses with a status 2xx, whatever their body is.
    async fn send(&self, body: Bytes) -> Result<(), RequestError> {
        let mut request = Request::post(&self.url).header(header::CONTENT_TYPE, "application/json");
        if let Some(key) = &self.key {
            let unix_time = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
            request = request
                .header(SIGNATURE, signature(key, &body))
                .header(TIMED_SIGNATURE, timed_signature(key, unix_time.as_secs(), &body));
        }
        let request = request.body(Full::new(body)).map_err(|_| RequestError::Url)?;
        let answered = timeout(self.timeout, self.client.request(request)).await;
        let response = answered.map_err(|_| RequestError::Timeout)??;
        let status = response.status();
        // The connection can be used again after the body. One that is long, late or cut costs a connection, no batch.
        let rest = Limited::new(response.into_body(), ANSWER_BYTES_MAX).collect();
        let _ = timeout(REST_TIMEOUT, rest).await;
        if status.is_success() { Ok(()) } else { Err(RequestError::Status(status)) }
    }
}

impl StreamTarget {
    fn new(options: &EventsRedisStreamOptions) -> Result<Self, EventsError> {
        let mut redis = options.options().map_err(EventsError::Redis)?;
        let tls = Tls::new(&options.tls).map_err(EventsError::RedisTls)?;
        let config = tls.config().clone();
        let server_name = tls.server_name().to_owned();
        redis.tls = Some(RedisTls { config, server_name });
        redis.sentinel_tls = redis.tls.clone();
        Ok(Self {
            options: redis,
            stream: options.stream.clone(),
            max_len: options.max_len,
            appender: OnceLock::new(),
        })
    }

    fn appender(&self) -> &StreamAppender {
        let Self { options, stream, max_len, appender } = self;
        let start = || StreamAppender::start(options, stream, *max_len, &Handle::current());
        appender.get_or_init(start)
    }
}

impl fmt::Debug for EventTarget {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("EventTarget")
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

/// A time in Unix seconds, and HMAC-SHA256 of the time, a dot and the body: a request that is replayed later has an old time.
fn timed_signature(key: &hmac::Key, time: u64, body: &[u8]) -> String {
    let signed = [format!("{time}.").as_bytes(), body].concat();
    format!("t={time},{}", signature(key, &signed))
}

/// The pause after a failure that so many others precede.
fn pause_after(failures: u32) -> Duration {
    PAUSE.saturating_mul(1 << failures.min(5)).min(PAUSE_MAX)
}

/// Field of an entry with the body of a request.
const FIELD: &str = "batch";
const SIGNATURE: &str = "x-fanwire-signature";
const TIMED_SIGNATURE: &str = "x-fanwire-timed-signature";
const PAUSE: Duration = Duration::from_millis(400);
const PAUSE_MAX: Duration = Duration::from_secs(10);
const ANSWER_BYTES_MAX: usize = 64 * 1024;
/// Time limit of the body of a response. Its status has decided already.
const REST_TIMEOUT: Duration = Duration::from_millis(200);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_signature_is_that_of_rfc_4231() {
        let key = hmac::Key::new(hmac::HMAC_SHA256, b"Jefe");
        let expected = "sha256=5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843";
        assert_eq!(signature(&key, b"what do ya want for nothing?"), expected);
    }

    #[test]
    fn the_timed_signature_is_that_of_the_time_a_dot_and_the_body() {
        let key = hmac::Key::new(hmac::HMAC_SHA256, b"Jefe");
        let of_both = signature(&key, b"1764115200.{\"n\":1}");
        let timed = timed_signature(&key, 1_764_115_200, b"{\"n\":1}");
        assert_eq!(timed, format!("t=1764115200,{of_both}"));
    }

    #[test]
    fn pauses_grow_from_the_documented_one_to_the_longest() {
        let pauses =
            [0, 1, 2, 3, 4, 5, 6, u32::MAX].map(|failures| pause_after(failures).as_millis());
        assert_eq!(pauses, [400, 800, 1600, 3200, 6400, 10_000, 10_000, 10_000]);
        let page = include_str!("../../../docs/events.md");
        assert!(page.contains("a pause that grows from 0.4 s to 10 s"));
    }
}
