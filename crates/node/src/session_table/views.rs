//! The views of subscribers of spatial channels: each tile in view is a subscription that its client does not see.
//! In: views → out: tiles whose subscriptions begin and end.
//! Uses: `fanwire_area` for the geometry, the tables. Never: encodes, sends.
//! Changed here: what a viewer is subscribed to. `session_effects.rs` subscribes, `hub/views.rs` handles the notices.

use std::sync::Arc;

use fanwire_area::{AreaError, Tile, ViewChange};
use fanwire_policy::tiles::tile_channel;
use hashbrown::HashMap;

use super::{EndedSubscription, SessionTable};
use crate::index::SubscriptionKey;
use crate::pending::GridView;

/// The tiles of each viewer, by connection index.
#[derive(Debug, Default)]
pub(super) struct Views(HashMap<u32, Vec<Viewed>>);

/// One spatial channel of a viewer.
#[derive(Debug)]
struct Viewed {
    channel: Arc<str>,
    tiles: Vec<Tile>,
}

impl Views {
    pub(super) fn forget(&mut self, index: u32) {
        self.0.remove(&index);
    }

    /// The tiles in the view of a channel.
    pub(super) fn tiles(&self, index: u32, channel: &str) -> &[Tile] {
        let mut channels = self.0.get(&index).into_iter().flatten();
        let viewed = channels.find(|viewed| *viewed.channel == *channel);
        viewed.map_or(&[], |viewed| &viewed.tiles)
    }

    /// The channels of a viewer with the tiles that it sees.
    pub(super) fn of(&self, index: u32) -> impl Iterator<Item = (&Arc<str>, &[Tile])> {
        let channels = self.0.get(&index).into_iter().flatten();
        channels.map(|viewed| (&viewed.channel, viewed.tiles.as_slice()))
    }

    fn tiles_mut(&mut self, index: u32, channel: &Arc<str>) -> &mut Vec<Tile> {
        let channels = self.0.entry(index).or_default();
        let at =
            channels.iter().position(|viewed| viewed.channel == *channel).unwrap_or_else(|| {
                channels.push(Viewed { channel: Arc::clone(channel), tiles: Vec::new() });
                channels.len() - 1
            });
        &mut channels[at].tiles
    }

    /// Removes a channel of a viewer and returns its tiles.
    fn take(&mut self, index: u32, channel: &str) -> Vec<Tile> {
        let Some(channels) = self.0.get_mut(&index) else { return Vec::new() };
        let at = channels.iter().position(|viewed| *viewed.channel == *channel);
        let tiles = at.map(|at| channels.swap_remove(at).tiles).unwrap_or_default();
        if channels.is_empty() {
            self.0.remove(&index);
        }
        tiles
    }
}

impl SessionTable {
    /// A subscriber of a spatial channel has these tiles in view; their subscriptions have to be added.
    pub(crate) fn restore_view(&mut self, key: SubscriptionKey<'_>, tiles: &[Tile]) {
        self.views.tiles_mut(key.connection, key.channel).extend(tiles);
    }

    /// A subscriber of a spatial channel has another view: the subscriptions of the tiles that left it end. Those of the
    /// tiles that entered it have to be added.
    ///
    /// # Errors
    /// Those of [`Grid::change`]; nothing has changed then.
    pub(crate) fn change_view(
        &mut self,
        key: SubscriptionKey<'_>,
        wanted: GridView,
    ) -> Result<(ViewChange, Vec<EndedSubscription>), AreaError> {
        let tiles = self.views.tiles_mut(key.connection, key.channel);
        let change = wanted.grid.change(&wanted.view, tiles)?;
        tiles.retain(|tile| !change.left.contains(tile));
        tiles.extend(&change.entered);
        let ended = self.end_tiles(key.connection, key.channel, &change.left);
        Ok((change, ended))
    }

    /// The subscription to a spatial channel ends: so do those of its tiles.
    pub(crate) fn end_view(&mut self, index: u32, channel: &str) -> Vec<EndedSubscription> {
        let tiles = self.views.take(index, channel);
        self.end_tiles(index, channel, &tiles)
    }

    fn end_tiles(&mut self, index: u32, channel: &str, tiles: &[Tile]) -> Vec<EndedSubscription> {
        let end = |tile: &Tile| {
            let own = self.subscription_to(index, &tile_channel(channel, *tile));
            self.end_subscription(index, own.expect(SUBSCRIBED))
        };
        tiles.iter().map(end).collect()
    }
}

const SUBSCRIBED: &str = "a viewer is subscribed to its tiles";
