//! Areas of interest: a world cut into square tiles, views of it, and the objects in its tiles.
//! In: places, views and states of objects → out: the tiles that a viewer enters and leaves, one text per tile that changed.
//! Uses `bytes`, JSON of serde. Never: connections, channels, a clock.
//! Changed here: the list of modules. `grid.rs` has the geometry, `objects.rs` what clients apply.
#![forbid(unsafe_code)]

mod error;
mod grid;
mod objects;
mod rings;
mod view;

pub use error::AreaError;
pub use grid::{Grid, Place, Tile, ViewChange};
pub use objects::{OBJECTS_PER_TILE_MAX, Objects};
pub use rings::RINGS_MAX;
pub use view::{Shape, View};
