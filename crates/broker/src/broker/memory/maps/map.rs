//! One map channel in memory: its entries, their expiry, and the stream of the newest changes.
//! In: changes with a retention, queries, the time → out: what is to be delivered, or a suppression or refusal; pages.
//! Uses: ordered trees and a deque. Never: locks, other channels, delivery.
//! Changed here: the order of checks, what is stored. The set of channels lives in `channels.rs`.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::ops::Bound;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use fanwire_protocol::Publication;

use crate::broker::memory::growth::deadline;
use crate::map::{
    ChangesQuery, KeyMode, MapError, MapOutcome, MapPublish, MapRemoval, MapRetention,
    MapSuppression, PositionLost, StatePage, StateQuery,
};
use crate::saved::{
    ChangeRecord, EntryRecord, MapRecord, MapValue, OFFSET_MAX, RetentionRecord, SnapshotClock,
};
use crate::{Delta, Epoch, Position, Retention, StreamSlice};

/// The entries and the stream of a channel. Its changes have consecutive offsets up to `top`, so none stores its own.
#[derive(Debug)]
pub(in crate::broker::memory) struct Map {
    entries: BTreeMap<Arc<str>, MapEntry>,
    /// Keys of the entries that expire.
    deadlines: BTreeSet<(Instant, Arc<str>)>,
    /// Oldest first; the last one has the offset `top`.
    changes: VecDeque<Change>,
    /// Empty in an ephemeral channel.
    top: Position,
    /// Time at which the changes expire.
    changes_until: Option<Instant>,
    /// Time at which offset and epoch expire; `None` = never.
    until: Option<Instant>,
    /// How the channel was kept at the last call, for changes that expiry makes.
    retention: MapRetention,
    /// An instant and its time in Unix milliseconds, from the last change that had one.
    clock: Option<(Instant, i64)>,
    bytes: MapBytes,
}

/// Approximate memory. A payload that is in an entry and in a change counts twice.
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::broker::memory) struct MapBytes {
    pub(in crate::broker::memory) entries: usize,
    pub(in crate::broker::memory) changes: usize,
}

#[derive(Debug)]
struct MapEntry {
    value: Arc<MapValue>,
    /// Offset of its last change.
    offset: u64,
    /// 0 = it has none.
    version: u64,
    version_epoch: Box<str>,
    until: Option<Instant>,
}

#[derive(Debug)]
struct Change {
    key: Arc<str>,
    value: Arc<MapValue>,
    removed: bool,
}

/// The effect of a change that was not refused.
#[derive(Debug)]
pub(super) enum Applied {
    /// The publication to deliver, and the base for its delta.
    Changed(Box<Publication>, Delta),
    Suppressed(MapOutcome),
}

impl Map {
    /// An empty map, which gets its epoch from the first call of [`begin`](Self::begin).
    pub(super) fn new() -> Self {
        Self {
            entries: BTreeMap::new(),
            deadlines: BTreeSet::new(),
            changes: VecDeque::new(),
            top: Position::default(),
            changes_until: None,
            until: None,
            retention: MapRetention::default(),
            clock: None,
            bytes: MapBytes::default(),
        }
    }

    pub(super) fn top(&self) -> Position {
        self.top
    }

    pub(super) fn bytes(&self) -> MapBytes {
        self.bytes
    }

    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether nothing would be lost without it.
    pub(super) fn is_blank(&self) -> bool {
        self.entries.is_empty() && self.top.offset == 0
    }

    /// Whether offset and epoch have expired. Entries keep them.
    pub(super) fn is_over(&self, now: Instant) -> bool {
        self.entries.is_empty() && self.until.is_some_and(|until| until <= now)
    }

    /// The first time at which something expires.
    pub(super) fn next_deadline(&self) -> Option<Instant> {
        let entry = self.deadlines.first().map(|(until, _)| *until);
        let until = self.until.filter(|_| self.entries.is_empty());
        [entry, self.changes_until, until].into_iter().flatten().min()
    }

    /// Prepares for a call. A channel that had no stream, or has none any more because its mode has changed, takes `epoch`.
    pub(super) fn begin(&mut self, retention: MapRetention, epoch: Epoch, now: Instant) {
        self.expire_changes(now);
        if retention.has_stream() != (self.top.epoch != Epoch::NONE) {
            self.drop_changes();
            self.top = Position { offset: 0, epoch };
            self.entries.values_mut().for_each(|entry| entry.offset = 0);
        }
        self.retention = retention;
        self.until = deadline(retention.stream.meta_ttl, now).filter(|_| retention.has_stream());
    }

    /// Drops the changes if they have expired.
    pub(super) fn expire_changes(&mut self, now: Instant) {
        if self.changes_until.is_some_and(|until| until <= now) {
            self.drop_changes();
        }
    }

    /// Drops the changes; entries, offset and epoch stay.
    pub(super) fn drop_changes(&mut self) {
        self.changes = VecDeque::new();
        self.changes_until = None;
        self.bytes.changes = 0;
    }

    /// Sets a key. `free` is how much the entries of all channels may still grow, in bytes.
    ///
    /// # Errors
    /// The refusal; nothing has changed.
    pub(super) fn publish(
        &mut self,
        publish: MapPublish,
        free: usize,
        now: Instant,
    ) -> Result<Applied, MapError> {
        let needs_stream = publish.expected.is_some() || publish.version > 0;
        if needs_stream && !self.retention.has_stream() {
            return Err(MapError::NoStream);
        }
        if let Some(outcome) = self.suppression(&publish) {
            let refreshes = publish.key_mode == KeyMode::IfNew { refreshes: true };
            if refreshes && outcome.suppression == Some(MapSuppression::KeyExists) {
                self.refresh(&publish.publication.key, now);
            }
            return Ok(Applied::Suppressed(outcome));
        }
        let value = Arc::new(MapValue::of(&publish.publication));
        self.check_limits(&publish.publication.key, &value, free)?;
        Ok(self.set(publish, value, now))
    }

    /// Removes a key.
    ///
    /// # Errors
    /// The refusal; nothing has changed.
    pub(super) fn remove(
        &mut self,
        removal: MapRemoval,
        now: Instant,
    ) -> Result<Applied, MapError> {
        if removal.expected.is_some() && !self.retention.has_stream() {
            return Err(MapError::NoStream);
        }
        let publication = removal.publication;
        if let Some(outcome) = self.mismatch(&publication.key, removal.expected) {
            return Ok(Applied::Suppressed(outcome));
        }
        self.set_clock(publication.time, now);
        Ok(match self.take(publication, now) {
            Some(removed) => Applied::Changed(Box::new(removed), Delta::Off),
            None => Applied::Suppressed(self.suppressed(MapSuppression::KeyNotFound)),
        })
    }

    /// Removes the first entry whose time is over.
    pub(super) fn expire_entry(&mut self, now: Instant) -> Option<Publication> {
        let (until, key) = self.deadlines.first()?;
        if *until > now {
            return None;
        }
        let time = self.time(now);
        let key = key.to_string();
        self.take(Publication { key, time, ..Publication::default() }, now)
    }

    /// Its record in a snapshot. Payloads are not copied.
    pub(super) fn save(&self, channel: &str, clock: &SnapshotClock) -> MapRecord {
        MapRecord {
            channel: channel.to_owned(),
            epoch: self.top.epoch.as_str().to_owned(),
            offset: self.top.offset,
            changes_until: self.changes_until.map(|until| clock.unix_ms(until)),
            until: self.until.map(|until| clock.unix_ms(until)),
            retention: self.retention.into(),
            entries: self.entries.iter().map(|(key, entry)| entry.save(key, clock)).collect(),
            changes: self.changes.iter().map(Change::save).collect(),
        }
    }

    /// The map of a record; `None` if the record contradicts itself.
    pub(in crate::broker::memory) fn restore(
        record: MapRecord,
        clock: &SnapshotClock,
    ) -> Option<Self> {
        let top = Position { offset: record.offset, epoch: Epoch::parse(&record.epoch)? };
        let retention = MapRetention::from(record.retention);
        let has_stream = top.epoch != Epoch::NONE;
        let is_offset = (record.changes.len() as u64..=OFFSET_MAX).contains(&top.offset);
        if !is_offset || has_stream != retention.has_stream() || (!has_stream && top.offset > 0) {
            return None;
        }
        let mut map = Self {
            top,
            retention,
            changes_until: record.changes_until.map(|until| clock.instant(until)),
            until: record.until.map(|until| clock.instant(until)),
            clock: Some((clock.now, i64::try_from(clock.unix_ms).ok()?)),
            ..Self::new()
        };
        for entry in record.entries {
            let (key, entry) = MapEntry::restore(entry, clock);
            map.bytes.entries += entry.bytes(&key);
            map.move_deadline(&key, None, entry.until);
            if entry.offset > top.offset || map.entries.insert(key, entry).is_some() {
                return None;
            }
        }
        map.changes = record.changes.into_iter().map(Change::restore).collect();
        map.bytes.changes = map.changes.iter().map(Change::bytes).sum();
        Some(map)
    }

    /// Returns a page of entries in the order of their keys.
    pub(super) fn read_state(&self, query: &StateQuery) -> Result<StatePage, PositionLost> {
        if query.epoch != Epoch::NONE && query.epoch != self.top.epoch {
            return Err(PositionLost);
        }
        let mut page = StatePage { top: self.top, ..StatePage::default() };
        if let Some(key) = &query.key {
            page.entries.extend(self.publication(key));
            return Ok(page);
        }
        let limit = query.limit.unwrap_or(usize::MAX);
        let after = match &*query.cursor {
            "" => Bound::Unbounded,
            cursor => Bound::Excluded(cursor),
        };
        let mut rest = self.entries.range::<str, _>((after, Bound::Unbounded));
        let entries = rest.by_ref().take(limit);
        page.entries.extend(entries.map(|(key, entry)| entry.publication(key)));
        if rest.next().is_some() {
            page.cursor = page.entries.last().map(|last| last.key.clone()).unwrap_or_default();
        }
        Ok(page)
    }

    /// Returns changes in the order of the query.
    pub(super) fn read_stream(&self, query: ChangesQuery) -> Result<StreamSlice, PositionLost> {
        let oldest = self.top.offset + 1 - self.changes.len() as u64;
        if query.is_lost(self.top, oldest) {
            return Err(PositionLost);
        }
        let limit = query.limit.unwrap_or(usize::MAX);
        let count = self.changes.len();
        // The number of stored changes with an offset up to `offset`.
        let up_to = |offset: u64| {
            let held = offset.saturating_add(1).saturating_sub(oldest);
            usize::try_from(held).unwrap_or(usize::MAX).min(count)
        };
        let since = query.since.map(|since| since.offset);
        let change = |index: usize| self.changes[index].publication(oldest + index as u64);
        let publications = if query.reverse {
            let before = since.map_or(count, |since| up_to(since.saturating_sub(1)));
            (0..before).rev().take(limit).map(change).collect()
        } else {
            let after = since.map_or(0, up_to);
            (after..count).take(limit).map(change).collect()
        };
        Ok(StreamSlice { publications, top: self.top, ..StreamSlice::default() })
    }

    /// The outcome of a publish that a check suppresses.
    fn suppression(&self, publish: &MapPublish) -> Option<MapOutcome> {
        let key = &*publish.publication.key;
        let entry = self.entries.get(key);
        if entry.is_some_and(|entry| entry.supersedes(publish)) {
            return Some(self.suppressed(MapSuppression::Version));
        }
        match (publish.key_mode, entry) {
            (KeyMode::IfNew { .. }, Some(_)) => {
                return Some(self.suppressed(MapSuppression::KeyExists));
            }
            (KeyMode::IfExists, None) => {
                return Some(self.suppressed(MapSuppression::KeyNotFound));
            }
            _ => {}
        }
        self.mismatch(key, publish.expected)
    }

    /// The outcome of a change whose expected position is not that of the entry.
    fn mismatch(&self, key: &str, expected: Option<Position>) -> Option<MapOutcome> {
        let expected = expected?;
        let entry = self.publication(key);
        let offset = entry.as_ref().map_or(0, |entry| entry.offset);
        if entry.is_some() && expected == (Position { offset, ..self.top }) {
            return None;
        }
        Some(MapOutcome {
            position: Position { offset, ..self.top },
            suppression: Some(MapSuppression::PositionMismatch(entry.map(Box::new))),
        })
    }

    fn suppressed(&self, suppression: MapSuppression) -> MapOutcome {
        MapOutcome { position: self.top, suppression: Some(suppression) }
    }

    /// Starts the lifetimes of an entry and of the stream again. [`begin`](Self::begin) did so for offset and epoch.
    fn refresh(&mut self, key: &str, now: Instant) {
        let until = deadline(self.retention.key_ttl, now);
        if let Some((key, entry)) = self.entries.remove_entry(key) {
            self.move_deadline(&key, entry.until, until);
            self.entries.insert(key, MapEntry { until, ..entry });
        }
        if !self.changes.is_empty() {
            self.changes_until = deadline(self.retention.stream.ttl, now);
        }
    }

    fn check_limits(&self, key: &str, value: &MapValue, free: usize) -> Result<(), MapError> {
        let before = self.entries.get(key).map(|entry| entry.bytes(key));
        if before.is_none() && self.entries.len() >= self.retention.entries_max {
            return Err(MapError::TooManyEntries);
        }
        let after = ENTRY_BYTES + key.len() + value.bytes();
        let grown = after.saturating_sub(before.unwrap_or(0));
        if grown > 0 && self.bytes.entries + grown > self.retention.bytes_max {
            return Err(MapError::TooLarge);
        }
        if grown > free { Err(MapError::MemoryFull) } else { Ok(()) }
    }

    fn set(&mut self, publish: MapPublish, value: Arc<MapValue>, now: Instant) -> Applied {
        let MapPublish { mut publication, version, version_epoch, delta, .. } = publish;
        self.set_clock(publication.time, now);
        let until = deadline(self.retention.key_ttl, now);
        let before = self.entries.remove_entry(&*publication.key);
        let base = before.as_ref().map(|(_, entry)| entry.value.data().clone());
        let delta = Delta::candidate(delta, base.as_ref());
        let mut entry = MapEntry {
            value: Arc::clone(&value),
            offset: 0,
            version,
            version_epoch: version_epoch.into(),
            until,
        };
        let key = match before {
            Some((key, before)) => {
                self.bytes.entries -= before.bytes(&key);
                self.move_deadline(&key, before.until, until);
                if version == 0 {
                    entry.version = before.version;
                    entry.version_epoch = before.version_epoch;
                }
                key
            }
            None => {
                let key = Arc::from(&*publication.key);
                self.move_deadline(&key, None, until);
                key
            }
        };
        self.bytes.entries += entry.bytes(&key);
        entry.offset = self.append(Change { key: Arc::clone(&key), value, removed: false }, now);
        publication.offset = entry.offset;
        self.entries.insert(key, entry);
        Applied::Changed(Box::new(publication), delta)
    }

    /// Removes the entry with the key of `removal`, which has the time, and tags if they are others than those of the entry.
    fn take(&mut self, mut removal: Publication, now: Instant) -> Option<Publication> {
        let (key, entry) = self.entries.remove_entry(&*removal.key)?;
        self.bytes.entries -= entry.bytes(&key);
        self.move_deadline(&key, entry.until, None);
        if removal.tags.is_empty() {
            removal.tags.clone_from(entry.value.tags());
        }
        removal.data = Bytes::new();
        removal.removed = true;
        let value = Arc::new(MapValue::of(&removal));
        removal.offset = self.append(Change { key, value, removed: true }, now);
        Some(removal)
    }

    /// Adds a change to the stream, if there is one. Returns its offset.
    fn append(&mut self, change: Change, now: Instant) -> u64 {
        if !self.retention.has_stream() {
            return 0;
        }
        self.top.offset += 1;
        self.bytes.changes += change.bytes();
        self.changes.push_back(change);
        while self.changes.len() > self.retention.stream.size || self.is_too_large() {
            let Some(oldest) = self.changes.pop_front() else { break };
            self.bytes.changes -= oldest.bytes();
        }
        self.changes_until = deadline(self.retention.stream.ttl, now);
        self.top.offset
    }

    /// Whether the stream has to give way to the entries.
    fn is_too_large(&self) -> bool {
        self.bytes.entries + self.bytes.changes > self.retention.bytes_max
    }

    fn move_deadline(&mut self, key: &Arc<str>, from: Option<Instant>, to: Option<Instant>) {
        if let Some(from) = from {
            self.deadlines.remove(&(from, Arc::clone(key)));
        }
        if let Some(to) = to {
            self.deadlines.insert((to, Arc::clone(key)));
        }
    }

    fn publication(&self, key: &str) -> Option<Publication> {
        self.entries.get(key).map(|entry| entry.publication(key))
    }

    fn set_clock(&mut self, unix_ms: i64, now: Instant) {
        if unix_ms > 0 {
            self.clock = Some((now, unix_ms));
        }
    }

    /// Unix milliseconds; 0 = unknown.
    fn time(&self, now: Instant) -> i64 {
        let Some((at, unix_ms)) = self.clock else { return 0 };
        let elapsed = now.saturating_duration_since(at).as_millis();
        unix_ms.saturating_add(i64::try_from(elapsed).unwrap_or(i64::MAX))
    }
}

impl MapEntry {
    fn supersedes(&self, publish: &MapPublish) -> bool {
        let MapPublish { version, version_epoch, .. } = publish;
        let is_comparable = version_epoch.is_empty() || **version_epoch == *self.version_epoch;
        *version > 0 && is_comparable && self.version >= *version
    }

    fn save(&self, key: &str, clock: &SnapshotClock) -> EntryRecord {
        EntryRecord {
            key: key.to_owned(),
            value: (*self.value).clone(),
            offset: self.offset,
            version: self.version,
            version_epoch: self.version_epoch.to_string(),
            until: self.until.map(|until| clock.unix_ms(until)),
        }
    }

    fn restore(record: EntryRecord, clock: &SnapshotClock) -> (Arc<str>, Self) {
        let entry = Self {
            value: Arc::new(record.value),
            offset: record.offset,
            version: record.version,
            version_epoch: record.version_epoch.into(),
            until: record.until.map(|until| clock.instant(until)),
        };
        (record.key.into(), entry)
    }

    fn publication(&self, key: &str) -> Publication {
        Publication { key: key.to_owned(), offset: self.offset, ..self.value.publication() }
    }

    fn bytes(&self, key: &str) -> usize {
        ENTRY_BYTES + key.len() + self.value.bytes()
    }
}

impl Change {
    fn save(&self) -> ChangeRecord {
        let value = (*self.value).clone();
        ChangeRecord { key: self.key.to_string(), value, removed: self.removed }
    }

    fn restore(ChangeRecord { key, value, removed }: ChangeRecord) -> Self {
        Self { key: key.into(), value: Arc::new(value), removed }
    }

    fn publication(&self, offset: u64) -> Publication {
        let key = self.key.to_string();
        Publication { key, offset, removed: self.removed, ..self.value.publication() }
    }

    fn bytes(&self) -> usize {
        size_of::<Self>() + self.key.len() + self.value.bytes()
    }
}

impl From<MapRetention> for RetentionRecord {
    fn from(retention: MapRetention) -> Self {
        let milliseconds =
            |duration: Duration| u64::try_from(duration.as_millis()).unwrap_or(u64::MAX);
        let MapRetention { key_ttl, stream, entries_max, bytes_max } = retention;
        Self {
            key_ttl: milliseconds(key_ttl),
            size: stream.size as u64,
            ttl: milliseconds(stream.ttl),
            meta_ttl: milliseconds(stream.meta_ttl),
            entries_max: entries_max as u64,
            bytes_max: bytes_max as u64,
        }
    }
}

impl From<RetentionRecord> for MapRetention {
    fn from(record: RetentionRecord) -> Self {
        let stream = Retention {
            size: record.size as usize,
            ttl: Duration::from_millis(record.ttl),
            meta_ttl: Duration::from_millis(record.meta_ttl),
        };
        Self {
            key_ttl: Duration::from_millis(record.key_ttl),
            stream,
            entries_max: record.entries_max as usize,
            bytes_max: record.bytes_max as usize,
        }
    }
}

/// A place in the tree of entries, one in that of deadlines, and the counter of a shared key.
const ENTRY_BYTES: usize = size_of::<MapEntry>() + 3 * size_of::<Arc<str>>() + 48;
