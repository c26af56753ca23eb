//! The port of map channels: a channel holds entries by key and, unless it is ephemeral, a stream of their changes (server API §4).
//! In: changes of keys, queries, the time → out: positions, pages, reasons of suppression; calls of `Deliver`, in one order per channel.
//! Uses: protocol values. Never: sessions, sockets, clocks (time is a parameter).
//! Changed here: the promises of every engine with maps. The one in memory is `memory/maps.rs`, the common tests are `map/conformance.rs`.

#[cfg(any(test, feature = "conformance"))]
pub mod conformance;

use std::time::{Duration, Instant};

use fanwire_protocol::Publication;

use crate::{Answer, Epoch, Position, Retention, StreamSlice};

/// Stores the entries of map channels, orders their changes and distributes them.
///
/// The promises of a [`Broker`](crate::Broker) about order, atomicity, distribution, answers and epochs hold for the changes of a
/// map as for publications. The node calls [`Broker::subscribe`](crate::Broker::subscribe) and `unsubscribe` for map channels, too.
/// Further promises, most of them tested by the conformance suite:
///
/// **Changes.** Each change of a channel with a stream has the next offset, from 1. It is delivered as a publication with its
/// `key`; a removal has `removed`, the tags of the entry unless it brings others, and no data. An entry is read with the offset of its
/// last change.
///
/// **Checks.** A change that a check suppresses has no effect, apart from the refresh that [`KeyMode::IfNew`] asks for. Their order is:
/// idempotency key, version, key mode, expected position, limits.
///
/// **State.** The pages of [`read_state`](Self::read_state), applied in the order of their reading, and then the stream from the position
/// of the first page on, give the state of the server: also when keys change between two pages. Engines may return pages in another
/// order than that of the keys, pages longer than the limit, and a key twice.
///
/// **Gaps.** [`read_stream`](Self::read_stream) returns every change behind a position or says that some are lost. It never returns a
/// part in silence: neither of a stream that was trimmed nor of one that has expired.
///
/// **Expiry.** An entry whose time is over is removed like by a call: with an offset, a place in the stream and a delivery, in the order
/// of the channel. Until then it exists for reads and checks. Engines remove them within some seconds: in
/// [`Broker::sweep`](crate::Broker::sweep), or by themselves.
///
/// **Memory.** Entries are never evicted. Streams of changes give way first; then a change is refused.
pub trait MapBroker: Send + Sync {
    /// Sets a key. Returns the position of the change, or the reason why there was none.
    ///
    /// # Errors
    /// [`BrokerError::Unavailable`](crate::BrokerError::Unavailable) when nothing was changed; the caller may retry.
    fn publish(
        &self,
        channel: MapChannel<'_>,
        publish: MapPublish,
        now: Instant,
    ) -> Answer<Result<MapOutcome, MapError>>;

    /// Removes a key. Returns the position of the removal, or the reason why there was none.
    ///
    /// # Errors
    /// [`BrokerError::Unavailable`](crate::BrokerError::Unavailable) when nothing was changed; the caller may retry.
    fn remove(
        &self,
        channel: MapChannel<'_>,
        removal: MapRemoval,
        now: Instant,
    ) -> Answer<Result<MapOutcome, MapError>>;

    /// Reads a page of entries, and the position of the stream at the same moment.
    ///
    /// # Errors
    /// [`BrokerError::Unavailable`](crate::BrokerError::Unavailable); the caller may retry.
    fn read_state(
        &self,
        channel: MapChannel<'_>,
        query: &StateQuery,
        now: Instant,
    ) -> Answer<Result<StatePage, PositionLost>>;

    /// Reads changes, and the position of the stream at the same moment. An ephemeral channel has none.
    ///
    /// # Errors
    /// [`BrokerError::Unavailable`](crate::BrokerError::Unavailable); the caller may retry.
    fn read_stream(
        &self,
        channel: MapChannel<'_>,
        query: ChangesQuery,
        now: Instant,
    ) -> Answer<Result<StreamSlice, PositionLost>>;

    /// The same, read after the moment from which every later change reaches this node's `Deliver`. Without a `query` the answer is an
    /// empty slice. Call it for each subscriber, after [`Broker::subscribe`](crate::Broker::subscribe).
    ///
    /// # Errors
    /// [`BrokerError::Unavailable`](crate::BrokerError::Unavailable); the caller may retry.
    fn follow(
        &self,
        channel: MapChannel<'_>,
        query: Option<ChangesQuery>,
        now: Instant,
    ) -> Answer<Result<StreamSlice, PositionLost>>;

    /// Counts the entries of a channel.
    ///
    /// # Errors
    /// [`BrokerError::Unavailable`](crate::BrokerError::Unavailable); the caller may retry.
    fn stats(&self, channel: MapChannel<'_>, now: Instant) -> Answer<MapStats>;

    /// Forgets a channel: entries, stream, epoch and results of idempotency keys. No removal is delivered; subscribers find out by the
    /// new epoch.
    ///
    /// # Errors
    /// [`BrokerError::Unavailable`](crate::BrokerError::Unavailable); the caller may retry.
    fn clear(&self, channel: MapChannel<'_>, now: Instant) -> Answer<()>;
}

/// A map channel, and how its namespace keeps it.
#[derive(Clone, Copy, Debug)]
pub struct MapChannel<'a> {
    pub name: &'a str,
    pub retention: MapRetention,
}

/// How long a map channel keeps entries and changes, and how much it may hold (`map.*` of a namespace). There are three modes: without a
/// stream it is ephemeral; with one it is recoverable if entries expire, and persistent if they do not.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct MapRetention {
    /// Lifetime of an entry since it was set; zero = no limit.
    pub key_ttl: Duration,
    /// The stream of changes; its `meta_ttl` is at least `ttl` and `key_ttl`.
    pub stream: Retention,
    /// Most entries of a channel.
    pub entries_max: usize,
    /// Most bytes of a channel, approximately: keys, payloads, tags and what the engine adds to them.
    pub bytes_max: usize,
}

impl MapRetention {
    /// Whether the channel has a stream, and so offsets and an epoch.
    pub fn has_stream(self) -> bool {
        self.stream.keeps_history()
    }
}

/// A new value of a key. The default uses no option.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct MapPublish {
    /// Its `key`, `data`, `tags`, `info` and `time` are stored. The engine sets the offset.
    pub publication: Publication,
    /// "" = none. Repeated in the same channel within 300 s, it changes nothing and returns the first position.
    pub idempotency_key: String,
    /// Publish only if larger than the version of the entry; 0 = no check. The entry then keeps its version.
    pub version: u64,
    /// Versions are compared when this is "" or equal to that of the entry.
    pub version_epoch: String,
    pub key_mode: KeyMode,
    /// Publish only if this is the epoch, and the offset of the last change of the key.
    pub expected: Option<Position>,
    /// Subscribers that negotiated deltas may get one against the value before.
    pub delta: bool,
}

/// The removal of a key.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct MapRemoval {
    /// Its `key`, `time` and `tags` are used; without tags the removal has those of the entry.
    pub publication: Publication,
    /// As in [`MapPublish`].
    pub idempotency_key: String,
    /// As in [`MapPublish`].
    pub expected: Option<Position>,
}

/// Whether a key may, or has to, exist for a publish.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum KeyMode {
    #[default]
    Any,
    /// Only if it does not exist. If it does, `refreshes` starts the lifetimes of the entry, the stream and the epoch again.
    IfNew { refreshes: bool },
    /// Only if it exists.
    IfExists,
}

impl KeyMode {
    /// Parses `key_mode` of the server API; "" is any.
    pub fn parse(text: &str) -> Option<Self> {
        match text {
            "" => Some(Self::Any),
            "if_new" => Some(Self::IfNew { refreshes: false }),
            "if_exists" => Some(Self::IfExists),
            _ => None,
        }
    }
}

/// The effect of a change that was not refused.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct MapOutcome {
    /// The position of the change, or of the first change with a repeated idempotency key. When the position of the entry differs from the
    /// expected one it is that of the entry, with offset 0 if there is none; for other suppressed changes it is the top of the stream. It is
    /// empty in an ephemeral channel.
    pub position: Position,
    /// `None` when the change was made.
    pub suppression: Option<MapSuppression>,
}

/// The check that suppressed a change.
#[derive(Clone, Debug, PartialEq)]
pub enum MapSuppression {
    /// The idempotency key was used before.
    Idempotency,
    /// The entry has the same or a newer version.
    Version,
    KeyExists,
    KeyNotFound,
    /// The entry of now, for another attempt; `None` when the key does not exist.
    PositionMismatch(Option<Box<Publication>>),
}

impl MapSuppression {
    /// The `suppress_reason` of the server API.
    pub fn reason(&self) -> &'static str {
        match self {
            Self::Idempotency => "idempotency",
            Self::Version => "version",
            Self::KeyExists => "key_exists",
            Self::KeyNotFound => "key_not_found",
            Self::PositionMismatch(_) => "position_mismatch",
        }
    }
}

/// Why a change is impossible now; nothing was changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MapError {
    /// An expected position or a version in an ephemeral channel.
    NoStream,
    /// The channel has [`MapRetention::entries_max`] entries.
    TooManyEntries,
    /// The channel would have more than [`MapRetention::bytes_max`] bytes.
    TooLarge,
    /// The entries of all channels would have more bytes than `channel.history_memory_max`.
    MemoryFull,
}

/// Selects entries. The default selects all.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct StateQuery {
    /// The cursor of the page before; "" = the first page.
    pub cursor: String,
    /// Approximate number of entries; `None` = no limit, 0 = only the position.
    pub limit: Option<usize>,
    /// Only the entry with this key.
    pub key: Option<String>,
    /// The epoch of the first page; with another one the page is lost. [`Epoch::NONE`] = any.
    pub epoch: Epoch,
}

/// A page of entries.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct StatePage {
    /// Each with its key, and with the offset of its last change. Payloads are shared with the engine, not copied.
    pub entries: Vec<Publication>,
    /// The newest position of the stream; empty in an ephemeral channel.
    pub top: Position,
    /// Where the next page begins; "" = there is none.
    pub cursor: String,
}

/// Selects changes of a stream. The default selects all, oldest first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct ChangesQuery {
    /// Only changes after this position; with `reverse`, before it. [`Epoch::NONE`] is the epoch of any stream.
    pub since: Option<Position>,
    /// Maximum number of changes; `None` = no limit.
    pub limit: Option<usize>,
    /// Newest first.
    pub reverse: bool,
}

impl ChangesQuery {
    /// No changes, only the top of the stream.
    pub const TOP: Self = Self { since: None, limit: Some(0), reverse: false };

    /// Whether a stream up to `top` lacks changes behind `since`, or has none of its epoch. `oldest` is the offset of the oldest stored
    /// change; `top.offset + 1` when none is stored.
    pub fn is_lost(self, top: Position, oldest: u64) -> bool {
        let Some(since) = self.since else { return false };
        let is_other_epoch = since.epoch != Epoch::NONE && since.epoch != top.epoch;
        let has_gap = since.offset < top.offset && since.offset + 1 < oldest;
        is_other_epoch || !self.reverse && (has_gap || since.offset > top.offset)
    }
}

/// The position of a query has another epoch, or changes behind it are no longer stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PositionLost;

/// Counts of a map channel.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MapStats {
    pub entries: usize,
}

#[cfg(test)]
mod tests;
