//! The little that we add to the Redis crate's commands and values.
//! In: arguments, values → out: a command being written; texts, numbers and parts of a value.
//! Uses the crate `redis`. Never: sockets, what a command means.
//! Change here: how values are looked at. A text is taken out of its value, not copied.

use bytes::Bytes;
use redis::{Cmd, RedisWrite as _, ToRedisArgs, Value};

use super::record::RecordBody;

/// A command being written.
pub(crate) struct RedisCommand {
    cmd: Cmd,
    /// About how long it is on the wire.
    length: usize,
    is_write: bool,
}

impl RedisCommand {
    /// Begins a command of `count` arguments, its name included, with room for `bytes` of them.
    pub(crate) fn new(count: usize, bytes: usize) -> Self {
        Self { cmd: Cmd::with_capacity(count, bytes), length: 0, is_write: false }
    }

    /// A command whose arguments are there already.
    pub(crate) fn of(arguments: &[&[u8]]) -> Self {
        let mut command = Self::new(arguments.len(), arguments.iter().map(|one| one.len()).sum());
        for argument in arguments {
            command.text(argument);
        }
        command
    }

    /// It changes what others see: replicas may have to have it before it is answered.
    pub(crate) fn writes(mut self) -> Self {
        self.is_write = true;
        self
    }

    pub(crate) fn is_write(&self) -> bool {
        self.is_write
    }

    /// The next argument.
    pub(crate) fn text(&mut self, text: impl AsRef<[u8]>) -> &mut Self {
        let text = text.as_ref();
        self.length += FRAME_BYTES + text.len();
        self.cmd.write_arg(text);
        self
    }

    /// The next argument: a number.
    pub(crate) fn number(&mut self, number: u64) -> &mut Self {
        self.length += FRAME_BYTES + number.checked_ilog10().map_or(1, |tens| tens as usize + 1);
        number.write_redis_args(&mut self.cmd);
        self
    }

    /// The next argument, of `length` bytes, written in place.
    pub(crate) fn message(&mut self, length: usize, message: &impl RecordBody) -> &mut Self {
        self.length += FRAME_BYTES + length;
        let mut place = self.cmd.bufmut_for_next_arg(length);
        message.put(&mut place);
        drop(place);
        self
    }

    /// About how long it is on the wire.
    pub(crate) fn length(&self) -> usize {
        self.length
    }

    pub(crate) fn into_cmd(self) -> Cmd {
        self.cmd
    }
}

/// The text of a value, if it is one.
pub(crate) fn text(value: Value) -> Option<Bytes> {
    match value {
        Value::BulkString(text) => Some(text.into()),
        Value::SimpleString(text) | Value::VerbatimString { text, .. } => Some(text.into()),
        _ => None,
    }
}

/// A number, whether it came as one or as text.
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

/// What an argument takes beside its text: its length and two ends of lines.
const FRAME_BYTES: usize = 8;

#[cfg(test)]
mod tests;
