//! Calls of a backend that do not keep the later commands of their session waiting (`client.concurrency`).
//! In: rpc commands that a hook decides about → out: the command of a decision that arrived.
//! Uses: values only. Never: commands that change a session; those wait in `pending.rs`.
//! Changed here: how many calls a session has in flight.

use bytes::Bytes;
use hashbrown::HashMap;

use super::{AwaitedResult, Ticket};
use crate::session::ConnectionKey;

/// Calls in flight, by connection index.
#[derive(Debug, Default)]
pub(crate) struct Calls(HashMap<u32, SessionCalls>);

#[derive(Debug, Default)]
struct SessionCalls {
    generation: u32,
    /// The commands.
    commands: Vec<(Ticket, Bytes)>,
}

impl Calls {
    /// Keeps a command until its decision arrives. Returns false when the session has `limit` of them.
    pub(crate) fn add(
        &mut self,
        key: ConnectionKey,
        ticket: Ticket,
        command: Bytes,
        limit: usize,
    ) -> bool {
        let session = self.0.entry(key.index).or_default();
        session.generation = key.generation;
        let has_room = session.commands.len() < limit;
        if has_room {
            session.commands.push((ticket, command));
        }
        has_room
    }

    /// The command whose decision arrived.
    pub(crate) fn take(&mut self, arrival: &AwaitedResult) -> Option<Bytes> {
        let session = self.0.get_mut(&arrival.key.index)?;
        if session.generation != arrival.key.generation {
            return None;
        }
        let place = session.commands.iter().position(|(ticket, _)| *ticket == arrival.ticket)?;
        let (_, command) = session.commands.swap_remove(place);
        if session.commands.is_empty() {
            self.0.remove(&arrival.key.index);
        }
        Some(command)
    }

    /// Whether a connection has calls in flight.
    pub(crate) fn has_some(&self, connection: u32) -> bool {
        self.0.contains_key(&connection)
    }

    /// The session is gone.
    pub(crate) fn forget(&mut self, key: ConnectionKey) {
        if !self.0.is_empty() {
            self.0.remove(&key.index);
        }
    }
}
