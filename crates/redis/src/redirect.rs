//! Redirects in a Cluster: calls whose slot is at another node, and signals that slots moved.
//! In: error replies of a Redis → out: a `Redirect`; the trait that a connection reports it to.
//! Uses: calls. Never: decides where a slot is.
//! Changed here: which error replies are redirects. The map of slots is in `cluster.rs`.

use std::sync::{Arc, Weak};

use redis::ServerError;

use super::address::Address;
use super::call::Call;

/// Routes redirected calls. It is called on the tasks of connections, so its methods must be short.
pub(crate) trait Redirector: Send + Sync {
    /// Takes a call that a Redis refused.
    fn redirect(&self, call: Call, redirect: Redirect);

    /// Requests a topology refresh, because slots may have moved.
    fn request_refresh(&self);
}

/// The redirector of a connection; none outside of Clusters.
#[derive(Clone, Default)]
pub(crate) struct ClusterRedirects(Option<Weak<dyn Redirector>>);

impl ClusterRedirects {
    pub(crate) fn by(redirector: Weak<dyn Redirector>) -> Self {
        Self(Some(redirector))
    }

    /// Whether the connection leads to a node of a Cluster.
    pub(crate) fn is_cluster(&self) -> bool {
        self.0.is_some()
    }

    pub(crate) fn redirector(&self) -> Option<Arc<dyn Redirector>> {
        self.0.as_ref()?.upgrade()
    }

    /// Requests a topology refresh, in a Cluster.
    pub(crate) fn request_refresh(&self) {
        if let Some(redirector) = self.redirector() {
            redirector.request_refresh();
        }
    }
}

/// Destination of a refused call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Redirect {
    /// This master, as for all later calls of the slot.
    Moved(Address),
    /// This master, only for this call: the slot is being migrated.
    Ask(Address),
    /// The master of the slot after the next topology refresh: the slot is being migrated, and the keys of the call are on both sides.
    TryAgain,
}

impl Redirect {
    /// The redirect in an error reply of `node`; `None` for other errors.
    pub(crate) fn of(node: &Address, error: &ServerError) -> Option<Self> {
        let target = || target(node, error.details()?);
        match error.code() {
            "MOVED" => target().map(Self::Moved),
            "ASK" => target().map(Self::Ask),
            "TRYAGAIN" => Some(Self::TryAgain),
            _ => None,
        }
    }
}

/// The address in a redirect (`MOVED` or `ASK`) of `node`: `SLOT HOST:PORT`.
fn target(node: &Address, details: &str) -> Option<Address> {
    let (_, place) = details.split_once(' ')?;
    let (host, port) = place.rsplit_once(':')?;
    Some(node.reported(host.as_bytes(), port.parse().ok()?))
}

/// Whether slots may have moved.
pub(crate) fn is_of_slots(error: &ServerError) -> bool {
    matches!(error.code(), "MOVED" | "ASK" | "TRYAGAIN" | "CLUSTERDOWN" | "READONLY" | "MASTERDOWN")
}

/// Whether the connection is useless after this error: the Redis became a replica, or does nothing for now. Before
/// 7.0, the refusal of a command inside a script is part of an `ERR` error.
pub(crate) fn ends_connection(error: &ServerError) -> bool {
    let is_within = || error.details().is_some_and(|details| details.contains(": -READONLY "));
    ENDS.contains(&error.code()) || error.code() == "ERR" && is_within()
}

const ENDS: &[&str] = &["READONLY", "LOADING", "MASTERDOWN", "NOAUTH"];

#[cfg(test)]
mod tests;
