//! Content of streams in the histories of their channels, which the memory engine has ready at once.
//! In: entries of the table, payloads → out: positions, batches; entries that exist.
//! Uses the channels of `node`. A thread that holds a stream's lock may take those of the broker and of the table.
//! Changed here: how a stream begins, expires and ends. The rules of its state are in `stream`.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use bytes::Bytes;
use fanwire_broker::{Answer, Position};
use fanwire_node::Page;
use fanwire_node::protocol::{ErrorCode, StreamPosition};

use crate::DurableStreams;
use crate::content::ContentKind;
use crate::lifetime::StreamLifetime;
use crate::offset::ReadStart;
use crate::response::{ErrorResponse, bad_request};
use crate::stream::{StreamConfig, StreamState};
use crate::table::{NotAdded, StreamEntry};

/// Content from one place of a stream on.
#[derive(Debug)]
pub(crate) struct StreamBatch {
    pub(crate) payloads: Vec<Bytes>,
    /// Where it begins, and where the next one does.
    pub(crate) start: Position,
    pub(crate) next: Position,
    pub(crate) kind: ContentKind,
    pub(crate) content_type: String,
    pub(crate) is_up_to_date: bool,
    /// Whether it reaches the end of a closed stream.
    pub(crate) is_closed: bool,
}

impl DurableStreams {
    /// The stream of a channel, with its lock. A channel that has a history and was never put is a stream of JSON.
    ///
    /// # Errors
    /// 404; 429 when there are too many streams.
    pub(crate) fn with_stream<T>(
        &self,
        channel: &str,
        work: impl FnOnce(&Arc<StreamEntry>, &mut StreamState) -> Result<T, ErrorResponse>,
    ) -> Result<T, ErrorResponse> {
        let missing = || ErrorResponse::new(404, "there is no such stream; PUT creates it");
        let entry = match self.table.find(channel) {
            Some(entry) => entry,
            None if self.oldest(channel)?.1 => self.adopt(channel)?,
            None => return Err(missing()),
        };
        let mut state = entry.state.lock();
        state.touch(entry.published_ms.load(Relaxed));
        if state.has_expired(now_ms()) {
            self.remove(&entry, &mut state)?;
        }
        if state.is_removed {
            return Err(missing());
        }
        work(&entry, &mut state)
    }

    /// Makes a stream of a channel, and calls `fill` with its lock before others find it. `None` when there is one.
    ///
    /// # Errors
    /// 429 when there are too many streams; that of `fill`.
    pub(crate) fn create<T>(
        &self,
        channel: &str,
        config: StreamConfig,
        fill: impl FnOnce(&Arc<StreamEntry>, &mut StreamState) -> Result<T, ErrorResponse>,
    ) -> Result<Option<T>, ErrorResponse> {
        let (start, _) = self.oldest(channel)?;
        let state = StreamState::new(config, start, now_ms());
        let look_at = state.expires_at_ms();
        let entry = StreamEntry::new(channel, state);
        let mut state = entry.state.lock();
        match self.table.add(&entry, look_at, true) {
            Ok(()) => {}
            Err(NotAdded::Exists) => return Ok(None),
            Err(NotAdded::TableFull) => return Err(too_many()),
        }
        let filled = fill(&entry, &mut state);
        if filled.is_err() {
            // Nothing was stored. What others published stays.
            state.is_removed = true;
            self.table.remove(&entry);
        }
        filled.map(Some)
    }

    fn adopt(&self, channel: &str) -> Result<Arc<StreamEntry>, ErrorResponse> {
        let content_type = "application/json".to_owned();
        let lifetime = StreamLifetime::Unlimited;
        let config = StreamConfig { content_type, lifetime, is_closed: false };
        let mut state = StreamState::new(config, self.oldest(channel)?.0, now_ms());
        state.is_adopted = true;
        let entry = StreamEntry::new(channel, state);
        match self.table.add(&entry, Some(now_ms() + ADOPTED_LOOK_MS), false) {
            Ok(()) => Ok(entry),
            Err(_) => {
                let other = self.table.find(channel);
                other.ok_or_else(|| ErrorResponse::new(404, "the stream was deleted just now"))
            }
        }
    }

    /// Makes an adopted stream one that a PUT made.
    ///
    /// # Errors
    /// 429 when there are too many streams.
    pub(crate) fn keep(
        &self,
        entry: &Arc<StreamEntry>,
        state: &mut StreamState,
    ) -> Result<(), ErrorResponse> {
        self.table.put(entry).map_err(|_| too_many())?;
        state.is_adopted = false;
        Ok(())
    }

    /// Forgets an adopted stream whose history has ended, unless a read waits for more.
    fn forget_or_look_again(&self, entry: &Arc<StreamEntry>, state: &mut StreamState, now_ms: u64) {
        let is_used = Arc::strong_count(entry) > OWN_REFERENCES;
        if is_used || self.oldest(&entry.channel).is_ok_and(|(_, has_history)| has_history) {
            return self.table.look_again(entry, Some(now_ms + ADOPTED_LOOK_MS));
        }
        state.is_removed = true;
        self.table.remove(entry);
    }

    /// Stores payloads at the end of a stream.
    ///
    /// # Errors
    /// 400 for content of another format than the namespace demands.
    pub(crate) fn store(&self, channel: &str, payloads: Vec<Bytes>) -> Result<(), ErrorResponse> {
        let published = self.node.channels().publish_several(channel, payloads, Instant::now());
        ready(published).map(drop)
    }

    /// The position of the tail.
    pub(crate) fn tail(&self, channel: &str) -> Result<Position, ErrorResponse> {
        let page = Page { limit: Some(0), ..Page::default() };
        Ok(ready(self.node.channels().history(channel, &page, Instant::now()))?.top)
    }

    /// Reads a batch of at most `bytes_max` bytes, or one publication, under the stream's lock, so that the content of one request is
    /// seen whole or not at all.
    ///
    /// # Errors
    /// 400 for an offset beyond the tail, 410 for one whose content is not kept any more.
    pub(crate) fn batch(
        &self,
        channel: &str,
        state: &mut StreamState,
        from: ReadStart,
        bytes_max: usize,
    ) -> Result<StreamBatch, ErrorResponse> {
        let tail = self.tail(channel)?;
        let kind = state.kind();
        let beginning = state.start(tail.epoch);
        let start = match from {
            ReadStart::Tail => tail,
            ReadStart::Beginning => beginning,
            ReadStart::At(position) if position.epoch != tail.epoch => return Err(gone()),
            ReadStart::At(position) if position.offset < beginning.offset => return Err(gone()),
            ReadStart::At(position) if position.offset > tail.offset => {
                return Err(bad_request("the offset is beyond the tail"));
            }
            ReadStart::At(position) => position,
        };
        let since = Some(StreamPosition { offset: start.offset, epoch: String::new() });
        let page = Page { limit: Some(PUBLICATIONS_MAX), since, reverse: false };
        let slice = ready(self.node.channels().history(channel, &page, Instant::now()))?;
        let mut next = start;
        let mut payloads = Vec::new();
        let mut bytes = 0;
        let mut left_out = 0;
        for publication in slice.publications {
            // What was dropped from the history can be skipped at the beginning only.
            if publication.offset != next.offset + 1 && from != ReadStart::Beginning {
                return Err(gone());
            }
            bytes += publication.data.len();
            if bytes > bytes_max && !payloads.is_empty() {
                break;
            }
            next.offset = publication.offset;
            if kind.can_hold(&publication.data) {
                payloads.push(publication.data)
            } else {
                left_out += 1
            }
        }
        self.node.channels().count_left_out(left_out);
        if next == start && next.offset < tail.offset {
            if from != ReadStart::Beginning {
                return Err(gone());
            }
            next = tail;
        }
        let is_up_to_date = next.offset >= tail.offset;
        Ok(StreamBatch {
            payloads,
            start,
            next,
            kind,
            content_type: state.config().content_type.clone(),
            is_up_to_date,
            is_closed: is_up_to_date && state.config().is_closed,
        })
    }

    /// Removes a stream with its content. The next one of its channel goes on with the offsets.
    pub(crate) fn remove(
        &self,
        entry: &Arc<StreamEntry>,
        state: &mut StreamState,
    ) -> Result<(), ErrorResponse> {
        state.is_removed = true;
        let removed = self.node.channels().remove_history(&entry.channel, Instant::now());
        self.table.remove(entry);
        entry.changed.notify_waiters();
        ready(removed)
    }

    /// Removes streams that have expired; called a few times a second.
    pub(crate) fn remove_expired(&self, now_ms: u64) {
        for entry in self.table.due(now_ms) {
            let mut state = entry.state.lock();
            if state.is_removed {
                continue;
            }
            state.touch(entry.published_ms.load(Relaxed));
            if state.is_adopted {
                self.forget_or_look_again(&entry, &mut state, now_ms);
            } else if state.has_expired(now_ms) {
                // The memory engine cannot fail.
                let _ = self.remove(&entry, &mut state);
            } else {
                self.table.look_again(&entry, state.expires_at_ms());
            }
        }
    }

    /// Wakes the readers of a channel and restarts the window of its lifetime; called with the lock of the channel's stripe in the broker.
    pub(crate) fn notice(&self, channel: &str) {
        if channel.starts_with(&self.channel_prefix)
            && let Some(entry) = self.table.find(channel)
        {
            entry.published_ms.store(now_ms(), Relaxed);
            entry.changed.notify_waiters();
        }
    }

    /// The position before the oldest stored publication, or that of the tail; and whether there is one.
    fn oldest(&self, channel: &str) -> Result<(Position, bool), ErrorResponse> {
        let page = Page { limit: Some(1), ..Page::default() };
        let slice = ready(self.node.channels().history(channel, &page, Instant::now()))?;
        let oldest = slice.publications.first().map(|one| one.offset.saturating_sub(1));
        let offset = oldest.unwrap_or(slice.top.offset);
        Ok((Position { offset, ..slice.top }, oldest.is_some()))
    }
}

/// Unix time in milliseconds.
pub(crate) fn now_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

/// The result of a call of the memory engine, which never waits.
fn ready<T>(answer: Answer<T, ErrorCode>) -> Result<T, ErrorResponse> {
    let result = answer.ready().unwrap_or(Err(ErrorCode::INTERNAL));
    result.map_err(ErrorResponse::of_channel)
}

fn too_many() -> ErrorResponse {
    let text = "there are durable_streams.max_streams streams; DELETE removes one, and Stream-TTL lets one end";
    ErrorResponse::new(429, text)
}

fn gone() -> ErrorResponse {
    ErrorResponse::new(
        410,
        "the content at this offset is not kept any more; offset -1 is the oldest that is",
    )
}

/// Most publications of a batch.
const PUBLICATIONS_MAX: usize = 4096;
/// Bytes of a response in one body, and of a piece of one in SSE, which a reader that takes nothing holds.
pub(crate) const BATCH_BYTES: usize = 1 << 20;
pub(crate) const SSE_BATCH_BYTES: usize = 64 << 10;
/// Between two looks whether the history of an adopted stream is still there.
const ADOPTED_LOOK_MS: u64 = 30_000;
/// References to an entry that is due: in the table, and in the loop over due ones.
const OWN_REFERENCES: usize = 2;
