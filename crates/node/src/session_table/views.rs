//! The views of subscribers of spatial channels: each tile in view is a subscription that its client does not see.
//! In: views → out: subscriptions of tiles that begin and end, and what changed.
//! Uses: `fanwire_area` for the geometry, the tables. Never: encodes, sends.
//! Change here: what a viewer is subscribed to. `hub/views.rs` handles the notices.

use std::sync::Arc;

use fanwire_area::{AreaError, Grid, Tile, View, ViewChange};
use hashbrown::HashMap;

use super::{NewSubscription, SessionTable};
use crate::hooks::ClientReport;
use crate::node::Node;
use crate::tiles::tile_channel;

/// The tiles of each viewer, by connection index.
#[derive(Debug, Default)]
pub(super) struct Views(HashMap<u32, Vec<Viewed>>);

/// One spatial channel of a viewer.
#[derive(Debug)]
struct Viewed {
    channel: Arc<str>,
    tiles: Vec<Tile>,
}

/// The place of a subscription that ended, and of the one that moved there.
pub(crate) type EndedPlace = (u32, u32);

impl Views {
    pub(super) fn forget(&mut self, index: u32) {
        self.0.remove(&index);
    }

    fn tiles_mut(&mut self, index: u32, channel: &Arc<str>) -> &mut Vec<Tile> {
        let channels = self.0.entry(index).or_default();
        let at = channels.iter().position(|viewed| viewed.channel == *channel);
        let at = at.unwrap_or_else(|| {
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
    /// A subscriber of a spatial channel has another view. Returns the places of the subscriptions that ended.
    ///
    /// # Errors
    /// Those of [`Grid::change`]; nothing has changed then.
    pub(crate) fn set_view(
        &mut self,
        node: &Node,
        index: u32,
        channel: &Arc<str>,
        (grid, view): (Grid, View),
    ) -> Result<Vec<EndedPlace>, AreaError> {
        let tiles = self.views.tiles_mut(index, channel);
        let change = grid.change(&view, tiles)?;
        tiles.retain(|tile| !change.left.contains(tile));
        tiles.extend(&change.entered);
        let ended = change.left.iter().map(|tile| self.leave_tile(node, index, channel, *tile));
        let ended = ended.collect();
        for tile in &change.entered {
            let name = node.channels().join(&tile_channel(channel, *tile), self.shard);
            let subscription = NewSubscription { server_side: false, is_tile: true, terms: None };
            self.add_subscription(index, &name, subscription);
        }
        self.report_view(node, index, channel, change);
        Ok(ended)
    }

    /// The subscription to a spatial channel ends: so do those of its tiles. Returns their places.
    pub(crate) fn end_view(&mut self, node: &Node, index: u32, channel: &str) -> Vec<EndedPlace> {
        let tiles = self.views.take(index, channel);
        tiles.into_iter().map(|tile| self.leave_tile(node, index, channel, tile)).collect()
    }

    fn leave_tile(&mut self, node: &Node, index: u32, channel: &str, tile: Tile) -> EndedPlace {
        let place = self.place_of(index, &tile_channel(channel, tile)).expect(SUBSCRIBED);
        (place as u32, self.leave(node, index, place))
    }

    fn report_view(&self, node: &Node, index: u32, channel: &Arc<str>, change: ViewChange) {
        let (Some(report), Some(session)) = (&node.hooks().report, self.at(index)) else { return };
        if change != ViewChange::default() {
            let (client, channel) = (session.client_info(None), Arc::clone(channel));
            report(ClientReport::ViewChanged { client, channel, change });
        }
    }
}

const SUBSCRIBED: &str = "a viewer is subscribed to its tiles";
