//! The connections of a shard that a selector of the server API matches.
//! In: a selector, the tables → out: keys of sessions, and where the next step begins.
//! Uses: the tables, label filters. Pure. Never: changes a session.
//! Change here: what a selector matches, and how many connections of all users are one step.

use std::ops::Range;

use fanwire_cluster::ConnectionSelector;
use fanwire_policy::filter::Filter;
use fanwire_protocol::ErrorCode;
use uuid::Uuid;

use super::SessionTable;
use crate::session::{ConnectionKey, Session};

/// The connected sessions that a selector matches. Of all users, those of one step: [`next_step`] begins the next.
pub(crate) fn matching(
    session_table: &SessionTable,
    target: &ConnectionSelector,
) -> Vec<ConnectionKey> {
    let Ok(filter) = compiled(target) else { return Vec::new() };
    let matches = |index: &u32| {
        let session = session_table.at(*index);
        session.is_some_and(|one| one.is_connected() && passes(target, filter.as_ref(), one))
    };
    let key = |index| session_table.key_at(index);
    if target.is_of_all_users() {
        let end = session_table.index_end().min(step(target).end);
        return (target.from..end).filter(matches).filter_map(key).collect();
    }
    session_table.users().of(&target.user).filter(matches).filter_map(key).collect()
}

/// The connection index to go on with, if a selector is for more connections than one step.
pub(crate) fn next_step(session_table: &SessionTable, target: &ConnectionSelector) -> Option<u32> {
    let from = step(target).end;
    let has_more = target.is_of_all_users() && from < session_table.index_end();
    has_more.then_some(from)
}

/// The connection indexes of one step.
pub(crate) fn step(target: &ConnectionSelector) -> Range<u32> {
    target.from..target.from.saturating_add(CONNECTIONS_AT_ONCE)
}

/// The filter of labels; `None` matches all.
pub(crate) fn compiled(target: &ConnectionSelector) -> Result<Option<Filter>, ErrorCode> {
    target.label_filter.as_deref().map(Filter::new).transpose()
}

/// Whether a session of the right user passes the other filters.
pub(crate) fn passes(
    target: &ConnectionSelector,
    labels: Option<&Filter>,
    session: &Session,
) -> bool {
    let mut buffer = Uuid::encode_buffer();
    let client: &str = session.id.hyphenated().encode_lower(&mut buffer);
    (target.session.is_empty() || target.session == session.session_id())
        && (target.client.is_empty() || target.client == client)
        && !target.whitelist.iter().any(|spared| spared == client)
        && labels.is_none_or(|filter| filter.matches(&session.app.labels))
}

/// Connections of one notice for all users.
const CONNECTIONS_AT_ONCE: u32 = 256;
