//! Limits on new connections: origin, rate, load of the node, and their number.
//! In: the head of a handshake, and the time → out: a permit, or the status and the text of the refusal.
//! Uses `origin`, `rate` and permits of the shards; never checks permissions of connected clients.
//! Changed here: the checks, and the throttled log lines of refusals.

use std::{net::SocketAddr, sync::Arc, time::Instant};

use axum::http::{HeaderMap, HeaderName, StatusCode, header};
use fanwire_node::{AddressCounts, AddressFull};
use fanwire_shard::CountedPlace;
use fanwire_telemetry::{Repeats, excerpt};
use parking_lot::RwLock;
use tracing::field::display;

use super::{
    origin::AllowedOrigins,
    overload::Overload,
    rate::ConnectionRate,
    refusals::{Cause, Refusals},
};
use crate::descriptors;

/// The limits of an endpoint.
pub struct Admission {
    pub limits: SharedLimits,
    /// Accept pages of the server itself too: the demo page.
    pub allows_own_origin: bool,
    /// Number of connections for which there are descriptors; 0 = no limit.
    pub descriptor_limit: usize,
    /// Counts refused handshakes, and limits log lines about them.
    pub(crate) refusals: Arc<Refusals>,
}

/// The limits that a reload replaces.
pub struct AdmissionLimits {
    /// Patterns of allowed origins; `None` checks nothing.
    pub allowed_origins: Option<AllowedOrigins>,
    /// Maximum number of connections; 0 = no limit.
    pub connection_limit: usize,
    pub rate: Arc<ConnectionRate>,
    /// Connections by address of the client, with their limit.
    pub addresses: Arc<AddressCounts>,
    /// Load under which no client is accepted.
    pub overload: Arc<Overload>,
}

/// The limits of now, which a handshake copies out of the lock.
pub type SharedLimits = Arc<RwLock<Arc<AdmissionLimits>>>;

impl AdmissionLimits {
    pub fn shared(self) -> SharedLimits {
        Arc::new(RwLock::new(Arc::new(self)))
    }
}

/// A client that is admitted.
#[derive(Debug)]
pub(crate) struct Admitted<P> {
    pub(crate) permit: P,
    /// Its place among the connections of its address, if they are counted.
    pub(crate) place: Option<CountedPlace>,
}

/// Status and text of a response.
pub(crate) type StatusAndReason = (StatusCode, &'static str);

impl Admission {
    /// Accepts every handshake.
    pub fn open(now: Instant) -> Self {
        let rate = Arc::new(ConnectionRate::new(0, now));
        let overload = Arc::default();
        let limits = AdmissionLimits {
            allowed_origins: None,
            connection_limit: 0,
            rate,
            addresses: Arc::default(),
            overload,
        };
        Self {
            limits: limits.shared(),
            allows_own_origin: false,
            descriptor_limit: 0,
            refusals: Arc::default(),
        }
    }

    /// Checks a handshake. Calls `permit` with the maximum number of connections (0 = no limit); it returns `None` when that
    /// is reached.
    ///
    /// # Errors
    /// The status and the text of the refusal.
    pub(crate) fn admit<P>(
        &self,
        headers: &HeaderMap,
        peer: Option<SocketAddr>,
        now: Instant,
        permit: impl FnOnce(usize) -> Option<P>,
    ) -> Result<Admitted<P>, StatusAndReason> {
        self.check_origin(headers, peer, now)?;
        let limits = Arc::clone(&self.limits.read());
        if !limits.rate.allows(now) {
            self.refuse(Cause::Rate, peer, now, TOO_MANY_AT_ONCE);
            return Err((
                StatusCode::SERVICE_UNAVAILABLE,
                "too many new connections, try again later",
            ));
        }
        self.count(peer, now, permit)
    }

    /// Checks the load of the node and counts a connection, as the last step of [`admit`](Self::admit).
    ///
    /// # Errors
    /// The status and the text of the refusal.
    pub(crate) fn count<P>(
        &self,
        peer: Option<SocketAddr>,
        now: Instant,
        permit: impl FnOnce(usize) -> Option<P>,
    ) -> Result<Admitted<P>, StatusAndReason> {
        let limits = Arc::clone(&self.limits.read());
        if let Some(cause) = limits.overload.cause() {
            self.refuse(cause, peer, now, OVERLOADED);
            return Err((StatusCode::SERVICE_UNAVAILABLE, "this node is overloaded"));
        }
        let address = peer.map(|peer| peer.ip());
        let place = limits.addresses.enter(address).map_err(|AddressFull| {
            self.refuse(Cause::Address, peer, now, ADDRESS_FULL);
            (StatusCode::TOO_MANY_REQUESTS, "this address has too many connections")
        })?;
        let (max, cause) = self.limit(limits.connection_limit);
        let permit = permit(max).ok_or_else(|| {
            let is_limit = cause == Cause::Limit;
            self.refuse(cause, peer, now, if is_limit { FULL } else { OUT_OF_DESCRIPTORS });
            (StatusCode::SERVICE_UNAVAILABLE, "this node has reached its connection limit")
        })?;
        Ok(Admitted { permit, place: place.map(|place| Box::new(place) as CountedPlace) })
    }

    /// Checks the origin of a request.
    ///
    /// # Errors
    /// 403 and its text.
    pub(crate) fn check_origin(
        &self,
        headers: &HeaderMap,
        peer: Option<SocketAddr>,
        now: Instant,
    ) -> Result<(), StatusAndReason> {
        let limits = Arc::clone(&self.limits.read());
        let origin = headers.get(header::ORIGIN).map(|origin| origin.to_str().unwrap_or("?"));
        if let Some(patterns) = &limits.allowed_origins
            && !patterns.allow(origin)
            && !(self.allows_own_origin && is_own_origin(origin, headers))
        {
            self.refuse_request(Cause::Origin, WRONG_ORIGIN, headers, peer, now);
            return Err((StatusCode::FORBIDDEN, WRONG_ORIGIN));
        }
        Ok(())
    }

    /// Checks a GET that has an effect. Images, frames and links of other sites' pages cause one without an `Origin`, which
    /// scripts cannot leave out; `Sec-Fetch-Site` tells them apart from programs and from pages of the same origin (W3C Fetch
    /// Metadata §2.4).
    ///
    /// # Errors
    /// 403 and its text.
    pub(super) fn check_site(
        &self,
        headers: &HeaderMap,
        peer: Option<SocketAddr>,
        now: Instant,
    ) -> Result<(), StatusAndReason> {
        let sites = headers.get_all(FETCH_SITE);
        let is_foreign = sites.iter().any(|site| site == "cross-site" || site == "same-site");
        if is_foreign && !headers.contains_key(header::ORIGIN) {
            self.refuse_request(Cause::Origin, NO_ORIGIN, headers, peer, now);
            return Err((StatusCode::FORBIDDEN, NO_ORIGIN));
        }
        Ok(())
    }

    /// The maximum number of connections (0 = no limit), and the cause of refusals above it.
    fn limit(&self, connection_limit: usize) -> (usize, Cause) {
        let descriptor_limit = match self.descriptor_limit {
            0 => 0,
            share => descriptors::without_streams(share),
        };
        match (connection_limit, descriptor_limit) {
            (0, max) => (max, Cause::Descriptors),
            (limit, max) if 0 < max && max < limit => (max, Cause::Descriptors),
            (limit, _) => (limit, Cause::Limit),
        }
    }

    fn refuse(&self, cause: Cause, peer: Option<SocketAddr>, now: Instant, what: &str) {
        if let Some(repeats) = self.refusals.record(cause, peer, now) {
            tracing::warn!("refusing clients: {what}{repeats}");
        }
    }

    /// Counts a handshake that is wrong in itself. Logged at level info, because most such clients and pages are not the
    /// operator's: once a minute for each cause, at level debug each of them.
    pub(crate) fn refuse_request(
        &self,
        cause: Cause,
        text: &str,
        headers: &HeaderMap,
        peer: Option<SocketAddr>,
        now: Instant,
    ) {
        let repeats = self.refusals.record(cause, peer, now);
        if repeats.is_none() && !tracing::enabled!(tracing::Level::DEBUG) {
            return;
        }
        let origin = headers
            .get(header::ORIGIN)
            .map(|origin| excerpt(&String::from_utf8_lossy(origin.as_bytes())));
        let address = peer.map(display);
        let cause = excerpt(text);
        match repeats.map(Repeats::count) {
            Some(count) => tracing::info!(count, cause, origin, address, "refused a handshake"),
            None => tracing::debug!(cause, origin, address, "refused a handshake"),
        }
    }
}

/// Whether an `Origin` has the same host as the request. Its scheme may be `https` when a proxy terminates TLS.
pub fn is_own_origin(origin: Option<&str>, headers: &HeaderMap) -> bool {
    let host = headers.get(header::HOST).and_then(|host| host.to_str().ok());
    let page = origin.and_then(|origin| origin.split_once("://"));
    page.zip(host).is_some_and(|((scheme, of), host)| {
        matches!(scheme, "http" | "https") && of.eq_ignore_ascii_case(host)
    })
}

const WRONG_ORIGIN: &str =
    "this Origin is not allowed: the server's client.allowed_origins must list it";

const NO_ORIGIN: &str =
    "a GET of another site's page (Sec-Fetch-Site) must have an Origin: use EventSource or fetch";

const FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");

const TOO_MANY_AT_ONCE: &str = "more handshakes per second than client.connection_rate_limit";

const OVERLOADED: &str =
    "the load is above a limit of the section shed; add a node, or raise the limit";

const FULL: &str = "client.connection_limit is reached; raise it, or add a node";

const ADDRESS_FULL: &str = "more connections of one address than client.limits.address_connections.limit; raise it if many users share an \
                            address";

const OUT_OF_DESCRIPTORS: &str = "the file descriptors for clients are used up, the rest is reserved for the server itself; raise \
                                  the limit of this process (ulimit -Hn, LimitNOFILE= of a unit), or add a node";

#[cfg(test)]
mod tests;
