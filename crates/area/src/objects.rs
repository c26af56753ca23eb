//! The objects of a world by tile, and the texts that keep clients up to date.
//! In: places and states of objects during a tick → out: one text for each tile that changed, made once for all its viewers.
//! Uses `grid`. Never: viewers; the caller that sends a text to the viewers of its tile knows them.
//! Changed here: the form of the texts, and the rules by which clients apply them.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use bytes::Bytes;
use hashbrown::HashMap;

use crate::{AreaError, Grid, Place, Tile, ViewChange};

/// The objects of a world.
///
/// Clients keep the tiles that they have and, for each object, its state and its tile. They apply three kinds of JSON texts:
///
/// - `{"tile":"3,-2,0","full":true,"set":{"7":STATE}}`: the client has the tile from now on; it removes the objects of that tile
///   and sets these.
/// - `{"tile":"3,-2,0","set":{"7":STATE},"moved":{"8":"4,-2,0"},"removed":[9]}`: ignored if the client does not have the tile.
///   It sets the objects of `set`, each with its state and this tile. It removes those of `removed` whose tile is this one. Those of
///   `moved` whose tile is this one get the named tile if the client has that, and else are removed.
/// - `{"left":["3,-2,0"]}`: the client no longer has these tiles, if it had them; it removes their objects.
///
/// Texts of the second kind go to all viewers of a tile in the order of the ticks. Full texts and `left` go to a viewer whose view
/// changed, after the texts of the tick, so that a viewer has exactly the objects of its tiles after each tick. Of tiles in a ring it has
/// them as they were when the ring last got texts.
///
/// A tick costs time for the objects that changed, and bytes for those in tiles that have viewers, however large the world is.
#[derive(Clone, Debug)]
pub struct Objects {
    grid: Grid,
    objects: HashMap<u64, PlacedObject>,
    tiles: HashMap<Tile, TileObjects>,
    /// Objects that changed since the last update, in the order of their first change.
    changed: Vec<u64>,
    /// Tile of each changed object after the last update; `None` for a new object.
    origins: HashMap<u64, Option<Tile>>,
    updates: u64,
    /// Changes that are sent to viewers at a distance later, by ring.
    rings: Vec<RingChanges>,
}

/// Changes since a ring last got some.
#[derive(Clone, Debug, Default)]
struct RingChanges {
    /// The ring gets its changes in every such update.
    every: u64,
    /// The objects in the order of their first change.
    changed: Vec<u64>,
    /// All tiles in which each of them was after an update: a viewer may have heard of it there, in a nearer ring.
    origins: HashMap<u64, Vec<Tile>>,
}

#[derive(Clone, Debug)]
struct PlacedObject {
    tile: Tile,
    /// JSON.
    state: Bytes,
}

#[derive(Clone, Debug, Default)]
struct TileObjects {
    ids: BTreeSet<u64>,
    /// The full text, until something changes.
    full: Option<Bytes>,
}

/// The changes of one tile in a tick, as parts of its text.
#[derive(Default)]
struct TileText {
    set: String,
    moved: String,
    removed: String,
}

/// Objects in one tile. Its full text has all of them.
pub const OBJECTS_PER_TILE_MAX: usize = 10_000;

impl Objects {
    /// No objects, in a world with these tiles.
    pub fn new(grid: Grid) -> Self {
        Self {
            objects: Default::default(),
            tiles: Default::default(),
            changed: Default::default(),
            origins: Default::default(),
            updates: 0,
            rings: grid.rings().paces().map(RingChanges::every).collect(),
            grid,
        }
    }

    /// Puts an object at a place, with a JSON state. The same state in the same tile changes nothing.
    ///
    /// # Errors
    /// [`AreaError::Place`], [`AreaError::TileFull`]; the object stays where it is.
    pub fn put(&mut self, id: u64, place: Place, state: impl Into<Bytes>) -> Result<(), AreaError> {
        let tile = self.grid.tile_of(place)?;
        let state = state.into();
        let old = self.objects.get(&id);
        let origin = old.map(|old| old.tile);
        if old.is_some_and(|old| old.tile == tile && old.state == state) {
            return Ok(());
        }
        if origin != Some(tile) {
            let objects = self.tiles.entry(tile).or_default();
            if objects.ids.len() >= OBJECTS_PER_TILE_MAX {
                return Err(AreaError::TileFull);
            }
            objects.ids.insert(id);
            origin.iter().for_each(|origin| self.take_out(id, *origin));
        }
        self.touch(id, origin);
        self.forget_full(tile);
        self.objects.insert(id, PlacedObject { tile, state });
        Ok(())
    }

    /// Removes an object, if there is one.
    pub fn remove(&mut self, id: u64) {
        if let Some(PlacedObject { tile, .. }) = self.objects.remove(&id) {
            self.touch(id, Some(tile));
            self.take_out(id, tile);
        }
    }

    /// The texts of the tiles that changed since the last call and have viewers, each for the viewers of its tile; in the order of
    /// tiles. A tile in a ring has one in every nth call only.
    pub fn update(&mut self, has_viewers: impl Fn(Tile) -> bool) -> Vec<(Tile, Bytes)> {
        self.updates += 1;
        let mut texts = Texts { texts: HashMap::new(), has_viewers, ring: 0 };
        for id in self.changed.drain(..) {
            let origin = self.origins.remove(&id).flatten();
            texts.tell(id, origin.as_slice(), self.objects.get(&id));
            self.rings.iter_mut().for_each(|ring| ring.add(id, origin));
        }
        for (number, ring) in (1..).zip(&mut self.rings) {
            if self.updates.is_multiple_of(ring.every) {
                texts.ring = number;
                for id in ring.changed.drain(..) {
                    let origins = ring.origins.remove(&id).unwrap_or_default();
                    texts.tell(id, &origins, self.objects.get(&id));
                }
            }
        }
        let finished = texts.texts.into_iter().map(|(tile, text)| (tile, text.finish(tile)));
        let mut texts: Vec<_> = finished.collect();
        texts.sort_unstable_by_key(|(tile, _)| *tile);
        texts
    }

    /// The text with all objects of a tile as of now, for a viewer that enters it. Made once until something changes. Call it after
    /// [`update`](Self::update).
    pub fn full(&mut self, tile: Tile) -> Bytes {
        let tile = Tile { ring: 0, ..tile };
        let Self { objects, tiles, .. } = self;
        let make = |ids: &BTreeSet<u64>| {
            let mut set = String::new();
            for id in ids {
                member(&mut set, *id, &String::from_utf8_lossy(&objects[id].state));
            }
            format!(r#"{{"tile":"{tile}","full":true,"set":{{{set}}}}}"#).into()
        };
        match tiles.get_mut(&tile) {
            Some(TileObjects { ids, full }) => full.get_or_insert_with(|| make(ids)).clone(),
            None => make(&BTreeSet::new()),
        }
    }

    /// The texts for a viewer whose view changed: what it left, then the full text of each tile that it entered.
    pub fn change_of_view(&mut self, change: &ViewChange) -> Vec<Bytes> {
        let mut texts = Vec::with_capacity(change.entered.len() + 1);
        let is_entered = |left: &Tile| change.entered.iter().any(|tile| tile.is_at(*left));
        let left = change.left.iter().filter(|left| !is_entered(left));
        let left: Vec<_> = left.map(|tile| format!("\"{tile}\"")).collect();
        if !left.is_empty() {
            texts.push(format!(r#"{{"left":[{}]}}"#, left.join(",")).into());
        }
        texts.extend(change.entered.iter().map(|tile| self.full(*tile)));
        texts
    }

    pub fn len(&self) -> usize {
        self.objects.len()
    }

    pub fn is_empty(&self) -> bool {
        self.objects.is_empty()
    }

    /// Marks an object as changed, which was in `origin` before.
    fn touch(&mut self, id: u64, origin: Option<Tile>) {
        let changed = &mut self.changed;
        self.origins.entry(id).or_insert_with(|| {
            changed.push(id);
            origin
        });
    }

    fn take_out(&mut self, id: u64, tile: Tile) {
        let Some(objects) = self.tiles.get_mut(&tile) else { return };
        objects.ids.remove(&id);
        objects.full = None;
        if objects.ids.is_empty() {
            self.tiles.remove(&tile);
        }
    }

    fn forget_full(&mut self, tile: Tile) {
        self.tiles.entry(tile).or_default().full = None;
    }
}

impl RingChanges {
    fn every(updates: u32) -> Self {
        Self { every: updates.into(), ..Self::default() }
    }

    /// Adds a change of an object, which was in `origin` after the update before.
    fn add(&mut self, id: u64, origin: Option<Tile>) {
        let changed = &mut self.changed;
        let origins = self.origins.entry(id).or_insert_with(|| {
            changed.push(id);
            Vec::new()
        });
        let new = origin.filter(|origin| !origins.contains(origin));
        origins.extend(new);
    }
}

/// The texts of one update.
struct Texts<V> {
    texts: HashMap<Tile, TileText>,
    has_viewers: V,
    /// The ring whose viewers get texts now.
    ring: u8,
}

impl<V: Fn(Tile) -> bool> Texts<V> {
    /// Tells the viewers of the tiles where an object was, and of the one where it is.
    fn tell(&mut self, id: u64, origins: &[Tile], now: Option<&PlacedObject>) {
        let now_in = now.map(|now| now.tile);
        for origin in origins.iter().filter(|origin| Some(**origin) != now_in) {
            let Some(text) = self.text(*origin) else { continue };
            match now_in {
                Some(now_in) => member(&mut text.moved, id, &format!("\"{now_in}\"")),
                None => element(&mut text.removed, id),
            }
        }
        if let Some(now) = now
            && let Some(text) = self.text(now.tile)
        {
            member(&mut text.set, id, &String::from_utf8_lossy(&now.state));
        }
    }

    /// The text of a tile, if it has viewers.
    fn text(&mut self, tile: Tile) -> Option<&mut TileText> {
        let tile = Tile { ring: self.ring, ..tile };
        (self.has_viewers)(tile).then(|| self.texts.entry(tile).or_default())
    }
}

impl TileText {
    fn finish(&self, tile: Tile) -> Bytes {
        let Self { set, moved, removed } = self;
        let mut text = format!(r#"{{"tile":"{tile}""#);
        for (name, begin, contents, end) in
            [("set", '{', set, '}'), ("moved", '{', moved, '}'), ("removed", '[', removed, ']')]
        {
            if !contents.is_empty() {
                let _ = write!(text, r#","{name}":{begin}{contents}{end}"#); // never fails
            }
        }
        text.push('}');
        text.into()
    }
}

/// Adds a member of a JSON object.
fn member(text: &mut String, id: u64, value: &str) {
    let comma = if text.is_empty() { "" } else { "," };
    let _ = write!(text, r#"{comma}"{id}":{value}"#); // never fails
}

/// Adds an element of a JSON array.
fn element(text: &mut String, id: u64) {
    let comma = if text.is_empty() { "" } else { "," };
    let _ = write!(text, "{comma}{id}"); // never fails
}

#[cfg(test)]
mod tests;
