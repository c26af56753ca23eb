//! The end of subscribes to maps in progress, and of the buffers that those of ephemeral maps hold (protocol §27).
//! In: sessions and channels, the time → out: fewer reservations and buffers; the shard leaves channels.
//! Uses: the session table, the registry through the node. Never: replies.
//! Changed here: what a subscribe in progress releases. `pending/reservations.rs` keeps it.

use std::mem;
use std::sync::Arc;
use std::time::Instant;

use crate::node::Node;
use crate::pending::HeldChanges;
use crate::session_table::SessionTable;

/// Ends all subscribes in progress of a session.
pub(crate) fn end_all(node: &Node, session_table: &mut SessionTable, index: u32) {
    for channel in session_table.pending.reservations.channels(index) {
        end(node, session_table, index, &channel);
    }
}

/// Ends a subscribe in progress, if there is one, and the buffer that it holds.
pub(crate) fn end(node: &Node, session_table: &mut SessionTable, index: u32, channel: &str) {
    release_buffer(node, session_table, index, channel);
    session_table.pending.reservations.take(index, channel);
}

/// Ends the buffers of subscribes in progress that take too long.
pub(crate) fn end_overdue_buffers(
    node: &Node,
    session_table: &mut SessionTable,
    index: u32,
    now: Instant,
) {
    for channel in session_table.pending.reservations.channels(index) {
        let reservation = session_table.pending.reservations.find(index, &channel);
        if reservation.is_some_and(|reservation| reservation.is_over(now)) {
            release_buffer(node, session_table, index, &channel);
        }
    }
}

fn release_buffer(node: &Node, session_table: &mut SessionTable, index: u32, channel: &str) {
    let Some(reservation) = session_table.pending.reservations.find(index, channel) else { return };
    let channel = Arc::clone(&reservation.channel);
    match mem::replace(&mut reservation.held, HeldChanges::None) {
        HeldChanges::None => return,
        HeldChanges::Joined => {}
        HeldChanges::From(first) => drop(session_table.pending.end_to_hold(&channel, first)),
    }
    node.channels().leave(&channel, session_table.shard);
}
