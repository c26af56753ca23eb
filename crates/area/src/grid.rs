//! The tiles of a world: which one has a place, which ones a view touches, and how they change when the view moves.
//! In: places, views and the tiles of a viewer → out: a tile, the tiles entered and left, or a named error.
//! Uses `view`. Never: objects, viewers.
//! Changed here: the geometry, and the limits of views and worlds.

use std::fmt;

use crate::{AreaError, Shape, View};

/// A point of a world.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Place {
    pub x: f64,
    pub y: f64,
    pub layer: i32,
}

/// A square of a world, by its number from the origin in both directions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Tile {
    pub x: i32,
    pub y: i32,
    pub layer: i32,
}

/// The size of tiles, and how many of them a view may touch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Grid {
    /// Side of a tile, in the unit of the coordinates; at least 1.
    tile_size: u32,
    tiles_max: usize,
}

/// Tiles that entered or left the view of one viewer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ViewChange {
    /// New tiles, in the order of [`Tile`].
    pub entered: Vec<Tile>,
    pub left: Vec<Tile>,
}

/// Greatest number of a tile in each direction; beyond it a world has no places.
const TILE_NUMBER_MAX: f64 = (1 << 30) as f64;

impl ViewChange {
    /// Adds a later change. A tile that was left and entered again counts as entered, one that was entered and left as left.
    pub fn follow(&mut self, later: Self) {
        self.entered.retain(|tile| !later.left.contains(tile));
        self.left.retain(|tile| !later.entered.contains(tile));
        for (tiles, more) in [(&mut self.entered, later.entered), (&mut self.left, later.left)] {
            for tile in more {
                if !tiles.contains(&tile) {
                    tiles.push(tile);
                }
            }
        }
    }
}

impl Grid {
    /// A grid with square tiles of this size, at least 1, and views of at most `tiles_max` tiles.
    pub fn new(tile_size: u32, tiles_max: usize) -> Self {
        Self { tile_size: tile_size.max(1), tiles_max }
    }

    /// The tile of a place. A border belongs to the tile with the greater number.
    ///
    /// # Errors
    /// [`AreaError::Place`].
    pub fn tile_of(&self, place: Place) -> Result<Tile, AreaError> {
        let number = |at| self.number(at).ok_or(AreaError::Place);
        Ok(Tile { x: number(place.x)?, y: number(place.y)?, layer: place.layer })
    }

    /// How the tiles of a viewer change: it enters every tile that the view touches, and leaves those that the view and its
    /// margin do not touch.
    ///
    /// # Errors
    /// [`AreaError::View`], [`AreaError::TooManyTiles`].
    pub fn change(&self, view: &View, current: &[Tile]) -> Result<ViewChange, AreaError> {
        let with_margin = self.range(view, view.margin)?;
        if with_margin.tiles() > self.tiles_max as u64 {
            return Err(AreaError::TooManyTiles);
        }
        let inner = self.range(view, 0.0)?;
        let touched = |tile: &Tile| self.touches(view, 0.0, *tile) && !current.contains(tile);
        let entered = inner.iter(view.layer).filter(touched).collect();
        let is_left = |tile: &&Tile| {
            tile.layer != view.layer
                || !with_margin.contains(**tile)
                || !self.touches(view, view.margin, **tile)
        };
        Ok(ViewChange { entered, left: current.iter().filter(is_left).copied().collect() })
    }

    fn number(&self, at: f64) -> Option<i32> {
        let number = (at / f64::from(self.tile_size)).floor();
        (number.abs() <= TILE_NUMBER_MAX).then_some(number as i32) // not for NaN
    }

    /// The tiles that the rectangle around a view touches.
    fn range(&self, view: &View, margin: f64) -> Result<Range, AreaError> {
        if !view.is_possible() {
            return Err(AreaError::View);
        }
        let (half_width, half_height) = view.half_sizes();
        let number = |at| self.number(at).ok_or(AreaError::View);
        Ok(Range {
            x: (number(view.x - half_width - margin)?, number(view.x + half_width + margin)?),
            y: (number(view.y - half_height - margin)?, number(view.y + half_height + margin)?),
        })
    }

    /// Whether a tile in the range of a view touches it: for a circle, corners of the range may not.
    fn touches(&self, view: &View, margin: f64, tile: Tile) -> bool {
        let Shape::Circle { radius } = view.shape else { return true };
        let size = f64::from(self.tile_size);
        let distance = |centre: f64, number: i32| {
            let begin = f64::from(number) * size;
            centre - centre.clamp(begin, begin + size)
        };
        let x = distance(view.x, tile.x);
        let y = distance(view.y, tile.y);
        x.hypot(y) <= radius + margin
    }
}

/// First and last numbers of tiles.
#[derive(Clone, Copy)]
struct Range {
    x: (i32, i32),
    y: (i32, i32),
}

impl Range {
    fn tiles(self) -> u64 {
        let count = |(first, last): (i32, i32)| u64::from(last.abs_diff(first)) + 1;
        count(self.x) * count(self.y)
    }

    fn contains(self, tile: Tile) -> bool {
        (self.x.0..=self.x.1).contains(&tile.x) && (self.y.0..=self.y.1).contains(&tile.y)
    }

    fn iter(self, layer: i32) -> impl Iterator<Item = Tile> {
        let rows = self.y.0..=self.y.1;
        let columns = self.x.0..=self.x.1;
        columns.flat_map(move |x| rows.clone().map(move |y| Tile { x, y, layer }))
    }
}

impl fmt::Display for Tile {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{},{},{}", self.x, self.y, self.layer)
    }
}

#[cfg(test)]
mod tests;
