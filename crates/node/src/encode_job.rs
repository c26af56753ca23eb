//! Answers too large to be encoded in a turn of a shard: made elsewhere, while their sessions wait as for a broker.
//! In: what was found for a client → out: its encoded reply, as a part of what the session waits for.
//! Uses: the encoders of `fanwire_protocol`, promises. Never: threads; who does encode_jobs is up to the shell (`outbox.rs`).
//! Change here: which answers are large, and what they say.

use std::iter;
use std::sync::{Arc, Weak};

use bytes::Bytes;
use fanwire_broker::{Promise, StreamSlice};
use fanwire_protocol::{
    ClientInfo, ConnectResult, Encoding, ErrorCode, HistoryResult, PresenceResult, Publication,
    Push, Reply, Subscribe, SubscribeResult, encode_reply,
};

use crate::delta::{self, Saved, payload_bytes};

/// Work that a hub hands out, because a turn in which it is done would hold up everybody on its shard.
///
/// To be [run](Self::run) on any thread; the result comes through the inbox of the shard. One that is dropped is answered with
/// error 100.
#[derive(Debug)]
pub struct EncodeJob {
    found: ReplySource,
    /// Of the command.
    id: u32,
    encoding: Encoding,
    promise: Promise<Encoded, ErrorCode>,
    /// Gone when its session does not wait any more.
    wish: Weak<()>,
}

/// What was found for a client.
#[derive(Clone, Debug)]
pub(crate) enum ReplySource {
    /// Of a channel.
    Members(Vec<Arc<ClientInfo>>),
    /// Of its history.
    StreamSlice(StreamSlice),
    /// Of a channel that it enters; with deltas or without.
    Missed(Box<SubscribeResult>, bool),
    /// Of the channels that it enters as it connects.
    Connect(Box<ConnectResult>),
    /// Of a channel that it enters by order of the server.
    Ordered(Arc<str>, Box<SubscribeResult>),
}

/// What an encode_job comes to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Encoded {
    /// A whole reply as it is sent, and what follows it; `None` when something of that is nothing in JSON.
    pub(crate) messages: Option<Vec<Bytes>>,
    /// What its deltas saved.
    pub(crate) saved: Saved,
}

impl EncodeJob {
    pub(crate) fn new(
        found: ReplySource,
        (id, encoding): (u32, Encoding),
        promise: Promise<Encoded, ErrorCode>,
        wish: Weak<()>,
    ) -> Self {
        Self { found, id, encoding, promise, wish }
    }

    /// Memory that it takes until it is done, in bytes, beside payloads, which it shares.
    pub fn bytes(&self) -> usize {
        self.found.bytes()
    }

    /// Does it, which takes milliseconds for thousands of members; or nothing, when nobody waits for it any more.
    pub fn run(self) {
        let Self { mut found, id, encoding, promise, wish } = self;
        if wish.strong_count() == 0 {
            return;
        }
        let saved = found.shape(encoding);
        let (reply, behind) = found.replies();
        let encoded = |reply| {
            let mut message = Vec::new();
            encode_reply(encoding, &reply, &mut message).ok().map(|()| message.into())
        };
        let messages = iter::once(Reply { id, ..reply }).chain(behind).map(encoded).collect();
        promise.keep(Ok(Encoded { messages, saved }));
    }
}

impl ReplySource {
    /// Whether the way to another thread and back is short beside the time it takes to encode this.
    pub(crate) fn is_large(&self) -> bool {
        let count = match self {
            Self::Members(members) => members.len(),
            Self::StreamSlice(StreamSlice { publications, .. }) => {
                return are_large([publications]);
            }
            Self::Missed(result, _) | Self::Ordered(_, result) => {
                return are_large([&result.publications]);
            }
            Self::Connect(result) => {
                return are_large(result.subs.values().map(|result| &result.publications));
            }
        };
        // A large crowd is not looked at: that alone takes its time.
        count > ENTRIES_MAX || self.payload_bytes() + count * ENTRY_BYTES > BYTES_MAX
    }

    fn bytes(&self) -> usize {
        let publications = match self {
            Self::Members(members) => return size_of_val(&members[..]),
            Self::StreamSlice(stretch) => stretch.publications.len(),
            Self::Missed(result, _) | Self::Ordered(_, result) => result.publications.len(),
            Self::Connect(result) => {
                result.subs.values().map(|result| result.publications.len()).sum()
            }
        };
        publications * size_of::<Publication>()
    }

    /// Makes the deltas of what was missed, where there are to be some.
    fn shape(&mut self, encoding: Encoding) -> Saved {
        match self {
            Self::Missed(result, true) => delta::shape_missed(encoding, &mut result.publications),
            _ => Saved::default(),
        }
    }

    /// Memory of payloads that it keeps alive, in bytes. Members are shared with the presence, but may be gone there.
    pub(crate) fn payload_bytes(&self) -> usize {
        match self {
            Self::Members(members) => {
                members.iter().map(|info| info.conn_info.len() + info.chan_info.len()).sum()
            }
            Self::StreamSlice(stretch) => payload_bytes(&stretch.publications),
            Self::Missed(result, _) | Self::Ordered(_, result) => {
                payload_bytes(&result.publications)
            }
            Self::Connect(result) => {
                result.subs.values().map(|result| payload_bytes(&result.publications)).sum()
            }
        }
    }

    /// The reply, without the id of its command, and the pushes that follow it.
    pub(crate) fn replies(self) -> (Reply, Vec<Reply>) {
        let reply = match self {
            Self::Members(members) => {
                let named = |info: &Arc<ClientInfo>| (info.client.clone(), info.as_ref().clone());
                let presence = members.iter().map(named).collect();
                Reply { presence: Some(PresenceResult { presence }), ..Reply::default() }
            }
            Self::StreamSlice(StreamSlice { publications, top, .. }) => {
                let (epoch, offset) = (top.epoch.to_string(), top.offset);
                let history = HistoryResult { publications, epoch, offset };
                Reply { history: Some(history), ..Reply::default() }
            }
            Self::Missed(result, _) => Reply { subscribe: Some(*result), ..Reply::default() },
            Self::Connect(result) => Reply { connect: Some(*result), ..Reply::default() },
            Self::Ordered(channel, result) => return pushes(&channel, *result),
        };
        (reply, Vec::new())
    }
}

/// The push of a subscription that the server made, and those of what was missed.
fn pushes(channel: &str, result: SubscribeResult) -> (Reply, Vec<Reply>) {
    let SubscribeResult { recoverable, epoch, offset, positioned, publications, data, .. } = result;
    let push = |push: Push| Reply {
        push: Some(Push { channel: channel.to_owned(), ..push }),
        ..Reply::default()
    };
    let missed = |publication| push(Push { r#pub: Some(publication), ..Push::default() });
    let subscribe = Subscribe { recoverable, epoch, offset, positioned, data };
    let subscribe = push(Push { subscribe: Some(subscribe), ..Push::default() });
    (subscribe, publications.into_iter().map(missed).collect())
}

/// As [`ReplySource::is_large`], of publications of some channels.
pub(crate) fn are_large<'a>(channels: impl IntoIterator<Item = &'a Vec<Publication>>) -> bool {
    let (mut count, mut bytes) = (0, 0);
    channels.into_iter().any(|publications| {
        count += publications.len();
        count > ENTRIES_MAX || {
            bytes += payload_bytes(publications);
            bytes + count * ENTRY_BYTES > BYTES_MAX
        }
    })
}

/// So many members are encoded in some 0.2 ms, as much as all commands may take at once.
const ENTRIES_MAX: usize = 256;
/// What an entry costs beside its payload, as bytes of that.
const ENTRY_BYTES: usize = 256;
/// Payload that is encoded in the same time, about.
const BYTES_MAX: usize = ENTRIES_MAX * ENTRY_BYTES;

#[cfg(test)]
mod tests;
