//! The records of a snapshot, as Protobuf messages: a later version may add fields.
//! In: fields of streams, maps, results and epochs → out: messages that prost reads and writes.
//! Uses: prost. Never: rules; each part checks its own record when it is restored.
//! Changed here: what a record has. A tag is never used for another meaning.

use super::{MapValue, Stored};

/// The first section.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct Head {
    #[prost(uint64, tag = "1")]
    pub(crate) generation: u64,
    /// Nothing changed after it.
    #[prost(bool, tag = "2")]
    pub(crate) is_planned: bool,
    #[prost(uint64, tag = "3")]
    pub(crate) unix_ms: u64,
    #[prost(message, required, tag = "4")]
    pub(crate) hashes: HashesRecord,
    /// Open connections; 0 before a server stops.
    #[prost(uint64, tag = "5")]
    pub(crate) connections: u64,
}

/// The seeds of the hash functions of a process.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct HashesRecord {
    /// That of the hashes of channels.
    #[prost(uint64, tag = "1")]
    pub(crate) seed: u64,
    /// The key of the epochs of streams.
    #[prost(uint64, repeated, tag = "2")]
    pub(crate) streams: Vec<u64>,
    /// The key of the epochs of maps.
    #[prost(uint64, repeated, tag = "3")]
    pub(crate) maps: Vec<u64>,
    /// Results of these functions, which another version of them does not have.
    #[prost(uint64, tag = "4")]
    pub(crate) check: u64,
}

/// Streams of one stripe.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct StreamsSection {
    #[prost(message, repeated, tag = "1")]
    pub(crate) streams: Vec<StreamRecord>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct StreamRecord {
    #[prost(string, tag = "1")]
    pub(crate) channel: String,
    #[prost(string, tag = "2")]
    pub(crate) epoch: String,
    #[prost(uint64, tag = "3")]
    pub(crate) offset: u64,
    #[prost(uint64, tag = "4")]
    pub(crate) version: u64,
    #[prost(string, tag = "5")]
    pub(crate) version_epoch: String,
    /// Unix milliseconds, as all times.
    #[prost(uint64, optional, tag = "6")]
    pub(crate) stored_until: Option<u64>,
    #[prost(uint64, optional, tag = "7")]
    pub(crate) until: Option<u64>,
    #[prost(message, repeated, tag = "8")]
    pub(crate) stored: Vec<Stored>,
    #[prost(message, optional, tag = "9")]
    pub(crate) growth: Option<GrowthRecord>,
}

/// The growing messages of a stream.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct GrowthRecord {
    #[prost(uint64, repeated, tag = "1")]
    pub(crate) offsets: Vec<u64>,
    #[prost(uint64, tag = "2")]
    pub(crate) dropped: u64,
    #[prost(message, repeated, tag = "3")]
    pub(crate) messages: Vec<GrowingRecord>,
    #[prost(string, repeated, tag = "4")]
    pub(crate) finals: Vec<String>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct GrowingRecord {
    #[prost(string, tag = "1")]
    pub(crate) key: String,
    #[prost(string, tag = "2")]
    pub(crate) text: String,
    #[prost(string, tag = "3")]
    pub(crate) head: String,
    #[prost(string, tag = "4")]
    pub(crate) field: String,
    #[prost(bool, tag = "5")]
    pub(crate) is_final: bool,
    #[prost(bool, tag = "6")]
    pub(crate) waits: bool,
    /// 0 = not published yet; the epoch is that of the stream.
    #[prost(uint64, tag = "7")]
    pub(crate) offset: u64,
    #[prost(uint64, tag = "8")]
    pub(crate) published_at: u64,
    #[prost(uint64, optional, tag = "9")]
    pub(crate) until: Option<u64>,
}

/// Maps of one stripe.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct MapsSection {
    #[prost(message, repeated, tag = "1")]
    pub(crate) maps: Vec<MapRecord>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct MapRecord {
    #[prost(string, tag = "1")]
    pub(crate) channel: String,
    /// Empty in an ephemeral channel.
    #[prost(string, tag = "2")]
    pub(crate) epoch: String,
    #[prost(uint64, tag = "3")]
    pub(crate) offset: u64,
    #[prost(uint64, optional, tag = "4")]
    pub(crate) changes_until: Option<u64>,
    #[prost(uint64, optional, tag = "5")]
    pub(crate) until: Option<u64>,
    #[prost(message, required, tag = "6")]
    pub(crate) retention: RetentionRecord,
    #[prost(message, repeated, tag = "7")]
    pub(crate) entries: Vec<EntryRecord>,
    #[prost(message, repeated, tag = "8")]
    pub(crate) changes: Vec<ChangeRecord>,
}

/// Durations in milliseconds.
#[derive(Clone, Copy, PartialEq, prost::Message)]
pub(crate) struct RetentionRecord {
    #[prost(uint64, tag = "1")]
    pub(crate) key_ttl: u64,
    #[prost(uint64, tag = "2")]
    pub(crate) size: u64,
    #[prost(uint64, tag = "3")]
    pub(crate) ttl: u64,
    #[prost(uint64, tag = "4")]
    pub(crate) meta_ttl: u64,
    #[prost(uint64, tag = "5")]
    pub(crate) entries_max: u64,
    #[prost(uint64, tag = "6")]
    pub(crate) bytes_max: u64,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct EntryRecord {
    #[prost(string, tag = "1")]
    pub(crate) key: String,
    #[prost(message, required, tag = "2")]
    pub(crate) value: MapValue,
    #[prost(uint64, tag = "3")]
    pub(crate) offset: u64,
    #[prost(uint64, tag = "4")]
    pub(crate) version: u64,
    #[prost(string, tag = "5")]
    pub(crate) version_epoch: String,
    #[prost(uint64, optional, tag = "6")]
    pub(crate) until: Option<u64>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct ChangeRecord {
    #[prost(string, tag = "1")]
    pub(crate) key: String,
    #[prost(message, required, tag = "2")]
    pub(crate) value: MapValue,
    #[prost(bool, tag = "3")]
    pub(crate) removed: bool,
}

/// Results of idempotent publishes of one stripe, oldest first.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct ResultsSection {
    #[prost(message, repeated, tag = "1")]
    pub(crate) results: Vec<ResultRecord>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct ResultRecord {
    #[prost(string, tag = "1")]
    pub(crate) channel: String,
    #[prost(string, tag = "2")]
    pub(crate) key: String,
    #[prost(uint64, tag = "3")]
    pub(crate) offset: u64,
    #[prost(string, tag = "4")]
    pub(crate) epoch: String,
    /// When a key of a backend was used.
    #[prost(uint64, tag = "5")]
    pub(crate) since: u64,
    /// The client that chose the key; "" = a backend.
    #[prost(string, tag = "6")]
    pub(crate) owner: String,
    /// When a key of a client is forgotten.
    #[prost(uint64, tag = "7")]
    pub(crate) until: u64,
}

/// How many streams and maps of one stripe have ended, by the hashes of their names.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct EpochsSection {
    #[prost(uint32, tag = "1")]
    pub(crate) stripe: u32,
    #[prost(uint32, repeated, tag = "2")]
    pub(crate) streams: Vec<u32>,
    #[prost(uint32, repeated, tag = "3")]
    pub(crate) maps: Vec<u32>,
}
