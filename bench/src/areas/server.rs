//! The server of `areas`: a program with a world of objects of which a tenth moves in each tick.
//! In: the number of objects → out: the address, then ticks until the parent is gone.
//! Uses `fanwire` as a library. Never: measures more than a program could.
//! Changed here: what the world does; what is measured lives in `areas`.

use anyhow::{Context, Result};
use clap::Args;
use fanwire::room::{Grid, Objects, Place, Shape, View};
use fanwire::room::{PlayerId, RoomContext, Simulation};
use fanwire::{Builder, RoomOptions, Rooms};
use std::io::Read;
use std::num::NonZeroU32;

use crate::room::server::local_config;
use fanwire_load::machine;
use fanwire_load::random::Random;

/// Run the server of `areas` by itself (areas starts it for you).
#[derive(Args)]
pub struct AreaServer {
    #[arg(long)]
    objects: u64,
    /// Compress publications in context.
    #[arg(long)]
    compression: bool,
    /// Tiles in both directions that a viewer sees; an odd number.
    #[arg(long, default_value_t = 3)]
    tiles: u32,
    /// Tiles around these are told in every such tick; 0 = viewers do not see them.
    #[arg(long, default_value_t = 0)]
    ring_every: u32,
}

impl AreaServer {
    /// Serves until its standard input ends.
    ///
    /// # Errors
    /// The server does not start.
    pub fn run(self) -> Result<()> {
        machine::raise_descriptor_limit();
        let mut config = local_config(self.compression);
        let every = Some(self.ring_every).filter(|every| *every > 0);
        let rings: Vec<_> = every.into_iter().map(|every| format!("{TILE_SIZE}/{every}")).collect();
        let areas = &mut config.channel.without_namespace.areas;
        areas.tile_size = TILE_SIZE;
        areas.rings.clone_from(&rings);
        let grid = Grid::new(TILE_SIZE, 64).with_rings(&rings).context("rings of one tile")?;
        let rooms = Rooms::new(1);
        let server = Builder::new(config).rooms(&rooms).start_embedded()?;
        let ticks_per_second = NonZeroU32::new(TICKS_PER_SECOND).expect("not 0");
        let options = RoomOptions { ticks_per_second, ..RoomOptions::new(CHANNEL) };
        rooms.open(options, World::new(grid, self.objects, self.tiles))?;
        println!("{}", server.address());
        std::io::stdin().read_to_end(&mut Vec::new())?;
        Ok(())
    }
}

struct World {
    size: f64,
    places: Vec<Place>,
    objects: Objects,
    random: Random,
    /// Tiles in both directions that a viewer sees.
    view_tiles: u32,
    /// The first input has come: all viewers are there.
    has_begun: bool,
}

impl World {
    fn new(grid: Grid, count: u64, view_tiles: u32) -> Self {
        let size = (count as f64 / OBJECTS_PER_TILE).sqrt().ceil() * f64::from(TILE_SIZE);
        let mut world = Self {
            size,
            places: Vec::new(),
            objects: Objects::new(grid),
            random: Random(1),
            view_tiles,
            has_begun: false,
        };
        for id in 0..count {
            let x = world.coordinate();
            let y = world.coordinate();
            let place = Place { x, y, layer: 0 };
            world.places.push(place);
            world.put(id, place);
        }
        world
    }

    fn coordinate(&mut self) -> f64 {
        self.random.below(1_000_000) as f64 / 1e6 * self.size
    }

    fn put(&mut self, id: u64, place: Place) {
        let state = format!("[{:.1},{:.1}]", place.x, place.y);
        self.objects.put(id, place, state).expect("a place in a tile that is not full");
    }
}

impl Simulation for World {
    /// The viewers stand in the middles of tiles.
    fn join(&mut self, player: PlayerId, _: &str, _: &[u8], context: &mut RoomContext<'_>) {
        let tile = f64::from(TILE_SIZE);
        let mut middle = || (self.coordinate() / tile).floor() * tile + tile / 2.0;
        let x = middle();
        let y = middle();
        let size = f64::from(self.view_tiles - 1) * tile;
        let shape = Shape::Rectangle { width: size, height: size };
        context.set_view(player, View { x, y, layer: 0, shape, margin: 0.0 });
    }

    fn leave(&mut self, _: PlayerId, _: &mut RoomContext<'_>) {}

    fn input(&mut self, _: PlayerId, _: &[u8], _: &mut RoomContext<'_>) {
        self.has_begun = true;
    }

    fn tick(&mut self, context: &mut RoomContext<'_>) {
        if !self.has_begun {
            return;
        }
        for _ in 0..self.places.len() / 10 {
            let id = self.random.below(self.places.len());
            let mut step = || self.random.below(100) as f64 / 10.0 - 5.0;
            let x = step();
            let y = step();
            let place = &mut self.places[id];
            place.x = (place.x + x).clamp(0.0, self.size);
            place.y = (place.y + y).clamp(0.0, self.size);
            let place = *place;
            self.put(id as u64, place);
        }
        context.publish_objects(&mut self.objects);
    }
}

pub(super) const CHANNEL: &str = "world";
pub(super) const TICKS_PER_SECOND: u32 = 10;
const TILE_SIZE: u32 = 100;
const OBJECTS_PER_TILE: f64 = 100.0;
