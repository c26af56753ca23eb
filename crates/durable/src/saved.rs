//! The table of streams for another program on this machine, which has their content already.
//! In: the table → out: bytes; those bytes → the same streams, with their types, ends and producers.
//! Uses: prost. Never: content, HTTP, the clock.
//! Changed here: what a record has. A tag is never used for another meaning.

use std::sync::Arc;

use fanwire_broker::{Epoch, Position};
use prost::Message as _;

use crate::DurableStreams;
use crate::lifetime::StreamLifetime;
use crate::stream::{ProducerState, ProducerTriple, StreamConfig, StreamState};
use crate::table::{KnownRecord, StreamEntry};

#[derive(Clone, PartialEq, prost::Message)]
struct TableRecord {
    #[prost(message, repeated, tag = "1")]
    streams: Vec<StreamRecord>,
}

/// One stream. Times are Unix milliseconds.
#[derive(Clone, PartialEq, prost::Message)]
struct StreamRecord {
    #[prost(string, tag = "1")]
    channel: String,
    #[prost(string, tag = "2")]
    content_type: String,
    /// Seconds since the last read or write.
    #[prost(uint64, optional, tag = "3")]
    ttl: Option<u64>,
    /// A fixed end, as the client wrote it.
    #[prost(string, optional, tag = "4")]
    expires_at: Option<String>,
    #[prost(bool, tag = "5")]
    is_closed: bool,
    #[prost(uint64, tag = "6")]
    start_offset: u64,
    #[prost(string, tag = "7")]
    start_epoch: String,
    #[prost(uint64, tag = "8")]
    used_ms: u64,
    /// The request that closed it.
    #[prost(message, optional, tag = "9")]
    closed_by: Option<ProducerRecord>,
    #[prost(string, optional, tag = "10")]
    last_seq: Option<String>,
    #[prost(message, repeated, tag = "11")]
    producers: Vec<ProducerRecord>,
    #[prost(bool, tag = "12")]
    is_adopted: bool,
    #[prost(bool, tag = "13")]
    is_put: bool,
    #[prost(uint64, optional, tag = "14")]
    look_at: Option<u64>,
    #[prost(uint64, tag = "15")]
    published_ms: u64,
}

#[derive(Clone, PartialEq, prost::Message)]
struct ProducerRecord {
    #[prost(string, tag = "1")]
    id: String,
    #[prost(uint64, tag = "2")]
    epoch: u64,
    #[prost(uint64, tag = "3")]
    seq: u64,
    /// 0 in `closed_by`.
    #[prost(uint64, tag = "4")]
    used_ms: u64,
}

impl DurableStreams {
    /// The streams for another program, when nothing changes any more.
    pub fn save(&self) -> Vec<u8> {
        let known = self.table.all();
        let streams = known.iter().map(|one| StreamRecord::new(one, &one.entry.state.lock()));
        TableRecord { streams: streams.collect() }.encode_to_vec()
    }

    /// Goes on with the streams that another program saved. Returns `false`, and changes nothing, if they are not understood.
    pub fn take_over(&self, saved: &[u8]) -> bool {
        let Ok(table) = TableRecord::decode(saved) else { return false };
        let streams: Option<Vec<_>> = table.streams.into_iter().map(StreamRecord::known).collect();
        let Some(streams) = streams else { return false };
        for KnownRecord { entry, look_at, is_put } in streams {
            // A stream more than this program may have is not in its table, like one that a PUT could not make.
            let _ = self.table.add(&entry, look_at, is_put);
        }
        true
    }
}

impl StreamRecord {
    fn new(known: &KnownRecord, state: &StreamState) -> Self {
        let KnownRecord { entry, look_at, is_put } = known;
        let StreamConfig { content_type, lifetime, is_closed } = state.config.clone();
        let (ttl, expires_at) = match lifetime {
            StreamLifetime::Unlimited => (None, None),
            StreamLifetime::Window(seconds) => (Some(seconds), None),
            StreamLifetime::Until { text, .. } => (None, Some(text)),
        };
        let producers = state.producers.iter();
        Self {
            channel: entry.channel.as_ref().to_owned(),
            content_type,
            ttl,
            expires_at,
            is_closed,
            start_offset: state.start.offset,
            start_epoch: state.start.epoch.to_string(),
            used_ms: state.used_ms,
            closed_by: state.closed_by.as_ref().map(|one| {
                let ProducerTriple { id, epoch, seq } = one.clone();
                ProducerRecord { id: id.as_ref().to_owned(), epoch, seq, used_ms: 0 }
            }),
            last_seq: state.last_seq.as_deref().map(str::to_owned),
            producers: producers
                .map(|(id, producer)| {
                    let ProducerState { epoch, seq, used_ms } = *producer;
                    ProducerRecord { id: id.as_ref().to_owned(), epoch, seq, used_ms }
                })
                .collect(),
            is_adopted: state.is_adopted,
            is_put: *is_put,
            look_at: *look_at,
            published_ms: entry.published_ms.load(std::sync::atomic::Ordering::Relaxed),
        }
    }

    /// The stream; `None` if a value is impossible.
    fn known(self) -> Option<KnownRecord> {
        let ttl = self.ttl.map(|seconds| seconds.to_string());
        let lifetime = StreamLifetime::parse(ttl.as_deref(), self.expires_at.as_deref()).ok()?;
        let Self { content_type, is_closed, .. } = self;
        let epoch = Epoch::parse(&self.start_epoch)?;
        let config = StreamConfig { content_type, lifetime, is_closed };
        let start = Position { offset: self.start_offset, epoch };
        let mut state = StreamState::new(config, start, self.used_ms);
        state.closed_by = self.closed_by.map(|one| {
            let ProducerRecord { id, epoch, seq, .. } = one;
            ProducerTriple { id: id.into(), epoch, seq }
        });
        state.last_seq = self.last_seq.map(Into::into);
        let producers = self.producers.into_iter();
        state.producers = producers
            .map(|ProducerRecord { id, epoch, seq, used_ms }| {
                (Arc::from(id), ProducerState { epoch, seq, used_ms })
            })
            .collect();
        state.is_adopted = self.is_adopted;
        let entry = StreamEntry::new(&self.channel, state);
        entry.published_ms.store(self.published_ms, std::sync::atomic::Ordering::Relaxed);
        Some(KnownRecord { entry, look_at: self.look_at, is_put: self.is_put })
    }
}

#[cfg(test)]
mod tests;
