//! Sessions that move to another program, which goes on with their connections: the client notices nothing.
//! In: a session at rest → out: its record; a record → the same session in this program, without a message, an event or a hook.
//! Uses: `session_record`, the tables, the registry. Never: connections, engines; the shell and the engine move them.
//! Changed here: which sessions move. `takeover/adoption.rs` puts an adopted one into the tables.

mod adoption;

use std::sync::Arc;
use std::time::Instant;

use fanwire_policy::channel::NamespaceId;
use fanwire_policy::options::Namespace;
use fanwire_policy::{InNamespace, NamespaceAction, NodeSettings, SavedRates};

use super::Hub;
use crate::node::{Node, is_polled};
use crate::outbox::Outbox;
use crate::session::{ConnectionKey, Session};
use crate::session_record::{NamespaceRateRecord, RatesRecord, SessionRecord};
use crate::session_table::SessionTable;
use adoption::{Adoption, CheckedRecord};

impl Hub {
    /// Delivers the publications that wait for others of their channel, before sessions are [saved](Self::save).
    pub fn flush(&mut self, now: Instant, out: &mut impl Outbox) {
        while let Some(batch) = self.batches.pop() {
            batch.iter().for_each(|broadcast| self.broadcast(broadcast, now, out));
        }
    }

    /// The state of a session for another program, when the inbox of the shard is empty. `None` if it [cannot move](can_move).
    pub fn save(&mut self, key: ConnectionKey, now: Instant) -> Option<Vec<u8>> {
        if !can_move(self, key) {
            return None;
        }
        let table = &self.session_table;
        let session = table.session(key)?;
        let mut record = table.record(key.index, session, self.node.clock().moment(now));
        let rates = table.limits.save(key.index, self.node.clock().nanos(now));
        record.rates = rates.map(|rates| rates_record(&rates, &self.settings));
        Some(record.encode())
    }

    /// Opens a connection with a session that another program saved: its client is connected and subscribed as it was. Returns
    /// `false`, and changes nothing, if the record is not understood or a channel does not exist by the rules of this program.
    pub fn adopt(&mut self, key: ConnectionKey, saved: &[u8], now: Instant) -> bool {
        self.now = Some(now);
        self.node.refresh_settings(&mut self.settings);
        let record = SessionRecord::decode(saved);
        let checked = record.and_then(|record| CheckedRecord::new(record, &self.settings));
        let Some(checked) = checked.filter(|_| self.session_table.at(key.index).is_none()) else {
            return false;
        };
        let node = &self.node;
        Adoption { node, table: &mut self.session_table, key, now }.adopt(checked);
        true
    }
}

/// Whether a session can move to another program now. It cannot while a command of its client is not finished, with a subscription to a
/// shared poll or to a map that nodes share, and if something around the node [stays](fanwire_policy::hooks::Hooks::stays) here.
pub fn can_move(hub: &mut Hub, key: ConnectionKey) -> bool {
    hub.node.refresh_settings(&mut hub.settings);
    let table = &hub.session_table;
    table.session(key).is_some()
        && !table.pending.has_unfinished(key.index)
        && !stays(&hub.node, &hub.settings, table, key.index)
}

/// Whether a session has a subscription that cannot move.
fn stays(node: &Node, settings: &NodeSettings, table: &SessionTable, index: u32) -> bool {
    let is_shared = node.cluster().has_bus();
    let stays_here = |namespace: &Namespace| {
        // Nodes that share an engine look for expired entries of the maps that their clients have subscribed to.
        is_polled(namespace) || is_shared && namespace.subscription_type.is_of_maps()
    };
    let is_of_node = |channel: &Arc<str>| {
        let namespace = settings.channels.resolve_trusted(channel);
        namespace.is_ok_and(stays_here)
    };
    if table.tracks_keys(index) || table.channels_of(index).any(is_of_node) {
        return true;
    }
    let Some(stays) = &node.hooks().stays else { return false };
    let client = table.at(index).map(Session::client).unwrap_or_default();
    table.channels_of(index).any(|channel| stays(&client, channel))
}

fn rates_record(rates: &SavedRates, settings: &NodeSettings) -> RatesRecord {
    let record = |(counted, nanos): &(NamespaceAction, u64)| {
        let NamespaceAction { namespace: NamespaceId(number), action } = counted;
        NamespaceRateRecord {
            namespace: settings.names().get(usize::from(*number)).cloned().unwrap_or_default(),
            is_of_subscribes: *action == InNamespace::Subscribe,
            nanos: *nanos,
        }
    };
    RatesRecord {
        commands: rates.commands,
        refusals: rates.refusals,
        namespaces: rates.namespaces.iter().map(record).collect(),
    }
}

#[cfg(test)]
mod tests;
