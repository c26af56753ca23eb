//! Diagnosis: what this node has recorded and counted, and the subjects whose events all nodes log.
//! In: names of subjects, receipts → out: counts and sizes of this node.
//! Uses: the router, the broker, the cluster. Never: sessions; what all nodes know is asked in `questions/`.
//! Changed here: limits of what is recorded.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Instant;

use fanwire_broker::{Answer, Broker, Chance, DebugForCommand};
use fanwire_cluster::{Cluster, ControlCommand, ReceiptRecord};
use fanwire_policy::CurrentSettings;
use fanwire_policy::tiles::public_channel;
use fanwire_policy::{DebugList, DebugSubject};
use fanwire_protocol::ErrorCode;
use fanwire_telemetry::HotChannels;

use crate::deliver::BroadcastRouter;
use crate::meters::Summaries;

/// Diagnosis of this node and the others.
pub struct Diagnostics {
    pub(super) router: Arc<BroadcastRouter>,
    pub(super) cluster: Arc<Cluster>,
    pub(super) recorder_memory_max: usize,
    pub(super) broker: Arc<dyn Broker>,
    pub(super) settings: Arc<CurrentSettings>,
    pub(super) hot_channels: Arc<HotChannels>,
    pub(super) debug_list: Arc<DebugList>,
    pub(super) summaries: Arc<Summaries>,
    pub(super) chance: Arc<dyn Chance>,
    pub(crate) keep_closed_log: Option<KeepClosedLog>,
}

/// Takes the log of a connection that ended, as bytes for a file. Shards call it, so it must not wait.
pub type KeepClosedLog = Box<dyn Fn(Vec<u8>) + Send + Sync>;

impl Diagnostics {
    /// Logs the events of subjects at level debug on all nodes, until the end of the command. `None` if there are too many.
    ///
    /// Returns the names of the nodes that may not do so, because some of them could not be reached.
    pub fn debug_for(&self, command: DebugForCommand) -> Option<Answer<Vec<String>, ErrorCode>> {
        if !self.debug_list.apply(&command) {
            return None;
        }
        let cluster = Arc::clone(&self.cluster);
        let told = self.cluster.command(ControlCommand::DebugFor(command));
        Some(told.map(move |told| match told {
            Ok(()) => Ok(Vec::new()),
            Err(_) => Ok(cluster.peer_names()),
        }))
    }

    /// The deliveries of a publication on this node, by the number of its receipt.
    pub fn own_receipt(&self, number: u64, now: Instant) -> Option<ReceiptRecord> {
        self.router.receipts.record(number, now)
    }

    /// Subjects whose events this node logs.
    pub fn debug_subjects(&self) -> Vec<DebugSubject> {
        self.debug_list.subjects()
    }

    pub(crate) fn debug_list(&self) -> &DebugList {
        &self.debug_list
    }

    /// The gauges of the metrics, by name and labels; those of histories, too, which only scrapes have.
    pub fn levels(&self) -> BTreeMap<String, f64> {
        let histories = self.history_by_namespace().into_iter().map(|(namespace, bytes)| {
            (format!("node_namespace_history_bytes.namespace.{namespace}"), bytes as f64)
        });
        self.summaries.levels().into_iter().chain(histories).collect()
    }

    /// Bytes of histories in memory by namespace; "" for channels without one. Reads the size of each history.
    pub fn history_by_namespace(&self) -> BTreeMap<String, u64> {
        self.history_sizes(|_, _| {})
    }

    /// Begins a receipt for a publication. Returns its number, for
    /// [`PublishOptions::receipt`](fanwire_broker::PublishOptions::receipt).
    pub fn begin_receipt(&self, now: Instant) -> u64 {
        let number = self.chance.bits().max(1); // 0 stands for no receipt
        self.router.receipts.open(number, now);
        number
    }

    /// Shows each channel with its bytes of history, and sums them up by namespace.
    pub(super) fn history_sizes(&self, mut each: impl FnMut(&str, u64)) -> BTreeMap<String, u64> {
        let settings = self.settings.read();
        let mut namespaces = BTreeMap::new();
        self.broker.visit_histories(&mut |channel, bytes| {
            each(channel, bytes as u64);
            let namespace = settings.channels.namespace_name(public_channel(channel));
            match namespaces.get_mut(namespace) {
                Some(sum) => *sum += bytes as u64,
                None => drop(namespaces.insert(namespace.to_owned(), bytes as u64)),
            }
        });
        namespaces
    }

    /// Counts of channels, while somebody looks.
    pub(crate) fn hot_channels(&self) -> &HotChannels {
        &self.hot_channels
    }

    /// Bytes of the flight recorder of one shard.
    pub(crate) fn recorder_bytes_max(&self) -> usize {
        self.recorder_memory_max / self.router.shard_count().max(1)
    }
}
