//! The value of an entry of a map: what its publication brought, shared by the entry and its change in the stream.
//! In: a publication → out: the same without key and offset, and how much memory it takes.
//! Uses: prost. Never: keys, positions.
//! Changed here: which fields of a publication a map keeps.

use std::collections::BTreeMap;

use bytes::Bytes;
use fanwire_protocol::{ClientInfo, Publication};

/// Data, tags, publisher and time of a change. It is also a record of snapshots.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct MapValue {
    #[prost(bytes = "bytes", tag = "1")]
    data: Bytes,
    #[prost(btree_map = "string, string", tag = "2")]
    tags: BTreeMap<String, String>,
    #[prost(message, optional, boxed, tag = "3")]
    info: Option<Box<ClientInfo>>,
    #[prost(int64, tag = "4")]
    time: i64,
}

impl MapValue {
    pub(crate) fn of(publication: &Publication) -> Self {
        Self {
            data: publication.data.clone(),
            tags: publication.tags.clone(),
            info: publication.info.clone().map(Box::new),
            time: publication.time,
        }
    }

    pub(crate) fn data(&self) -> &Bytes {
        &self.data
    }

    pub(crate) fn tags(&self) -> &BTreeMap<String, String> {
        &self.tags
    }

    /// A publication without key and offset.
    pub(crate) fn publication(&self) -> Publication {
        Publication {
            data: self.data.clone(),
            tags: self.tags.clone(),
            info: self.info.as_deref().cloned(),
            time: self.time,
            ..Publication::default()
        }
    }

    /// Approximate memory, payload included.
    pub(crate) fn bytes(&self) -> usize {
        let tags = self.tags.iter().map(|(key, value)| key.len() + value.len() + TAG_BYTES);
        let info = self.info.as_ref().map_or(0, |info| {
            let texts = info.user.len() + info.client.len();
            size_of::<ClientInfo>() + texts + info.conn_info.len() + info.chan_info.len()
        });
        VALUE_BYTES + self.data.len() + tags.sum::<usize>() + info
    }
}

/// The value, its counters, and the counter of a shared payload.
const VALUE_BYTES: usize = size_of::<MapValue>() + 48;
/// Two strings in a tree.
const TAG_BYTES: usize = 64;
