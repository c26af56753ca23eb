//! The tiles of a world: which one has a place, which ones a view touches, and how they change when the view moves.
//! In: places, views and the tiles of a viewer → out: a tile, the tiles entered and left, or a named error.
//! Uses `view`. Never: objects, viewers.
//! Changed here: the geometry, and the limits of views and worlds.

use std::fmt;

use crate::rings::Rings;
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
    /// Number of the ring around a view in which the tile is; 0 = it touches the view itself.
    pub ring: u8,
}

/// The size of tiles, how many of them a view may touch, and the rings around it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Grid {
    /// Side of a tile, in the unit of the coordinates; at least 1.
    tile_size: u32,
    tiles_max: usize,
    rings: Rings,
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

impl Tile {
    /// Whether another tile is the same square of the world, in any ring.
    pub(crate) fn is_at(self, other: Self) -> bool {
        (self.x, self.y, self.layer) == (other.x, other.y, other.layer)
    }
}

impl Grid {
    /// A grid with square tiles of this size, at least 1, and views of at most `tiles_max` tiles.
    pub fn new(tile_size: u32, tiles_max: usize) -> Self {
        Self { tile_size: tile_size.max(1), tiles_max, rings: Rings::NONE }
    }

    /// The same grid with rings around each view, as texts `DISTANCE/UPDATES`: its tiles get texts in every such update of objects.
    /// `None` for more than [`RINGS_MAX`](crate::RINGS_MAX), from `1/2` on, of which each reaches farther and is slower than the one before.
    pub fn with_rings(self, texts: &[impl AsRef<str>]) -> Option<Self> {
        Some(Self { rings: Rings::parse(texts)?, ..self })
    }

    pub(crate) fn rings(&self) -> &Rings {
        &self.rings
    }

    /// The tile of a place. A border belongs to the tile with the greater number.
    ///
    /// # Errors
    /// [`AreaError::Place`].
    pub fn tile_of(&self, place: Place) -> Result<Tile, AreaError> {
        let number = |at| self.number(at).ok_or(AreaError::Place);
        Ok(Tile { x: number(place.x)?, y: number(place.y)?, layer: place.layer, ring: 0 })
    }

    /// How the tiles of a viewer change: it enters every tile that the view or a ring touches, and leaves those that they and the
    /// margin do not touch. A tile that comes into another ring is left there and entered here.
    ///
    /// # Errors
    /// [`AreaError::View`], [`AreaError::TooManyTiles`].
    pub fn change(&self, view: &View, current: &[Tile]) -> Result<ViewChange, AreaError> {
        let farthest = self.rings.distances().last().unwrap_or_default();
        let all = self.range(view, farthest + view.margin)?;
        if all.tiles() > self.tiles_max as u64 {
            return Err(AreaError::TooManyTiles);
        }
        let entered = all.iter(view.layer).filter_map(|tile| {
            let held = current.iter().find(|held| held.is_at(tile)).map(|held| held.ring);
            let ring = self.ring_of(view, tile, held)?;
            (held != Some(ring)).then_some(Tile { ring, ..tile })
        });
        let is_left = |held: &&Tile| self.ring_of(view, **held, Some(held.ring)) != Some(held.ring);
        let left = current.iter().filter(is_left).copied().collect();
        Ok(ViewChange { entered: entered.collect(), left })
    }

    /// The ring of a tile. One that is held stays in its ring while that and the margin touch it, and no nearer ring does.
    fn ring_of(&self, view: &View, tile: Tile, held: Option<u8>) -> Option<u8> {
        let touched = self.nearest(view, 0.0, tile);
        let held = held.filter(|held| touched.is_none_or(|touched| *held < touched));
        let Some(held) = held else { return touched };
        let within_margin = self.nearest(view, view.margin, tile)?;
        if within_margin <= held { Some(held) } else { touched.or(Some(within_margin)) }
    }

    /// The nearest ring that touches a tile, with this margin around each ring.
    fn nearest(&self, view: &View, margin: f64, tile: Tile) -> Option<u8> {
        let reaches = |distance: f64| {
            let range = self.range(view, distance + margin).ok();
            tile.layer == view.layer
                && range.is_some_and(|range| range.contains(tile))
                && self.touches(view, distance + margin, tile)
        };
        let number = self.rings.distances().position(reaches)?;
        u8::try_from(number).ok()
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
        columns.flat_map(move |x| rows.clone().map(move |y| Tile { x, y, layer, ring: 0 }))
    }
}

impl fmt::Display for Tile {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{},{},{}", self.x, self.y, self.layer)
    }
}

#[cfg(test)]
mod tests;
