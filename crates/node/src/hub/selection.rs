//! The connections of a shard that a command of the server API is for.
//! In: a selector or ids, the session table → out: keys of sessions, and the notice for the next ones.
//! Uses: `session_table/selection.rs`, commands that wait. Never: changes a session.
//! Changed here: which connections that do not wait or are not connected yet belong to it.

use fanwire_broker::ClientId;
use fanwire_cluster::ConnectionSelector;
use uuid::Uuid;

use crate::node::Node;
use crate::notice::Notice;
use crate::session::ConnectionKey;
use crate::session_table::SessionTable;
pub(super) use crate::session_table::selection::matching;
use crate::session_table::selection::{SelectedConnections, compiled, next_step, passes, step};

/// Includes sessions that are authenticated and wait for their first channels: a command for a user must include
/// connections that authenticated a moment before.
pub(super) fn matching_or_connecting(
    session_table: &SessionTable,
    target: &SelectedConnections,
) -> Vec<ConnectionKey> {
    let mut keys = matching(session_table, target);
    let selector = &target.selector;
    let Ok(filter) = compiled(selector) else { return keys };
    let is_of_all = selector.is_of_all_users();
    let mut connecting: Vec<_> = session_table.pending.connecting().collect();
    connecting.sort_unstable_by_key(|key| key.index); // not in the order of a hash table
    keys.extend(connecting.into_iter().filter(|key| {
        let session = session_table.session(*key);
        let is_in_step = step(target).contains(&key.index);
        session.is_some_and(|one| {
            (if is_of_all { is_in_step } else { *one.user == *selector.user })
                && passes(selector, filter.as_ref(), one)
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
    let mut keys = matching(session_table, &target.into());
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
    let from = next_step(session_table, notice.target()?)?;
    Some(notice.starting_at(from))
}
