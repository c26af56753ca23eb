//! Commands on their way: their ids, their bytes in messages, and the replies that they wait for (client protocol §2, §5.4).
//! Commands and purposes → messages for the transport; ids of replies → purposes.
//! Uses the encoder of the protocol; never a clock: time is a parameter.
//! Changed here: how commands share a message. What a reply does is `core`.

use std::collections::{BTreeMap, VecDeque};
use std::time::{Duration, Instant};

use fanwire_protocol::{Command, Encoding, NotJson, encode_command, join};

/// Commands that were not sent, and those without a reply.
pub(super) struct OutgoingCommands {
    encoding: Encoding,
    timeout: Duration,
    last_id: u32,
    is_batching: bool,
    /// The message that grows.
    message: Vec<u8>,
    /// Messages that are complete.
    messages: VecDeque<Vec<u8>>,
    awaited: BTreeMap<u32, AwaitedReply>,
}

struct AwaitedReply {
    purpose: Purpose,
    deadline: Instant,
}

/// One subscribe command of a channel.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Attempt {
    pub(super) channel: String,
    pub(super) number: u64,
}

/// The receiver of a reply.
#[derive(Debug, PartialEq)]
pub(super) enum Purpose {
    Connect,
    Subscribe(Attempt),
    Unsubscribe,
    Refresh,
    SubRefresh(String),
    Call(u64),
}

impl OutgoingCommands {
    pub(super) fn new(encoding: Encoding, timeout: Duration) -> Self {
        Self {
            encoding,
            timeout,
            last_id: 0,
            is_batching: false,
            message: Vec::new(),
            messages: VecDeque::new(),
            awaited: BTreeMap::new(),
        }
    }

    pub(super) fn set_batching(&mut self, is_on: bool) {
        self.is_batching = is_on;
    }

    /// Adds a command under a new id, whose reply is `purpose`'s.
    ///
    /// # Errors
    /// A payload is not JSON; nothing was added then.
    pub(super) fn push(
        &mut self,
        mut command: Command,
        purpose: Purpose,
        now: Instant,
    ) -> Result<(), NotJson> {
        let id = self.last_id.wrapping_add(1).max(1);
        command.id = id;
        self.push_without_reply(command)?;
        self.last_id = id;
        self.awaited
            .insert(id, AwaitedReply { purpose, deadline: now + self.timeout.min(TIMEOUT_MAX) });
        Ok(())
    }

    /// Adds a command that has no reply.
    ///
    /// # Errors
    /// As [`push`](Self::push).
    pub(super) fn push_without_reply(&mut self, command: Command) -> Result<(), NotJson> {
        let mut bytes = Vec::new();
        encode_command(self.encoding, &command, &mut bytes)?;
        if self.message.len() + bytes.len() > MESSAGE_BYTES && !self.message.is_empty() {
            self.messages.push_back(std::mem::take(&mut self.message));
        }
        if self.message.is_empty() {
            self.message = bytes;
        } else {
            join(self.encoding, &mut self.message);
            self.message.extend_from_slice(&bytes);
        }
        Ok(())
    }

    /// The next message to send.
    pub(super) fn take_message(&mut self) -> Option<Vec<u8>> {
        if let Some(message) = self.messages.pop_front() {
            return Some(message);
        }
        if self.message.is_empty() || self.is_batching {
            return None;
        }
        Some(std::mem::take(&mut self.message))
    }

    /// The receiver of the reply with this id; `None` if no command has it.
    pub(super) fn take(&mut self, id: u32) -> Option<Purpose> {
        self.awaited.remove(&id).map(|awaited| awaited.purpose)
    }

    /// A receiver that waited too long.
    pub(super) fn take_expired(&mut self, now: Instant) -> Option<Purpose> {
        let first = self.awaited.first_entry().filter(|first| first.get().deadline <= now)?;
        Some(first.remove().purpose)
    }

    /// The time at which the oldest command has waited too long.
    pub(super) fn deadline(&self) -> Option<Instant> {
        self.awaited.first_key_value().map(|(_, awaited)| awaited.deadline)
    }

    /// Forgets what was not sent, and returns the receivers that get no reply.
    pub(super) fn clear(&mut self) -> impl Iterator<Item = Purpose> + use<> {
        self.message.clear();
        self.messages.clear();
        std::mem::take(&mut self.awaited).into_values().map(|awaited| awaited.purpose)
    }
}

/// A day: no server waits longer.
const TIMEOUT_MAX: Duration = Duration::from_secs(24 * 3600);

/// Commands share a message up to this size; servers accept 64 KiB by default.
const MESSAGE_BYTES: usize = 32 << 10;

#[cfg(test)]
mod tests;
