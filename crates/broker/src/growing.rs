//! Growing messages (server API §3 append): a text that backends append to, published as a whole under one key of its channel.
//! In: a fragment and where it belongs → out: the longer text and whether it is due to be published, or the refusal.
//! Uses: values only, and the time as a parameter. Never: streams, delivery.
//! Changed here: the rules of a fragment. `script/append.lua` of `brokers` has the same ones for Redis.

use std::time::{Duration, Instant};

use bytes::Bytes;
use fanwire_protocol::{Publication, json_string};

use crate::saved::{GrowingRecord, SnapshotClock};
use crate::{Epoch, Position};

/// A change of one growing message.
#[derive(Clone, Debug, Default)]
pub struct Append {
    /// Names the message in its channel.
    pub key: String,
    /// `None` publishes text that waits, if some does, and changes nothing.
    pub fragment: Option<Fragment>,
    /// Tags and time of the publication. Its data is replaced by that of the message.
    pub publication: Publication,
    /// Subscribers that negotiated deltas may get a delta.
    pub delta: bool,
    pub limits: AppendLimits,
}

/// A piece of text, and what becomes of its message.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Fragment {
    pub text: String,
    /// Length of the text before this fragment, in bytes of UTF-8; `None` appends wherever the text ends.
    pub at: Option<u64>,
    /// The name of the field that grows; "" when the message is a string.
    pub field: String,
    /// JSON up to the text: an object with its other fields and the name of the field, or nothing, and a quote.
    pub head: String,
    /// A message that exists gets `head`, too; else it keeps its own.
    pub replaces_head: bool,
    /// Nothing is appended after this fragment.
    pub is_final: bool,
}

/// Limits of growing messages (`append_interval`, `append_message_size_max`, `append_messages_max`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AppendLimits {
    /// Shortest time between two publications of a message that is not final.
    pub interval: Duration,
    /// Bytes of a message: of its text in UTF-8 and of its other fields.
    pub message_bytes_max: usize,
    /// Messages of a channel that are not final.
    pub messages_max: usize,
}

/// The state of a message after an accepted fragment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Appended {
    /// Position of its newest publication, which may lack text that waits.
    pub position: Position,
    /// Bytes of its text.
    pub length: u64,
    /// The message had all of the fragment.
    pub is_duplicate: bool,
    /// The text began to wait: the caller has it published after this time, by an [`Append`] without a fragment.
    pub publish_after: Option<Duration>,
}

/// The reason for which a fragment changed nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AppendError {
    /// The message is final; its text has this length.
    Final(u64),
    /// `at` is not the length of the stored text, or the text differs before it. The value is the length of the stored text, 0 for an unknown
    /// message.
    At(u64),
    /// The message is a string, or grows in another field.
    OtherField,
    /// The message would be larger than [`AppendLimits::message_bytes_max`].
    TooLong,
    /// The channel has [`AppendLimits::messages_max`] messages that are not final.
    TooMany,
}

/// A message as the memory engine stores it.
#[derive(Debug)]
pub(crate) struct GrowingMessage {
    text: String,
    head: String,
    field: String,
    pub(crate) is_final: bool,
    /// Text was appended since the last publication.
    waits: bool,
    pub(crate) position: Position,
    published_at: Instant,
    /// Time at which it is forgotten.
    pub(crate) until: Option<Instant>,
}

impl GrowingMessage {
    /// A message without text.
    pub(crate) fn new(fragment: &Fragment, now: Instant) -> Self {
        Self {
            text: String::new(),
            head: fragment.head.clone(),
            field: fragment.field.clone(),
            is_final: false,
            waits: true,
            position: Position::default(),
            published_at: now,
            until: None,
        }
    }

    /// Appends what the text lacks of a fragment. Returns whether it had all of it.
    ///
    /// # Errors
    /// The refusal; the message is as before.
    pub(crate) fn append(
        &mut self,
        fragment: &Fragment,
        limits: &AppendLimits,
    ) -> Result<bool, AppendError> {
        if self.field != fragment.field {
            return Err(AppendError::OtherField);
        }
        let missing = self.missing(fragment).ok_or(AppendError::At(self.length()))?;
        let is_duplicate = missing.is_empty() && !fragment.text.is_empty();
        if self.is_final {
            return if missing.is_empty() {
                Ok(true)
            } else {
                Err(AppendError::Final(self.length()))
            };
        }
        let has_new_head = fragment.replaces_head && self.head != fragment.head;
        let head = if has_new_head { fragment.head.len() } else { self.head.len() };
        if self.text.len() + missing.len() + head > limits.message_bytes_max {
            return Err(AppendError::TooLong);
        }
        self.text.push_str(missing);
        if has_new_head {
            self.head.clone_from(&fragment.head);
        }
        self.is_final = fragment.is_final;
        self.waits |= !missing.is_empty() || has_new_head || fragment.is_final;
        Ok(is_duplicate)
    }

    /// The part of a fragment behind the end of the text; `None` if it begins there too late, or differs before.
    fn missing<'a>(&self, fragment: &'a Fragment) -> Option<&'a str> {
        let Some(at) = fragment.at else { return Some(&fragment.text) };
        let rest = self.text.as_bytes().get(usize::try_from(at).ok()?..)?;
        let known = rest.len().min(fragment.text.len());
        let (same, _) = fragment.text.as_bytes().split_at(known);
        if same == &rest[..known] { fragment.text.get(known..) } else { None }
    }

    /// Bytes of the text.
    pub(crate) fn length(&self) -> u64 {
        self.text.len() as u64
    }

    /// Delay before its text is published: zero publishes now, `None` means that no text waits.
    pub(crate) fn due_after(&self, limits: &AppendLimits, now: Instant) -> Option<Duration> {
        let passed = now.saturating_duration_since(self.published_at);
        let is_due = self.is_final || self.position == Position::default();
        let rest = if is_due { Duration::ZERO } else { limits.interval.saturating_sub(passed) };
        self.waits.then_some(rest)
    }

    /// The data of its next publication.
    pub(crate) fn publish(&mut self, now: Instant) -> Bytes {
        (self.waits, self.published_at) = (false, now);
        let text = json_string(&self.text);
        let tail: &[u8] = if self.field.is_empty() { b"" } else { b"}" };
        [self.head.as_bytes(), &text[1..], tail].concat().into()
    }

    /// Its record in a snapshot.
    pub(crate) fn save(&self, key: &str, clock: &SnapshotClock) -> GrowingRecord {
        GrowingRecord {
            key: key.to_owned(),
            text: self.text.clone(),
            head: self.head.clone(),
            field: self.field.clone(),
            is_final: self.is_final,
            waits: self.waits,
            offset: self.position.offset,
            published_at: clock.unix_ms(self.published_at),
            until: self.until.map(|until| clock.unix_ms(until)),
        }
    }

    /// The message of a record in a stream of `epoch`, with its key.
    pub(crate) fn restore(
        record: GrowingRecord,
        epoch: Epoch,
        clock: &SnapshotClock,
    ) -> (Box<str>, Self) {
        let offset = record.offset;
        let is_published = offset > 0;
        let message = Self {
            text: record.text,
            head: record.head,
            field: record.field,
            is_final: record.is_final,
            waits: record.waits,
            position: if is_published { Position { offset, epoch } } else { Position::default() },
            published_at: clock.instant(record.published_at),
            until: record.until.map(|until| clock.instant(until)),
        };
        (record.key.into(), message)
    }

    /// Approximate memory.
    pub(crate) fn bytes(&self) -> usize {
        size_of::<Self>() + self.text.capacity() + self.head.len() + self.field.len()
    }
}

impl Default for AppendLimits {
    fn default() -> Self {
        Self { interval: Duration::from_millis(40), message_bytes_max: 64 << 10, messages_max: 100 }
    }
}

/// How long a final message is remembered at most, so that repeated fragments are recognised.
pub const FINAL_TTL: Duration = Duration::from_secs(300);

#[cfg(test)]
mod tests;
