//! The connections of a shard that a selector of the server API matches.
//! In: a selector, the tables → out: keys of sessions, and where the next step begins.
//! Uses: the tables, label filters. Pure. Never: changes a session.
//! Changed here: what a selector matches, and how many connections of all users are one step.

use std::ops::Range;

use fanwire_cluster::ConnectionSelector;
use fanwire_policy::filter::Filter;
use fanwire_protocol::ErrorCode;
use uuid::Uuid;

use super::SessionTable;
use crate::session::{ConnectionKey, Session};

/// The connections of a selector on one shard. A notice for many of them takes several turns.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SelectedConnections {
    pub selector: ConnectionSelector,
    /// Only connections from this index on.
    pub from: u32,
}

impl From<ConnectionSelector> for SelectedConnections {
    fn from(selector: ConnectionSelector) -> Self {
        Self { selector, from: 0 }
    }
}

/// The connected sessions that a selector matches. Of all users, those of one step: [`next_step`] begins the next.
pub(crate) fn matching(
    session_table: &SessionTable,
    target: &SelectedConnections,
) -> Vec<ConnectionKey> {
    let selector = &target.selector;
    let Ok(filter) = compiled(selector) else { return Vec::new() };
    let matches = |index: &u32| {
        let session = session_table.at(*index);
        session.is_some_and(|one| one.is_connected() && passes(selector, filter.as_ref(), one))
    };
    let key = |index| session_table.key_at(index);
    if selector.is_of_all_users() {
        let end = session_table.index_end().min(step(target).end);
        return (target.from..end).filter(matches).filter_map(key).collect();
    }
    session_table.users().of(&selector.user).filter(matches).filter_map(key).collect()
}

/// The connection index to go on with, if a selector is for more connections than one step.
pub(crate) fn next_step(session_table: &SessionTable, target: &SelectedConnections) -> Option<u32> {
    let from = step(target).end;
    let has_more = target.selector.is_of_all_users() && from < session_table.index_end();
    has_more.then_some(from)
}

/// The connection indexes of one step.
pub(crate) fn step(target: &SelectedConnections) -> Range<u32> {
    target.from..target.from.saturating_add(CONNECTIONS_AT_ONCE)
}

/// The filter of labels; `None` matches all.
pub(crate) fn compiled(selector: &ConnectionSelector) -> Result<Option<Filter>, ErrorCode> {
    selector.label_filter.as_deref().map(Filter::new).transpose()
}

/// Whether a session of the right user passes the other filters.
pub(crate) fn passes(
    selector: &ConnectionSelector,
    labels: Option<&Filter>,
    session: &Session,
) -> bool {
    let mut buffer = Uuid::encode_buffer();
    let client: &str = session.id.hyphenated().encode_lower(&mut buffer);
    (selector.session.is_empty() || selector.session == session.session_id())
        && (selector.client.is_empty() || selector.client == client)
        && !selector.whitelist.iter().any(|spared| spared == client)
        && labels.is_none_or(|filter| filter.matches(&session.app.labels))
}

/// Connections of one notice for all users.
const CONNECTIONS_AT_ONCE: u32 = 256;
