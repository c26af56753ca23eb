//! Options of events out: where reports of clients and channels go (docs/events.md).
//! In: nothing → out: plain data.
//! Uses values only. Never: sends.
//! Changed here: an option of events, which also is a row of the crate `config` (`keys/events.rs`).

use std::time::Duration;

use fanwire_auth::Secret;
use fanwire_redis::{EngineRedisOptions, RedisError, RedisOptions};
use fanwire_tls::TlsOptions;

/// `events.*`
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EventsOptions {
    pub http: EventsHttpOptions,
    pub redis_stream: EventsRedisStreamOptions,
    /// Names of the types to send; empty = all.
    pub types: Vec<String>,
    /// Events of one request at most; at least 1.
    pub batch_size: usize,
    /// How long events wait for others.
    pub batch_delay: Duration,
    /// Events that wait for the backend at most; further ones are lost, and counted.
    pub queue_max: usize,
    /// How long a channel has no subscriber before it is vacated.
    pub vacated_delay: Duration,
}

/// `events.http.*`
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EventsHttpOptions {
    /// "" = no events.
    pub endpoint: String,
    /// Key of the signature; "" = none.
    pub secret: Secret,
    /// Limit for one request.
    pub timeout: Duration,
    pub tls: TlsOptions,
}

/// `events.redis_stream.*`
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EventsRedisStreamOptions {
    /// "" = no events.
    pub address: Secret,
    pub stream: String,
    /// Approximate number of entries to keep; 0 keeps all.
    pub max_len: u64,
    pub tls: TlsOptions,
}

impl EventsRedisStreamOptions {
    /// Returns the options of the Redis.
    ///
    /// # Errors
    /// [`RedisError::Address`] for an address that cannot be read, or of a Cluster.
    pub fn options(&self) -> Result<RedisOptions, RedisError> {
        let redis = EngineRedisOptions {
            address: vec![self.address.to_string()],
            tls: self.tls.clone(),
            connect_timeout: Duration::from_secs(1),
            io_timeout: Duration::from_secs(4),
            ..EngineRedisOptions::default()
        };
        let options = redis.options(|tls: &TlsOptions| tls.enabled)?;
        if options.addresses.is_empty() {
            let wrong = "events cannot go to a Redis Cluster: name one Redis";
            return Err(RedisError::Address { text: String::new(), wrong });
        }
        Ok(options)
    }
}
