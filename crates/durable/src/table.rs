//! The streams of a node, with the times at which they expire.
//! In: channels, streams → out: streams; those that may have expired.
//! Uses: one lock for one look; a thread that holds it takes no other. Never: the lock of a stream, the clock.
//! Changed here: how streams are found. Their state is in `stream`.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use hashbrown::HashMap;
use parking_lot::Mutex;
use tokio::sync::Notify;

use crate::stream::StreamState;

/// A stream with those who wait for its content.
#[derive(Debug)]
pub(crate) struct StreamEntry {
    pub(crate) channel: Arc<str>,
    /// Held for a page of history, or for the publications of one request.
    pub(crate) state: Mutex<StreamState>,
    /// Content was added, or the state changed.
    pub(crate) changed: Notify,
    /// Unix milliseconds of the last publication, for those who do not have the lock.
    pub(crate) published_ms: AtomicU64,
}

impl StreamEntry {
    pub(crate) fn new(channel: &str, state: StreamState) -> Arc<Self> {
        let (changed, published_ms) = Default::default();
        let channel = channel.into();
        let state = Mutex::new(state);
        Arc::new(Self { channel, state, changed, published_ms })
    }
}

#[derive(Debug)]
pub(crate) struct StreamTable {
    rows: Mutex<KnownStreams>,
    streams_max: usize,
}

#[derive(Debug, Default)]
struct KnownStreams {
    streams: HashMap<Arc<str>, KnownStream>,
    /// Those of them that a PUT made. Others are as many as histories, which have a limit of their own.
    put: usize,
    /// Streams by the time at which to look at them, in Unix milliseconds, and a number that makes it unique.
    looks: BTreeMap<Look, Arc<StreamEntry>>,
    last_number: u64,
}

type Look = (u64, u64);

#[derive(Debug)]
struct KnownStream {
    entry: Arc<StreamEntry>,
    look: Option<Look>,
    is_put: bool,
}

/// A stream with what the table has of it.
pub(crate) struct KnownRecord {
    pub(crate) entry: Arc<StreamEntry>,
    /// Unix milliseconds.
    pub(crate) look_at: Option<u64>,
    pub(crate) is_put: bool,
}

/// Why a stream was not added.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NotAdded {
    Exists,
    TableFull,
}

impl StreamTable {
    pub(crate) fn new(streams_max: usize) -> Self {
        Self { rows: Mutex::default(), streams_max }
    }

    pub(crate) fn find(&self, channel: &str) -> Option<Arc<StreamEntry>> {
        self.rows.lock().streams.get(channel).map(|row| row.entry.clone())
    }

    /// Adds a stream, to be looked at when it expires. It counts if a PUT made it.
    ///
    /// # Errors
    /// There is a stream of this channel, or the table is full.
    pub(crate) fn add(
        &self,
        entry: &Arc<StreamEntry>,
        look_at: Option<u64>,
        is_put: bool,
    ) -> Result<(), NotAdded> {
        let rows = &mut *self.rows.lock();
        if rows.streams.contains_key(&entry.channel) {
            return Err(NotAdded::Exists);
        }
        rows.count(is_put, self.streams_max)?;
        let row = KnownStream { entry: entry.clone(), look: None, is_put };
        rows.streams.insert(entry.channel.clone(), row);
        rows.look_at(entry, look_at);
        Ok(())
    }

    /// Counts a stream, which was adopted, as one that a PUT made.
    ///
    /// # Errors
    /// The table is full.
    pub(crate) fn put(&self, entry: &Arc<StreamEntry>) -> Result<(), NotAdded> {
        let rows = &mut *self.rows.lock();
        let is_adopted = rows.streams.get(&entry.channel).is_some_and(|row| !row.is_put);
        rows.count(is_adopted, self.streams_max)?;
        rows.streams.entry_ref(&entry.channel).and_modify(|row| row.is_put = true);
        Ok(())
    }

    /// All streams, with their states unlocked.
    pub(crate) fn all(&self) -> Vec<KnownRecord> {
        let rows = self.rows.lock();
        let known = rows.streams.values().map(|row| KnownRecord {
            entry: row.entry.clone(),
            look_at: row.look.map(|(at, _)| at),
            is_put: row.is_put,
        });
        known.collect()
    }

    /// Looks at a stream later, if it is in the table.
    pub(crate) fn look_again(&self, entry: &Arc<StreamEntry>, at: Option<u64>) {
        self.rows.lock().look_at(entry, at);
    }

    /// Removes this stream, and no later one of its channel.
    pub(crate) fn remove(&self, entry: &Arc<StreamEntry>) {
        let rows = &mut *self.rows.lock();
        if !rows.is_current(entry) {
            return;
        }
        if let Some(row) = rows.streams.remove(&entry.channel) {
            rows.put -= usize::from(row.is_put);
            if let Some(look) = row.look {
                rows.looks.remove(&look);
            }
        }
    }

    /// Streams whose time has come, at most [`LOOKS_MAX`]; each once, until it is looked at again.
    pub(crate) fn due(&self, now_ms: u64) -> Vec<Arc<StreamEntry>> {
        let rows = &mut *self.rows.lock();
        let mut due = Vec::new();
        while due.len() < LOOKS_MAX
            && let Some(first) = rows.looks.first_entry()
            && first.key().0 <= now_ms
        {
            let entry = first.remove();
            if let Some(row) = rows.streams.get_mut(&entry.channel) {
                row.look = None;
            }
            due.push(entry);
        }
        due
    }
}

impl KnownStreams {
    fn count(&mut self, is_put: bool, streams_max: usize) -> Result<(), NotAdded> {
        if is_put && self.put >= streams_max {
            return Err(NotAdded::TableFull);
        }
        self.put += usize::from(is_put);
        Ok(())
    }

    fn is_current(&self, entry: &Arc<StreamEntry>) -> bool {
        self.streams.get(&entry.channel).is_some_and(|row| Arc::ptr_eq(&row.entry, entry))
    }

    fn look_at(&mut self, entry: &Arc<StreamEntry>, at: Option<u64>) {
        let Some(at) = at.filter(|_| self.is_current(entry)) else { return };
        self.last_number += 1;
        let look = (at, self.last_number);
        let row = self.streams.get_mut(&entry.channel).expect("the stream is in the table");
        if let Some(before) = row.look.replace(look) {
            self.looks.remove(&before);
        }
        self.looks.insert(look, entry.clone());
    }
}

/// Streams in one result of [`StreamTable::due`].
const LOOKS_MAX: usize = 1024;

#[cfg(test)]
mod tests;
