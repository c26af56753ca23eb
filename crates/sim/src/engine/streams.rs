//! The streams of the model engine: offsets, epochs, expiry, idempotency, versions.
//! In: publishes and reads → out: positions, stored publications, messages for feeds.
//! Pure. Never: the memory engine's code; both are written from the promises of `Broker`.
//! Changed here: what an engine may do with a stream.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

use fanwire_broker::{
    DeliverOptions, Delta, Epoch, Position, PublishOptions, Query, Retention, StreamSlice,
    Suppression,
};
use fanwire_protocol::Publication;

use super::{Engine, FeedMessage, FeedPublication, Undo};
use crate::truth::{TruthEntry, number_of};

/// The stream of a channel.
#[derive(Clone)]
pub(super) struct ModelStream {
    top: Position,
    /// Shared with the copies that are kept for a failover.
    stored: VecDeque<Arc<Publication>>,
    version: (u64, String),
    stored_until: Instant,
    /// End of offset and epoch; `None` = never.
    until: Option<Instant>,
    replication_history: u64,
    inherited: Position,
}

/// What a publish changed in a stream: its fields before, and the oldest publications, which it dropped.
pub(super) struct StreamBefore {
    top: Position,
    version: (u64, String),
    stored_until: Instant,
    dropped: Vec<Arc<Publication>>,
}

/// The result of a publish.
pub(super) struct Published {
    pub(super) position: Position,
    /// Why nothing was published.
    pub(super) suppression: Option<Suppression>,
}

/// A publish as it is called.
pub(super) struct Publish {
    pub(super) channel: String,
    pub(super) publication: Publication,
    pub(super) options: PublishOptions,
    pub(super) retention: Retention,
}

impl Engine {
    pub(super) fn publish(&mut self, publish: Publish, now: Instant) -> Published {
        let Publish { channel, mut publication, options, retention } = publish;
        let ttl = options.key_owner.as_ref().map_or(RESULT_TTL, |owner| owner.ttl);
        let key = key_of_result(&channel, &options);
        let result = key.as_ref().and_then(|key| self.results.get(key));
        if let Some((position, _)) = result.filter(|(_, end)| *end > now) {
            return Published { position: *position, suppression: Some(Suppression::RepeatedKey) };
        }
        let mut delta = Delta::candidate(options.delta, None);
        let mut position = Position::default();
        if retention.keeps_history() && !options.skip_history {
            let before = self.touch(&channel, retention, now);
            if is_old(before, &options) {
                let position = before.top;
                return Published { position, suppression: Some(Suppression::OldVersion) };
            }
            let previous = before.stored.back().map(|newest| newest.data.clone());
            delta = Delta::candidate(options.delta, previous.as_ref());
            position = self.store(&channel, &publication, &options, retention, now);
        } else if let Some(number) = number_of(&publication) {
            self.truth.lock().pass_on(&channel, number);
        }
        publication.offset = position.offset;
        let options = DeliverOptions {
            epoch: position.epoch,
            delta,
            exclude: options.exclude_client,
            class: options.delivery,
            receipt: options.receipt,
            accepted_at: now,
        };
        let sent = Arc::new(FeedPublication { channel, publication, options });
        self.send_to_feeds(&sent.channel, &FeedMessage::Publication(Arc::clone(&sent)));
        if let Some(key) = key {
            let before = self.results.insert(key.clone(), (position, now + ttl));
            self.remember(now, Undo::Result(key, before));
        }
        Published { position, suppression: None }
    }

    fn store(
        &mut self,
        channel: &str,
        publication: &Publication,
        options: &PublishOptions,
        retention: Retention,
        now: Instant,
    ) -> Position {
        let stream = self.streams.get_mut(channel).expect("it was touched");
        let mut before = StreamBefore {
            top: stream.top,
            version: stream.version.clone(),
            stored_until: stream.stored_until,
            dropped: Vec::new(),
        };
        stream.top.offset += 1;
        let offset = stream.top.offset;
        stream.stored.push_back(Arc::new(Publication { offset, ..publication.clone() }));
        let surplus = stream.stored.len().saturating_sub(retention.size);
        before.dropped.extend(stream.stored.drain(..surplus));
        stream.stored_until = now + retention.ttl;
        if options.version > 0 {
            stream.version = (options.version, options.version_epoch.clone());
        }
        let top = stream.top;
        self.remember(now, Undo::Publish(channel.to_owned(), before));
        if let Some(entry) = TruthEntry::of(publication, now, self.now.unwrap_or(now)) {
            self.truth.lock().store(channel, top.epoch.as_str(), offset, entry);
        }
        top
    }

    pub(super) fn read(
        &mut self,
        channel: &str,
        query: Query,
        retention: Retention,
        now: Instant,
    ) -> StreamSlice {
        if !retention.keeps_history() {
            return StreamSlice::default();
        }
        let stream = self.touch(channel, retention, now);
        let limit = query.limit.unwrap_or(usize::MAX);
        let stored = &stream.stored;
        let copy = |it: &Arc<Publication>| it.as_ref().clone();
        let publications = if query.reverse {
            let since = query.since.unwrap_or(u64::MAX);
            let end = stored.partition_point(|it| it.offset < since);
            stored.range(..end).rev().take(limit).map(copy).collect()
        } else {
            let since = query.since.unwrap_or(0);
            let first = stored.partition_point(|it| it.offset <= since);
            stored.range(first..).take(limit).map(copy).collect()
        };
        StreamSlice { publications, top: stream.top, inherited: stream.inherited, dropped: None }
    }

    pub(super) fn remove_history(&mut self, channel: &str, now: Instant) {
        let Some(stream) = self.streams.get(channel).cloned() else { return };
        self.remember(now, Undo::ModelStream(channel.to_owned(), Some(stream)));
        if let Some(stream) = self.streams.get_mut(channel) {
            stream.stored.clear();
        }
    }

    /// Takes back the last publish of a stream.
    pub(super) fn lose_end(&mut self, channel: &str, before: StreamBefore) {
        let Some(stream) = self.streams.get_mut(channel) else { return };
        self.truth.lock().lose(stream.top.epoch.as_str(), stream.top.offset);
        stream.undo(before);
    }

    /// The top of a channel's stream, as it would be read now.
    pub fn top(&self, channel: &str) -> Option<Position> {
        let stream = self.streams.get(channel)?;
        (stream.replication_history == self.replication_history).then_some(stream.top)
    }

    /// The live stream of a channel: what has expired is dropped, and in another replication history it has another epoch.
    fn touch(&mut self, channel: &str, retention: Retention, now: Instant) -> &ModelStream {
        let known = self.streams.get(channel);
        let is_live = known.is_some_and(|it| it.until.is_none_or(|until| until > now));
        let is_of_now = known.is_some_and(|it| it.replication_history == self.replication_history);
        if !is_live || !is_of_now {
            let epoch = self.new_epoch();
            let before = self.streams.remove(channel);
            self.remember(now, Undo::ModelStream(channel.to_owned(), before.clone()));
            let parent = before.filter(|_| is_live);
            let named = parent.as_ref().map(|it| (it.top.epoch.to_string(), it.top.offset));
            self.truth.lock().begin_epoch(channel, epoch.as_str(), named);
            let history = self.replication_history;
            self.streams
                .insert(channel.to_owned(), ModelStream::begin(parent, epoch, history, now));
        }
        let stream = self.streams.get_mut(channel).expect("it was just made");
        if stream.stored_until <= now {
            stream.stored.clear();
        }
        let keeps_for_ever = retention.meta_ttl == Duration::ZERO;
        stream.until = (!keeps_for_ever).then(|| now + retention.meta_ttl);
        stream
    }
}

impl ModelStream {
    /// A stream in a new epoch, which continues another one if there is one.
    fn begin(parent: Option<Self>, epoch: Epoch, replication_history: u64, now: Instant) -> Self {
        let offset = parent.as_ref().map_or(0, |it| it.top.offset);
        let inherited = parent.as_ref().map(|it| it.top).unwrap_or_default();
        let top = Position { offset, epoch };
        let Some(parent) = parent else {
            return Self {
                top,
                stored: VecDeque::new(),
                version: (0, String::new()),
                stored_until: now,
                until: None,
                replication_history,
                inherited,
            };
        };
        Self { top, replication_history, inherited, ..parent }
    }

    /// Takes back the last publish.
    pub(super) fn undo(&mut self, before: StreamBefore) {
        let StreamBefore { top, version, stored_until, dropped } = before;
        self.top = top;
        self.version = version;
        self.stored_until = stored_until;
        self.stored.pop_back();
        dropped.into_iter().rev().for_each(|it| self.stored.push_front(it));
    }
}

/// Under which key the result of a publish is remembered, if it is.
fn key_of_result(channel: &str, options: &PublishOptions) -> Option<(String, String)> {
    let owner = options.key_owner.as_ref().map_or("", |owner| owner.name.as_str());
    let is_keyed = !options.idempotency_key.is_empty();
    is_keyed.then(|| (channel.to_owned(), format!("{owner}\0{}", options.idempotency_key)))
}

fn is_old(stream: &ModelStream, options: &PublishOptions) -> bool {
    let (version, epoch) = &stream.version;
    let is_comparable = options.version_epoch.is_empty() || options.version_epoch == *epoch;
    options.version > 0 && is_comparable && options.version <= *version
}

const RESULT_TTL: Duration = Duration::from_secs(300);
