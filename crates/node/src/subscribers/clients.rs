//! Client id → connection of a shard: used by publications with an excluded client, and by leaves.
//! In: clients that connect and disconnect → out: the index of one, with one lookup.
//! Uses: a hash table of indices, filled at the first lookup. Never: sessions; the caller passes them.
//! Changed here: how clients are found. `hub/notices.rs` uses the result.

use fanwire_broker::ClientId;
use hashbrown::HashTable;

use crate::session::Session;

/// The connected clients of one shard by their ids, which are random and so their own hashes.
///
/// Empty until the first lookup: without excluded clients and leaves a connection costs nothing, else 5 to 10 bytes.
#[derive(Debug, Default)]
pub(crate) struct Clients(Option<HashTable<u32>>);

impl Clients {
    /// The index of a client among `sessions`, by connection index.
    pub(crate) fn find(&mut self, id: ClientId, sessions: &[Option<Session>]) -> Option<u32> {
        let table = self.0.get_or_insert_with(|| table_of(sessions));
        let is_it = |index: &u32| id_at(sessions, *index) == Some(id);
        table.find(id.hash(), is_it).copied()
    }

    /// Adds the session at `index`, which has just connected.
    pub(crate) fn add(&mut self, index: u32, sessions: &[Option<Session>]) {
        if let (Some(table), Some(id)) = (&mut self.0, id_at(sessions, index)) {
            table.insert_unique(id.hash(), index, |index| hash_at(sessions, *index));
        }
    }

    /// Removes a connected session.
    pub(crate) fn remove(&mut self, index: u32, id: ClientId) {
        if let Some(table) = &mut self.0 {
            let entry = table.find_entry(id.hash(), |other| *other == index);
            entry.expect("every connected client is in the table").remove();
        }
    }
}

fn table_of(sessions: &[Option<Session>]) -> HashTable<u32> {
    let connected = (0..).zip(sessions).filter_map(|(index, session)| {
        session.as_ref().filter(|session| session.is_connected()).map(|session| (index, session))
    });
    let mut table = HashTable::with_capacity(connected.clone().count());
    for (index, session) in connected {
        let hash = session.client_id().hash();
        table.insert_unique(hash, index, |index| hash_at(sessions, *index));
    }
    table
}

fn id_at(sessions: &[Option<Session>], index: u32) -> Option<ClientId> {
    sessions[index as usize].as_ref().map(Session::client_id)
}

fn hash_at(sessions: &[Option<Session>], index: u32) -> u64 {
    id_at(sessions, index).expect("clients in the table have sessions").hash()
}

#[cfg(test)]
mod tests;
