//! Counts of refused handshakes by cause, the throttle of their log lines, and the header `Retry-After`.
//! In: a cause, from any thread of the HTTP runtime → out: counts by cause, for metrics; whether to log, and the end of a burst.
//! Uses: atomics, `LogThrottle`. Never: decides about a handshake.
//! Changed here: the causes. `edge::clients::admission` counts most of them, `edge::clients::upgrade` malformed handshakes.

use std::{
    net::SocketAddr,
    sync::atomic::{AtomicU64, Ordering::Relaxed},
    time::Instant,
};

use axum::{
    http::{HeaderValue, StatusCode, header},
    response::Response,
};
use fanwire_telemetry::{Burst, LogThrottle, RefusalEvent, Repeats};

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
    /// The address has as many connections as `client.limits.address_connections` allows.
    Address,
    /// The descriptors for clients are used up.
    Descriptors,
    /// More memory is resident than `shed.memory_max` or `shed.memory_percent_max`.
    Memory,
    /// Turns of a shard take longer than `shed.turn_max`.
    Turns,
    /// The node is evacuated (server API).
    Evacuation,
}

impl Cause {
    const ALL: [Self; 9] = [
        Self::Malformed,
        Self::Origin,
        Self::Rate,
        Self::Limit,
        Self::Address,
        Self::Descriptors,
        Self::Memory,
        Self::Turns,
        Self::Evacuation,
    ];

    /// The label in metrics.
    pub fn name(self) -> &'static str {
        match self {
            Self::Malformed => "malformed",
            Self::Origin => "origin",
            Self::Rate => "rate",
            Self::Limit => "limit",
            Self::Address => "address",
            Self::Descriptors => "descriptors",
            Self::Memory => "memory",
            Self::Turns => "turns",
            Self::Evacuation => "evacuation",
        }
    }
}

/// Refused handshakes since the start.
#[derive(Debug, Default)]
pub struct Refusals {
    counts: [AtomicU64; Cause::ALL.len()],
    log_throttle: LogThrottle,
}

impl Refusals {
    /// Counts a refusal. Returns the count since the last log line of its cause if there is to be another one.
    pub(crate) fn record(
        &self,
        cause: Cause,
        peer: Option<SocketAddr>,
        now: Instant,
    ) -> Option<Repeats> {
        self.counts[cause as usize].fetch_add(1, Relaxed);
        let address = peer.map(|peer| peer.ip());
        let event = RefusalEvent { kind: cause.name(), address, ..RefusalEvent::default() };
        self.log_throttle.record_event(event, now)
    }

    /// Bursts that have ended, with the addresses that had most.
    pub fn ended(&self, now: Instant) -> Vec<Burst> {
        self.log_throttle.ended(now)
    }

    /// Each cause with its count.
    pub fn counts(&self) -> impl Iterator<Item = (Cause, u64)> {
        Cause::ALL.into_iter().zip(&self.counts).map(|(cause, count)| (cause, count.load(Relaxed)))
    }
}

/// Tells the client of a 503 or 429 when to come back (RFC 9110 §10.2.3, RFC 6585 §4).
pub(super) fn retry_later(response: &mut Response<String>) {
    if matches!(response.status(), StatusCode::SERVICE_UNAVAILABLE | StatusCode::TOO_MANY_REQUESTS)
    {
        let seconds = HeaderValue::from_static(RETRY_AFTER_SECONDS);
        response.headers_mut().insert(header::RETRY_AFTER, seconds);
    }
}

/// A balancer passes the client on to another node at once. Without one, the load of this node has changed by then.
const RETRY_AFTER_SECONDS: &str = "5";
