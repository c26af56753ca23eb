//! Messages for diagnosis: one question to all nodes, and the answer of each node.
//! In: questions of the server API, answers of nodes → out: values that travel between nodes, as Protobuf.
//! Uses: prost. Never: counts, records; the node does.
//! Change here: what nodes tell for diagnosis. Field numbers stay for ever.

/// A question to all nodes. A node that does not know it sends no answer.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct DiagnosticSurvey {
    #[prost(uint64, tag = "1")]
    pub number: u64,
    #[prost(oneof = "DiagnosticQuestion", tags = "2, 3, 4")]
    pub question: Option<DiagnosticQuestion>,
}

/// The question.
#[derive(Clone, PartialEq, Eq, prost::Oneof)]
pub enum DiagnosticQuestion {
    #[prost(message, tag = "2")]
    ConnectionLogs(ConnectionLogQuery),
    /// Number of a receipt.
    #[prost(fixed64, tag = "3")]
    Receipt(u64),
    /// Entries of each list at most.
    #[prost(uint32, tag = "4")]
    HotLists(u32),
}

/// Logs of the flight recorder.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct ConnectionLogQuery {
    /// `None` = any.
    #[prost(string, optional, tag = "1")]
    pub user: Option<String>,
    /// "" = any.
    #[prost(string, tag = "2")]
    pub client: String,
    /// Logs of each shard at most, the newest first.
    #[prost(uint32, tag = "3")]
    pub limit: u32,
}

/// Lists or unlists subjects whose events are logged.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct DebugForCommand {
    #[prost(string, repeated, tag = "1")]
    pub users: Vec<String>,
    #[prost(string, repeated, tag = "2")]
    pub channels: Vec<String>,
    /// IP addresses.
    #[prost(string, repeated, tag = "3")]
    pub addresses: Vec<String>,
    /// Unix second at which they end; 0 = now.
    #[prost(uint64, tag = "4")]
    pub until: u64,
}

impl DebugForCommand {
    /// How many subjects it names.
    #[expect(clippy::len_without_is_empty, reason = "an empty one changes nothing")]
    pub fn len(&self) -> usize {
        self.users.len() + self.channels.len() + self.addresses.len()
    }
}

/// The answer of one node.
#[derive(Clone, PartialEq, prost::Message)]
pub struct DiagnosticAnswer {
    /// Its name.
    #[prost(string, tag = "1")]
    pub node: String,
    #[prost(message, repeated, tag = "2")]
    pub logs: Vec<ConnectionLogRecord>,
    /// `None` if the node has no such receipt.
    #[prost(message, optional, tag = "3")]
    pub receipt: Option<ReceiptRecord>,
    #[prost(message, optional, tag = "4")]
    pub hot: Option<HotRecord>,
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

/// Deliveries of a publication on one node. Times are microseconds since its arrival there.
#[derive(Clone, Copy, PartialEq, Eq, prost::Message)]
pub struct ReceiptRecord {
    #[prost(uint32, tag = "1")]
    pub subscribers: u32,
    /// Taken by the kernel in the turn of the delivery.
    #[prost(uint32, tag = "2")]
    pub at_once: u32,
    /// Taken by the kernel later.
    #[prost(uint32, tag = "3")]
    pub waited: u32,
    /// A newer publication took its place.
    #[prost(uint32, tag = "4")]
    pub replaced: u32,
    /// The connection or subscription ended before.
    #[prost(uint32, tag = "5")]
    pub dropped: u32,
    /// Not taken within a second; 0 before that.
    #[prost(uint32, tag = "6")]
    pub late: u32,
    /// Until the kernel had it for half of the receivers; `None` as long as it has not.
    #[prost(uint64, optional, tag = "7")]
    pub half_us: Option<u64>,
    /// The same for 99 %.
    #[prost(uint64, optional, tag = "8")]
    pub most_us: Option<u64>,
    /// The same for all.
    #[prost(uint64, optional, tag = "9")]
    pub all_us: Option<u64>,
    /// Subscribers that do not get it, by their filter or because they are excluded.
    #[prost(uint32, tag = "10")]
    pub filtered: u32,
    /// Channels in which it was not published, because of its idempotency key.
    #[prost(uint32, tag = "11")]
    pub repeated_keys: u32,
    /// The same because of its version.
    #[prost(uint32, tag = "12")]
    pub old_versions: u32,
}

/// The log of a connection.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct ConnectionLogRecord {
    #[prost(string, tag = "1")]
    pub client: String,
    #[prost(string, tag = "2")]
    pub user: String,
    /// Without a port; "" = unknown.
    #[prost(string, tag = "3")]
    pub address: String,
    #[prost(string, tag = "4")]
    pub transport: String,
    /// Unix time in milliseconds.
    #[prost(uint64, tag = "5")]
    pub opened_ms: u64,
    /// Unix time in milliseconds; 0 for an open connection.
    #[prost(uint64, tag = "6")]
    pub ended_ms: u64,
    /// The last round trip of a ping.
    #[prost(uint32, optional, tag = "7")]
    pub ping_ms: Option<u32>,
    /// Oldest first.
    #[prost(message, repeated, tag = "8")]
    pub events: Vec<LoggedEvent>,
}

/// An event of a connection. The name decides what the other fields mean.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct LoggedEvent {
    /// Unix time in milliseconds; of the last one if there were several.
    #[prost(uint64, tag = "1")]
    pub at_ms: u64,
    #[prost(string, tag = "2")]
    pub name: String,
    /// How many equal events came one after the other.
    #[prost(uint32, tag = "3")]
    pub count: u32,
    #[prost(uint32, tag = "4")]
    pub code: u32,
    #[prost(uint64, tag = "5")]
    pub first: u64,
    #[prost(uint64, tag = "6")]
    pub second: u64,
    #[prost(string, tag = "7")]
    pub text: String,
    #[prost(string, tag = "8")]
    pub detail: String,
}
