//! The parts that a node is given once, before anything uses it.
//! In: the parts that the program makes → out: a value for [`Node::with_parts`](super::Node::with_parts).
//! Uses: the ports of engines and hooks. Never: a part that can be replaced later, such as the settings.
//! Changed here: which parts there are, and what a node does without one.

use std::sync::Arc;

use fanwire_broker::{Broker, Chance, Deliver, Presence, RevocationStore, UserStatusStore};
use fanwire_policy::hooks::Hooks;

use super::KeepClosedLog;
use crate::broadcast::Prepare;

/// The parts that a node is given once. The default is a node that has everything in memory and asks no hook.
#[derive(Default)]
pub struct NodeParts {
    /// Makes the broker; without it the broker is in memory.
    pub make_broker: Option<BrokerFactory>,
    /// The store of presence; without it presence is in memory.
    pub presence: Option<Arc<dyn Presence>>,
    /// The store of the statuses of users; without it statuses are in memory.
    pub user_statuses: Option<Arc<dyn UserStatusStore>>,
    /// The list of blocks and revocations that all nodes share. With it connects fail with 100 until the list has been
    /// read; without it a restart forgets them.
    pub revocations: Option<Arc<dyn RevocationStore>>,
    /// The source of ids, epochs and the spread of timers; without it that of the operating system.
    pub chance: Option<Arc<dyn Chance>>,
    /// The id of the node that this one goes on for; without it the node has a new one.
    pub uid: Option<String>,
    /// The shell that prepares every broadcast.
    pub prepare: Option<Arc<dyn Prepare>>,
    /// The functions that decide about client events.
    pub hooks: Hooks,
    /// Keeps the logs of connections that ended; without it they are dropped.
    pub keep_closed_log: Option<KeepClosedLog>,
}

/// A function that makes the broker for the router of a node.
pub type BrokerFactory = Box<dyn FnOnce(Arc<dyn Deliver>) -> Arc<dyn Broker> + Send>;

impl NodeParts {
    /// The default parts with another broker.
    pub fn with_broker(
        make: impl FnOnce(Arc<dyn Deliver>) -> Arc<dyn Broker> + Send + 'static,
    ) -> Self {
        Self { make_broker: Some(Box::new(make)), ..Self::default() }
    }
}
