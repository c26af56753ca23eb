//! The stream of one channel (protocol §9): the newest publications, their offsets, the epoch, and when they expire.
//! In: publications with a retention, queries, the time → out: positions, copies of stored publications.
//! Uses: a deque. Never: locks, other channels, delivery.
//! Changed here: how a publication is stored and read. The set of streams lives in `streams.rs`.

use std::collections::VecDeque;
use std::time::Instant;

use bytes::Bytes;
use fanwire_protocol::Publication;

use super::growth::{Growth, deadline};
use crate::saved::{OFFSET_MAX, SnapshotClock, Stored, StreamRecord};
use crate::{
    Append, AppendError, Appended, Delta, Epoch, Position, PublishOptions, Query, Retention,
    StreamSlice,
};

/// A stream in one epoch. Its stored publications have consecutive offsets up to `top`, so none stores its own, until a
/// message grows.
#[derive(Debug)]
pub(super) struct Stream {
    /// Oldest first; the last one has the offset `top`.
    stored: VecDeque<Stored>,
    top: Position,
    /// The version of the last publication with one; 0 = there was none.
    version: u64,
    version_epoch: Box<str>,
    /// Time at which the stored publications expire.
    stored_until: Option<Instant>,
    /// Time at which offset and epoch expire; `None` = never.
    until: Option<Instant>,
    /// Approximate memory of `stored`.
    bytes: usize,
    /// Growing messages; `None` in a stream that never had any.
    growth: Option<Box<Growth>>,
}

impl Stream {
    /// An empty stream.
    pub(super) fn new(epoch: Epoch) -> Self {
        Self {
            stored: VecDeque::new(),
            top: Position { offset: 0, epoch },
            version: 0,
            version_epoch: Box::default(),
            stored_until: None,
            until: None,
            bytes: 0,
            growth: None,
        }
    }

    pub(super) fn top(&self) -> Position {
        self.top
    }

    /// Approximate memory of its stored publications and growing messages.
    pub(super) fn bytes(&self) -> usize {
        self.bytes + self.growth.as_ref().map_or(0, |growth| growth.bytes)
    }

    /// Whether no publication is stored now.
    pub(super) fn is_empty(&self) -> bool {
        self.stored.is_empty()
    }

    /// Whether offset and epoch have expired too: the next publish or read starts a new stream.
    pub(super) fn is_over(&self, now: Instant) -> bool {
        self.until.is_some_and(|until| until <= now)
    }

    /// Drops the stored publications if they have expired.
    pub(super) fn expire(&mut self, now: Instant) {
        if self.stored_until.is_some_and(|until| until <= now) {
            self.clear();
        }
    }

    /// Drops the stored publications and growing messages. Returns false when no publication was stored.
    pub(super) fn clear(&mut self) -> bool {
        self.growth = None;
        self.clear_history()
    }

    /// Drops the stored publications. Returns false when there were none.
    pub(super) fn clear_history(&mut self) -> bool {
        let had_some = !self.stored.is_empty();
        self.stored = VecDeque::new();
        self.stored_until = None;
        self.bytes = 0;
        if let Some(growth) = &mut self.growth {
            growth.drop_all(self.top.offset);
        }
        had_some
    }

    /// Applies a change of a growing message. Returns its publication if one is due now; it is stored then, in place of the
    /// one before it.
    ///
    /// # Errors
    /// The refusal; nothing has changed.
    pub(super) fn grow(
        &mut self,
        append: &Append,
        retention: Retention,
        now: Instant,
    ) -> Result<(Appended, Option<(Publication, Delta)>), AppendError> {
        let top = self.top.offset;
        let count = self.stored.len();
        let mut growth = self.growth.take().unwrap_or_else(|| Box::new(Growth::new(top, count)));
        let applied = growth.apply(append, retention, now).map(|(mut appended, due)| {
            let publication = due.map(|message| {
                let data = message.publish(now);
                let replaced = message.position.offset;
                appended.position = Position { offset: top + 1, ..self.top };
                message.position = appended.position;
                (Publication { data, offset: top + 1, ..append.publication.clone() }, replaced)
            });
            (appended, publication)
        });
        self.growth = Some(growth);
        let (appended, publication) = applied?;
        let publication = publication.map(|(publication, replaced)| {
            let delta = Delta::candidate(append.delta, self.newest());
            self.remove(replaced);
            self.append(&publication, &PublishOptions::default(), retention, now);
            (publication, delta)
        });
        Ok((appended, publication))
    }

    /// Removes a stored publication that a newer one of its message replaces.
    fn remove(&mut self, offset: u64) {
        let Some(growth) = &mut self.growth else { return };
        if let Ok(index) = growth.offsets.binary_search(&offset) {
            growth.offsets.remove(index);
            self.bytes -= self.stored.remove(index).map_or(0, |stored| stored.bytes());
        }
    }

    /// Extends the lifetime of offset and epoch, at each publish and read.
    pub(super) fn touch(&mut self, retention: Retention, now: Instant) {
        self.until = deadline(retention.meta_ttl, now);
    }

    /// Whether the stream has the same or a newer version (server API §6.2).
    pub(super) fn supersedes(&self, options: &PublishOptions) -> bool {
        let comparable =
            options.version_epoch.is_empty() || *options.version_epoch == *self.version_epoch;
        options.version > 0 && comparable && options.version <= self.version
    }

    /// The payload of the newest publication, if it is still stored.
    pub(super) fn newest(&self) -> Option<&Bytes> {
        self.stored.back().map(|stored| &stored.data)
    }

    /// Stores a publication and returns its position. Does not copy the payload.
    pub(super) fn append(
        &mut self,
        publication: &Publication,
        options: &PublishOptions,
        retention: Retention,
        now: Instant,
    ) -> Position {
        if options.version > 0 {
            self.version = options.version;
            self.version_epoch = options.version_epoch.as_str().into();
        }
        let stored = Stored::of(publication);
        self.bytes += stored.bytes();
        self.stored.push_back(stored);
        self.top.offset += 1;
        if let Some(growth) = &mut self.growth {
            growth.offsets.push_back(self.top.offset);
        }
        while self.stored.len() > retention.size {
            let oldest = self.stored.pop_front().expect("it is not empty");
            self.bytes -= oldest.bytes();
            if let Some(growth) = &mut self.growth {
                growth.dropped = growth.offsets.pop_front().expect("one for each publication");
            }
        }
        self.stored_until = deadline(retention.ttl, now);
        self.top
    }

    /// Its record in a snapshot. Payloads are not copied.
    pub(super) fn save(&self, channel: &str, clock: &SnapshotClock) -> StreamRecord {
        let unix_ms = |time| clock.unix_ms(time);
        StreamRecord {
            channel: channel.to_owned(),
            epoch: self.top.epoch.as_str().to_owned(),
            offset: self.top.offset,
            version: self.version,
            version_epoch: self.version_epoch.to_string(),
            stored_until: self.stored_until.map(unix_ms),
            until: self.until.map(unix_ms),
            stored: self.stored.iter().cloned().collect(),
            growth: self.growth.as_ref().map(|growth| growth.save(clock)),
        }
    }

    /// The stream of a record; `None` if the record contradicts itself.
    pub(super) fn restore(record: StreamRecord, clock: &SnapshotClock) -> Option<Self> {
        let top = Position { offset: record.offset, epoch: Epoch::parse(&record.epoch)? };
        let count = record.stored.len();
        let growth = match record.growth {
            Some(growth) => Some(Box::new(Growth::restore(growth, top, count, clock)?)),
            None => None,
        };
        let is_offset = (1..=OFFSET_MAX).contains(&top.offset);
        if top.epoch == Epoch::NONE || !is_offset || count as u64 > top.offset {
            return None;
        }
        Some(Self {
            bytes: record.stored.iter().map(Stored::bytes).sum(),
            stored: record.stored.into(),
            top,
            version: record.version,
            version_epoch: record.version_epoch.into(),
            stored_until: record.stored_until.map(|until| clock.instant(until)),
            until: record.until.map(|until| clock.instant(until)),
            growth,
        })
    }

    /// Reads publications. Call [`expire`](Self::expire) first.
    pub(super) fn read(&self, query: Query) -> StreamSlice {
        let count = query.limit.unwrap_or(usize::MAX);
        let first = self.top.offset + 1 - self.stored.len() as u64;
        let growth = self.growth.as_deref();
        // The number of stored publications with an offset up to `offset`.
        let up_to = |offset: u64| offset.saturating_add(1).saturating_sub(first);
        let index = |offset: u64| match growth {
            Some(growth) => growth.offsets.partition_point(|stored| *stored <= offset),
            None => up_to(offset).min(self.stored.len() as u64) as usize,
        };
        let offset = |index| growth.map_or(first + index as u64, |growth| growth.offsets[index]);
        let publication = |index: usize| self.stored[index].publication(offset(index));
        let publications = if query.reverse {
            let before =
                query.since.map_or(self.stored.len(), |since| index(since.saturating_sub(1)));
            (0..before).rev().take(count).map(publication).collect()
        } else {
            let after = query.since.map_or(0, index);
            (after..self.stored.len()).take(count).map(publication).collect()
        };
        let dropped = growth.map(|growth| growth.dropped);
        StreamSlice { publications, top: self.top, dropped, ..StreamSlice::default() }
    }
}
