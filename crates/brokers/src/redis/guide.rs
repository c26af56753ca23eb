//! What a connection to a node of a Cluster tells whoever knows the whole: what belongs elsewhere, and that slots moved.
//! In: refusals of a Redis → out: where they point to; a trait of two calls.
//! Uses: calls of a line. Never: decides where a slot is.
//! Change here: which refusals are not the last word. Who knows the slots is `cluster.rs`.

use std::sync::{Arc, Weak};
use std::time::Instant;

use redis::ServerError;

use super::cluster::topology::target;
use super::line::Call;
use super::options::Address;

/// Who knows where the slots are. Called on the tasks of connections: to be short.
pub(crate) trait Guide: Send + Sync {
    /// Takes a call that a Redis did not answer.
    fn pass_on(&self, call: Call, elsewhere: Elsewhere);

    /// Slots may not be where they were.
    fn look_again(&self);
}

/// The guide of a connection; none outside of Clusters.
#[derive(Clone, Default)]
pub(crate) struct Guided(Option<Weak<dyn Guide>>);

impl Guided {
    pub(crate) fn by(guide: Weak<dyn Guide>) -> Self {
        Self(Some(guide))
    }

    /// Whether the connection is one to a node of a Cluster.
    pub(crate) fn is_guided(&self) -> bool {
        self.0.is_some()
    }

    pub(crate) fn guide(&self) -> Option<Arc<dyn Guide>> {
        self.0.as_ref()?.upgrade()
    }

    /// Slots may not be where they were.
    pub(crate) fn look_again(&self) {
        if let Some(guide) = self.guide() {
            guide.look_again();
        }
    }
}

/// Where a call can be done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Elsewhere {
    /// There, from now on.
    Moved(Address),
    /// There, this once: the slot is on its way.
    Ask(Address),
    /// In a moment: some keys of the slot are here, some there.
    Later,
}

impl Elsewhere {
    /// What a refusal of `node` says; `None` when it is the last word.
    pub(crate) fn of(node: &Address, error: &ServerError) -> Option<Self> {
        let target = || target(node, error.details()?);
        match error.code() {
            "MOVED" => target().map(Self::Moved),
            "ASK" => target().map(Self::Ask),
            "TRYAGAIN" => Some(Self::Later),
            _ => None,
        }
    }
}

/// How a call goes through a Cluster.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Way {
    pub(crate) slot: u16,
    /// Which of the connections to a Redis: the same at each.
    pub(crate) lane: usize,
    /// How often it was sent elsewhere.
    pub(crate) hops: u8,
    /// Asked of a Redis to which its slot is on the way.
    pub(crate) is_asking: bool,
    /// Until when it may wait for its slot; set when that begins.
    pub(crate) waits_until: Option<Instant>,
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
