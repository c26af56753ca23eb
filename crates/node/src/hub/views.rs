//! Handles notices of views: a subscriber of a spatial channel sees other tiles.
//! In: a client, a channel and its view → out: subscriptions of tiles, without a message.
//! Uses: `session_table`. Never: the geometry.
//! Change here: who may have a view. `session_table/views.rs` changes the tables.

use std::sync::Arc;

use fanwire_area::View;
use fanwire_broker::ClientId;

use super::Hub;
use crate::outbox::Outbox;
use crate::session::ConnectionKey;

impl Hub {
    /// Without effect for a client that is not subscribed on this shard.
    pub(super) fn set_view(
        &mut self,
        client: ClientId,
        channel: &Arc<str>,
        view: View,
        out: &mut impl Outbox,
    ) {
        self.node.refresh_settings(&mut self.settings);
        let grid = self.settings.channels.resolve_trusted(channel).ok().and_then(|it| it.grid());
        let index = self.session_table.index_of(client);
        let (Some(grid), Some(index)) = (grid, index) else { return };
        if self.session_table.place_of(index, channel).is_none() {
            return;
        }
        // The node has checked the view; after a reload with other limits it stays as it was.
        let ended = self.session_table.set_view(&self.node, index, channel, (grid, view));
        for (place, last) in ended.unwrap_or_default() {
            out.ended(index, place, last);
        }
    }

    /// Ends the subscriptions of the tiles of a channel.
    pub(super) fn end_view(&mut self, key: ConnectionKey, channel: &str, out: &mut impl Outbox) {
        for (place, last) in self.session_table.end_view(&self.node, key.index, channel) {
            out.ended(key.index, place, last);
        }
    }
}
