//! Options of events out: where reports of clients and channels go (docs/events.md).
//! In: nothing → out: plain data.
//! Uses values only. Never: sends.
//! An option is a field here and a row in `keys/events.rs`; its effect lives in `fanwire_events`.

use std::time::Duration;

use fanwire_auth::Secret;
use fanwire_redis::{RedisError, RedisOptions};

use crate::{EngineRedisOptions, TlsOptions};

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
    /// About so many entries are kept; 0 = all.
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
        let options = redis.options()?;
        if options.addresses.is_empty() {
            let wrong = "events cannot go to a Redis Cluster: name one Redis";
            return Err(RedisError::Address { text: String::new(), wrong });
        }
        Ok(options)
    }
}

/// Names of the types of events.
pub const EVENT_TYPES: [&str; 12] = [
    "connected",
    "disconnected",
    "subscribed",
    "unsubscribed",
    "occupied",
    "vacated",
    "recount_started",
    "recount_ended",
    "node_started",
    "node_gone",
    "node_returned",
    "lost",
];
