//! Splits one message of a client into commands (client protocol §2, §5.3), and reads requests with others (§24, §25).
//! In: the bytes of a message. Out: its [`Command`]s one by one, each as an id and a [`Request`].
//! Uses serde_json and prost; never answers, never stores anything between messages.
//! Framing of input and dispatch order change here; the JSON rules of fields live in `json`.

use prost::Message as _;

use crate::encoding::Encoding;
use crate::error::DecodeError;
use crate::json;
use crate::message::{
    Command, ConnectRequest, EmulationRequest, HistoryRequest, PresenceRequest,
    PresenceStatsRequest, PublishRequest, RefreshRequest, RpcRequest, SendRequest,
    SubRefreshRequest, SubscribeRequest, UnsubscribeRequest,
};

/// The commands of one WebSocket message, in order. After an error it is over.
#[derive(Debug)]
pub struct Commands<'a> {
    encoding: Encoding,
    /// Bytes that are left; `None` after the last command or an error.
    rest: Option<&'a [u8]>,
    /// The whole message is one connect request.
    is_connect: bool,
}

impl<'a> Commands<'a> {
    /// Starts on one whole message. Payloads are copied out of it, each with one allocation.
    pub fn new(encoding: Encoding, frame: &'a [u8]) -> Self {
        Self { encoding, rest: Some(frame), is_connect: false }
    }

    /// The one command of a unidirectional client: a message that is a connect request (client protocol §25). It has no id.
    pub fn of_connect_request(encoding: Encoding, message: &'a [u8]) -> Self {
        Self { encoding, rest: Some(message), is_connect: true }
    }

    /// The rest of the message, to be read later.
    pub fn rest(&self) -> &'a [u8] {
        self.rest.unwrap_or_default()
    }

    fn next_json(&mut self, rest: &'a [u8]) -> Result<Command, DecodeError> {
        let (line, after) = split_line(rest);
        if line.trim_ascii().is_empty() {
            return Err(if rest.is_empty() {
                DecodeError::EmptyFrame
            } else {
                DecodeError::BlankLine
            });
        }
        self.rest = after;
        json::read(line)
    }

    fn next_protobuf(&mut self, rest: &'a [u8]) -> Result<Command, DecodeError> {
        if rest.is_empty() {
            return Err(DecodeError::EmptyFrame);
        }
        let (message, after) = split_prefixed(rest)?;
        self.rest = (!after.is_empty()).then_some(after);
        Command::decode(message).map_err(DecodeError::Protobuf)
    }
}

impl ConnectRequest {
    /// Reads the first message of a unidirectional client (client protocol §25). In JSON, `null` is an empty request.
    ///
    /// # Errors
    /// It is something else.
    pub fn read(encoding: Encoding, message: &[u8]) -> Result<Self, DecodeError> {
        match encoding {
            Encoding::Json if message.trim_ascii() == b"null" => Ok(Self::default()),
            Encoding::Json => json::read(message),
            Encoding::Protobuf => Self::decode(message).map_err(DecodeError::Protobuf),
        }
    }
}

impl EmulationRequest {
    /// Reads the body of a request with the commands of a session (client protocol §24).
    ///
    /// # Errors
    /// It is something else.
    pub fn read(encoding: Encoding, body: &[u8]) -> Result<Self, DecodeError> {
        match encoding {
            Encoding::Json => json::read(body),
            Encoding::Protobuf => Self::decode(body).map_err(DecodeError::Protobuf),
        }
    }
}

impl Iterator for Commands<'_> {
    type Item = Result<Command, DecodeError>;

    fn next(&mut self) -> Option<Self::Item> {
        let rest = self.rest.take()?;
        let command = match self.encoding {
            encoding if self.is_connect => ConnectRequest::read(encoding, rest)
                .map(|request| Command { connect: Some(request), ..Command::default() }),
            Encoding::Json => self.next_json(rest),
            Encoding::Protobuf => self.next_protobuf(rest),
        };
        if command.is_err() {
            self.rest = None;
        }
        Some(command)
    }
}

impl std::iter::FusedIterator for Commands<'_> {}

/// Request of one command.
#[derive(Clone, PartialEq, Debug)]
pub enum Request {
    Connect(ConnectRequest),
    Subscribe(SubscribeRequest),
    Unsubscribe(UnsubscribeRequest),
    Publish(PublishRequest),
    Presence(PresenceRequest),
    PresenceStats(PresenceStatsRequest),
    History(HistoryRequest),
    Rpc(RpcRequest),
    Send(SendRequest),
    Refresh(RefreshRequest),
    SubRefresh(SubRefreshRequest),
    /// The answer to a ping: a command without any field.
    Pong,
    /// An id without a request we know, or nothing but `ping`.
    Unknown,
}

impl Command {
    /// Takes the first request that is there, in the order of client protocol §5.3; others are
    /// dropped. The id is the client's, not checked: 0 is right only for `Send` and `Pong`.
    pub fn into_request(self) -> (u32, Request) {
        let id = self.id;
        let is_pong = id == 0 && self.ping.is_none();
        let request = (self.connect.map(Request::Connect))
            .or_else(|| self.subscribe.map(Request::Subscribe))
            .or_else(|| self.unsubscribe.map(Request::Unsubscribe))
            .or_else(|| self.publish.map(Request::Publish))
            .or_else(|| self.presence.map(Request::Presence))
            .or_else(|| self.presence_stats.map(Request::PresenceStats))
            .or_else(|| self.history.map(Request::History))
            .or_else(|| self.rpc.map(Request::Rpc))
            .or_else(|| self.send.map(Request::Send))
            .or_else(|| self.refresh.map(Request::Refresh))
            .or_else(|| self.sub_refresh.map(Request::SubRefresh));
        (id, request.unwrap_or(if is_pong { Request::Pong } else { Request::Unknown }))
    }
}

/// The first line, and what follows it: `None` when nothing but one trailing newline does.
pub(crate) fn split_line(rest: &[u8]) -> (&[u8], Option<&[u8]>) {
    match rest.iter().position(|byte| *byte == b'\n') {
        Some(end) => (&rest[..end], Some(&rest[end + 1..]).filter(|after| !after.is_empty())),
        None => (rest, None),
    }
}

/// The first message behind its varint length, and what follows it.
pub(crate) fn split_prefixed(rest: &[u8]) -> Result<(&[u8], &[u8]), DecodeError> {
    let mut left = rest;
    let length =
        prost::decode_length_delimiter(&mut left).map_err(|_| DecodeError::BrokenLength)?;
    left.split_at_checked(length).ok_or(DecodeError::LengthOverrun { length, left: left.len() })
}

#[cfg(test)]
mod tests;
