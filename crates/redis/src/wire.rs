//! Additions to the commands and values of the crate `redis`.
//! In: arguments, values → out: a command; texts, numbers and parts of a value.
//! Uses the crate `redis`. Never: sockets, the meaning of a command.
//! Changed here: how values are read. A text is moved out of its value, not copied.

use bytes::Bytes;
use redis::{Cmd, RedisWrite as _, ToRedisArgs, Value};

use super::record::RecordBody;

/// A command under construction.
pub(crate) struct RedisCommand {
    cmd: Cmd,
    /// Approximate bytes on the wire.
    length: usize,
    is_write: bool,
}

impl RedisCommand {
    /// Starts a command of `count` arguments, its name included, with room for `bytes` of them.
    pub(crate) fn new(count: usize, bytes: usize) -> Self {
        Self { cmd: Cmd::with_capacity(count, bytes), length: 0, is_write: false }
    }

    /// A command with these arguments.
    pub(crate) fn of(arguments: &[&[u8]]) -> Self {
        let mut command = Self::new(arguments.len(), arguments.iter().map(|one| one.len()).sum());
        for argument in arguments {
            command.text(argument);
        }
        command
    }

    /// Marks a write: with `WAIT`, replicas must have it before it is answered.
    pub(crate) fn writes(mut self) -> Self {
        self.is_write = true;
        self
    }

    pub(crate) fn is_write(&self) -> bool {
        self.is_write
    }

    /// Appends an argument.
    pub(crate) fn text(&mut self, text: impl AsRef<[u8]>) -> &mut Self {
        let text = text.as_ref();
        self.length += FRAME_BYTES + text.len();
        self.cmd.write_arg(text);
        self
    }

    /// Appends a number as an argument.
    pub(crate) fn number(&mut self, number: u64) -> &mut Self {
        self.length += FRAME_BYTES + number.checked_ilog10().map_or(1, |tens| tens as usize + 1);
        number.write_redis_args(&mut self.cmd);
        self
    }

    /// Appends an argument of `length` bytes, which `message` writes in place.
    pub(crate) fn message(&mut self, length: usize, message: &impl RecordBody) -> &mut Self {
        self.length += FRAME_BYTES + length;
        let mut buffer = self.cmd.bufmut_for_next_arg(length);
        message.put(&mut buffer);
        drop(buffer);
        self
    }

    /// Approximate bytes on the wire.
    pub(crate) fn length(&self) -> usize {
        self.length
    }

    pub(crate) fn into_cmd(self) -> Cmd {
        self.cmd
    }
}

/// The text of a value; `None` for other types.
pub(crate) fn text(value: Value) -> Option<Bytes> {
    match value {
        Value::BulkString(text) => Some(text.into()),
        Value::SimpleString(text) | Value::VerbatimString { text, .. } => Some(text.into()),
        _ => None,
    }
}

/// A number, from an integer or a text.
pub(crate) fn number(value: Value) -> Option<u64> {
    match value {
        Value::Int(number) => number.try_into().ok(),
        value => str::from_utf8(&text(value)?).ok()?.parse().ok(),
    }
}

/// The parts of an array.
pub(crate) fn parts(value: Value) -> Option<Vec<Value>> {
    match value {
        Value::Array(parts) => Some(parts),
        _ => None,
    }
}

/// Bytes around an argument: its length and two line ends.
const FRAME_BYTES: usize = 8;

#[cfg(test)]
mod tests;
