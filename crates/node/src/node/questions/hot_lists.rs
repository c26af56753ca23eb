//! The channels, users and clients that cause the most work, on all nodes (server API §3 hot_lists).
//! In: how long the lists are → out: lists of each node.
//! Uses: counts of hot channels, sizes of histories, the session table, the recorder. Never: sends to clients.
//! Changed here: which lists there are. Field numbers stay for ever.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use fanwire_cluster::{Question, SurveyKind};
use fanwire_policy::tiles::public_channel;
use fanwire_protocol::ErrorCode;
use fanwire_recorder::ConnectionFacts;
use fanwire_telemetry::Largest;
use parking_lot::Mutex;
use uuid::Uuid;

use super::{Ask, ShardView};
use crate::node::Node;
use crate::session_table::SessionTable;

/// Asks for the lists.
#[derive(Clone, Copy, PartialEq, Eq, prost::Message)]
pub struct HotListsQuestion {
    /// Entries of each list at most, 1 to 100.
    #[prost(uint32, tag = "4")]
    pub limit: u32,
}

/// Lists of all nodes.
#[derive(Clone, PartialEq, prost::Message)]
pub struct HotLists {
    #[prost(message, repeated, tag = "5")]
    pub nodes: Vec<NodeHotLists>,
}

/// Lists of one node.
#[derive(Clone, PartialEq, prost::Message)]
pub struct NodeHotLists {
    /// Name of the node.
    #[prost(string, tag = "1")]
    pub node: String,
    #[prost(message, required, tag = "4")]
    pub lists: HotRecord,
}

/// The largest channels, users and clients of a node; those of a shard each, not in one order.
#[derive(Clone, PartialEq, prost::Message)]
pub struct HotRecord {
    /// Time in which `publications` and `deliveries` were counted.
    #[prost(double, tag = "1")]
    pub seconds: f64,
    #[prost(message, repeated, tag = "2")]
    pub publications: Vec<HotEntry>,
    #[prost(message, repeated, tag = "3")]
    pub deliveries: Vec<HotEntry>,
    /// Bytes of channels.
    #[prost(message, repeated, tag = "4")]
    pub history: Vec<HotEntry>,
    /// Bytes of namespaces.
    #[prost(message, repeated, tag = "5")]
    pub namespaces: Vec<HotEntry>,
    /// Connections of users.
    #[prost(message, repeated, tag = "6")]
    pub users: Vec<HotEntry>,
    /// Queued bytes of clients.
    #[prost(message, repeated, tag = "7")]
    pub queues: Vec<HotEntry>,
    /// Refused commands of clients.
    #[prost(message, repeated, tag = "8")]
    pub refusals: Vec<HotEntry>,
    /// Time in which the next two were counted: the last seconds.
    #[prost(double, tag = "9")]
    pub recent_seconds: f64,
    #[prost(message, repeated, tag = "10")]
    pub recent_publications: Vec<HotEntry>,
    #[prost(message, repeated, tag = "11")]
    pub recent_deliveries: Vec<HotEntry>,
}

/// An entry of a list.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct HotEntry {
    #[prost(string, tag = "1")]
    pub name: String,
    /// User of a client; "" for other entries.
    #[prost(string, tag = "2")]
    pub user: String,
    #[prost(uint64, tag = "3")]
    pub value: u64,
}

impl Question for HotListsQuestion {
    type Answer = HotLists;
    /// The same for each question for diagnosis of the first version.
    const TAG: u32 = 22;
    const KIND: SurveyKind = SurveyKind::Diagnostics;

    fn is_asked(&self) -> bool {
        self.limit > 0
    }

    fn merge(&self, all: &mut HotLists, one: HotLists, _: Duration) {
        all.nodes.extend(one.nodes);
    }
}

impl Ask for HotListsQuestion {
    const IS_FOR_SHARDS: bool = true;

    /// Reads the size of each history in memory.
    fn begin(&self, node: &Node, now: Instant) -> Result<HotLists, ErrorCode> {
        let diagnostics = node.diagnostics();
        // Whatever the limit: what is large in one of the times is shown with its rate in the other.
        let counts = diagnostics.hot_channels().counts(LIST_MAX, now);
        let mut channels = Largest::new(self.length());
        let namespaces = diagnostics
            .history_sizes(|channel, bytes| {
                channels.offer(bytes, || channel.to_owned());
            })
            .into_iter()
            .map(|(name, bytes)| (bytes, name));
        let lists = HotRecord {
            seconds: counts.counted.as_secs_f64(),
            publications: channel_entries(counts.publications),
            deliveries: channel_entries(counts.deliveries),
            recent_seconds: counts.recent.as_secs_f64(),
            recent_publications: channel_entries(counts.recent_publications),
            recent_deliveries: channel_entries(counts.recent_deliveries),
            history: channel_entries(channels.into_vec()),
            namespaces: channel_entries(namespaces),
            ..HotRecord::default()
        };
        Ok(HotLists { nodes: vec![NodeHotLists { node: node.options().name.clone(), lists }] })
    }

    fn add(&self, shard: &ShardView<'_>, _: u32, answer: &Mutex<HotLists>) -> Option<u32> {
        let users = users(shard.session_table, self.length());
        let queues = queues(shard, self.length());
        let refusals = refusals(shard, self.length());
        if let Some(own) = answer.lock().nodes.first_mut() {
            own.lists.users.extend(users);
            own.lists.queues.extend(queues);
            own.lists.refusals.extend(refusals);
        }
        None
    }
}

impl HotListsQuestion {
    fn length(self) -> usize {
        (self.limit as usize).min(LIST_MAX)
    }
}

/// Users by connections to this shard.
fn users(session_table: &SessionTable, limit: usize) -> Vec<HotEntry> {
    let mut users = Largest::new(limit);
    for (user, connections) in session_table.users().counts() {
        users.offer(connections as u64, || (user.as_ref().to_owned(), String::new()));
    }
    entries(users)
}

/// Clients by bytes that wait for their sockets.
fn queues(shard: &ShardView<'_>, limit: usize) -> Vec<HotEntry> {
    let session_table = shard.session_table;
    let mut clients = Largest::new(limit);
    for index in 0..session_table.index_end() {
        let Some(session) = session_table.at(index).filter(|one| one.is_connected()) else {
            continue;
        };
        let name = || (session.client(), session.user.as_ref().to_owned());
        clients.offer((shard.queued_bytes)(index) as u64, name);
    }
    entries(clients)
}

/// Clients by refused commands, and addresses by connects that were refused in the last hour.
fn refusals(shard: &ShardView<'_>, limit: usize) -> Vec<HotEntry> {
    let recorder = &shard.session_table.recorder;
    let mut clients = Largest::new(limit);
    for log in recorder.open_logs() {
        let ConnectionFacts { client, user, .. } = log.facts();
        let name = || (Uuid::from_u128(*client).to_string(), user.as_ref().to_owned());
        let is_connected = *client != 0;
        clients.offer(if is_connected { log.refusals().into() } else { 0 }, name);
    }
    let mut connects = BTreeMap::<(String, &str), u64>::new();
    for log in recorder.refused_logs(shard.now_ms) {
        let ConnectionFacts { user, address, .. } = log.facts();
        let address = address.map(|address| address.to_string()).unwrap_or_default();
        *connects.entry((address, user)).or_default() += u64::from(log.refusals());
    }
    for ((address, user), refusals) in connects {
        clients.offer(refusals, || (address, user.to_owned()));
    }
    entries(clients)
}

fn entries(largest: Largest<(String, String)>) -> Vec<HotEntry> {
    let entry = |(value, (name, user))| HotEntry { name, user, value };
    largest.into_vec().into_iter().map(entry).collect()
}

/// Channels as clients know them; tiles of one channel stay apart.
fn channel_entries(list: impl IntoIterator<Item = (u64, String)>) -> Vec<HotEntry> {
    let entry = |(value, name): (u64, String)| HotEntry {
        name: public_channel(&name).to_owned(),
        user: String::new(),
        value,
    };
    list.into_iter().map(entry).collect()
}

const LIST_MAX: usize = 100;
