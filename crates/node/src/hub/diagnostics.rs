//! Answers questions for diagnosis from the state of a shard.
//! In: a question, the time → out: the part of this shard in the answer of the node.
//! Uses: `flight_log`, the session table. Never: other shards, sends to clients.
//! Change here: how a shard answers a question.

use std::collections::BTreeMap;
use std::time::Instant;

use fanwire_cluster::{DiagnosticList, DiagnosticQuestion, HotEntry};
use fanwire_recorder::ConnectionFacts;
use fanwire_telemetry::Largest;
use uuid::Uuid;

use crate::flight_log;
use crate::node::Node;
use crate::outbox::Outbox;
use crate::session_table::SessionTable;

/// Adds what this shard knows.
pub(super) fn answer(
    node: &Node,
    session_table: &SessionTable,
    list: &DiagnosticList,
    now: Instant,
    out: &impl Outbox,
) {
    match &list.question {
        DiagnosticQuestion::ConnectionLogs(query) => {
            let logs = flight_log::find(node, session_table, query, now);
            list.add(|answer| answer.logs.extend(logs));
        }
        DiagnosticQuestion::Receipt(_) => {} // of the node, for all shards
        DiagnosticQuestion::HotLists(limit) => {
            let limit = *limit as usize;
            let (users, queues) = (users(session_table, limit), queues(session_table, limit, out));
            let refusals = refusals(session_table, limit, node.clock().unix_ms(now));
            list.add(|answer| {
                if let Some(hot) = &mut answer.hot {
                    hot.users.extend(users);
                    hot.queues.extend(queues);
                    hot.refusals.extend(refusals);
                }
            });
        }
    }
}

/// Users by connections to this shard.
fn users(session_table: &SessionTable, limit: usize) -> Vec<HotEntry> {
    let mut users = Largest::new(limit);
    for (user, connections) in session_table.users().counts() {
        users.offer(connections as u64, || (user.as_ref().to_owned(), String::new()));
    }
    entries(users)
}

/// Clients by bytes that wait for their sockets.
fn queues(session_table: &SessionTable, limit: usize, out: &impl Outbox) -> Vec<HotEntry> {
    let mut clients = Largest::new(limit);
    for index in 0..session_table.index_end() {
        let Some(session) = session_table.at(index).filter(|one| one.is_connected()) else {
            continue;
        };
        let name = || (session.client(), session.user.as_ref().to_owned());
        clients.offer(out.queued_bytes(index) as u64, name);
    }
    entries(clients)
}

/// Clients by refused commands, and addresses by connects that were refused in the last hour.
fn refusals(session_table: &SessionTable, limit: usize, now_ms: u64) -> Vec<HotEntry> {
    let mut clients = Largest::new(limit);
    for log in session_table.recorder.open_logs() {
        let ConnectionFacts { client, user, .. } = log.facts();
        let name = || (Uuid::from_u128(*client).to_string(), user.as_ref().to_owned());
        let is_connected = *client != 0;
        clients.offer(if is_connected { log.refusals().into() } else { 0 }, name);
    }
    let mut connects = BTreeMap::<(String, &str), u64>::new();
    for log in session_table.recorder.refused_logs(now_ms) {
        let ConnectionFacts { user, address, .. } = log.facts();
        let address = address.map(|address| address.to_string()).unwrap_or_default();
        *connects.entry((address, user)).or_default() += u64::from(log.refusals());
    }
    for ((address, user), refusals) in connects {
        clients.offer(refusals, || (address, user.to_owned()));
    }
    entries(clients)
}

fn entries(largest: Largest<(String, String)>) -> Vec<HotEntry> {
    let entry = |(value, (name, user))| HotEntry { name, user, value };
    largest.into_vec().into_iter().map(entry).collect()
}
