//! Errors of places, views and objects.
//! In: nothing. Out: the errors and their texts.
//! Uses: thiserror. Never: codes of a protocol.
//! Changed here: the texts.

/// The reason why a place or a view was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}", self.text())]
pub enum AreaError {
    /// A place that is not finite or too far from the origin.
    Place,
    /// A view that lacks a member, is not finite, has a negative size, or is too far from the origin.
    View,
    /// A view that touches more tiles than the limit, its margin included.
    TooManyTiles,
    /// A tile has as many objects as [`OBJECTS_PER_TILE_MAX`](crate::OBJECTS_PER_TILE_MAX).
    TileFull,
}

impl AreaError {
    /// Returns the fault, or the rule that the input breaks.
    pub fn text(self) -> &'static str {
        match self {
            Self::Place => "the place is not finite, or too far from the origin",
            Self::View => {
                "the view needs finite x and y and either width and height or radius, none below 0, and not too far from the \
                 origin"
            }
            Self::TooManyTiles => "the view touches more tiles than area_tiles_max",
            Self::TileFull => "the tile has as many objects as it may have",
        }
    }
}
