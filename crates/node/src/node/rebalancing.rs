//! The clients that this node sends away to other nodes.
//! In: options, the counts of all nodes, time → out: how many clients to send away in the next second; log lines.
//! Uses the rule of the crate `cluster`, the registry. Never: chooses or closes a connection.
//! Change here: what is logged about a rebalance. When it begins and ends is in `cluster/rebalance.rs`.

use std::sync::Arc;
use std::time::Instant;

use fanwire_cluster::{Cluster, ConnectionCounts, Departures, Rebalance, RebalanceOptions};
use parking_lot::Mutex;

use crate::registry::Registry;

/// Rebalances and evacuations of this node.
pub struct Rebalancing {
    pub(super) cluster: Arc<Cluster>,
    pub(super) registry: Arc<Registry>,
    pub(super) rebalance: Mutex<Rebalance>,
}

impl Rebalancing {
    /// Replaces the options.
    pub fn configure(&self, options: RebalanceOptions) {
        self.rebalance.lock().configure(options);
    }

    /// Compares the nodes once a second. Returns the clients to send away until the next time.
    pub fn step(&self, now: Instant) -> Option<Departures> {
        let counts = self.counts();
        let mut rebalance = self.rebalance.lock();
        let was_running = rebalance.is_running();
        let departures = rebalance.step(&counts, now);
        let left = rebalance.left();
        drop(rebalance);
        let connections = counts.own;
        if let (false, Some(Departures { clients, .. })) = (was_running, &departures) {
            let clients = left + clients;
            let other_nodes = counts.others.len();
            tracing::info!(clients, connections, other_nodes, "sending clients to other nodes");
        } else if was_running && departures.is_none() {
            tracing::info!(connections, "no more clients are sent to other nodes");
        }
        departures
    }

    /// Clients that are still to be sent away.
    pub fn left(&self) -> u64 {
        self.rebalance.lock().left()
    }

    fn counts(&self) -> ConnectionCounts {
        let (_, connections) = self.registry.user_counts();
        ConnectionCounts::new(connections as u64, &self.cluster.peers())
    }
}
