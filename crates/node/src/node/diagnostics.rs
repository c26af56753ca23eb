//! Diagnosis: what nodes have recorded and counted, asked on all of them.
//! In: questions → out: the answer of each node, this one first.
//! Uses: the cluster, the router. Never: sessions; `hub/diagnostics.rs` answers for a shard.
//! Change here: which questions there are, and limits of what is recorded.

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};
use std::time::Instant;

use fanwire_broker::{Answer, Broker, Suppression};
use fanwire_cluster::{
    Cluster, ControlCommand, DebugForCommand, DiagnosticAnswer, DiagnosticList, DiagnosticQuestion,
    DiagnosticSurvey, HotEntry, HotRecord, ReceiptRecord, Surveyed,
};
use fanwire_policy::CurrentSettings;
use fanwire_policy::tiles::public_channel;
use fanwire_policy::{DebugList, DebugSubject};
use fanwire_protocol::ErrorCode;
use fanwire_telemetry::HotChannels;
use fanwire_telemetry::Largest;

use crate::deliver::BroadcastRouter;
use crate::meters::Summaries;
use crate::notice::Notice;

/// Diagnosis of this node and the others.
pub struct Diagnostics {
    pub(super) router: Arc<BroadcastRouter>,
    pub(super) cluster: Arc<Cluster>,
    pub(super) node_name: String,
    pub(super) recorder_memory_max: usize,
    pub(super) broker: Arc<dyn Broker>,
    pub(super) settings: Arc<CurrentSettings>,
    pub(super) hot_channels: Arc<HotChannels>,
    pub(super) debug_list: Arc<DebugList>,
    pub(super) summaries: Arc<Summaries>,
    pub(crate) closed_logs: OnceLock<KeepClosedLog>,
}

/// Takes the log of a connection that ended, as bytes for a file. Shards call it, so it must not wait.
pub type KeepClosedLog = Box<dyn Fn(Vec<u8>) + Send + Sync>;

impl Diagnostics {
    /// Sets what keeps the logs of connections that ended; before the first connection, and once.
    pub fn keep_closed_logs_with(&self, keep: KeepClosedLog) {
        let is_first = self.closed_logs.set(keep).is_ok();
        debug_assert!(is_first, "logs are kept in one place");
    }

    /// Asks all nodes; see [`Channels::survey`](super::Channels::survey) for those that do not answer.
    ///
    /// # Errors
    /// 111 when too many surveys run.
    pub fn ask(
        &self,
        question: DiagnosticQuestion,
        now: Instant,
    ) -> Answer<Surveyed<Vec<DiagnosticAnswer>>, ErrorCode> {
        let others = self.cluster.diagnose(question.clone(), now);
        let (promise, answer) = Answer::later();
        self.own(question, now).then(move |own| match own {
            Ok(own) => others.then(move |others| {
                promise.keep(others.map(|others| {
                    others.map(|others| std::iter::once(own).chain(others).collect())
                }));
            }),
            Err(error) => promise.keep(Err(error)),
        });
        answer
    }

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

    /// The largest channels, users and clients of this node; `None` from a shard that ends.
    ///
    /// # Errors
    /// 100 when a shard did not answer.
    pub fn own_hot_lists(&self, limit: u32, now: Instant) -> Answer<Option<HotRecord>, ErrorCode> {
        self.own(DiagnosticQuestion::HotLists(limit), now).map(|own| own.map(|own| own.hot))
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
        let number = rand::random_range(1..=u64::MAX);
        self.router.receipts.open(number, now);
        number
    }

    /// Asks all shards of this node.
    fn own(
        &self,
        question: DiagnosticQuestion,
        now: Instant,
    ) -> Answer<DiagnosticAnswer, ErrorCode> {
        let mut own = DiagnosticAnswer { node: self.node_name.clone(), ..Default::default() };
        if let DiagnosticQuestion::Receipt(number) = question {
            own.receipt = self.router.receipts.record(number, now);
            if let Some(receipt) = &mut own.receipt {
                let suppressed = self.broker.suppressed_of(number);
                let count = |why| suppressed.iter().filter(|one| **one == why).count() as u32;
                receipt.repeated_keys = count(Suppression::RepeatedKey);
                receipt.old_versions = count(Suppression::OldVersion);
            }
            return Answer::now(Ok(own));
        }
        if let DiagnosticQuestion::HotLists(limit) = question {
            own.hot = Some(self.hot(limit.min(LIST_MAX) as usize, now));
        }
        let (promise, answer) = Answer::later();
        let list = Arc::new(DiagnosticList::new(question, own, promise));
        self.router.send_to_all_shards(&Notice::Diagnose(list));
        answer
    }

    /// Answers a survey of another node; not one that this version does not know.
    pub(super) fn answer(&self, to: String, survey: DiagnosticSurvey, now: Instant) {
        let DiagnosticSurvey { number, question: Some(question) } = survey else { return };
        let cluster = Arc::clone(&self.cluster);
        self.own(question, now).then(move |own| {
            if let Ok(own) = own {
                cluster.answer_diagnostics(&to, number, own);
            }
        });
    }

    /// The largest channels and namespaces of this node. Reads the size of each history in memory.
    fn hot(&self, limit: usize, now: Instant) -> HotRecord {
        // Whatever the limit: what is large in one of the times is shown with its rate in the other.
        let look = self.hot_channels.look(LIST_MAX as usize, now);
        let mut channels = Largest::new(limit);
        let namespaces = self.history_sizes(|channel, bytes| {
            channels.offer(bytes, || channel.to_owned());
        });
        let namespaces = namespaces.into_iter().map(|(name, bytes)| (bytes, name));
        HotRecord {
            seconds: look.counted.as_secs_f64(),
            publications: entries(look.publications),
            deliveries: entries(look.deliveries),
            recent_seconds: look.recent.as_secs_f64(),
            recent_publications: entries(look.recent_publications),
            recent_deliveries: entries(look.recent_deliveries),
            history: entries(channels.into_vec()),
            namespaces: entries(namespaces),
            ..HotRecord::default()
        }
    }

    /// Shows each channel with its bytes of history, and sums them up by namespace.
    fn history_sizes(&self, mut each: impl FnMut(&str, u64)) -> BTreeMap<String, u64> {
        let (settings, mut namespaces) = (self.settings.read(), BTreeMap::new());
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

/// Channels as clients know them; tiles of one channel stay apart.
fn entries(list: impl IntoIterator<Item = (u64, String)>) -> Vec<HotEntry> {
    let entry = |(value, name): (u64, String)| HotEntry {
        name: public_channel(&name).to_owned(),
        user: String::new(),
        value,
    };
    list.into_iter().map(entry).collect()
}

const LIST_MAX: u32 = 100;
