//! Cost of a tick of a world at a constant density: 100 objects in a tile, of which 10 % move, and 2,000 viewers of 9 tiles.
//! In: nothing → out: a line for each size of the world, in microseconds and bytes.
//! Uses the crate alone, on one thread. Never: sockets.
//! Changed here: what is measured. `cargo run --release -p fanwire-area --example cost` runs it.
#![forbid(unsafe_code)]

use std::collections::HashSet;
use std::time::{Duration, Instant};

use fanwire_area::{Grid, Objects, Place, Shape, Tile, View};

const TILE_SIZE: f64 = 100.0;
const OBJECTS_PER_TILE: f64 = 100.0;
const VIEWERS: usize = 2000;
const TICKS: u32 = 20;

/// Small and different each time.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: f64) -> f64 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 11) as f64 / (1_u64 << 53) as f64 * bound
    }
}

fn main() {
    println!(
        "{:>9} {:>9} {:>11} {:>11} {:>12} {:>14}",
        "objects", "moved", "put µs each", "update µs", "bytes", "crossing µs"
    );
    for objects in [10_000, 100_000, 1_000_000] {
        measure(objects);
    }
}

fn measure(count: u64) {
    let size = (count as f64 / OBJECTS_PER_TILE).sqrt() * TILE_SIZE;
    let grid = Grid::new(TILE_SIZE as u32, 64);
    let mut random = Random(1);
    let mut objects = Objects::new(grid);
    let mut places: Vec<Place> = (0..count)
        .map(|_| Place { x: random.below(size), y: random.below(size), layer: 0 })
        .collect();
    for (id, place) in (0..).zip(&places) {
        objects.put(id, *place, state(*place)).expect("a place in a tile that is not full");
    }
    objects.update(|_| true);
    let mut viewers = viewers(&grid, &mut random, size);
    let seen: HashSet<Tile> = viewers.iter().flat_map(|viewer| viewer.tiles.clone()).collect();
    let mut put = Duration::ZERO;
    let mut update = Duration::ZERO;
    let mut moved = 0_u64;
    let mut bytes = 0;
    for _ in 0..TICKS {
        let changes: Vec<(u64, Place)> = (0..count / 10)
            .map(|_| {
                let id = random.below(count as f64) as usize;
                let place = &mut places[id];
                place.x = (place.x + random.below(10.0) - 5.0).clamp(0.0, size);
                place.y = (place.y + random.below(10.0) - 5.0).clamp(0.0, size);
                (id as u64, *place)
            })
            .collect();
        moved += changes.len() as u64;
        let started = Instant::now();
        for (id, place) in changes {
            objects.put(id, place, state(place)).expect("a place in a tile that is not full");
        }
        put += started.elapsed();
        let started = Instant::now();
        let texts = objects.update(|tile| seen.contains(&tile));
        update += started.elapsed();
        bytes += texts.iter().map(|(_, text)| text.len()).sum::<usize>();
    }
    let crossing = crossing(&grid, &mut viewers);
    println!(
        "{count:>9} {:>9} {:>11.2} {:>11.0} {:>12} {:>14.2}",
        moved / u64::from(TICKS),
        micros(put) / moved as f64,
        micros(update) / f64::from(TICKS),
        bytes / TICKS as usize,
        crossing,
    );
}

struct Viewer {
    x: f64,
    y: f64,
    tiles: Vec<Tile>,
}

fn view(x: f64, y: f64) -> View {
    let shape = Shape::Rectangle { width: 2.0 * TILE_SIZE, height: 2.0 * TILE_SIZE };
    View { x, y, layer: 0, shape, margin: 10.0 }
}

/// Viewers anywhere in a part of the world that is the same for all sizes.
fn viewers(grid: &Grid, random: &mut Random, size: f64) -> Vec<Viewer> {
    let part = size.min(1000.0);
    let viewer = |_| {
        let x = random.below(part);
        let y = random.below(part);
        let tiles = grid.change(&view(x, y), &[]).expect("a view").entered;
        Viewer { x, y, tiles }
    };
    (0..VIEWERS).map(viewer).collect()
}

/// Microseconds of a view that moves into the next tile.
fn crossing(grid: &Grid, viewers: &mut [Viewer]) -> f64 {
    let mut spent = Duration::ZERO;
    for Viewer { x, y, tiles } in &mut *viewers {
        *x += TILE_SIZE;
        let started = Instant::now();
        let change = grid.change(&view(*x, *y), tiles).expect("a view");
        tiles.retain(|tile| !change.left.contains(tile));
        tiles.extend(&change.entered);
        spent += started.elapsed();
    }
    micros(spent) / viewers.len() as f64
}

fn state(place: Place) -> String {
    format!("[{:.1},{:.1}]", place.x, place.y)
}

fn micros(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1e6
}
