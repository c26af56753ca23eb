//! Areas of a room with real sockets: viewers walk, objects walk, and each viewer has the objects in its view.
//! In: a simulation with random walks, clients that apply the texts of `Objects` → out: the objects that each client has.
//! Uses the test client, a room of 200 ticks per second. Never: the geometry, which `fanwire-area` tests.
//! Changed here: expectations of views and objects in a room.

use std::{
    collections::{BTreeMap, BTreeSet},
    num::NonZeroU32,
    sync::Arc,
    time::Duration,
};

use fanwire::{
    Builder, EmbeddedServer, RoomOptions, Rooms,
    config::Config,
    room::{Grid, Objects, Place, PlayerId, RoomContext, Shape, Simulation, View},
};
use fanwire_node::options::AreaOptions;
use parking_lot::Mutex;
use serde_json::Value;
use tokio::{runtime::Runtime, task::JoinSet};

use crate::client::Client;

const OBJECTS: u64 = 60;
const VIEWERS: usize = 100;
const TICKS: u64 = 200;
/// Ticks from one mark to the next.
const MARK_INTERVAL: u64 = 50;
/// Marks after which a client that lacks something gives up.
const MARKS_MAX: u32 = 240;
const TILE: u32 = 10;
const TILES_MAX: usize = 100;
const RINGS: [&str; 1] = ["8/2"];

fn grid() -> Grid {
    Grid::new(TILE, TILES_MAX).with_rings(&RINGS).expect("a ring")
}

/// Where everything is at the end.
#[derive(Clone, Default)]
struct End {
    /// By object: state and tile.
    objects: BTreeMap<u64, (i64, String)>,
    /// By player: the tiles of the last view, without its margin.
    views: BTreeMap<u32, BTreeSet<String>>,
}

impl End {
    /// The objects in the tiles of a client.
    fn objects_in(&self, tiles: &BTreeSet<String>) -> BTreeMap<u64, (i64, String)> {
        let objects = self.objects.iter().filter(|(_, (_, tile))| tiles.contains(tile));
        objects.map(|(id, object)| (*id, object.clone())).collect()
    }
}

/// Objects and views walk at random until the last tick.
struct Walk {
    random: u64,
    ticks: u64,
    places: Vec<Place>,
    players: Vec<PlayerId>,
    objects: Objects,
    end: End,
    result: Arc<Mutex<End>>,
}

impl Walk {
    fn below(&mut self, bound: u64) -> u64 {
        self.random = self.random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (self.random >> 33) % bound
    }

    fn coordinate(&mut self) -> f64 {
        self.below(800) as f64 / 10.0
    }

    fn walk(&mut self, tick: u64) {
        for id in 0..OBJECTS {
            if self.below(4) > 0 {
                continue;
            }
            if self.below(20) == 0 {
                self.objects.remove(id);
                self.end.objects.remove(&id);
                continue;
            }
            let step = [self.below(21) as f64 - 10.0, self.below(21) as f64 - 10.0];
            let place = &mut self.places[id as usize];
            place.x = (place.x + step[0]).clamp(0.0, 80.0);
            place.y = (place.y + step[1]).clamp(0.0, 80.0);
            let (place, state) = (*place, tick * 1000 + id);
            self.objects.put(id, place, state.to_string()).expect("a place");
            let tile = grid().tile_of(place).expect("a place").to_string();
            self.end.objects.insert(id, (state as i64, tile));
        }
    }
}

impl Simulation for Walk {
    fn join(&mut self, player: PlayerId, _: &str, _: &[u8], context: &mut RoomContext<'_>) {
        self.players.push(player);
        context.reliable_to(player, format!(r#"{{"player":{}}}"#, player.0));
    }

    fn leave(&mut self, _: PlayerId, _: &mut RoomContext<'_>) {}

    fn input(&mut self, _: PlayerId, _: &[u8], _: &mut RoomContext<'_>) {}

    fn tick(&mut self, context: &mut RoomContext<'_>) {
        if self.players.len() < VIEWERS {
            return;
        }
        self.ticks += 1;
        if self.ticks <= TICKS {
            self.walk(self.ticks);
            for player in self.players.clone() {
                if self.below(5) == 0 {
                    let (x, y, radius) =
                        (self.coordinate(), self.coordinate(), 3.0 + self.below(10) as f64);
                    let view =
                        View { x, y, layer: 0, shape: Shape::Circle { radius }, margin: 4.0 };
                    context.set_view(player, view);
                    let tiles = grid().change(&view, &[]).expect("a view").entered;
                    self.end
                        .views
                        .insert(player.0, tiles.iter().map(ToString::to_string).collect());
                }
            }
        }
        context.publish_objects(&mut self.objects);
        // Shards set the last views after the tick that moved them, and report them to a later tick. Clients look at each of these
        // marks whether they have everything.
        if self.ticks == TICKS + 1 {
            *self.result.lock() = self.end.clone();
        }
        if self.ticks > TICKS && self.ticks.is_multiple_of(MARK_INTERVAL) {
            context.reliable(r#"{"mark":true}"#);
        }
    }
}

/// The objects of a client, by the rules that `Objects` documents.
#[derive(Default)]
struct Seen {
    player: u32,
    tiles: BTreeSet<String>,
    objects: BTreeMap<u64, (i64, String)>,
}

impl Seen {
    fn has_everything(&self, end: &End) -> bool {
        end.views[&self.player].is_subset(&self.tiles)
            && self.objects == end.objects_in(&self.tiles)
    }

    fn apply(&mut self, data: &Value) {
        if let Some(player) = data["player"].as_u64() {
            self.player = player as u32;
        }
        for tile in data["left"].as_array().into_iter().flatten() {
            let tile = tile.as_str().expect("a tile");
            self.tiles.remove(tile);
            self.objects.retain(|_, (_, of)| of != tile);
        }
        let Some(tile) = data["tile"].as_str() else { return };
        if data["full"] == true {
            self.tiles.insert(tile.to_owned());
            self.objects.retain(|_, (_, of)| of != tile);
        }
        if !self.tiles.contains(tile) {
            return;
        }
        for (id, to) in data["moved"].as_object().into_iter().flatten() {
            let (id, to) = (id.parse().expect("an id"), to.as_str().expect("a tile"));
            match self.objects.get_mut(&id) {
                Some((_, of)) if of != tile => {}
                Some((_, of)) if self.tiles.contains(to) => to.clone_into(of),
                _ => drop(self.objects.remove(&id)),
            }
        }
        for id in data["removed"].as_array().into_iter().flatten() {
            let id = id.as_u64().expect("an id");
            if self.objects.get(&id).is_some_and(|(_, of)| of == tile) {
                self.objects.remove(&id);
            }
        }
        for (id, state) in data["set"].as_object().into_iter().flatten() {
            let state = state.as_i64().expect("a number");
            self.objects.insert(id.parse().expect("an id"), (state, tile.to_owned()));
        }
    }
}

async fn view_to_the_end(server: Arc<EmbeddedServer>, result: Arc<Mutex<End>>) -> Seen {
    let mut client = Client::open(server.address(), "").await;
    client.text(r#"{"id":1,"connect":{}}"#).await;
    client.next_text().await;
    client.text(r#"{"id":2,"subscribe":{"channel":"world"}}"#).await;
    let mut seen = Seen::default();
    let mut marks = 0;
    loop {
        for line in client.next_text().await.lines() {
            let push: Value = serde_json::from_str(line).expect("JSON");
            let data = &push["push"]["pub"]["data"];
            if data["mark"] == true {
                marks += 1;
                if marks == MARKS_MAX || seen.has_everything(&result.lock()) {
                    return seen;
                }
            }
            seen.apply(data);
        }
    }
}

#[test]
fn a_hundred_viewers_have_the_objects_in_their_views() {
    let rooms = Rooms::new(1);
    let result = Arc::<Mutex<End>>::default();
    let walk = Walk {
        random: 7,
        ticks: 0,
        places: vec![Place { x: 40.0, y: 40.0, layer: 0 }; OBJECTS as usize],
        players: Vec::new(),
        objects: Objects::new(grid()),
        end: End::default(),
        result: Arc::clone(&result),
    };
    let ticks_per_second = NonZeroU32::new(200).expect("not 0");
    rooms.open(RoomOptions { ticks_per_second, ..RoomOptions::new("world") }, walk).expect("new");
    let mut config = Config::default();
    config.http_server.address = "127.0.0.1".to_owned();
    config.http_server.port = 0;
    config.client.insecure = true;
    config.client.ping_interval = Duration::from_secs(600); // the clients do not answer
    config.shards = 2;
    config.shutdown.timeout = Duration::from_millis(500); // some clients do not answer the close
    config.channel.without_namespace.areas = AreaOptions {
        tile_size: TILE,
        tiles_max: TILES_MAX,
        rings: RINGS.map(str::to_owned).into(),
    };
    let server = Builder::new(config).rooms(&rooms).start_embedded().expect("a free port is free");
    let server = Arc::new(server);
    let seen = Runtime::new().expect("a runtime").block_on(async {
        let mut viewers = JoinSet::new();
        for _ in 0..VIEWERS {
            viewers.spawn(view_to_the_end(Arc::clone(&server), Arc::clone(&result)));
        }
        viewers.join_all().await
    });
    let end = result.lock().clone();
    assert_eq!(seen.len(), VIEWERS);
    for viewer in &seen {
        let of_view = &end.views[&viewer.player];
        assert!(of_view.is_subset(&viewer.tiles), "player {} lacks tiles", viewer.player);
        assert_eq!(viewer.objects, end.objects_in(&viewer.tiles), "player {}", viewer.player);
    }
    let stats = rooms.stats("world").expect("a room");
    assert_eq!(stats.failed_outputs, 0);
    assert!(
        seen.iter().map(|viewer| viewer.objects.len()).sum::<usize>() > VIEWERS,
        "they see something"
    );
}
