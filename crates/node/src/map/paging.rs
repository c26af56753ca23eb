//! The phases of a subscribe to a map channel, as a state machine: pages of entries, pages of changes, then live (protocol §27).
//! In: requests of a client, and what was read for them → out: what to read, a page for the client, or the switch to live.
//! Uses: positions and queries. Never: reads, waits, sends; the time is a parameter.
//! Changed here: the order of the phases, and what each accepts. `live.rs` of `command/map/` makes the subscription.

use std::sync::Arc;
use std::time::{Duration, Instant};

use fanwire_broker::map::{ChangesQuery, StatePage, StateQuery};
use fanwire_broker::{Epoch, Position, StreamSlice};
use fanwire_protocol::{ErrorCode, Publication, SubscribeRequest, SubscribeResult};

use super::MAP;

/// Phase of a subscribe, in requests and results.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    /// The subscription begins.
    Live = 0,
    /// Pages of changes.
    Stream = 1,
    /// Pages of entries.
    State = 2,
}

/// A request for a page, or for the live phase.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PageRequest {
    pub(crate) phase: Phase,
    /// The end of the page before; "" for the first one.
    pub(crate) cursor: String,
    /// The position that the client has.
    pub(crate) since: Position,
    /// Entries or changes of a page.
    pub(crate) limit: usize,
    /// The client was subscribed before, and continues after `since`.
    pub(crate) recovers: bool,
}

impl PageRequest {
    /// Reads a request; its pages get `limit` entries.
    ///
    /// # Errors
    /// 107 for an unknown phase; 112 for an epoch that no stream has.
    pub(crate) fn read(request: &SubscribeRequest, limit: usize) -> Result<Self, ErrorCode> {
        let phase = match request.phase {
            0 => Phase::Live,
            1 => Phase::Stream,
            2 => Phase::State,
            _ => return Err(ErrorCode::BAD_REQUEST),
        };
        let epoch = Epoch::parse(&request.epoch).ok_or(ErrorCode::UNRECOVERABLE_POSITION)?;
        Ok(Self {
            phase,
            cursor: request.cursor.clone(),
            since: Position { offset: request.offset, epoch },
            limit,
            recovers: request.recover,
        })
    }

    /// Whether it asks for the first page of entries.
    pub(crate) fn is_first(&self) -> bool {
        self.phase == Phase::State && self.cursor.is_empty()
    }

    /// Whether a request begins a subscribe, and has to be authorized, rather than continues the one of `reservation`.
    ///
    /// # Errors
    /// 105 for a second subscribe; 103 for the continuation of none.
    pub(crate) fn begins(&self, has_reservation: bool) -> Result<bool, ErrorCode> {
        match (has_reservation, self.phase) {
            (true, _) if self.is_first() => Err(ErrorCode::ALREADY_SUBSCRIBED),
            (true, _) => Ok(false),
            (false, _) if self.is_first() => Ok(true),
            (false, Phase::Live) => Ok(true),
            (false, Phase::Stream) if self.recovers => Ok(true),
            (false, Phase::Stream | Phase::State) => Err(ErrorCode::PERMISSION_DENIED),
        }
    }
}

/// A request that waits for a read.
#[derive(Clone, Debug)]
pub(crate) struct PendingPage {
    pub(crate) channel: Arc<str>,
    pub(crate) request: PageRequest,
}

/// The result of a read.
#[derive(Clone, Debug)]
pub(crate) enum PageRead {
    /// Every later change of the channel reaches this node.
    Followed,
    Entries(StatePage),
    Changes(StreamSlice),
}

impl PageRead {
    /// Bytes of payloads that it keeps alive.
    pub(crate) fn payload_bytes(&self) -> usize {
        match self {
            Self::Followed => 0,
            Self::Entries(page) => page.entries.iter().map(|entry| entry.data.len()).sum(),
            Self::Changes(slice) => slice.payload_bytes(),
        }
    }
}

/// How far a client has read.
#[derive(Clone, Debug)]
pub(crate) struct Paging {
    /// The map has a stream of changes, and so positions.
    has_stream: bool,
    began_at: Instant,
    /// The position of the first page of entries.
    first: Option<Position>,
    /// The offset up to which pages of changes are read: the top at the first request for one.
    goal: Option<u64>,
}

/// The next step of a request.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum PageStep {
    /// Read entries, and continue with [`Paging::entries_read`].
    ReadEntries(StateQuery),
    /// Read changes, and continue with [`Paging::changes_read`].
    ReadChanges(ChangesQuery),
    /// Send a page. It has all entries or changes, also those that a filter drops.
    Send(Box<SubscribeResult>),
    /// Switch to live after this position, with the entries of the last page.
    GoLive { since: Position, entries: Vec<Publication> },
}

impl Paging {
    pub(crate) fn new(has_stream: bool, now: Instant) -> Self {
        Self { has_stream, began_at: now, first: None, goal: None }
    }

    pub(crate) fn has_stream(&self) -> bool {
        self.has_stream
    }

    /// Whether the client has read entries, and so recovers nothing.
    pub(crate) fn has_entries(&self) -> bool {
        self.first.is_some()
    }

    /// Whether the client took longer than `timeout`; zero = no limit.
    pub(crate) fn is_over(&self, timeout: Duration, now: Instant) -> bool {
        !timeout.is_zero() && now.saturating_duration_since(self.began_at) >= timeout
    }

    /// The first step of a request.
    ///
    /// # Errors
    /// 112 when the position is of another epoch than the first page; 107 when an ephemeral map has none.
    pub(crate) fn begin(&self, request: &PageRequest) -> Result<PageStep, ErrorCode> {
        let epoch = self.epoch(request)?;
        match request.phase {
            Phase::State => Ok(PageStep::ReadEntries(StateQuery {
                cursor: request.cursor.clone(),
                limit: Some(request.limit),
                key: None,
                epoch,
            })),
            Phase::Live if self.has_stream || self.first.is_some() => {
                Ok(self.go_live(request, Vec::new()))
            }
            Phase::Stream if self.has_stream => self.read_changes(request),
            Phase::Live | Phase::Stream => Err(ErrorCode::BAD_REQUEST),
        }
    }

    /// The step after a page of entries was read.
    ///
    /// # Errors
    /// 112 when the map began again since the first page.
    pub(crate) fn entries_read(
        &mut self,
        request: &PageRequest,
        page: StatePage,
    ) -> Result<PageStep, ErrorCode> {
        let StatePage { mut entries, top, cursor } = page;
        let first = *self.first.get_or_insert(top);
        if first.epoch != top.epoch {
            return Err(ErrorCode::UNRECOVERABLE_POSITION);
        }
        // What changed since the first page comes with the changes.
        entries.retain(|entry| entry.offset <= first.offset);
        let is_near = !self.has_stream || is_near(first.offset, request.limit, top.offset);
        if cursor.is_empty() && is_near {
            return Ok(PageStep::GoLive { since: first, entries });
        }
        Ok(PageStep::Send(Box::new(SubscribeResult {
            r#type: MAP,
            phase: Phase::State as i32,
            state: entries,
            cursor,
            offset: first.offset,
            epoch: first.epoch.to_string(),
            ..SubscribeResult::default()
        })))
    }

    /// The step after changes were read: at the first request for them only the top, else a page.
    ///
    /// # Errors
    /// 112 when the map began again since the first page.
    pub(crate) fn changes_read(
        &mut self,
        request: &PageRequest,
        read: StreamSlice,
    ) -> Result<PageStep, ErrorCode> {
        if self.goal.is_none() {
            self.goal = Some(read.top.offset);
            return self.read_changes(request);
        }
        let offset = read.publications.last().map_or(request.since.offset, |last| last.offset);
        Ok(PageStep::Send(Box::new(SubscribeResult {
            r#type: MAP,
            phase: Phase::Stream as i32,
            publications: read.publications,
            offset,
            epoch: read.top.epoch.to_string(),
            ..SubscribeResult::default()
        })))
    }

    fn read_changes(&self, request: &PageRequest) -> Result<PageStep, ErrorCode> {
        let limit = match self.goal {
            None => 0,
            Some(goal) if is_near(request.since.offset, request.limit, goal) => {
                return Ok(self.go_live(request, Vec::new()));
            }
            Some(_) => request.limit,
        };
        let since = Some(Position { epoch: self.epoch(request)?, ..request.since });
        Ok(PageStep::ReadChanges(ChangesQuery { since, limit: Some(limit), reverse: false }))
    }

    fn go_live(&self, request: &PageRequest, entries: Vec<Publication>) -> PageStep {
        let epoch = self.first.map_or(request.since.epoch, |first| first.epoch);
        PageStep::GoLive { since: Position { epoch, ..request.since }, entries }
    }

    /// The epoch of the first page, or else that of the request.
    fn epoch(&self, request: &PageRequest) -> Result<Epoch, ErrorCode> {
        let named = request.since.epoch;
        let Some(first) = self.first else { return Ok(named) };
        let is_other = named != Epoch::NONE && named != first.epoch;
        if is_other { Err(ErrorCode::UNRECOVERABLE_POSITION) } else { Ok(first.epoch) }
    }
}

/// Whether the changes up to `top` fit in a page.
fn is_near(offset: u64, limit: usize, top: u64) -> bool {
    offset.saturating_add(limit as u64) >= top
}

#[cfg(test)]
mod tests;
