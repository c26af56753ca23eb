//! Limits of a peer that sends requests: times, and bytes of a head.
//! In: nothing → out: the limits, for every connection that speaks HTTP/1.1.
//! Uses the type of `timeout_stream`, which applies the times; never a socket.
//! Changed here: the numbers. While slots are scarce, `slots` shortens them; those of HTTP/2 live in `http2`.

use std::time::Duration;

use super::timeout_stream::{LingerLimits, Timeouts};

/// Limits of a peer while there are enough slots.
pub(crate) const TIMEOUTS: Timeouts = Timeouts {
    head: HEAD_TIMEOUT,
    idle: IDLE_TIMEOUT,
    write: WRITE_TIMEOUT,
    linger: LingerLimits {
        time: LINGER_TIME,
        silence: LINGER_SILENCE,
        bytes: LINGER_BYTES_MAX,
        head_bytes: LINGER_HEAD_BYTES_MAX,
    },
};

/// Limit for a complete request head (Centrifugo: 10 s).
const HEAD_TIMEOUT: Duration = Duration::from_secs(10);

/// Limit between requests. Backends keep connections in pools, often for 90 s, and close them themselves.
pub(crate) const IDLE_TIMEOUT: Duration = Duration::from_secs(180);

/// After a response that was sent before its request was read (413, 401 and others), received bytes are discarded for this
/// time at most. It equals the time limit of a body.
const LINGER_TIME: Duration = Duration::from_secs(30);

/// Discarding ends when nothing arrives for this time (nginx: `lingering_timeout`).
const LINGER_SILENCE: Duration = Duration::from_secs(5);

/// Maximum of discarded bytes: four times the default body limit of the API.
const LINGER_BYTES_MAX: u64 = 64 * 1024 * 1024;

/// Maximum of discarded bytes of a head that was refused before its end (431).
const LINGER_HEAD_BYTES_MAX: u64 = 1024 * 1024;

/// The connection is closed when the peer accepts no byte of a response for this time.
const WRITE_TIMEOUT: Duration = Duration::from_secs(30);

/// Request head and read buffer of one HTTP connection.
pub(crate) const HEADER_BYTES_MAX: usize = 16 * 1024;
