//! The parts of a session and their records, both ways.
//! In: values of sessions → out: records; records → values, or `None` for a record that no session has.
//! Pure. Never: the tables of a shard.
//! Changed here: how a value is written. Which records there are is in `session_record.rs`.

use fanwire_area::Tile;
use fanwire_auth::TokenId;
use fanwire_broker::{Epoch, Position};
use fanwire_policy::filter::{Filter, SubscriptionFilter};
use fanwire_policy::hooks::ClientContext;
use fanwire_protocol::{Encoding, FilterNode};

use super::{
    ConnectionRecord, ContextRecord, EmulatedHeaderRecord, GrantRecord, HeaderRecord,
    PositionRecord, SubscriptionRecord, TermsRecord, TileRecord, TokenRecord,
};
use crate::clock::Moment;
use crate::counters::TRANSPORTS;
use crate::last_event_id::LastEventId;
use crate::pending::Visibility;
use crate::session::{
    CommandSource, ConnectionGrant, ConnectionInfo, NO_EXPIRY, Phase, Session, SubscriptionGrant,
};
use crate::subscribers::DeltaState;

/// The numbers of these values are their places.
const PHASES: [Phase; 3] = [Phase::Open, Phase::Refused, Phase::Connected];
const COMMAND_SOURCES: [CommandSource; 3] =
    [CommandSource::Connection, CommandSource::Requests, CommandSource::None];

impl ConnectionRecord {
    pub(crate) fn of(session: &Session) -> Self {
        let is_phase = |phase: &Phase| *phase == session.phase;
        let is_source = |source: &CommandSource| *source == session.command_source;
        let request = session.request.as_deref();
        Self {
            phase: PHASES.iter().position(is_phase).expect(LISTED) as u32,
            encoding: session.encoding.name().to_owned(),
            frame_ping: session.frame_ping,
            command_source: COMMAND_SOURCES.iter().position(is_source).expect(LISTED) as u32,
            transport: session.app.transport.to_owned(),
            user: request.and_then(|facts| facts.user.as_deref()).map(str::to_owned),
            last_event_id: request.and_then(|facts| facts.last_event_id).map(|id| id.to_string()),
        }
    }

    pub(crate) fn phase(&self) -> Option<Phase> {
        PHASES.get(self.phase as usize).copied()
    }

    /// The attributes of the connection, without its headers.
    pub(crate) fn info(self) -> Option<ConnectionInfo> {
        let is_named = |encoding: &Encoding| encoding.name() == self.encoding;
        Some(ConnectionInfo {
            encoding: Encoding::ALL.into_iter().find(is_named)?,
            frame_ping: self.frame_ping,
            transport: TRANSPORTS.into_iter().find(|name| *name == self.transport)?,
            command_source: COMMAND_SOURCES.get(self.command_source as usize).copied()?,
            user: self.user,
            last_event_id: self.last_event_id.as_deref().map(LastEventId::parse),
            headers: Vec::new(),
        })
    }
}

impl From<&ClientContext> for ContextRecord {
    fn from(context: &ClientContext) -> Self {
        let headers = context.headers.iter().cloned();
        let emulated_headers = context.emulated_headers.iter().cloned();
        Self {
            headers: headers.map(|(name, value)| HeaderRecord { name, value }).collect(),
            emulated_headers: emulated_headers
                .map(|(name, value)| EmulatedHeaderRecord { name, value })
                .collect(),
            meta: context.meta.clone(),
        }
    }
}

impl ContextRecord {
    /// Sets the facts that are not in `context` already: those of the connection and its credentials are.
    pub(crate) fn restore(self, context: &mut ClientContext) {
        let headers = self.headers.into_iter();
        context.headers = headers.map(|header| (header.name, header.value)).collect();
        let emulated_headers = self.emulated_headers.into_iter();
        context.emulated_headers =
            emulated_headers.map(|header| (header.name, header.value)).collect();
        context.meta = self.meta;
    }
}

impl From<&TokenId> for TokenRecord {
    fn from(token: &TokenId) -> Self {
        Self { uid: token.uid.as_ref().to_owned(), issued_at: token.issued_at }
    }
}

impl From<TokenRecord> for TokenId {
    fn from(record: TokenRecord) -> Self {
        Self { uid: record.uid.into(), issued_at: record.issued_at }
    }
}

impl From<&ConnectionGrant> for GrantRecord {
    fn from(grant: &ConnectionGrant) -> Self {
        let ConnectionGrant { channels_hash, token } = grant;
        Self { channels_hash: *channels_hash, token: token.as_ref().map(Into::into) }
    }
}

impl From<GrantRecord> for ConnectionGrant {
    fn from(record: GrantRecord) -> Self {
        let GrantRecord { channels_hash, token } = record;
        Self { channels_hash, token: token.map(Into::into) }
    }
}

impl From<&SubscriptionGrant> for TermsRecord {
    fn from(terms: &SubscriptionGrant) -> Self {
        let filter = terms.filter.as_deref().cloned().unwrap_or_default();
        Self {
            info: terms.info.clone(),
            expire_at: end(terms.expire_at),
            filter: filter.of_client.as_ref().map(FilterNode::from),
            server_filter: filter.of_server.as_ref().map(FilterNode::from),
            is_refreshed_by_hook: terms.is_refreshed_by_hook,
            token: terms.token.as_deref().map(Into::into),
        }
    }
}

impl TermsRecord {
    fn terms(self) -> Option<SubscriptionGrant> {
        let filter = SubscriptionFilter {
            of_server: self.server_filter.as_ref().map(Filter::new).transpose().ok()?,
            of_client: self.filter.as_ref().map(Filter::new).transpose().ok()?,
        };
        Some(SubscriptionGrant {
            info: self.info,
            expire_at: self.expire_at.unwrap_or(NO_EXPIRY),
            filter: filter.shared(),
            is_refreshed_by_hook: self.is_refreshed_by_hook,
            token: self.token.map(|token| Box::new(token.into())),
        })
    }
}

/// A subscription of a record whose values are all possible.
#[derive(Debug)]
pub(crate) struct SavedSubscription {
    pub(crate) channel: String,
    pub(crate) server_side: bool,
    pub(crate) visibility: Visibility,
    pub(crate) position: Option<Position>,
    pub(crate) may_have_gap: bool,
    pub(crate) delta: Option<DeltaState>,
    pub(crate) terms: Option<Box<SubscriptionGrant>>,
}

impl SubscriptionRecord {
    /// The subscription; `None` if a value is impossible.
    pub(crate) fn checked(self) -> Option<SavedSubscription> {
        let may_have_gap = self.position.as_ref().is_some_and(|position| position.may_have_gap);
        let position = match self.position {
            Some(position) => Some(position.position()?),
            None => None,
        };
        let terms = match self.terms {
            Some(terms) => Some(Box::new(terms.terms()?)),
            None => None,
        };
        let visibility = Visibility {
            present: self.present,
            announced: self.announced,
            wants_join_leave: self.wants_join_leave,
            has_entries: self.has_entries,
        };
        Some(SavedSubscription {
            channel: self.channel,
            server_side: self.server_side,
            visibility,
            position,
            may_have_gap,
            delta: delta_state(self.delta)?,
            terms,
        })
    }
}

impl PositionRecord {
    fn position(&self) -> Option<Position> {
        Some(Position { offset: self.offset, epoch: Epoch::parse(&self.epoch)? })
    }
}

impl From<&Tile> for TileRecord {
    fn from(tile: &Tile) -> Self {
        let Tile { x, y, layer, ring } = *tile;
        Self { x, y, layer, ring: ring.into() }
    }
}

impl From<&TileRecord> for Tile {
    fn from(record: &TileRecord) -> Self {
        let TileRecord { x, y, layer, ring } = *record;
        Self { x, y, layer, ring: ring.try_into().unwrap_or_default() }
    }
}

/// The number of a delta state. Records do not have the base of the next delta.
pub(crate) fn delta_number(state: DeltaState) -> u32 {
    match state {
        DeltaState::Plain => 0,
        DeltaState::Full => 1,
        DeltaState::AwaitsStream | DeltaState::HasStream => 2,
        DeltaState::AwaitsLatest | DeltaState::HasLatest => 3,
    }
}

/// The state with a number, in which the next publication is sent in full. `None` for an impossible number.
fn delta_state(number: u32) -> Option<Option<DeltaState>> {
    let states = [DeltaState::Full, DeltaState::AwaitsStream, DeltaState::AwaitsLatest];
    match number.checked_sub(1) {
        Some(place) => states.get(place as usize).copied().map(Some),
        None => Some(None),
    }
}

/// Milliseconds from a moment to a later one; 0 to an earlier one, `None` to never.
pub(crate) fn left(now: Moment, moment: Moment) -> Option<u64> {
    (moment != Moment::NEVER).then(|| moment.0.saturating_sub(now.0))
}

/// The moment after so many milliseconds.
pub(crate) fn moment(now: Moment, left: Option<u64>) -> Moment {
    left.map_or(Moment::NEVER, |left| Moment(now.0.saturating_add(left)))
}

/// A Unix second; `None` = never.
pub(crate) fn end(expire_at: u64) -> Option<u64> {
    (expire_at != NO_EXPIRY).then_some(expire_at)
}

const LISTED: &str = "the list has all";
