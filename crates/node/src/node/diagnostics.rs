//! Diagnosis: what nodes have recorded and counted, asked on all of them.
//! In: questions → out: the answer of each node, this one first.
//! Uses: the cluster, the router. Never: sessions; `hub/diagnostics.rs` answers for a shard.
//! Change here: which questions there are, and limits of what is recorded.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Instant;

use fanwire_broker::{Answer, Broker};
use fanwire_cluster::{
    Cluster, DiagnosticAnswer, DiagnosticQuestion, DiagnosticSurvey, HotEntry, HotRecord,
};
use fanwire_policy::CurrentSettings;
use fanwire_policy::tiles::public_channel;
use fanwire_protocol::ErrorCode;
use fanwire_telemetry::Largest;
use fanwire_telemetry::{ChannelLook, HotChannels};

use crate::deliver::BroadcastRouter;
use crate::diagnostic_list::DiagnosticList;
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
}

impl Diagnostics {
    /// Asks all nodes.
    ///
    /// # Errors
    /// The errors of [`Channels::list`](super::Channels::list), except 107.
    pub fn ask(
        &self,
        question: DiagnosticQuestion,
        now: Instant,
    ) -> Answer<Vec<DiagnosticAnswer>, ErrorCode> {
        let others = self.cluster.diagnose(question.clone(), now);
        let (promise, answer) = Answer::later();
        self.own(question, now).then(move |own| match own {
            Ok(own) => others.then(move |others| {
                promise.keep(others.map(|others| std::iter::once(own).chain(others).collect()));
            }),
            Err(error) => promise.keep(Err(error)),
        });
        answer
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
        let ChannelLook { counted, publications, deliveries } = self.hot_channels.look(limit, now);
        let settings = self.settings.read();
        let (mut channels, mut namespaces) = (Largest::new(limit), BTreeMap::new());
        self.broker.visit_histories(&mut |channel, bytes| {
            channels.offer(bytes as u64, || channel.to_owned());
            let namespace = settings.channels.namespace_name(public_channel(channel));
            match namespaces.get_mut(namespace) {
                Some(sum) => *sum += bytes as u64,
                None => drop(namespaces.insert(namespace.to_owned(), bytes as u64)),
            }
        });
        let namespaces = namespaces.into_iter().map(|(name, bytes)| (bytes, name));
        HotRecord {
            seconds: counted.as_secs_f64(),
            publications: entries(publications),
            deliveries: entries(deliveries),
            history: entries(channels.into_vec()),
            namespaces: entries(namespaces),
            ..HotRecord::default()
        }
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
