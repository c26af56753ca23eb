//! Options of Durable Streams: channels of one namespace as streams over HTTP (docs/durable-streams.md).
//! In: nothing → out: plain data.
//! Uses values only. Never: serves.
//! An option is a field here and a row in `keys/durable.rs`; its effect lives in `fanwire_durable`.

use std::time::Duration;

/// `durable_streams.*`
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DurableOptions {
    pub enabled: bool,
    /// Path in front of the names of streams.
    pub handler_prefix: String,
    /// Namespace of the channels that are streams.
    pub namespace: String,
    /// Requests need neither a key nor a token.
    pub insecure: bool,
    /// Longest body of a request, in bytes.
    pub body_bytes_max: usize,
    /// Streams at the same time.
    pub streams_max: usize,
    /// Producers that a stream remembers.
    pub producers_max: usize,
    /// Reads that wait at the same time.
    pub live_reads_max: usize,
    /// Those of one user.
    pub live_reads_of_user_max: usize,
    /// How long a long-poll waits.
    pub long_poll_timeout: Duration,
    /// Lifetime of a response in SSE.
    pub sse_timeout: Duration,
}
