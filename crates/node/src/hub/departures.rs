//! The clients that a shard sends away, because its node has more of them than others or is to be left.
//! In: how many, their age, the session table → out: keys of sessions, those that lose nothing first.
//! Uses: sessions. Never: closes a connection; the shell does, one after the other.
//! Changed here: which clients leave first. How many leave is decided in `cluster/rebalance.rs`.

use std::time::{Duration, Instant};

use super::Hub;
use crate::session::{ConnectionKey, Session};
use crate::session_table::SessionTable;

/// Chooses up to `wanted` connected clients whose connections are at least as old as `min_age`: of those that it looks at,
/// first the clients that recover everything. The next call goes on behind the last one that it has looked at.
pub fn choose_departures(
    hub: &mut Hub,
    wanted: usize,
    min_age: Duration,
    now: Instant,
) -> Vec<ConnectionKey> {
    let min_age_ms = u64::try_from(min_age.as_millis()).unwrap_or(u64::MAX);
    let connected_by_ms = hub.node.clock().unix_ms(now).saturating_sub(min_age_ms);
    // Without a limit a clock that went back since a client connected keeps it no longer.
    let is_old =
        |session: &Session| min_age.is_zero() || session.connected_at_ms() <= connected_by_ms;
    let may_leave = |session: &Session| session.is_connected() && is_old(session);
    choose(&hub.session_table, &mut hub.departures_from, may_leave, wanted)
}

/// Chooses sessions for which `may_leave` holds. `from` is the index of the first one to look at.
fn choose(
    table: &SessionTable,
    from: &mut u32,
    may_leave: impl Fn(&Session) -> bool,
    wanted: usize,
) -> Vec<ConnectionKey> {
    let end = table.index_end();
    let first = (*from).min(end);
    let mut recovering = Vec::new();
    let mut others = Vec::new();
    for index in (first..end).chain(0..first).take(LOOKED_AT_MAX) {
        if recovering.len() == wanted {
            break;
        }
        *from = index + 1;
        let Some(session) = table.at(index).filter(|session| may_leave(session)) else { continue };
        let keys = if recovers_everything(session) { &mut recovering } else { &mut others };
        keys.extend(table.key_at(index));
    }
    others.truncate(wanted - recovering.len());
    recovering.append(&mut others);
    recovering
}

fn recovers_everything(session: &Session) -> bool {
    session.subscriptions.iter().all(|subscription| subscription.positioned)
}

/// Sessions that one call looks at, in about a millisecond.
const LOOKED_AT_MAX: usize = 20_000;
