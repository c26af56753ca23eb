//! A join or a leave on its way to all shards: each encoding of it is made once, by the first shard that needs it.
//! In: a channel, the client's info → out: encoded pushes, one per encoding.
//! Uses: `fanwire_protocol` to encode, write-once cells. Never: subscriber lists.
//! Changed here: what all receivers share. `hub/notices.rs` selects the receivers.

use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use fanwire_broker::{Change, ClientId};
use fanwire_protocol::{ClientInfo, Encoding, encode_join_push, encode_leave_push};

/// A join or leave shared by all receivers. Immutable, except that each empty slot is filled once.
#[derive(Debug)]
pub struct JoinLeave {
    channel: Arc<str>,
    change: Change,
    info: ClientInfo,
    messages: [OnceLock<Option<Bytes>>; 2],
}

impl JoinLeave {
    /// Wraps a join or leave; encodes nothing.
    pub(crate) fn new(channel: Arc<str>, change: Change, info: ClientInfo) -> Self {
        Self { channel, change, info, messages: Default::default() }
    }

    pub(crate) fn channel(&self) -> &str {
        &self.channel
    }

    /// The client of a leave; `None` for a join.
    pub(crate) fn leaver(&self) -> Option<ClientId> {
        (self.change == Change::Leave).then(|| ClientId::parse(&self.info.client)).flatten()
    }

    /// Bytes of payloads that it keeps alive; each encoding holds them once more.
    pub(crate) fn payload_bytes(&self) -> usize {
        3 * (self.info.conn_info.len() + self.info.chan_info.len())
    }

    /// The encoded push (Protobuf: with its length prefix), made at the first call and shared afterwards.
    ///
    /// `None` for JSON when the client's info is not JSON (protocol §3).
    pub(crate) fn message(&self, encoding: Encoding) -> Option<&Bytes> {
        let encode = match self.change {
            Change::Join => encode_join_push,
            Change::Leave => encode_leave_push,
        };
        self.messages[encoding.index()]
            .get_or_init(|| {
                let mut message = Vec::new();
                encode(encoding, &self.channel, self.info.clone(), &mut message).ok()?;
                Some(message.into())
            })
            .as_ref()
    }
}
