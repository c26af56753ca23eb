//! Tiles of spatial channels: each is a channel of its own inside of the node, with a name that no client can give.
//! In: a channel and a tile → out: the name of the tile's channel, and back.
//! Uses: `fanwire_area`. Never: sessions, subscriber lists.
//! Changed here: the names. Who is subscribed to which tile: `session_table/views.rs`.

use fanwire_area::Tile;

/// The name of a tile's channel; a tile in a ring has a channel for the viewers at that distance.
pub fn tile_channel(channel: &str, tile: Tile) -> String {
    match tile.ring {
        0 => format!("{channel}{MARK}{tile}"),
        ring => format!("{channel}{MARK}{tile};{ring}"),
    }
}

/// The channel that clients know: the same one, except for a tile.
pub fn public_channel(channel: &str) -> &str {
    // Only ASCII names are common, and they are scanned fast.
    if channel.is_ascii() { channel } else { channel.split(MARK).next().unwrap_or(channel) }
}

/// Whether a name is that of a tile.
pub fn is_tile(channel: &str) -> bool {
    !channel.is_ascii() && channel.contains(MARK)
}

/// No character (Unicode §23.7), so that a name of a client or a user does not contain it by accident.
const MARK: char = '\u{10ffff}';
