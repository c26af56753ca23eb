//! Places in the channels of one namespace (`area_tile_size`, `area_tiles_max`, `area_rings`).
//! In: values from the configuration table → out: the same data.
//! May use: nothing. Never checks anything: that is `channel/build.rs`.
//! Changed here: defaults; the geometry is in `fanwire_area`.

/// The tiles of channels with places.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AreaOptions {
    /// Length of a side of a tile; 0 = channels have no places.
    pub tile_size: u32,
    /// Tiles that one view may touch, its margin included, at least 1.
    pub tiles_max: usize,
    /// Rings around a view, as [`fanwire_area::Grid::with_rings`] reads them.
    pub rings: Vec<String>,
}

impl Default for AreaOptions {
    fn default() -> Self {
        Self { tile_size: 0, tiles_max: 64, rings: Vec::new() }
    }
}
