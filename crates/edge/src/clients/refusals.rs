//! Counts of refused handshakes by cause.
//! In: a cause, from any thread of the HTTP runtime → out: counts by cause, for metrics.
//! Uses: atomics. Never: decides about a handshake.
//! Changed here: the causes. `edge::clients::admission` counts most of them, `edge::clients::upgrade` malformed handshakes.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Why a handshake was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// It violates RFC 6455 §4.2.1.
    Malformed,
    /// `client.allowed_origins` does not list its `Origin`.
    Origin,
    /// There were more handshakes per second than `client.connection_rate_limit`.
    Rate,
    /// `client.connection_limit` is reached.
    Limit,
    /// The descriptors for clients are used up.
    Descriptors,
}

impl Cause {
    const ALL: [Self; 5] =
        [Self::Malformed, Self::Origin, Self::Rate, Self::Limit, Self::Descriptors];

    /// The label in metrics.
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
    pub(crate) fn count(&self, cause: Cause) {
        self.0[cause as usize].fetch_add(1, Relaxed);
    }

    /// Each cause with its count.
    pub fn counts(&self) -> impl Iterator<Item = (Cause, u64)> {
        Cause::ALL.into_iter().zip(&self.0).map(|(cause, count)| (cause, count.load(Relaxed)))
    }
}
