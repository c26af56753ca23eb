//! Reads a file of messages: JSON texts by lines, or records with a length prefix.
//! In: a file's name and bytes → out: a `Sample`, or an `InputError` that names the expected form.
//! Uses the JSON scanner of the protocol. Never: reads the file itself.
//! Another form of file is added here.

use std::fmt;
use std::path::Path;

use fanwire_protocol::{Encoding, is_json};
use serde_json::value::RawValue;

#[cfg(test)]
mod tests;

/// Messages of one channel, as a backend publishes them.
#[derive(Debug, PartialEq, Eq)]
pub struct Sample {
    /// The name of the file without its folder.
    pub file: String,
    /// The same without its ending: the channel.
    pub(crate) channel: String,
    pub(crate) encoding: Encoding,
    /// Two or more.
    pub(crate) payloads: Vec<Vec<u8>>,
    /// The file holds more messages than were wanted.
    pub(crate) has_more: bool,
}

impl Sample {
    /// The messages, in the order of the file; two or more.
    pub fn messages(&self) -> &[Vec<u8>] {
        &self.payloads
    }

    /// The messages are no JSON.
    pub fn is_binary(&self) -> bool {
        self.encoding.is_binary()
    }
}

/// Error of a file; its text goes behind the file's name.
#[derive(Debug, PartialEq, Eq)]
pub enum InputError {
    Empty,
    /// `line` and `column` count from 1.
    NotJson {
        line: usize,
        column: usize,
        reason: String,
    },
    /// `record` counts from 1.
    Truncated {
        record: usize,
        announced: usize,
        left: usize,
    },
    EmptyRecord {
        record: usize,
    },
    OneMessage,
    /// One JSON text that is an array, whose elements were meant, most likely.
    OneArray,
    TooLong {
        message: usize,
        bytes: usize,
    },
}

/// Takes the first `messages_max` messages; what is behind them is not looked at.
///
/// # Errors
/// As `InputError` says.
pub fn read(path: &Path, bytes: &[u8], messages_max: usize) -> Result<Sample, InputError> {
    let text =
        |part: Option<&std::ffi::OsStr>| part.unwrap_or_default().to_string_lossy().into_owned();
    let encoding = encoding(&text(path.extension()), bytes);
    let bytes =
        bytes.strip_prefix(b"\xef\xbb\xbf").filter(|_| !encoding.is_binary()).unwrap_or(bytes);
    let (payloads, has_more) = match encoding {
        Encoding::Json => lines(bytes, messages_max)?,
        Encoding::Protobuf => records(bytes, messages_max)?,
    };
    let too_long = payloads.iter().position(|payload| payload.len() > MESSAGE_BYTES_MAX);
    if let Some(at) = too_long {
        return Err(InputError::TooLong { message: at + 1, bytes: payloads[at].len() });
    }
    match payloads.len() {
        0 => Err(InputError::Empty),
        1 if !encoding.is_binary() && payloads[0].starts_with(b"[") => Err(InputError::OneArray),
        1 => Err(InputError::OneMessage),
        _ => Ok(Sample {
            file: text(path.file_name()),
            channel: text(path.file_stem()),
            encoding,
            payloads,
            has_more,
        }),
    }
}

/// Returns the encoding by the file's ending, or else by the file's content.
fn encoding(extension: &str, bytes: &[u8]) -> Encoding {
    match extension.to_ascii_lowercase().as_str() {
        "jsonl" | "ndjson" | "json" | "txt" => Encoding::Json,
        "bin" | "pb" | "binpb" => Encoding::Protobuf,
        _ if records(bytes, usize::MAX).is_ok() => Encoding::Protobuf,
        // The length of a record has a zero byte unless the record is larger than 16 MiB.
        _ if bytes.iter().take(4).any(|byte| *byte == 0) => Encoding::Protobuf,
        _ => Encoding::Json,
    }
}

type Payloads = (Vec<Vec<u8>>, bool);

fn lines(bytes: &[u8], messages_max: usize) -> Result<Payloads, InputError> {
    let mut payloads = Vec::new();
    for (number, line) in bytes.split(|byte| *byte == b'\n').enumerate() {
        let text = line.trim_ascii();
        if text.is_empty() {
            continue;
        }
        if payloads.len() == messages_max {
            return Ok((payloads, true));
        }
        if !is_json(text) {
            return Err(not_json(number + 1, line));
        }
        payloads.push(text.to_vec());
    }
    Ok((payloads, false))
}

fn not_json(line: usize, text: &[u8]) -> InputError {
    let error = serde_json::from_slice::<&RawValue>(text).err();
    let column = error.as_ref().map_or(1, serde_json::Error::column).max(1);
    let message = error.map_or("not JSON".to_owned(), |error| error.to_string());
    let reason = message.split(" at line ").next().unwrap_or_default().to_owned();
    InputError::NotJson { line, column, reason }
}

fn records(mut bytes: &[u8], messages_max: usize) -> Result<Payloads, InputError> {
    let mut payloads = Vec::new();
    while !bytes.is_empty() {
        if payloads.len() == messages_max {
            return Ok((payloads, true));
        }
        let record = payloads.len() + 1;
        let cut = |announced, left| InputError::Truncated { record, announced, left };
        let (length, rest) = bytes.split_first_chunk::<4>().ok_or(cut(4, bytes.len()))?;
        let length = u32::from_le_bytes(*length) as usize;
        let (payload, rest) = rest.split_at_checked(length).ok_or(cut(length, rest.len()))?;
        if payload.is_empty() {
            return Err(InputError::EmptyRecord { record });
        }
        payloads.push(payload.to_vec());
        bytes = rest;
    }
    Ok((payloads, false))
}

impl fmt::Display for InputError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Empty => write!(f, " holds no message")?,
            Self::NotJson { line, column, reason } => {
                write!(f, ":{line}:{column}: not JSON: {reason}")?;
            }
            Self::Truncated { record, announced, left } => write!(
                f,
                ": record {record} is cut off: {announced} bytes are announced and {left} are there"
            )?,
            Self::EmptyRecord { record } => write!(f, ": record {record} is empty")?,
            Self::OneMessage => {
                write!(f, " holds one message, and context needs several of them")?;
            }
            Self::OneArray => {
                write!(f, " holds one message, an array; put its elements on lines (jq -c '.[]')")?;
            }
            Self::TooLong { message, bytes } => {
                write!(f, ": message {message} has {bytes} bytes, more than {MESSAGE_BYTES_MAX}")?
            }
        }
        write!(f, "; give {EXPECTED}")
    }
}

/// Content that a file should have, for every error.
pub const EXPECTED: &str = "a file with two or more messages of one channel: one JSON text \
     a line (.jsonl), or binary records, each behind its length in four bytes, little-endian (.bin)";

/// Far above what anybody publishes, so that memory stays within bounds.
const MESSAGE_BYTES_MAX: usize = 16 << 20;
