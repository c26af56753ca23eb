//! Growing messages of a stream, and its offsets, which then have gaps in history.
//! In: fragments, offsets of stored publications → out: messages that are due, which publication one replaces.
//! Uses: the rules of `growing.rs`. Never: payloads of publications, locks.
//! Changed here: how many messages are remembered and for how long. `stream.rs` stores their publications.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use hashbrown::HashMap;

use crate::growing::{FINAL_TTL, GrowingMessage};
use crate::saved::{GrowthRecord, SnapshotClock};
use crate::{Append, AppendError, Appended, Fragment, Position, Retention};

/// Growing messages of one stream. A stream without any has none of this.
#[derive(Debug, Default)]
pub(super) struct Growth {
    /// Offsets of the stored publications, oldest first.
    pub(super) offsets: VecDeque<u64>,
    /// The newest offset that is not stored for another reason than a newer publication of its message.
    pub(super) dropped: u64,
    messages: HashMap<Box<str>, GrowingMessage>,
    /// Messages that are not final.
    open: usize,
    /// Keys of final messages, oldest first.
    finals: VecDeque<Box<str>>,
    /// Approximate memory of the messages.
    pub(super) bytes: usize,
}

impl Growth {
    /// The growth of a stream with `count` publications up to the offset `top`.
    pub(super) fn new(top: u64, count: usize) -> Self {
        let dropped = top - count as u64;
        Self { offsets: (dropped + 1..=top).collect(), dropped, ..Self::default() }
    }

    /// No publication is stored any more.
    pub(super) fn drop_all(&mut self, top: u64) {
        self.offsets.clear();
        self.dropped = top;
    }

    /// Applies a change. Returns the message if it is due to be published now.
    ///
    /// # Errors
    /// The refusal; nothing has changed.
    pub(super) fn apply(
        &mut self,
        append: &Append,
        retention: Retention,
        now: Instant,
    ) -> Result<(Appended, Option<&mut GrowingMessage>), AppendError> {
        let Append { key, fragment, limits, .. } = append;
        self.forget(key, now);
        let before = self.messages.get(&**key).and_then(|message| message.due_after(limits, now));
        let mut is_duplicate = false;
        if let Some(fragment) = fragment {
            is_duplicate = self.append(append, fragment, retention, now)?;
        }
        let Some(message) = self.messages.get_mut(&**key) else {
            return Ok((Appended::default(), None));
        };
        let due = match message.due_after(limits, now) {
            Some(_) if fragment.is_none() => Some(Default::default()),
            due => due,
        };
        let mut appended = Appended {
            position: message.position,
            length: message.length(),
            is_duplicate,
            publish_after: None,
        };
        match due {
            Some(rest) if rest.is_zero() => return Ok((appended, Some(message))),
            Some(rest) if before.is_none() => appended.publish_after = Some(rest),
            _ => {}
        }
        Ok((appended, None))
    }

    /// Its record in a snapshot.
    pub(super) fn save(&self, clock: &SnapshotClock) -> GrowthRecord {
        let messages = self.messages.iter().map(|(key, message)| message.save(key, clock));
        GrowthRecord {
            offsets: self.offsets.iter().copied().collect(),
            dropped: self.dropped,
            messages: messages.collect(),
            finals: self.finals.iter().map(|key| key.to_string()).collect(),
        }
    }

    /// That of a record, in a stream with `count` publications up to `top`; `None` if the record contradicts itself or that.
    pub(super) fn restore(
        record: GrowthRecord,
        top: Position,
        count: usize,
        clock: &SnapshotClock,
    ) -> Option<Self> {
        let is_ascending = record.offsets.is_sorted_by(|before, after| before < after);
        let newest = record.offsets.last().copied().unwrap_or(record.dropped);
        if record.offsets.len() != count || !is_ascending || newest > top.offset {
            return None;
        }
        let mut growth = Self {
            offsets: record.offsets.into(),
            dropped: record.dropped,
            finals: record.finals.into_iter().map(String::into_boxed_str).collect(),
            ..Self::default()
        };
        for message in record.messages {
            let (key, message) = GrowingMessage::restore(message, top.epoch, clock);
            growth.bytes += message.bytes();
            growth.open += usize::from(!message.is_final);
            if growth.messages.insert(key, message).is_some() {
                return None;
            }
        }
        Some(growth)
    }

    fn append(
        &mut self,
        Append { key, limits, .. }: &Append,
        fragment: &Fragment,
        retention: Retention,
        now: Instant,
    ) -> Result<bool, AppendError> {
        let mut bytes = 0;
        let mut was_final = false;
        let mut new = None;
        let message = match self.messages.get_mut(&**key) {
            Some(message) => {
                (bytes, was_final) = (message.bytes(), message.is_final);
                message
            }
            None => new.insert(GrowingMessage::new(fragment, now)),
        };
        let is_duplicate = message.append(fragment, limits)?;
        let ttl = if message.is_final { retention.ttl.min(FINAL_TTL) } else { retention.ttl };
        if !was_final {
            message.until = deadline(ttl, now);
        }
        let bytes_after = message.bytes();
        let ends = message.is_final && !was_final;
        if let Some(message) = new {
            self.make_room(limits.messages_max, now)?;
            self.messages.insert(key.as_str().into(), message);
            self.open += 1;
        }
        self.bytes = self.bytes + bytes_after - bytes;
        if ends {
            self.open -= 1;
            self.finals.push_back(key.as_str().into());
        }
        Ok(is_duplicate)
    }

    /// Forgets old messages.
    ///
    /// # Errors
    /// There are `max` messages that are not final.
    fn make_room(&mut self, max: usize, now: Instant) -> Result<(), AppendError> {
        while let Some(oldest) = self.finals.front()
            && (self.finals.len() >= max || self.is_over(oldest, now))
        {
            let oldest = self.finals.pop_front().expect("it has a front");
            if self.messages.get(&oldest).is_some_and(|message| message.is_final) {
                self.remove(&oldest);
            }
        }
        if self.open >= max {
            let is_over = |until: Instant| until <= now;
            let over = (self.messages.iter()).filter(|(_, one)| one.until.is_some_and(is_over));
            for key in over.map(|(key, _)| key.clone()).collect::<Vec<_>>() {
                self.remove(&key);
            }
        }
        if self.open >= max { Err(AppendError::TooMany) } else { Ok(()) }
    }

    /// Removes a message that has expired.
    fn forget(&mut self, key: &str, now: Instant) {
        if self.is_over(key, now) {
            self.remove(key);
        }
    }

    fn is_over(&self, key: &str, now: Instant) -> bool {
        let until = self.messages.get(key).and_then(|message| message.until);
        until.is_some_and(|until| until <= now)
    }

    fn remove(&mut self, key: &str) {
        if let Some(message) = self.messages.remove(key) {
            self.bytes -= message.bytes();
            self.open -= usize::from(!message.is_final);
        }
    }
}

/// `None` for a duration of zero, and for one that overflows.
pub(super) fn deadline(ttl: Duration, now: Instant) -> Option<Instant> {
    if ttl.is_zero() { None } else { now.checked_add(ttl) }
}
