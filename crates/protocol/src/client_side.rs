//! The protocol as a client uses it: commands out, replies and pushes in (client protocol §2).
//! In: a [`Command`] → out: bytes of one command. In: the bytes of one WebSocket message → out: its [`Reply`]s one by one.
//! Uses serde_json and prost through `json` and `command`; never answers, never stores anything between messages.
//! Framing on the client's side changes here; that of the server's side is `command` and `reply`.

use prost::Message as _;

use crate::command::{split_line, split_prefixed};
use crate::encoding::Encoding;
use crate::error::{DecodeError, NotJson};
use crate::json;
use crate::message::{Command, Reply};

/// Appends one command, in Protobuf with its length. Several commands of a message are separated by
/// [`join`](crate::join).
///
/// # Errors
/// [`NotJson`] when the encoding is JSON and a payload in the command is not; nothing is appended then.
pub fn encode_command(
    encoding: Encoding,
    command: &Command,
    out: &mut Vec<u8>,
) -> Result<(), NotJson> {
    match encoding {
        Encoding::Json => json::write(command, out),
        Encoding::Protobuf => {
            command.encode_length_delimited(out).expect("a Vec grows");
            Ok(())
        }
    }
}

/// The replies and pushes of one WebSocket message, in order. After an error it is over.
#[derive(Debug)]
pub struct MessageReplies<'a> {
    encoding: Encoding,
    /// Bytes that are left; `None` after the last reply or an error.
    rest: Option<&'a [u8]>,
}

impl<'a> MessageReplies<'a> {
    /// Starts on one whole message. Payloads are copied out of it, each with one allocation.
    pub fn new(encoding: Encoding, message: &'a [u8]) -> Self {
        Self { encoding, rest: Some(message) }
    }

    /// Number of bytes that are left.
    pub fn bytes_left(&self) -> usize {
        self.rest.map_or(0, <[u8]>::len)
    }
}

impl Iterator for MessageReplies<'_> {
    type Item = Result<Reply, DecodeError>;

    fn next(&mut self) -> Option<Self::Item> {
        let rest = self.rest.take()?;
        if rest.is_empty() {
            return Some(Err(DecodeError::EmptyFrame));
        }
        match self.encoding {
            Encoding::Json => {
                let (line, after) = split_line(rest);
                let reply = json::read(line);
                self.rest = after.filter(|_| reply.is_ok());
                Some(reply)
            }
            Encoding::Protobuf => {
                let (message, after) = match split_prefixed(rest) {
                    Ok(split) => split,
                    Err(error) => return Some(Err(error)),
                };
                let reply = Reply::decode(message).map_err(DecodeError::Protobuf);
                self.rest = Some(after).filter(|after| !after.is_empty() && reply.is_ok());
                Some(reply)
            }
        }
    }
}

impl std::iter::FusedIterator for MessageReplies<'_> {}

#[cfg(test)]
mod tests;
