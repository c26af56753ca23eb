//! Options of Durable Streams: channels of one namespace as streams over HTTP (docs/durable-streams.md).
//! In: nothing → out: plain data.
//! Uses values only. Never: serves.
//! Changed here: an option of streams, which also is a row of the crate `config` (`keys/durable.rs`).

use std::time::Duration;

/// `durable_streams.*`
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DurableOptions {
    pub enabled: bool,
    /// Path in front of the names of streams.
    pub handler_prefix: String,
    /// Namespace of the channels that are streams.
    pub namespace: String,
    /// Requests need neither a key nor a token.
    pub insecure: bool,
    /// Longest body of a request, in bytes.
    pub max_request_body_size: usize,
    /// Streams at the same time.
    pub max_streams: usize,
    /// Producers that a stream remembers.
    pub max_producers: usize,
    /// Reads that wait at the same time.
    pub max_live_reads: usize,
    /// Those of one user.
    pub max_live_reads_per_user: usize,
    /// How long a long-poll waits.
    pub long_poll_timeout: Duration,
    /// Lifetime of a response in SSE.
    pub sse_timeout: Duration,
}

impl Default for DurableOptions {
    fn default() -> Self {
        Self {
            enabled: false,
            handler_prefix: "/v1/stream".to_owned(),
            namespace: String::new(),
            insecure: false,
            max_request_body_size: 16 << 20,
            max_streams: 100_000,
            max_producers: 1_000,
            max_live_reads: 10_000,
            max_live_reads_per_user: 100,
            long_poll_timeout: Duration::from_secs(30),
            sse_timeout: Duration::from_secs(60),
        }
    }
}
