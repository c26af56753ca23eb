//! What a client sends and sees: commands as frames, replies as values.
//! In: commands, frames → out: frames, replies.
//! Uses the Protobuf messages of the protocol. Never: the encoders of the product for what the server sends.
//! Changed here: what checkers learn of a client.

use std::collections::BTreeSet;
use std::fmt;
use std::time::Duration;

use bytes::Bytes;
use fanwire_protocol::{Command, HistoryResult, Publication, Reply, SubscribeResult};
use prost::Message as _;

/// A position that a client claims, in plain words.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Claim {
    pub offset: u64,
    pub epoch: String,
}

/// A page of a history.
#[derive(Clone, Debug)]
pub struct HistoryPage {
    /// It begins behind this offset, or in reverse order before it.
    pub since: Option<u64>,
    pub limit: usize,
    pub reverse: bool,
}

/// What a client saw.
#[derive(Clone, Debug)]
pub enum Seen {
    /// Its connect was answered.
    Connected { connection: u64, id: String, channels: Vec<String> },
    /// A connect was answered with an error.
    Refused(u32),
    /// A connection ended, without answers to so many commands.
    Disconnected { connection: u64, code: u16, unanswered: usize },
    /// A subscribe was answered.
    Subscribed {
        channel: String,
        claim: Option<Claim>,
        filter: String,
        asked_at: Duration,
        result: SubscribeResult,
    },
    /// A subscribe was answered with an error.
    SubscribeFailed { channel: String, code: u32 },
    /// The server ended a subscription at this position of the client.
    Unsubscribed { channel: String, code: u32, at: Option<Claim> },
    /// The client ended it.
    Left(String),
    /// A publication came.
    Received { channel: String, publication: Publication },
    /// A publication of the client was answered; whether it had come back before.
    Published { channel: String, number: u64, is_done: bool, was_seen: bool },
    /// A call was answered.
    Called { millis: u64, waited: Duration, is_done: bool, busy: bool },
    /// A page of a history.
    Read { channel: String, asked_at: Duration, page: HistoryPage, result: HistoryResult },
    /// The ids of a channel's members.
    Members { channel: String, asked_at: Duration, ids: BTreeSet<String> },
    /// A client joined a channel.
    Joined { channel: String, client: String },
    /// A client left a channel.
    Parted { channel: String, client: String },
    /// A reply to a command that was not sent, or answered already.
    Unasked(u32),
    /// A frame was no reply.
    Garbage,
}

/// A line of a story, without what precedes it: when, and which client.
impl fmt::Display for Seen {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Subscribed { channel, claim, result, .. } => {
                let SubscribeResult { offset, epoch, recovered, publications, .. } = result;
                write!(to, "subscribed to {channel} at {offset} of '{epoch}'")?;
                if let Some(claim) = claim {
                    let count = publications.len();
                    let from = claim.offset;
                    write!(to, ", recovered: {recovered} from {from}, {count} publications")?;
                }
                Ok(())
            }
            Self::Received { channel, publication } => {
                let Publication { offset, data, .. } = publication;
                write!(to, "receives {channel} at {offset}: {data:?}")
            }
            Self::Unsubscribed { channel, code, .. } => {
                write!(to, "unsubscribed from {channel} with code {code}")
            }
            other => write!(to, "{other:?}"),
        }
    }
}

/// Commands in one frame.
pub(super) fn framed(commands: &[Command]) -> Bytes {
    let mut frame = Vec::new();
    for command in commands {
        command.encode_length_delimited(&mut frame).expect("a Vec has room");
    }
    frame.into()
}

/// The reply in a frame of the server.
pub(super) fn decoded(frame: Bytes) -> Option<Reply> {
    Reply::decode_length_delimited(frame).ok()
}

/// The frame of a ping: a reply without fields.
pub(super) const EMPTY_REPLY: [u8; 1] = [0];
