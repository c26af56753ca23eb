//! A join or a leave on its way to all shards: every encoding of it is made once, by whoever needs it first.
//! In: a channel, who came or went → out: encoded pushes, one per encoding.
//! Uses: `fanwire_protocol` to encode, write-once cells. Never: subscriber lists.
//! Change here: what all receivers share. Who hears of it lives in `hub/notices.rs`.

use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use fanwire_broker::{Change, ClientId};
use fanwire_protocol::{ClientInfo, Encoding, encode_join_push, encode_leave_push};

/// A change shared by all who hear of it; nothing in it changes except that empty slots are filled once.
#[derive(Debug)]
pub struct JoinLeave {
    channel: Arc<str>,
    change: Change,
    info: ClientInfo,
    messages: [OnceLock<Option<Bytes>>; 2],
}

impl JoinLeave {
    /// Wraps a change; encodes nothing.
    pub(crate) fn new(channel: Arc<str>, change: Change, info: ClientInfo) -> Self {
        Self { channel, change, info, messages: Default::default() }
    }

    pub(crate) fn channel(&self) -> &str {
        &self.channel
    }

    /// Who left; `None` for a join.
    pub(crate) fn leaver(&self) -> Option<ClientId> {
        (self.change == Change::Leave).then(|| ClientId::parse(&self.info.client)).flatten()
    }

    /// Memory of payloads that it keeps alive, in bytes; each encoding that is made has them once more.
    pub(crate) fn payload_bytes(&self) -> usize {
        3 * (self.info.conn_info.len() + self.info.chan_info.len())
    }

    /// The encoded push (Protobuf: with its length), made at the first call and shared afterwards.
    ///
    /// `None` for JSON when what is known of the client is not JSON (protocol §3).
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
