//! Errors of decoding, by cause (client protocol §2, §5.7).
//! In: nothing. Out: [`DecodeError`] (the peer's fault, disconnect 3501), [`NotJson`] (the publisher's).
//! Uses the error types of prost and serde; never names a disconnect: the node chooses the code.
//! Causes change here; `command`, `reply` and `publication` detect them.

use std::fmt;

use serde_json::error::Category;

/// The reason why a message from a client is not a list of commands. The peer is at fault: disconnect 3501.
#[derive(Clone, PartialEq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DecodeError {
    /// A WebSocket message of zero bytes.
    #[error("the message is empty")]
    EmptyFrame,
    /// A JSON line with nothing but whitespace.
    #[error("a line of the message is blank")]
    BlankLine,
    /// A JSON line that is not a JSON text, ends early, or nests deeper than 128 levels.
    /// `column` counts bytes in its line from 1.
    #[error("invalid JSON at byte {column} of the line")]
    JsonSyntax { column: usize },
    /// JSON, but with a value of the wrong type, a number out of range or a key given twice.
    #[error("wrong JSON type at byte {column} of the line")]
    JsonType { column: usize },
    /// A response that is not empty and has neither result nor error nor disconnect.
    #[error("it has neither result nor error nor disconnect")]
    NoPart,
    /// A Protobuf length that does not end, or takes more than 10 bytes.
    #[error("the length before a command is no varint")]
    BrokenLength,
    /// A Protobuf length above the `left` bytes that follow it.
    #[error("a command of {length} bytes is announced, {left} follow")]
    LengthOverrun { length: usize, left: usize },
    /// Bytes of the right length that are not the message.
    #[error("no Protobuf command: {0}")]
    Protobuf(prost::DecodeError),
}

impl From<serde_json::Error> for DecodeError {
    fn from(error: serde_json::Error) -> Self {
        let column = error.column();
        match error.classify() {
            Category::Data => Self::JsonType { column },
            Category::Syntax | Category::Eof | Category::Io => Self::JsonSyntax { column },
        }
    }
}

/// A payload for JSON clients is not JSON. The publisher is at fault; the JSON client that
/// should get it is disconnected with 3506 (client protocol §3).
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("a payload for a JSON client is not valid JSON")]
pub struct NotJson;

/// An error while a message is written is always an error of a payload.
impl serde::ser::Error for NotJson {
    fn custom<T: fmt::Display>(_: T) -> Self {
        Self
    }
}
