//! The players of a room: the inputs that were applied, and the tiles that they see.
//! In: the commands of ticks → out: sequence numbers, whether a tile has viewers.
//! Uses values only. Never: names of users; the simulation keeps what it needs of them.
//! Changed here: what a room knows of its players.

use fanwire_area::{Tile, ViewChange};
use hashbrown::HashMap;

/// Identifies a player of a room from its join to its leave. Ids begin with 1 and are not used again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PlayerId(pub u32);

/// The players, and how many of them see each tile.
#[derive(Debug, Default)]
pub(crate) struct Players {
    players: HashMap<PlayerId, PlayerState>,
    viewers: HashMap<Tile, u32>,
}

#[derive(Debug, Default)]
struct PlayerState {
    /// Sequence number of the last input that was applied.
    sequence: Option<u32>,
    tiles: Vec<Tile>,
}

impl Players {
    pub(crate) fn join(&mut self, player: PlayerId) {
        self.players.insert(player, PlayerState::default());
    }

    pub(crate) fn leave(&mut self, player: PlayerId) {
        let tiles = self.players.remove(&player).map(|state| state.tiles).unwrap_or_default();
        tiles.into_iter().for_each(|tile| self.lose(tile));
    }

    pub(crate) fn applied(&mut self, player: PlayerId, sequence: u32) {
        if let Some(state) = self.players.get_mut(&player) {
            state.sequence = Some(sequence);
        }
    }

    pub(crate) fn change_view(&mut self, player: PlayerId, change: &ViewChange) {
        let Some(state) = self.players.get_mut(&player) else { return };
        let left = &change.left;
        let entered = &change.entered;
        let lost: Vec<_> = state.tiles.extract_if(.., |tile| left.contains(tile)).collect();
        let unknown = entered.iter().filter(|tile| !state.tiles.contains(tile));
        let new: Vec<_> = unknown.copied().collect();
        state.tiles.extend(&new);
        lost.into_iter().for_each(|tile| self.lose(tile));
        new.into_iter().for_each(|tile| *self.viewers.entry(tile).or_default() += 1);
    }

    pub(crate) fn see(&self, tile: Tile) -> bool {
        self.viewers.contains_key(&tile)
    }

    pub(crate) fn sequence(&self, player: PlayerId) -> Option<u32> {
        self.players.get(&player)?.sequence
    }

    pub(crate) fn count(&self) -> usize {
        self.players.len()
    }

    fn lose(&mut self, tile: Tile) {
        if let Some(count) = self.viewers.get_mut(&tile) {
            *count -= 1;
            if *count == 0 {
                self.viewers.remove(&tile);
            }
        }
    }
}
