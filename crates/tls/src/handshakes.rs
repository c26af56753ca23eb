//! Counts of TLS handshakes by result, and the throttle of log lines about failed ones.
//! In: a result, from any thread of the HTTP runtime → out: counts by result, for metrics; whether to log, and the end of a burst.
//! Uses: atomics, `LogThrottle`. Never: decides about a handshake.
//! Changed here: the results. `edge::accept::tls_accept` counts them.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Instant;

use fanwire_telemetry::{Burst, LogThrottle, RefusalEvent, Repeats};

/// How a TLS handshake ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HandshakeResult {
    Full,
    /// It continued an earlier session.
    Resumed,
    /// Either side refused, or the peer left.
    Failed,
    /// The peer took too long.
    TimedOut,
    /// The peer sent an HTTP request without TLS.
    PlainHttp,
}

impl HandshakeResult {
    const ALL: [Self; 5] =
        [Self::Full, Self::Resumed, Self::Failed, Self::TimedOut, Self::PlainHttp];

    /// The label in metrics.
    pub fn name(self) -> &'static str {
        match self {
            Self::Full => "full",
            Self::Resumed => "resumed",
            Self::Failed => "failed",
            Self::TimedOut => "timed_out",
            Self::PlainHttp => "plain_http",
        }
    }
}

/// Handshakes since the start.
#[derive(Debug, Default)]
pub struct HandshakeCounts {
    counts: [AtomicU64; HandshakeResult::ALL.len()],
    log_throttle: LogThrottle,
}

impl HandshakeCounts {
    pub fn count(&self, result: HandshakeResult) {
        self.counts[result as usize].fetch_add(1, Relaxed);
    }

    /// Counts a handshake that did not succeed. Returns the count since the last log line of its cause if there is to be
    /// another one.
    pub fn fail(
        &self,
        result: HandshakeResult,
        cause: &str,
        peer: SocketAddr,
        now: Instant,
    ) -> Option<Repeats> {
        self.count(result);
        let address = Some(peer.ip());
        let event = RefusalEvent { kind: cause, address, ..RefusalEvent::default() };
        self.log_throttle.record_event(event, now)
    }

    /// Bursts that have ended, with the addresses that had most.
    pub fn ended(&self, now: Instant) -> Vec<Burst> {
        self.log_throttle.ended(now)
    }

    /// Each result with its count.
    pub fn counts(&self) -> impl Iterator<Item = (HandshakeResult, u64)> {
        HandshakeResult::ALL
            .into_iter()
            .zip(&self.counts)
            .map(|(result, count)| (result, count.load(Relaxed)))
    }
}
