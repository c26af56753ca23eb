//! The rules of the world: bots that walk to and fro, players that steer, and what each of them sees.
//! In: joins, steering and ticks → out: positions of objects by tile.
//! Uses `fanwire::room`, random numbers for the first places of bots. Never: a clock.
//! Changed here: how objects move, and how far players see.

use std::collections::BTreeMap;

use fanwire::room::{
    Grid, InputKind, Objects, Place, PlayerId, RoomContext, Shape, Simulation, View,
};
use rand::{Rng, SeedableRng, rngs::StdRng};
use serde::Deserialize;

/// Length of a side of the world.
const SIZE: f64 = 6000.0;
pub(crate) const TILE_SIZE: u32 = 300;
/// Units per second.
const SPEED: f64 = 260.0;
/// Of 60 ticks, every third one is published; pages interpolate.
const TICKS_PER_UPDATE: u64 = 3;
/// Ids of players begin here.
const FIRST_PLAYER: u64 = 1_000_000;

/// A world with its bots and players.
pub(crate) struct World {
    bots: Vec<Walker>,
    players: BTreeMap<PlayerId, Walker>,
    objects: Objects,
}

struct Walker {
    x: f64,
    y: f64,
    /// -1 to 1.
    direction: [f64; 2],
    /// Degrees of the colour circle.
    hue: u16,
    /// Where its view was last set.
    seen_from: [f64; 2],
}

/// A message of a page.
#[derive(Deserialize)]
struct Steering {
    /// Number of the input at its page.
    seq: u32,
    x: f64,
    y: f64,
}

impl World {
    pub(crate) fn new(bots: u64) -> Self {
        let mut random = StdRng::seed_from_u64(1);
        let bots = (0..bots)
            .map(|id| {
                let angle = random.random_range(0.0..std::f64::consts::TAU);
                let speed = if id % 3 == 0 { 0.0 } else { random.random_range(0.1..0.5) };
                let direction = [angle.cos() * speed, angle.sin() * speed];
                let (x, y) = (random.random_range(0.0..SIZE), random.random_range(0.0..SIZE));
                Walker { x, y, direction, hue: 200 + (id % 40) as u16, seen_from: [x, y] }
            })
            .collect();
        let objects = Objects::new(Grid::new(TILE_SIZE, 64));
        Self { bots, players: BTreeMap::new(), objects }
    }

    /// Publishes where everybody is.
    fn publish(&mut self, context: &mut RoomContext<'_>) {
        let bots = (0..).zip(&self.bots);
        let players = self
            .players
            .iter()
            .map(|(player, walker)| (FIRST_PLAYER + u64::from(player.0), walker));
        for (id, walker) in bots.chain(players) {
            let place = Place { x: walker.x, y: walker.y, layer: 0 };
            let state = format!("[{:.0},{:.0},{}]", walker.x, walker.y, walker.hue);
            // A tile that is full shows no more objects.
            let _ = self.objects.put(id, place, state);
        }
        for (player, walker) in &mut self.players {
            let moved = (walker.x - walker.seen_from[0]).hypot(walker.y - walker.seen_from[1]);
            if moved > f64::from(TILE_SIZE) / 6.0 {
                walker.seen_from = [walker.x, walker.y];
                context.set_view(*player, view(walker));
            }
            if let Some(sequence) = context.sequence(*player) {
                let acknowledged =
                    format!(r#"{{"ack":[{sequence},{:.1},{:.1}]}}"#, walker.x, walker.y);
                context.latest_to(*player, acknowledged);
            }
        }
        context.publish_objects(&mut self.objects);
    }
}

impl Simulation for World {
    /// Of the steering of a tick only the newest counts.
    fn kind(input: &[u8]) -> InputKind {
        let sequence = steering(input).map(|steering| steering.seq);
        InputKind { kind: 0, newest_wins: true, sequence }
    }

    fn join(&mut self, player: PlayerId, _: &str, _: &[u8], context: &mut RoomContext<'_>) {
        // Golden angles: neighbours in time have different colours and start around the centre.
        let turn = f64::from(player.0) * 2.399_963;
        let (x, y) = (SIZE / 2.0 + 150.0 * turn.cos(), SIZE / 2.0 + 150.0 * turn.sin());
        let hue = (turn.to_degrees() % 160.0) as u16;
        let walker = Walker { x, y, direction: [0.0; 2], hue, seen_from: [x, y] };
        context.set_view(player, view(&walker));
        let id = FIRST_PLAYER + u64::from(player.0);
        context.reliable_to(player, format!(r#"{{"you":{id},"size":{SIZE},"speed":{SPEED}}}"#));
        self.players.insert(player, walker);
    }

    fn leave(&mut self, player: PlayerId, _: &mut RoomContext<'_>) {
        self.players.remove(&player);
        self.objects.remove(FIRST_PLAYER + u64::from(player.0));
    }

    fn input(&mut self, player: PlayerId, input: &[u8], _: &mut RoomContext<'_>) {
        if let (Some(walker), Some(Steering { x, y, .. })) =
            (self.players.get_mut(&player), steering(input))
        {
            let length = x.hypot(y).max(1.0);
            walker.direction = [x / length, y / length];
        }
    }

    fn tick(&mut self, context: &mut RoomContext<'_>) {
        let step = SPEED * context.duration().as_secs_f64();
        for walker in self.bots.iter_mut().chain(self.players.values_mut()) {
            walker.walk(step);
        }
        for bot in &mut self.bots {
            bot.turn_at_the_end();
        }
        if context.tick().is_multiple_of(TICKS_PER_UPDATE) {
            self.publish(context);
        }
    }
}

impl Walker {
    fn walk(&mut self, step: f64) {
        self.x = (self.x + self.direction[0] * step).clamp(0.0, SIZE);
        self.y = (self.y + self.direction[1] * step).clamp(0.0, SIZE);
    }

    fn turn_at_the_end(&mut self) {
        for (at, direction) in [self.x, self.y].into_iter().zip(&mut self.direction) {
            if at <= 0.0 || at >= SIZE {
                *direction = if at <= 0.0 { direction.abs() } else { -direction.abs() };
            }
        }
    }
}

fn steering(input: &[u8]) -> Option<Steering> {
    let steering: Steering = serde_json::from_slice(input).ok()?;
    (steering.x.is_finite() && steering.y.is_finite()).then_some(steering)
}

fn view(walker: &Walker) -> View {
    let shape = Shape::Rectangle { width: 1300.0, height: 900.0 };
    View { x: walker.x, y: walker.y, layer: 0, shape, margin: 100.0 }
}
