//! Handles notices of views: a subscriber of a spatial channel sees other tiles.
//! In: a client, a channel and its view → out: subscriptions of tiles, without a message.
//! Uses: `session_table`. Never: the geometry.
//! Change here: who may have a view. `session_table/views.rs` changes the tables.

use std::sync::Arc;

use fanwire_area::View;
use fanwire_broker::ClientId;
use fanwire_policy::NodeSettings;

use crate::node::Node;
use crate::outbox::Outbox;
use crate::session_effects;
use crate::session_table::SessionTable;

/// Without effect for a client that is not subscribed on this shard.
pub(super) fn set_view(
    (node, settings): (&Node, &NodeSettings),
    session_table: &mut SessionTable,
    (client, channel, view): (ClientId, &Arc<str>, View),
    out: &mut impl Outbox,
) {
    let grid = settings.channels.resolve_trusted(channel).ok().and_then(|it| it.grid());
    let (Some(grid), Some(index)) = (grid, session_table.index_of(client)) else { return };
    if session_table.subscription_to(index, channel).is_none() {
        return;
    }
    // The node has checked the view; after a reload with other limits it stays as it was.
    let ended = session_effects::set_view(node, session_table, (index, channel), (grid, view));
    ended.unwrap_or_default().into_iter().for_each(|moved| out.ended(index, moved));
}
