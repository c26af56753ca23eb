//! How many handshakes were refused, and why.
//! In: a cause, from any thread of the HTTP runtime → out: counts by cause, for metrics.
//! Uses: nothing. Never: who is refused.
//! Changed here: the causes. `admission` decides about most of them, `upgrade` about those that are malformed.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Why a handshake was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// It is none of RFC 6455 §4.2.1.
    Malformed,
    /// `client.allowed_origins` does not list the page it comes from.
    Origin,
    /// More came in a second than `client.connection_rate_limit`.
    Rate,
    /// There are as many connections as `client.connection_limit`.
    Limit,
    /// There are as many connections as the process has descriptors for.
    Descriptors,
}

impl Cause {
    const ALL: [Self; 5] =
        [Self::Malformed, Self::Origin, Self::Rate, Self::Limit, Self::Descriptors];

    /// Its label in metrics.
    pub fn name(self) -> &'static str {
        match self {
            Self::Malformed => "malformed",
            Self::Origin => "origin",
            Self::Rate => "rate",
            Self::Limit => "limit",
            Self::Descriptors => "descriptors",
        }
    }
}

/// Refused handshakes since the start.
#[derive(Debug, Default)]
pub struct Refusals([AtomicU64; Cause::ALL.len()]);

impl Refusals {
    pub(super) fn count(&self, cause: Cause) {
        self.0[cause as usize].fetch_add(1, Relaxed);
    }

    /// Each cause with its number.
    pub fn counts(&self) -> impl Iterator<Item = (Cause, u64)> {
        Cause::ALL.into_iter().zip(&self.0).map(|(cause, count)| (cause, count.load(Relaxed)))
    }
}
