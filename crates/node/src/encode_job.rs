//! Replies too large to encode in a turn of a shard: encoded on another thread, while the session waits as for a broker.
//! In: the source of a reply → out: the encoded reply, as one of the results that the session waits for.
//! Uses: the encoders of `fanwire_protocol`, promises. Never: threads; the shell runs the jobs (`outbox.rs`).
//! Changed here: which replies are large, and what they contain.

use std::iter;
use std::sync::{Arc, Weak};

use bytes::Bytes;
use fanwire_broker::{Promise, StreamSlice};
use fanwire_protocol::{
    ClientInfo, ConnectResult, Encoding, ErrorCode, HistoryResult, PresenceResult, Publication,
    Push, Reply, Subscribe, SubscribeResult, encode_reply,
};

use crate::delta::{self, Saved, payload_bytes};
use crate::map::{self, MAP};
use crate::session::CommandSource;

/// Work that a hub offloads, because doing it in a turn would delay all connections of the shard.
///
/// [Run](Self::run) it on any thread; the result comes through the inbox of the shard. A dropped job is answered with
/// error 100.
#[derive(Debug)]
pub struct EncodeJob {
    pub(crate) source: ReplySource,
    /// Id of the command.
    pub(crate) id: u32,
    pub(crate) encoding: Encoding,
    pub(crate) promise: Promise<Encoded, ErrorCode>,
    /// Dropped when the session no longer waits.
    pub(crate) interest: Weak<()>,
}

/// The source of a large reply.
#[derive(Clone, Debug)]
pub(crate) enum ReplySource {
    /// Members of a channel.
    Members(Vec<Arc<ClientInfo>>),
    /// Publications of its history.
    StreamSlice(StreamSlice),
    /// Publications recovered by a subscribe; with deltas or without.
    Missed(Box<SubscribeResult>, bool),
    /// Publications recovered by the server-side subscriptions of a connect; `apart`: in pushes of their own behind it.
    Connect { result: Box<ConnectResult>, command_source: CommandSource, apart: bool },
    /// Publications recovered by a subscription that the server API made.
    Ordered(Arc<str>, Box<SubscribeResult>),
}

/// The result of an encode job.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Encoded {
    /// The encoded reply and the messages after it; `None` when a payload is not JSON.
    pub(crate) messages: Option<Vec<Bytes>>,
    /// How much its deltas saved.
    pub(crate) saved: Saved,
}

impl EncodeJob {
    /// Bytes it holds until it is done, without payloads, which are shared.
    pub fn bytes(&self) -> usize {
        self.source.bytes()
    }

    /// Encodes the reply; milliseconds for thousands of members. Does nothing when the session no longer waits.
    pub fn run(self) {
        let Self { mut source, id, encoding, promise, interest } = self;
        if interest.strong_count() == 0 {
            return;
        }
        let saved = source.shape(encoding);
        let (reply, behind) = source.replies();
        let encoded = |reply| {
            let mut message = Vec::new();
            encode_reply(encoding, &reply, &mut message).ok().map(|()| message.into())
        };
        let messages = iter::once(Reply { id, ..reply }).chain(behind).map(encoded).collect();
        promise.keep(Ok(Encoded { messages, saved }));
    }
}

impl ReplySource {
    /// Whether encoding takes so long that a hop to another thread and back costs little in comparison.
    pub(crate) fn is_large(&self) -> bool {
        let cost: usize = match self {
            // Many members are not summed up, because that takes time as well.
            Self::Members(members) if members.len() > MEMBERS_MAX => return true,
            Self::Members(members) => self.payload_bytes() + members.len() * MEMBER_BYTES,
            Self::StreamSlice(slice) => cost(&slice.publications),
            Self::Missed(result, _) | Self::Ordered(_, result) => cost_of(result),
            Self::Connect { result, .. } => result.subs.values().map(cost_of).sum(),
        };
        cost > COST_MAX
    }

    fn bytes(&self) -> usize {
        let publications = match self {
            Self::Members(members) => return size_of_val(&members[..]),
            Self::StreamSlice(slice) => slice.publications.len(),
            Self::Missed(result, _) | Self::Ordered(_, result) => {
                result.publications.len() + result.state.len()
            }
            Self::Connect { result, .. } => {
                result.subs.values().map(|result| result.publications.len()).sum()
            }
        };
        publications * size_of::<Publication>()
    }

    /// Makes the deltas of a recovery, if the subscription has them.
    pub(crate) fn shape(&mut self, encoding: Encoding) -> Saved {
        match self {
            Self::Missed(result, true) => shape(encoding, result),
            _ => Saved::default(),
        }
    }

    /// Bytes of payloads that it keeps alive. Members are shared with the presence, but may have left it.
    pub(crate) fn payload_bytes(&self) -> usize {
        match self {
            Self::Members(members) => {
                members.iter().map(|info| info.conn_info.len() + info.chan_info.len()).sum()
            }
            Self::StreamSlice(slice) => payload_bytes(&slice.publications),
            Self::Missed(result, _) | Self::Ordered(_, result) => {
                payload_bytes(&result.publications) + payload_bytes(&result.state)
            }
            Self::Connect { result, .. } => {
                result.subs.values().map(|result| payload_bytes(&result.publications)).sum()
            }
        }
    }

    /// The reply, without the id of its command, and the pushes after it.
    pub(crate) fn replies(self) -> (Reply, Vec<Reply>) {
        let reply = match self {
            Self::Members(members) => {
                let named = |info: &Arc<ClientInfo>| (info.client.clone(), info.as_ref().clone());
                let presence = members.iter().map(named).collect();
                Reply { presence: Some(PresenceResult { presence }), ..Reply::default() }
            }
            Self::StreamSlice(StreamSlice { publications, top, .. }) => {
                let epoch = top.epoch.to_string();
                let offset = top.offset;
                let history = HistoryResult { publications, epoch, offset };
                Reply { history: Some(history), ..Reply::default() }
            }
            Self::Missed(result, _) => Reply { subscribe: Some(*result), ..Reply::default() },
            Self::Connect { mut result, command_source, apart } => {
                let missed = if apart { take_missed(&mut result) } else { Vec::new() };
                return (connect_reply(*result, command_source), missed);
            }
            Self::Ordered(channel, result) => return pushes(&channel, *result),
        };
        (reply, Vec::new())
    }
}

/// A connect result as its client receives it: as the reply to its command, or as the first push.
fn connect_reply(result: ConnectResult, command_source: CommandSource) -> Reply {
    match command_source {
        CommandSource::Connection | CommandSource::Requests => {
            Reply { connect: Some(result), ..Reply::default() }
        }
        CommandSource::None => Reply { push: Some(result.into()), ..Reply::default() },
    }
}

/// The push of a server-side subscription, and those of its recovered publications.
fn pushes(channel: &str, result: SubscribeResult) -> (Reply, Vec<Reply>) {
    let SubscribeResult { recoverable, epoch, offset, positioned, publications, data, .. } = result;
    let subscribe = Some(Subscribe { recoverable, epoch, offset, positioned, data });
    let subscribe = push(channel, Push { subscribe, ..Push::default() });
    (subscribe, publications.into_iter().map(|one| publication_push(channel, one)).collect())
}

/// Takes the recovered publications out of a connect result, as pushes.
fn take_missed(result: &mut ConnectResult) -> Vec<Reply> {
    let missed = result.subs.iter_mut().flat_map(|(channel, result)| {
        let publications = std::mem::take(&mut result.publications).into_iter();
        publications.map(|publication| publication_push(channel, publication))
    });
    missed.collect()
}

fn publication_push(channel: &str, publication: Publication) -> Reply {
    push(channel, Push { r#pub: Some(publication), ..Push::default() })
}

fn push(channel: &str, push: Push) -> Reply {
    let channel = channel.to_owned();
    Reply { push: Some(Push { channel, ..push }), ..Reply::default() }
}

/// Converts a result for a subscriber with deltas.
pub(crate) fn shape(encoding: Encoding, result: &mut SubscribeResult) -> Saved {
    match result.r#type {
        MAP => map::deltas::shape(encoding, result),
        _ => delta::shape_missed(encoding, &mut result.publications),
    }
}

/// Returns the cost of encoding a result, as [`cost`] does.
pub(crate) fn cost_of(result: &SubscribeResult) -> usize {
    cost(&result.publications) + cost(&result.state)
}

/// Returns the cost of encoding publications, in bytes of payload that take as long.
fn cost(publications: &[Publication]) -> usize {
    payload_bytes(publications) + publications.len() * PUBLICATION_BYTES
}

/// Payload that is encoded in some 0.2 ms, the limit of one turn for all commands of a connection.
pub(crate) const COST_MAX: usize = 128 << 10;
/// Cost of a publication without its payload.
const PUBLICATION_BYTES: usize = 128;
/// The same of a member.
const MEMBER_BYTES: usize = 512;
/// More members are large without a look at their payloads.
const MEMBERS_MAX: usize = COST_MAX / MEMBER_BYTES;

#[cfg(test)]
mod tests;
