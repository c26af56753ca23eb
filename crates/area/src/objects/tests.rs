//! Tests of `objects`: clients that apply the texts have exactly the objects of their tiles after each tick.
//! In: random walks of objects and viewers. Out: nothing.
//! Uses proptest, a client that follows the rules of `Objects`.
//! Changed here: tests of the texts. Tiles of views are tested in `grid`.

use std::collections::BTreeMap;

use proptest::prelude::*;
use serde_json::Value;

use super::*;
use crate::{Shape, View};

const GRID_10: fn() -> Grid = || Grid::new(10, 64);
/// All of its rings are told in every sixth update.
const GRID_WITH_RINGS: fn() -> Grid =
    || Grid::new(10, 256).with_rings(&["8/2", "20/3"]).expect("two rings");

fn at(x: f64, y: f64) -> Place {
    Place { x, y, layer: 0 }
}

fn texts(objects: &mut Objects) -> Vec<String> {
    let texts = objects.update(|_| true).into_iter();
    texts.map(|(_, text)| String::from_utf8(text.to_vec()).expect("text")).collect()
}

#[test]
fn the_texts_of_entering_changing_moving_and_leaving() {
    let mut objects = Objects::new(GRID_10());
    objects.put(7, at(1.0, 1.0), r#"{"x":1}"#).expect("a place");
    objects.put(8, at(2.0, 2.0), "2").expect("a place");
    let both = r#"{"7":{"x":1},"8":2}"#;
    assert_eq!(texts(&mut objects), [format!(r#"{{"tile":"0,0,0","set":{both}}}"#)]);
    assert_eq!(texts(&mut objects), Vec::<String>::new());
    let tile = Tile { x: 0, y: 0, layer: 0, ring: 0 };
    let full = objects.full(tile);
    assert_eq!(full, format!(r#"{{"tile":"0,0,0","full":true,"set":{both}}}"#));
    assert_eq!(objects.full(tile).as_ptr(), full.as_ptr(), "made once");
    objects.put(7, at(11.0, 1.0), r#"{"x":11}"#).expect("a place");
    objects.remove(8);
    objects.remove(9);
    let expected = [
        r#"{"tile":"0,0,0","moved":{"7":"1,0,0"},"removed":[8]}"#,
        r#"{"tile":"1,0,0","set":{"7":{"x":11}}}"#,
    ];
    assert_eq!(texts(&mut objects), expected);
    objects.put(7, at(1.0, 1.0), "1").expect("a place");
    objects.put(7, at(12.0, 1.0), "2").expect("a place");
    objects.put(8, at(12.0, 1.0), "3").expect("a place");
    objects.remove(8);
    assert_eq!(texts(&mut objects), [r#"{"tile":"1,0,0","set":{"7":2}}"#], "there and back");
    assert_eq!(objects.full(tile), r#"{"tile":"0,0,0","full":true,"set":{}}"#);
}

#[test]
fn a_ring_is_told_of_all_tiles_between_its_updates() {
    let grid = Grid::new(10, 64).with_rings(&["10/3"]).expect("a ring");
    let mut objects = Objects::new(grid);
    let mut told = |x: f64| {
        objects.put(7, at(x, 1.0), x.to_string()).expect("a place");
        let texts = objects.update(|tile| tile.ring == 1).into_iter();
        texts.map(|(_, text)| String::from_utf8(text.to_vec()).expect("text")).collect::<Vec<_>>()
    };
    let nothing = Vec::<String>::new();
    assert_eq!([told(1.0), told(11.0)], [nothing.clone(), nothing.clone()]);
    let expected = [
        r#"{"tile":"0,0,0","moved":{"7":"2,0,0"}}"#,
        r#"{"tile":"1,0,0","moved":{"7":"2,0,0"}}"#,
        r#"{"tile":"2,0,0","set":{"7":21}}"#,
    ];
    assert_eq!(told(21.0), expected, "a viewer may have heard of it in each");
    assert_eq!([told(22.0), told(1.0)], [nothing.clone(), nothing]);
    assert_eq!(
        told(23.0),
        [r#"{"tile":"0,0,0","moved":{"7":"2,0,0"}}"#, r#"{"tile":"2,0,0","set":{"7":23}}"#]
    );
}

#[test]
fn a_full_tile_and_impossible_places_refuse_one_object_only() {
    let mut objects = Objects::new(GRID_10());
    for id in 0..OBJECTS_PER_TILE_MAX as u64 {
        objects.put(id, at(1.0, 1.0), "1").expect("a place");
    }
    objects.put(1_000_000, at(11.0, 1.0), "1").expect("another tile");
    assert_eq!(objects.put(1_000_001, at(1.0, 1.0), "1"), Err(AreaError::TileFull));
    assert_eq!(objects.put(1_000_000, at(1.0, 1.0), "2"), Err(AreaError::TileFull));
    assert_eq!(objects.put(1_000_000, at(f64::NAN, 1.0), "2"), Err(AreaError::Place));
    objects.put(5, at(1.0, 2.0), "2").expect("it is in the tile already");
    objects.update(|_| true);
    let tile = Tile { x: 1, y: 0, layer: 0, ring: 0 };
    assert_eq!(objects.full(tile), r#"{"tile":"1,0,0","full":true,"set":{"1000000":1}}"#);
    assert_eq!(objects.len(), OBJECTS_PER_TILE_MAX + 1);
}

/// A client, as the documentation of [`Objects`] describes it.
#[derive(Default)]
struct Client {
    tiles: BTreeSet<String>,
    /// State and tile.
    objects: BTreeMap<u64, (i64, String)>,
}

impl Client {
    fn apply(&mut self, text: &[u8]) {
        let text: Value = serde_json::from_slice(text).expect("JSON");
        for tile in text["left"].as_array().into_iter().flatten() {
            let tile = tile.as_str().expect("a tile");
            self.tiles.remove(tile);
            self.objects.retain(|_, (_, of)| of != tile);
        }
        let Some(tile) = text["tile"].as_str() else { return };
        if text["full"] == true {
            self.tiles.insert(tile.to_owned());
            self.objects.retain(|_, (_, of)| of != tile);
        }
        if !self.tiles.contains(tile) {
            return;
        }
        for (id, to) in text["moved"].as_object().into_iter().flatten() {
            let (id, to) = (id.parse().expect("an id"), to.as_str().expect("a tile"));
            match self.objects.get_mut(&id) {
                Some((_, of)) if of != tile => {}
                Some((_, of)) if self.tiles.contains(to) => to.clone_into(of),
                _ => drop(self.objects.remove(&id)),
            }
        }
        for id in text["removed"].as_array().into_iter().flatten() {
            let id = id.as_u64().expect("an id");
            if self.objects.get(&id).is_some_and(|(_, of)| of == tile) {
                self.objects.remove(&id);
            }
        }
        for (id, state) in text["set"].as_object().into_iter().flatten() {
            let state = state.as_i64().expect("a number");
            self.objects.insert(id.parse().expect("an id"), (state, tile.to_owned()));
        }
    }
}

struct Viewer {
    grid: Grid,
    client: Client,
    /// Tiles whose texts the viewer receives.
    tiles: Vec<Tile>,
    /// Since the last tick in which it was sent.
    change: ViewChange,
}

#[derive(Clone, Debug)]
enum Step {
    Put(u64, f64, f64),
    Remove(u64),
    Look(usize, f64, f64, f64),
    Tick,
    /// A viewer's tiles change between two texts of a tick.
    TickWithLook(usize, f64, f64),
}

fn step() -> impl Strategy<Value = Step> {
    let place = || -35.0..35.0_f64;
    prop_oneof![
        6 => (0..12_u64, place(), place()).prop_map(|(id, x, y)| Step::Put(id, x, y)),
        1 => (0..12_u64).prop_map(Step::Remove),
        2 => (0..3_usize, place(), place(), 0.0..14.0_f64).prop_map(|(viewer, x, y, radius)| Step::Look(viewer, x, y, radius)),
        2 => Just(Step::Tick),
        1 => (0..3_usize, place(), place()).prop_map(|(viewer, x, y)| Step::TickWithLook(viewer, x, y)),
    ]
}

impl Viewer {
    fn new(grid: Grid) -> Self {
        let change = ViewChange::default();
        Self { grid, client: Client::default(), tiles: Vec::new(), change }
    }

    fn look(&mut self, x: f64, y: f64, radius: f64) {
        let view = View { x, y, layer: 0, shape: Shape::Circle { radius }, margin: 5.0 };
        let change = self.grid.change(&view, &self.tiles).expect("a small view");
        self.tiles.retain(|tile| !change.left.contains(tile));
        self.tiles.extend(&change.entered);
        self.change.follow(change);
    }
}

fn tick(objects: &mut Objects, viewers: &mut [Viewer], look: Option<(usize, f64, f64)>) {
    let changes: Vec<_> =
        viewers.iter_mut().map(|viewer| std::mem::take(&mut viewer.change)).collect();
    let seen: BTreeSet<Tile> = viewers.iter().flat_map(|viewer| viewer.tiles.clone()).collect();
    let texts = objects.update(|tile| seen.contains(&tile));
    for (number, (tile, text)) in texts.iter().enumerate() {
        if let Some((viewer, x, y)) = look.filter(|_| number == texts.len() / 2) {
            viewers[viewer].look(x, y, 8.0);
        }
        for viewer in viewers.iter_mut().filter(|viewer| viewer.tiles.contains(tile)) {
            viewer.client.apply(text);
        }
    }
    for (viewer, change) in viewers.iter_mut().zip(changes) {
        objects.change_of_view(&change).iter().for_each(|text| viewer.client.apply(text));
    }
}

proptest! {
    #[test]
    fn each_viewer_has_the_objects_of_its_tiles(
        steps in prop::collection::vec(step(), 1..150),
        has_rings in any::<bool>(),
    ) {
        let grid = if has_rings { GRID_WITH_RINGS() } else { GRID_10() };
        let mut objects = Objects::new(grid);
        let mut model: BTreeMap<u64, (i64, Place)> = BTreeMap::new();
        let mut viewers = [(); 3].map(|()| Viewer::new(grid));
        for (number, step) in steps.into_iter().enumerate() {
            match step {
                Step::Put(id, x, y) => {
                    objects.put(id, at(x, y), number.to_string()).expect("a place");
                    model.insert(id, (number as i64, at(x, y)));
                }
                Step::Remove(id) => {
                    objects.remove(id);
                    model.remove(&id);
                }
                Step::Look(viewer, x, y, radius) => viewers[viewer].look(x, y, radius),
                Step::TickWithLook(viewer, x, y) => {
                    tick(&mut objects, &mut viewers, Some((viewer, x, y)));
                }
                Step::Tick => tick(&mut objects, &mut viewers, None),
            }
            if !matches!(step, Step::Tick) {
                continue;
            }
            let tells_all = !has_rings || objects.updates.is_multiple_of(6);
            for viewer in &viewers {
                let is_told = |name: &str| {
                    let tile = viewer.tiles.iter().find(|tile| tile.to_string() == name);
                    tile.is_some_and(|tile| tells_all || tile.ring == 0)
                };
                let expected: BTreeMap<u64, (i64, String)> = model
                    .iter()
                    .map(|(id, (state, place))| (*id, *state, grid.tile_of(*place).expect("a place")))
                    .map(|(id, state, tile)| (id, (state, tile.to_string())))
                    .filter(|(_, (_, tile))| is_told(tile))
                    .collect();
                let mut known = viewer.client.objects.clone();
                known.retain(|_, (_, tile)| tells_all || is_told(tile));
                prop_assert_eq!(known, expected);
            }
        }
    }
}
