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

#[derive(Debug)]
pub(crate) struct StreamTable {
    rows: Mutex<KnownStreams>,
    streams_max: usize,
}

#[derive(Debug, Default)]
struct KnownStreams {
    streams: HashMap<Arc<str>, KnownStream>,
    /// Streams by the time at which to look at them, in Unix milliseconds, and a number that makes it unique.
    looks: BTreeMap<Look, Arc<StreamEntry>>,
    last_number: u64,
}

type Look = (u64, u64);

#[derive(Debug)]
struct KnownStream {
    entry: Arc<StreamEntry>,
    look: Option<Look>,
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

    /// Adds a stream, to be looked at when it expires.
    ///
    /// # Errors
    /// There is a stream of this channel, or the table is full.
    pub(crate) fn add(
        &self,
        entry: &Arc<StreamEntry>,
        look_at: Option<u64>,
    ) -> Result<(), NotAdded> {
        let rows = &mut *self.rows.lock();
        if rows.streams.contains_key(&entry.channel) {
            return Err(NotAdded::Exists);
        }
        if rows.streams.len() >= self.streams_max {
            return Err(NotAdded::TableFull);
        }
        let row = KnownStream { entry: entry.clone(), look: None };
        rows.streams.insert(entry.channel.clone(), row);
        rows.look_at(entry, look_at);
        Ok(())
    }

    /// Looks at a stream later, if it is in the table.
    pub(crate) fn look_again(&self, entry: &Arc<StreamEntry>, at: Option<u64>) {
        self.rows.lock().look_at(entry, at);
    }

    /// Removes this stream, and no later one of its channel.
    pub(crate) fn remove(&self, entry: &Arc<StreamEntry>) {
        let rows = &mut *self.rows.lock();
        if rows.is_current(entry)
            && let Some(look) = rows.streams.remove(&entry.channel).and_then(|row| row.look)
        {
            rows.looks.remove(&look);
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
