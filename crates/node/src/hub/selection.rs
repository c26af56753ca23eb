//! The connections of a shard that a selector of the server API matches.
//! In: a selector, the session table → out: keys of sessions, and the notice for the next ones.
//! Uses: `session_table` lists, label filters. Never: changes a session.
//! Change here: what a selector matches, and how many connections of all users are one step.

use fanwire_broker::ClientId;
use fanwire_cluster::ConnectionSelector;
use fanwire_policy::filter::Filter;
use fanwire_protocol::ErrorCode;
use uuid::Uuid;

use crate::node::Node;
use crate::notice::Notice;
use crate::session::{ConnectionKey, Session};
use crate::session_table::SessionTable;

/// The connected sessions that a selector matches. Of all users, some of them: [`rest`] selects the next.
pub(super) fn matching(
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
        let end = session_table.index_end().min(end_of_step(target));
        return (target.from..end).filter(matches).filter_map(key).collect();
    }
    session_table.users().of(&target.user).filter(matches).filter_map(key).collect()
}

/// Also sessions that are authenticated and wait for their first channels: a command for a user must include
/// connections that authenticated a moment before.
pub(super) fn matching_or_connecting(
    session_table: &SessionTable,
    target: &ConnectionSelector,
) -> Vec<ConnectionKey> {
    let mut keys = matching(session_table, target);
    let Ok(filter) = compiled(target) else { return keys };
    let is_of_all = target.is_of_all_users();
    keys.extend(session_table.pending.connecting().filter(|key| {
        let session = session_table.session(*key);
        let is_in_step = (target.from..end_of_step(target)).contains(&key.index);
        session.is_some_and(|one| {
            (if is_of_all { is_in_step } else { *one.user == *target.user })
                && passes(target, filter.as_ref(), one)
        })
    }));
    keys
}

/// The connections of a user except the newest. The newest is read from the registry, so that of two simultaneous connects
/// exactly one stays.
pub(super) fn superseded(
    node: &Node,
    session_table: &SessionTable,
    user: &str,
) -> Vec<ConnectionKey> {
    let Some(newest) = node.registry().newest_of(user) else { return Vec::new() };
    let target = ConnectionSelector { user: user.to_owned(), ..ConnectionSelector::default() };
    let mut keys = matching(session_table, &target);
    keys.retain(|key| session_table.session(*key).is_some_and(|one| one.client_id() != newest));
    keys
}

/// The session of a client, if it is here and has this secret.
pub(super) fn with_secret(
    session_table: &mut SessionTable,
    client: ClientId,
    secret: Uuid,
) -> Option<ConnectionKey> {
    let key = session_table.index_of(client).and_then(|index| session_table.key_at(index))?;
    let session = session_table.session(key)?;
    (session.secret.as_deref() == Some(&secret)).then_some(key)
}

/// The same notice for the next connections, where it is for so many that the shard does other work in between.
pub(super) fn rest(session_table: &SessionTable, notice: &Notice) -> Option<Notice> {
    let target = notice.target().filter(|target| target.is_of_all_users())?;
    let from = end_of_step(target);
    (from < session_table.index_end()).then(|| notice.starting_at(from))
}

fn end_of_step(target: &ConnectionSelector) -> u32 {
    target.from.saturating_add(CONNECTIONS_AT_ONCE)
}

fn compiled(target: &ConnectionSelector) -> Result<Option<Filter>, ErrorCode> {
    target.label_filter.as_deref().map(Filter::new).transpose()
}

/// Whether a session of the right user passes the other filters.
fn passes(target: &ConnectionSelector, labels: Option<&Filter>, session: &Session) -> bool {
    let mut buffer = Uuid::encode_buffer();
    let client: &str = session.id.hyphenated().encode_lower(&mut buffer);
    (target.session.is_empty() || target.session == session.session_id())
        && (target.client.is_empty() || target.client == client)
        && !target.whitelist.iter().any(|spared| spared == client)
        && labels.is_none_or(|filter| filter.matches(&session.app.labels))
}

/// Connections of one notice for all users.
const CONNECTIONS_AT_ONCE: u32 = 256;
