//! The clients that this node sends away to other nodes.
//! In: options, the counts of all nodes, time → out: how many clients to send away in the next second; log lines.
//! Uses the rule of the crate `cluster`, the registry. Never: chooses or closes a connection.
//! Changed here: what is logged about a rebalance. When it begins and ends is in `cluster/rebalance.rs`.

use std::sync::Arc;
use std::time::Instant;

use fanwire_broker::Answer;
use fanwire_cluster::{
    Cluster, ConnectionCounts, ControlCommand, Departures, NodeState, Rebalance, RebalanceOptions,
    RebalanceRecord, SendAwayCommand,
};
use fanwire_protocol::ErrorCode;
use parking_lot::Mutex;

use crate::registry::Registry;

/// Rebalances and evacuations of this node.
pub struct Rebalancing {
    pub(super) cluster: Arc<Cluster>,
    pub(super) registry: Arc<Registry>,
    /// Name of the node.
    pub(super) name: String,
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
        match (was_running, &departures) {
            (false, Some(first)) => log_begin(left + first.clients, &counts),
            (true, None) => {
                let connections = counts.own;
                tracing::info!(connections, "no more clients are sent to other nodes");
            }
            _ => {}
        }
        departures
    }

    /// Has nodes send clients away.
    ///
    /// # Errors
    /// 104 for a node that is not there; 108 without another node; 100 when the command did not reach all nodes.
    pub fn command(&self, command: SendAwayCommand) -> Answer<(), ErrorCode> {
        let others = self.cluster.peers();
        let is_meant = |node: &NodeState| node.uid == command.node || node.name == command.node;
        if !self.is_meant(&command) && !others.iter().any(is_meant) {
            return Answer::now(Err(ErrorCode::METHOD_NOT_FOUND));
        }
        if others.is_empty() {
            return Answer::now(Err(ErrorCode::NOT_AVAILABLE));
        }
        self.execute(&command);
        self.cluster.command(ControlCommand::SendAway(command))
    }

    /// Begins what a command says, if it is for this node.
    pub(super) fn execute(&self, command: &SendAwayCommand) {
        if !self.is_meant(command) {
            return;
        }
        let counts = self.counts();
        let mut rebalance = self.rebalance.lock();
        if command.percent == 0 {
            rebalance.begin(&counts, command.rate);
        } else {
            let percent = u64::from(command.percent.min(100));
            rebalance.evacuate(&counts, percent, command.rate);
        }
        log_begin(rebalance.left(), &counts);
    }

    fn is_meant(&self, SendAwayCommand { node, .. }: &SendAwayCommand) -> bool {
        node.is_empty() || *node == self.name || node == self.cluster.uid()
    }

    /// Whether this node is to refuse new clients, because those of an evacuation would come back.
    pub fn refuses_clients(&self, now: Instant) -> bool {
        self.rebalance.lock().refuses_clients(now)
    }

    /// Clients that are still to be sent away.
    pub fn left(&self) -> u64 {
        self.rebalance.lock().left()
    }

    /// Returns the state of the rebalance for the program that goes on as this node.
    pub(super) fn save(&self, now: Instant) -> RebalanceRecord {
        self.rebalance.lock().save(now)
    }

    /// Goes on with the rebalance of another program.
    pub(super) fn take_over(&self, record: RebalanceRecord, now: Instant) {
        self.rebalance.lock().take_over(record, now);
    }

    fn counts(&self) -> ConnectionCounts {
        let (_, connections) = self.registry.user_counts();
        ConnectionCounts::new(connections as u64, &self.cluster.peers())
    }
}

fn log_begin(clients: u64, counts: &ConnectionCounts) {
    let connections = counts.own;
    let other_nodes = counts.others.len();
    tracing::info!(clients, connections, other_nodes, "sending clients to other nodes");
}
