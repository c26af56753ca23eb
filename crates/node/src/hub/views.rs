//! Handles notices of views: a subscriber of a spatial channel sees other tiles.
//! In: a client, a channel and its view → out: subscriptions of tiles, without a message.
//! Uses: `session_table`. Never: the geometry.
//! Changed here: who may have a view. `session_table/views.rs` changes the tables.

use std::sync::Arc;

use fanwire_area::View;
use fanwire_broker::ClientId;
use fanwire_policy::options::Namespace;

use super::Hub;
use crate::index::SubscriptionKey;
use crate::outbox::Outbox;
use crate::pending::GridView;
use crate::session_effects;

impl Hub {
    /// Does nothing for a client that is not subscribed on this shard.
    pub(super) fn set_view(
        &mut self,
        client: ClientId,
        channel: &Arc<str>,
        view: View,
        out: &mut impl Outbox,
    ) {
        let namespace = self.settings.channels.resolve_trusted(channel).ok();
        let Some(grid) = namespace.and_then(Namespace::grid) else { return };
        let table = &mut self.session_table;
        let Some(connection) = table.index_of(client) else { return };
        if table.subscription_to(connection, channel).is_none() {
            return;
        }
        let key = SubscriptionKey { connection, channel };
        // The node has checked the view; after a reload with other limits it stays as it was.
        let ended = session_effects::set_view(&self.node, table, key, GridView { grid, view });
        for moved in ended.unwrap_or_default() {
            out.ended(connection, moved);
        }
    }
}
