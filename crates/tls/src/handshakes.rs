//! Counts of TLS handshakes by result.
//! In: a result, from any thread of the HTTP runtime → out: counts by result, for metrics.
//! Uses: atomics. Never: decides about a handshake.
//! Changed here: the results. `edge::accept::tls_accept` counts them.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

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
pub struct HandshakeCounts([AtomicU64; HandshakeResult::ALL.len()]);

impl HandshakeCounts {
    pub fn count(&self, result: HandshakeResult) {
        self.0[result as usize].fetch_add(1, Relaxed);
    }

    /// Each result with its count.
    pub fn counts(&self) -> impl Iterator<Item = (HandshakeResult, u64)> {
        HandshakeResult::ALL
            .into_iter()
            .zip(&self.0)
            .map(|(result, count)| (result, count.load(Relaxed)))
    }
}
