//! Tests of `grid`: places, shapes, margins, limits, against a search of all tiles.
//! In: random views. Out: nothing.
//! Uses proptest.
//! Changed here: tests of the geometry.

use std::collections::BTreeSet;

use proptest::prelude::*;

use super::*;
use crate::RINGS_MAX;
use crate::rings::Ring;

const GRID: Grid = Grid { tile_size: 10, tiles_max: 100, rings: Rings::NONE };

fn tile(x: i32, y: i32) -> Tile {
    Tile { x, y, layer: 0, ring: 0 }
}

fn circle(x: f64, y: f64, radius: f64, margin: f64) -> View {
    View { x, y, layer: 0, shape: Shape::Circle { radius }, margin }
}

fn rectangle(x: f64, y: f64, width: f64, height: f64) -> View {
    View { x, y, layer: 0, shape: Shape::Rectangle { width, height }, margin: 0.0 }
}

#[test]
fn places_have_tiles_and_impossible_ones_a_name() {
    let of = |x, y| GRID.tile_of(Place { x, y, layer: 0 });
    assert_eq!(of(0.0, 9.99), Ok(tile(0, 0)));
    assert_eq!(of(10.0, -0.01), Ok(tile(1, -1)));
    for wrong in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 1e300, 1.1e10] {
        assert_eq!(of(wrong, 0.0), Err(AreaError::Place));
        assert_eq!(of(0.0, wrong), Err(AreaError::Place));
    }
}

#[test]
fn impossible_views_have_names() {
    for wrong in [f64::NAN, f64::INFINITY, -1.0, 1e300] {
        let views = [
            circle(0.0, 0.0, wrong, 0.0),
            circle(0.0, 0.0, 1.0, wrong),
            rectangle(0.0, 0.0, wrong, 1.0),
            rectangle(0.0, 0.0, 1.0, wrong),
        ];
        for view in views {
            assert_eq!(GRID.change(&view, &[]), Err(AreaError::View), "{view:?}");
        }
    }
    for wrong in [f64::NAN, f64::INFINITY, 1e300] {
        assert_eq!(GRID.change(&circle(wrong, 0.0, 1.0, 0.0), &[]), Err(AreaError::View));
    }
    assert_eq!(GRID.change(&rectangle(5.0, 5.0, 101.0, 101.0), &[]), Err(AreaError::TooManyTiles));
    assert_eq!(
        GRID.change(&rectangle(50.0, 50.0, 99.0, 99.0), &[]).expect("fits").entered.len(),
        100
    );
    let wide = View { margin: 1.0, ..rectangle(50.0, 50.0, 99.0, 99.0) };
    assert_eq!(GRID.change(&wide, &[]), Err(AreaError::TooManyTiles), "the margin counts");
}

#[test]
fn a_walker_on_a_border_does_not_flap() {
    let mut tiles = GRID.change(&circle(9.0, 5.0, 0.5, 2.0), &[]).expect("a view").entered;
    assert_eq!(tiles, [tile(0, 0)]);
    let mut changes = 0;
    for step in 0..100 {
        let x = if step % 2 == 0 { 10.4 } else { 9.4 };
        let change = GRID.change(&circle(x, 5.0, 0.5, 2.0), &tiles).expect("a view");
        changes += usize::from(change != ViewChange::default());
        tiles.retain(|tile| !change.left.contains(tile));
        tiles.extend(change.entered);
    }
    assert_eq!((changes, tiles.len()), (1, 2));
}

#[test]
fn rings_are_read_from_texts() {
    let two = [Ring { distance: 10, every: 2 }, Ring { distance: 30, every: 10 }];
    assert_eq!(Rings::parse(&["10/2", "30/10"]), Rings::new(&two));
    assert_eq!(Rings::parse(&[""; 0]), Some(Rings::NONE));
    for wrong in ["", "10", "10/", "/2", "0/2", "10/1", "10/x", "10/2/3", "-10/2"] {
        assert_eq!(Rings::parse(&[wrong]), None, "{wrong}");
    }
    assert_eq!(Rings::parse(&["10/2", "10/3"]), None, "not farther");
    assert_eq!(Rings::parse(&["10/2", "20/2"]), None, "not slower");
    let many: Vec<_> = (1..=RINGS_MAX + 1).map(|n| format!("{}/{}", n, n + 1)).collect();
    assert_eq!(Rings::parse(&many), None, "too many");
}

#[test]
fn tiles_around_a_view_are_in_rings_and_change_them_beyond_the_margin() {
    let grid = Grid::new(10, 121).with_rings(&["10/5", "30/20"]).expect("two rings");
    let mut tiles = Vec::new();
    let mut ring_of = |x: f64, column: i32| {
        let change = grid.change(&circle(x, 5.0, 1.0, 3.0), &tiles).expect("a view");
        tiles.retain(|tile| !change.left.contains(tile));
        tiles.extend(change.entered);
        tiles.iter().find(|held| held.is_at(tile(column, 0))).map(|held| held.ring)
    };
    let rings = [0, 1, 2, 3, 4].map(|column| ring_of(5.0, column));
    assert_eq!(rings, [Some(0), Some(1), Some(2), Some(2), None]);
    assert_eq!(ring_of(9.5, 1), Some(0), "it is touched");
    assert_eq!(ring_of(7.0, 1), Some(0), "it is within the margin");
    assert_eq!(ring_of(5.0, 1), Some(1));
    assert_eq!(ring_of(-3.0, 1), Some(1), "it is within the margin of its ring");
    assert_eq!(ring_of(-5.0, 1), Some(2));
    assert_eq!(ring_of(-25.0, 1), None);
    assert_eq!(ring_of(5.0, 0), Some(0), "a jump");
    let wide = grid.change(&circle(5.0, 5.0, 30.0, 0.0), &[]);
    assert_eq!(wide, Err(AreaError::TooManyTiles), "rings count");
}

#[test]
fn views_are_read_from_data() {
    let view = View::in_data(br#"{"view":{"x":1,"y":2.5,"radius":3,"margin":4}}"#);
    assert_eq!(view, Ok(Some(circle(1.0, 2.5, 3.0, 4.0))));
    let view =
        View::in_data(br#" {"view":{"x":1,"y":2,"width":3,"height":4,"layer":5},"name":"ada"}"#);
    assert_eq!(view, Ok(Some(View { layer: 5, ..rectangle(1.0, 2.0, 3.0, 4.0) })));
    for view in [circle(-1.5, 1e9, 0.1, 7.0), View { layer: -5, ..rectangle(1.0, 2.0, 3.0, 4.0) }] {
        assert_eq!(View::from_json(view.to_json().as_bytes()), Ok(view));
    }
    for without in ["", "7", "[]", r#"{"name":"ada"}"#, r#"{"view":null}"#] {
        assert_eq!(View::in_data(without.as_bytes()), Ok(None), "{without}");
    }
    for wrong in [
        r#"{"view":{}}"#,
        r#"{"view":{"x":1,"y":2}}"#,
        r#"{"view":{"x":1,"y":2,"width":3}}"#,
        r#"{"view":{"x":1,"y":2,"width":3,"height":1,"radius":1}}"#,
        r#"{"view":{"x":"1","y":2,"radius":1}}"#,
        r#"{"view":{"x":1e999,"y":2,"radius":1}}"#,
        r#"{"view":"#,
        "{\"view\":{\"x\":1,\"y\":\u{0}",
    ] {
        assert_eq!(View::in_data(wrong.as_bytes()), Err(AreaError::View), "{wrong}");
    }
}

proptest! {
    #[test]
    fn a_viewer_has_the_tiles_of_its_view_and_keeps_those_of_its_margin(
        steps in prop::collection::vec((-40.0..40.0_f64, -40.0..40.0_f64, 0.0..25.0_f64, 0.0..10.0_f64, any::<bool>(), 0..2), 1..30),
    ) {
        let mut tiles = BTreeSet::new();
        for (x, y, size, margin, is_circle, layer) in steps {
            let shape = match is_circle {
                true => Shape::Circle { radius: size },
                false => Shape::Rectangle { width: size * 2.0, height: size },
            };
            let view = View { x, y, layer, shape, margin };
            let current: Vec<_> = tiles.iter().copied().collect();
            let change = GRID.change(&view, &current).expect("a view within the limit");
            for tile in &change.left {
                prop_assert!(tiles.remove(tile));
            }
            for tile in change.entered {
                prop_assert!(tiles.insert(tile), "entered twice");
            }
            // Distances from the centre to every tile, by the nearest of its points.
            for column in -10..10 {
                for row in -10..10 {
                    let tile = Tile { x: column, y: row, layer, ring: 0 };
                    let nearest = |centre: f64, number: i32| {
                        (f64::from(number) * 10.0 - centre).max(0.0).max(centre - f64::from(number + 1) * 10.0)
                    };
                    let (far_x, far_y) = (nearest(x, column), nearest(y, row));
                    let is_within = |margin: f64| match shape {
                        Shape::Circle { radius } => far_x.hypot(far_y) < radius + margin - 1e-9,
                        Shape::Rectangle { width, height } => {
                            far_x < width / 2.0 + margin - 1e-9 && far_y < height / 2.0 + margin - 1e-9
                        }
                    };
                    prop_assert!(!is_within(0.0) || tiles.contains(&tile), "{tile} is missing");
                    if tiles.contains(&tile) {
                        prop_assert!(is_within(margin + 2e-9) , "{tile} is left over");
                    }
                }
            }
            prop_assert!(tiles.iter().all(|tile| tile.layer == layer));
        }
    }
}
