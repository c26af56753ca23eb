//! What a connection to a node of a Cluster tells whoever knows the whole: what belongs elsewhere, and that slots moved.
//! In: refusals of a Redis → out: where they point to; a trait of two calls.
//! Uses: calls of a line. Never: decides where a slot is.
//! Change here: which refusals are not the last word. Who knows the slots is `cluster.rs`.

use std::sync::{Arc, Weak};
use std::time::Instant;

use redis::ServerError;

use super::cluster::topology::target;
use super::command_connection::Call;
use super::options::Address;

/// Who knows where the slots are. Called on the tasks of connections: to be short.
pub(crate) trait Redirector: Send + Sync {
    /// Takes a call that a Redis did not answer.
    fn redirect(&self, call: Call, elsewhere: Redirect);

    /// Slots may not be where they were.
    fn request_refresh(&self);
}

/// The guide of a connection; none outside of Clusters.
#[derive(Clone, Default)]
pub(crate) struct ClusterRedirects(Option<Weak<dyn Redirector>>);

impl ClusterRedirects {
    pub(crate) fn by(redirector: Weak<dyn Redirector>) -> Self {
        Self(Some(redirector))
    }

    /// Whether the connection is one to a node of a Cluster.
    pub(crate) fn is_cluster(&self) -> bool {
        self.0.is_some()
    }

    pub(crate) fn redirector(&self) -> Option<Arc<dyn Redirector>> {
        self.0.as_ref()?.upgrade()
    }

    /// Slots may not be where they were.
    pub(crate) fn request_refresh(&self) {
        if let Some(redirector) = self.redirector() {
            redirector.request_refresh();
        }
    }
}

/// Where a call can be done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Redirect {
    /// There, from now on.
    Moved(Address),
    /// There, this once: the slot is on its way.
    Ask(Address),
    /// In a moment: some keys of the slot are here, some there.
    TryAgain,
}

impl Redirect {
    /// What a refusal of `node` says; `None` when it is the last word.
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

/// How a call goes through a Cluster.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Route {
    pub(crate) slot: u16,
    /// Which of the connections to a Redis: the same at each.
    pub(crate) connection_index: usize,
    /// How often it was sent elsewhere.
    pub(crate) redirect_count: u8,
    /// Asked of a Redis to which its slot is on the way.
    pub(crate) is_asking: bool,
    /// Until when it may wait for its slot; set when that begins.
    pub(crate) wait_deadline: Option<Instant>,
}

/// Refusals after which slots may not be where they were.
pub(crate) fn is_of_slots(error: &ServerError) -> bool {
    matches!(error.code(), "MOVED" | "ASK" | "TRYAGAIN" | "CLUSTERDOWN" | "READONLY" | "MASTERDOWN")
}

/// Refusals after which the connection is of no use: the Redis became a replica, or will do nothing for now. Before 7.0 the
/// refusal of a command inside a script stands in an error of another name.
pub(crate) fn ends_connection(error: &ServerError) -> bool {
    let is_within = || error.details().is_some_and(|details| details.contains(": -READONLY "));
    ENDS.contains(&error.code()) || error.code() == "ERR" && is_within()
}

const ENDS: &[&str] = &["READONLY", "LOADING", "MASTERDOWN", "NOAUTH"];

#[cfg(test)]
mod tests;
