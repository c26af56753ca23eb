//! A stored publication of a stream, and its record in snapshots, which are the same.
//! In: a publication → out: the same without its offset, and how much memory it takes.
//! Uses: prost. Never: offsets, which a stream counts.
//! Changed here: which fields of a publication a stream keeps.

use std::collections::BTreeMap;

use bytes::Bytes;
use fanwire_protocol::{ClientInfo, Publication};

/// A stored publication: 40 bytes, plus a payload that is shared with all broadcasts of it. It is also a record of snapshots.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct Stored {
    #[prost(bytes = "bytes", tag = "1")]
    pub(crate) data: Bytes,
    /// `None` when it has neither, which is the most common case.
    #[prost(message, optional, boxed, tag = "2")]
    info_and_tags: Option<Box<InfoAndTags>>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct InfoAndTags {
    #[prost(message, optional, tag = "1")]
    info: Option<ClientInfo>,
    #[prost(btree_map = "string, string", tag = "2")]
    tags: BTreeMap<String, String>,
}

impl Stored {
    pub(crate) fn of(publication: &Publication) -> Self {
        let Publication { data, info, tags, .. } = publication;
        let info_and_tags = if info.is_none() && tags.is_empty() {
            None
        } else {
            Some(Box::new(InfoAndTags { info: info.clone(), tags: tags.clone() }))
        };
        Self { data: data.clone(), info_and_tags }
    }

    pub(crate) fn publication(&self, offset: u64) -> Publication {
        let more = self.info_and_tags.as_deref();
        Publication {
            data: self.data.clone(),
            offset,
            info: more.and_then(|more| more.info.clone()),
            tags: more.map(|more| more.tags.clone()).unwrap_or_default(),
            ..Publication::default()
        }
    }

    /// Approximate memory, payload included.
    pub(crate) fn bytes(&self) -> usize {
        STORED_BYTES + self.data.len() + self.info_and_tags.as_ref().map_or(0, |more| more.bytes())
    }
}

impl InfoAndTags {
    fn bytes(&self) -> usize {
        let info = self.info.as_ref().map_or(0, |info| {
            info.user.len() + info.client.len() + info.conn_info.len() + info.chan_info.len()
        });
        let tags = self.tags.iter().map(|(key, value)| key.len() + value.len() + TAG_BYTES);
        size_of::<Self>() + info + tags.sum::<usize>()
    }
}

/// An entry of the deque and the counter of a shared payload.
const STORED_BYTES: usize = size_of::<Stored>() + 32;
/// Two strings in a tree.
const TAG_BYTES: usize = 64;
