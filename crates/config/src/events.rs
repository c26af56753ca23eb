//! Options of events out: where reports of clients and channels go (docs/events.md).
//! In: nothing → out: plain data.
//! Uses values only. Never: sends.
//! An option is a field here and a row in `keys/events.rs`; its effect lives in `fanwire_events`.

use std::time::Duration;

use fanwire_auth::Secret;

use crate::TlsOptions;

/// `events.*`
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EventsOptions {
    pub http: EventsHttpOptions,
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
