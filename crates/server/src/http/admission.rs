//! Who may become a connection: origin, rate, and how many there are.
//! In: the head of a handshake, and the time → out: a permit, or the status and the text of the refusal.
//! Uses `origin`, `rate` and permits of the shards; never decides who may do what once connected.
//! Changed here: the checks, and what the log says of refusals: operators see those of a limit, and seldom.

use std::{sync::Arc, time::Instant};

use axum::http::{HeaderMap, StatusCode, header};
use fanwire_telemetry::LogThrottle;

use super::{origin, rate::ConnectionRate};
use crate::refusals::{Cause, Refusals};

/// The limits of an endpoint, and what was said of them.
pub struct Admission {
    /// Patterns of allowed origins; `None` checks nothing.
    pub allowed_origins: Option<Vec<String>>,
    /// Pages of the server itself may connect, too: the demo page.
    pub allows_own_origin: bool,
    /// Connections there may be; 0 = no limit.
    pub connection_limit: usize,
    /// Connections for which there are descriptors; 0 = no limit.
    pub descriptor_limit: usize,
    pub rate: ConnectionRate,
    /// How many were refused.
    pub(crate) refusals: Arc<Refusals>,
    /// What the log said of refusals.
    pub(crate) told: LogThrottle,
}

/// Status and text of an answer.
pub(super) type Refusal = (StatusCode, &'static str);

impl Admission {
    /// One that lets everybody in.
    pub fn open(now: Instant) -> Self {
        Self {
            allowed_origins: None,
            allows_own_origin: false,
            connection_limit: 0,
            descriptor_limit: 0,
            rate: ConnectionRate::new(0, now),
            refusals: Arc::default(),
            told: LogThrottle::default(),
        }
    }

    /// Lets a handshake in, with what `permit` gives while there are fewer connections than it is told (0 = any number).
    pub(super) fn admit<P>(
        &self,
        headers: &HeaderMap,
        now: Instant,
        permit: impl FnOnce(usize) -> Option<P>,
    ) -> Result<P, Refusal> {
        let origin = headers.get(header::ORIGIN).map(|origin| origin.to_str().unwrap_or("?"));
        if let Some(patterns) = &self.allowed_origins
            && !origin::is_allowed(origin, patterns)
            && !(self.allows_own_origin && is_own(origin, headers))
        {
            self.refuse_origin(origin.unwrap_or_default(), now);
            return Err((StatusCode::FORBIDDEN, WRONG_ORIGIN));
        }
        if !self.rate.allows(now) {
            self.refuse(Cause::Rate, now, TOO_MANY_AT_ONCE);
            return Err((
                StatusCode::SERVICE_UNAVAILABLE,
                "too many new connections at the moment, try again",
            ));
        }
        let (max, cause) = self.limit();
        permit(max).ok_or_else(|| {
            let is_limit = cause == Cause::Limit;
            self.refuse(cause, now, if is_limit { FULL } else { OUT_OF_DESCRIPTORS });
            (StatusCode::SERVICE_UNAVAILABLE, "this node has as many connections as it may")
        })
    }

    /// How many connections there may be (0 = any number), and why there may be no more.
    fn limit(&self) -> (usize, Cause) {
        match (self.connection_limit, self.descriptor_limit) {
            (0, max) => (max, Cause::Descriptors),
            (limit, max) if 0 < max && max < limit => (max, Cause::Descriptors),
            (limit, _) => (limit, Cause::Limit),
        }
    }

    fn refuse(&self, cause: Cause, now: Instant, what: &str) {
        self.refusals.count(cause);
        if let Some(cases) = self.told.happens(cause.name(), now) {
            tracing::warn!("refusing clients with 503: {what}{cases}");
        }
    }

    /// Mostly somebody else's page, sometimes the operator's own.
    fn refuse_origin(&self, origin: &str, now: Instant) {
        self.refusals.count(Cause::Origin);
        if let Some(cases) = self.told.happens(Cause::Origin.name(), now) {
            let origin: String = origin.chars().take(ORIGIN_CHARS_MAX).collect();
            tracing::info!(
                "refusing pages of {origin:?} with 403: client.allowed_origins does not list them{cases}"
            );
        }
    }
}

/// Whether the page comes from the host that the request names. With `https` TLS ended in front of the server.
fn is_own(origin: Option<&str>, headers: &HeaderMap) -> bool {
    let host = headers.get(header::HOST).and_then(|host| host.to_str().ok());
    let page = origin.and_then(|origin| origin.split_once("://"));
    page.zip(host).is_some_and(|((scheme, of), host)| {
        matches!(scheme, "http" | "https") && of.eq_ignore_ascii_case(host)
    })
}

const WRONG_ORIGIN: &str =
    "this Origin is not allowed: the server's client.allowed_origins must list it";

const TOO_MANY_AT_ONCE: &str = "more come in a second than client.connection_rate_limit says";

const FULL: &str =
    "there are as many connections as client.connection_limit says; raise it, or add a node";

const OUT_OF_DESCRIPTORS: &str = "each takes a descriptor, and the rest is kept for the server itself; let this process \
                                  have more (ulimit -Hn, LimitNOFILE= of a unit), or add a node";

/// Longer than any host name.
const ORIGIN_CHARS_MAX: usize = 300;

#[cfg(test)]
mod tests;
