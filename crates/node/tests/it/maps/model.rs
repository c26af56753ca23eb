//! Random life of maps: clients that read pages while keys change, leave, return, with filters and deltas.
//! In: a seed for each life → out: every client that is subscribed has the entries of the server, as its filter sees them.
//! Uses `world`; the clients apply results and pushes as the SDK does. Never: a wire of its own.
//! Changed here: steps of a life, sizes of maps. FANWIRE_MAP_SEEDS sets the number of lives of each test.

use std::collections::{BTreeMap, HashMap};
use std::rc::Rc;
use std::time::Duration;

use bytes::Bytes;
use fanwire_broker::map::{MapPublish, MapRemoval, StateQuery};
use fanwire_node::options::{MapMode, Options};
use fanwire_protocol::{Publication, fossil};
use rand::rngs::StdRng;
use rand::{Rng as _, SeedableRng as _};
use serde_json::{Value, json};

use super::maps;
use crate::script::hello;
use crate::world::World;

const CHANNEL: &str = "m";
const CLIENTS: usize = 5;
const MODES: [MapMode; 3] = [MapMode::Persistent, MapMode::Recoverable, MapMode::Ephemeral];

#[test]
fn a_subscribed_client_has_the_entries_of_the_server() {
    run_lives(|_| Size { keys: 60, page: 7, stream: 40, steps: 120, pause_ms_max: 0 });
}

/// Up to 50 keys change between two requests of a client.
#[test]
fn a_map_of_up_to_10_000_keys_is_read_while_it_changes_1_000_times_a_second() {
    run_lives(|rng| Size {
        keys: 10_f64.powf(rng.random_range(2.0..=4.0)) as u32,
        page: rng.random_range(100..=1000),
        stream: rng.random_range(500..=2000),
        steps: 40,
        pause_ms_max: 50,
    });
}

/// Runs 50 lives, or as many as the environment says, in all modes.
fn run_lives(size: impl Fn(&mut StdRng) -> Size) {
    let lives = std::env::var("FANWIRE_MAP_SEEDS").ok().and_then(|text| text.parse().ok());
    let mut synchronised = 0;
    let lives = lives.unwrap_or(50);
    for seed in 0..lives {
        let mode = MODES[seed as usize % MODES.len()];
        let mut rng = StdRng::seed_from_u64(seed);
        let size = size(&mut rng);
        println!("seed {seed}: {mode:?}, {size:?}");
        synchronised += Life::new(mode, size, rng).run();
    }
    assert!(synchronised > 2 * lives, "clients become live: {synchronised}");
}

/// How large a map is, and how fast its life is.
#[derive(Clone, Copy, Debug)]
struct Size {
    keys: u32,
    /// Entries or changes of a page.
    page: usize,
    /// Changes that are kept. Streams are short, so that some clients lose their position.
    stream: usize,
    steps: usize,
    /// A client waits for at most this time before a request. In each millisecond a key changes.
    pause_ms_max: u32,
}

fn options(mode: MapMode, size: Size) -> Options {
    maps(mode, |options| {
        let namespace = &mut options.channel.without_namespace;
        namespace.allow_tags_filter = true;
        namespace.allowed_delta_types = vec!["fossil".into()];
        namespace.delta_publish = true;
        namespace.map.max_page_size = size.page;
        namespace.map.default_page_size = size.page;
        if mode != MapMode::Ephemeral {
            namespace.map.stream_size = size.stream;
        }
    })
}

struct Life {
    world: World,
    size: Size,
    rng: StdRng,
    clients: Vec<Client>,
    changes: u64,
    synchronised: u64,
    /// The data of entries as values: each text is parsed once.
    values: HashMap<Bytes, Rc<Value>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Idle,
    Reads,
    Live,
}

struct Client {
    name: String,
    state: State,
    commands: u64,
    /// A reply is missing; the SDK sends the next request after it.
    awaits: bool,
    request: Value,
    recoverable: bool,
    filters: bool,
    wants_deltas: bool,
    has_deltas: bool,
    entries: BTreeMap<String, Value>,
    /// The data of each key as text, for patches.
    bases: HashMap<String, Vec<u8>>,
}

impl Life {
    fn new(mode: MapMode, size: Size, mut rng: StdRng) -> Self {
        let world = World::new(options(mode, size));
        let clients = (0..CLIENTS).map(|number| Client::new(number, &mut rng)).collect();
        let values = HashMap::new();
        let mut life = Self { world, size, rng, clients, changes: 0, synchronised: 0, values };
        for client in 0..CLIENTS {
            life.connect(client);
        }
        for _ in 0..life.rng.random_range(0..2 * size.keys) {
            life.change();
        }
        life
    }

    /// Returns how often a client became live.
    fn run(mut self) -> u64 {
        for _ in 0..self.size.steps {
            self.step();
            self.receive();
        }
        self.world.settle();
        self.receive();
        self.check();
        self.synchronised
    }

    fn step(&mut self) {
        let client = self.rng.random_range(0..CLIENTS);
        match self.rng.random_range(0..100) {
            0..25 => (0..self.rng.random_range(1..6)).for_each(|_| self.change()),
            25..65 => (0..self.rng.random_range(1..6)).for_each(|_| {
                self.pause();
                self.request(client);
            }),
            65..80 => {
                self.world.settle();
                self.receive();
                self.check();
            }
            80..93 => self.unsubscribe(client),
            93..98 => {
                self.world.close(&self.clients[client].name.clone());
                self.connect(client);
            }
            98 => self.world.wait(Duration::from_secs(3)),
            _ => self.world.wait(Duration::from_secs(61)),
        }
    }

    /// A connection of its own for each return.
    fn connect(&mut self, client: usize) {
        let name = format!("c{client}_{}", self.rng.random::<u64>());
        let encoding = if client.is_multiple_of(2) { "json" } else { "protobuf" };
        self.world.connected(&name, hello(encoding));
        let client = &mut self.clients[client];
        client.name = name;
        client.leave();
    }

    /// Time passes, in which a key changes each millisecond.
    fn pause(&mut self) {
        for _ in 0..self.rng.random_range(0..=self.size.pause_ms_max) {
            self.world.now += Duration::from_millis(1);
            self.change();
        }
    }

    /// Sets or removes a key; the inboxes of the shards keep it for a while.
    fn change(&mut self) {
        self.changes += 1;
        let number = self.rng.random_range(0..self.size.keys);
        let key = format!("key {number}");
        let tags = if number.is_multiple_of(2) {
            vec![("even".to_owned(), "1".to_owned())]
        } else {
            Vec::new()
        };
        let now = self.world.now;
        let maps = self.world.node.maps();
        let removes = self.rng.random_bool(0.2);
        let data = format!(r#"{{"text":"{}","number":{}}}"#, "x".repeat(60), self.changes);
        let publication = Publication { key, ..Publication::default() };
        let changed = match removes {
            true => maps.remove(CHANNEL, MapRemoval { publication, ..MapRemoval::default() }, now),
            false => {
                let tags = tags.into_iter().collect();
                let publication = Publication { data: data.into(), tags, ..publication };
                maps.publish(CHANNEL, MapPublish { publication, ..MapPublish::default() }, now)
            }
        };
        changed.wait().expect("available").expect("nothing is refused");
    }

    fn request(&mut self, number: usize) {
        let client = &mut self.clients[number];
        if client.state == State::Live || client.awaits {
            return;
        }
        if client.state == State::Idle {
            client.begin(&mut self.rng);
        }
        client.awaits = true;
        client.commands += 1;
        let command = json!({"id": client.commands, "subscribe": client.request}).to_string();
        let name = client.name.clone();
        self.world.say_unsettled(&name, &command);
        self.receive_of(number);
    }

    fn unsubscribe(&mut self, number: usize) {
        if self.clients[number].awaits {
            self.world.settle();
            self.receive_of(number);
        }
        let client = &mut self.clients[number];
        client.commands += 1;
        let command =
            json!({"id": client.commands, "unsubscribe": {"channel": CHANNEL}}).to_string();
        let name = client.name.clone();
        self.world.say_unsettled(&name, &command);
        self.receive_of(number);
        self.clients[number].leave();
    }

    fn receive(&mut self) {
        (0..CLIENTS).for_each(|client| self.receive_of(client));
    }

    fn receive_of(&mut self, number: usize) {
        let name = self.clients[number].name.clone();
        while let Some(text) = self.world.heard(&name) {
            if text.starts_with("x 3008") {
                self.connect(number);
                return;
            }
            let message: Value = serde_json::from_str(&text).unwrap_or_else(|_| panic!("{text}"));
            let is_live = self.clients[number].receive(&message);
            if is_live {
                self.synchronised += 1;
                self.check_synchronised(number);
            }
        }
    }

    /// A client with a position has the entries of the moment at which it became live; others have them once the shard has read
    /// its inbox.
    fn check_synchronised(&mut self, number: usize) {
        if self.clients[number].recoverable {
            let entries = self.entries();
            self.clients[number].check(&entries);
        }
    }

    fn check(&mut self) {
        if self.clients.iter().any(|client| client.state == State::Live) {
            let entries = self.entries();
            self.clients.iter().for_each(|client| client.check(&entries));
        }
    }

    /// The entries of the server.
    fn entries(&mut self) -> BTreeMap<String, Entry> {
        let query = StateQuery::default();
        let page = self.world.node.maps().read_state(CHANNEL, &query, self.world.now).wait();
        let entries = page.expect("available").entries.into_iter();
        let mut entry = |entry: Publication| {
            let parse = || Rc::new(serde_json::from_slice(&entry.data).expect("JSON"));
            let data = Rc::clone(self.values.entry(entry.data.clone()).or_insert_with(parse));
            (entry.key, Entry { data, has_tags: !entry.tags.is_empty() })
        };
        entries.map(&mut entry).collect()
    }
}

/// An entry of the server.
struct Entry {
    data: Rc<Value>,
    has_tags: bool,
}

impl Client {
    fn new(number: usize, rng: &mut StdRng) -> Self {
        let filters = rng.random_bool(0.3);
        Self {
            name: format!("c{number}"),
            state: State::Idle,
            commands: 1,
            awaits: false,
            request: Value::Null,
            recoverable: false,
            filters,
            // Patches in Protobuf have no text.
            wants_deltas: !filters && number.is_multiple_of(2) && rng.random_bool(0.6),
            has_deltas: false,
            entries: BTreeMap::new(),
            bases: HashMap::new(),
        }
    }

    /// Compares its entries with those of the server, if it is live.
    fn check(&self, entries: &BTreeMap<String, Entry>) {
        if self.state != State::Live {
            return;
        }
        let is_wanted = |entry: &Entry| !self.filters || entry.has_tags;
        let expect = |key: &str| {
            let entry = entries.get(key).filter(|entry| is_wanted(entry));
            entry.map(|entry| &*entry.data)
        };
        let keys = self.entries.keys().chain(entries.keys());
        let others: Vec<_> = keys.filter(|key| self.entries.get(*key) != expect(key)).collect();
        assert!(others.is_empty(), "{} has another value of {others:?}", self.name);
    }

    /// It is no longer subscribed. What it has read is of no use unless it was live.
    fn leave(&mut self) {
        if self.state == State::Reads {
            self.recoverable = false;
        }
        self.state = State::Idle;
        self.awaits = false;
    }

    fn begin(&mut self, rng: &mut StdRng) {
        let recovers = self.recoverable && rng.random_bool(0.9);
        let mut request = json!({"channel": CHANNEL, "type": 1});
        if self.filters {
            request["tf"] = json!({"key": "even", "cmp": "eq", "val": "1"});
        }
        if self.wants_deltas {
            request["delta"] = json!("fossil");
        }
        if recovers {
            request["recover"] = json!(true);
            request["phase"] = json!(rng.random_range(0..2));
            request["offset"] = self.request["offset"].clone();
            request["epoch"] = self.request["epoch"].clone();
        } else {
            request["phase"] = json!(2);
            self.entries.clear();
            self.bases.clear();
        }
        self.recoverable = false;
        self.request = request;
        self.state = State::Reads;
    }

    /// Returns whether it became live.
    fn receive(&mut self, message: &Value) -> bool {
        let push = &message["push"];
        if push["unsubscribe"].is_object() {
            self.leave();
        } else if push["pub"].is_object() {
            let publication = &push["pub"];
            if !publication["offset"].is_null() {
                self.request["offset"] = publication["offset"].clone();
            }
            self.apply(publication, self.has_deltas);
        } else if message["error"].is_object() {
            self.awaits = false;
            assert!(
                [112, 111].contains(&message["error"]["code"].as_u64().unwrap_or(0)),
                "{message}"
            );
            self.recoverable = false;
            self.state = State::Idle;
        } else if message["subscribe"].is_object() {
            return self.receive_result(&message["subscribe"]);
        }
        false
    }

    fn receive_result(&mut self, result: &Value) -> bool {
        self.awaits = false;
        let is_live = result["phase"].is_null();
        let phase = result["phase"].as_i64().unwrap_or(0);
        if is_live || phase == 1 || self.request["epoch"].is_null() {
            self.request["epoch"] = result["epoch"].as_str().unwrap_or("").into();
            self.request["offset"] = result["offset"].as_u64().unwrap_or(0).into();
        }
        let ephemeral_deltas = result["delta"] == true;
        let has_strings = self.wants_deltas && (ephemeral_deltas || !is_live);
        for entry in result["state"].as_array().into_iter().flatten() {
            self.apply(entry, has_strings);
        }
        for change in result["publications"].as_array().into_iter().flatten() {
            self.apply(change, has_strings);
        }
        self.request["phase"] = json!(if result["cursor"].is_string() { 2 } else { 1 });
        self.request["cursor"] = result["cursor"].as_str().unwrap_or("").into();
        if is_live {
            self.has_deltas = ephemeral_deltas;
            assert_eq!(self.has_deltas, self.wants_deltas, "{result}");
            self.recoverable = result["recoverable"] == true;
            self.state = State::Live;
        }
        is_live
    }

    fn apply(&mut self, publication: &Value, is_string: bool) {
        let key = publication["key"].as_str().expect("a key").to_owned();
        if publication["removed"] == true {
            self.entries.remove(&key);
            self.bases.remove(&key);
            return;
        }
        let mut data = publication["data"].clone();
        if is_string {
            let text = data.as_str().expect("data is a string with deltas").as_bytes();
            let whole = match publication["delta"] == true {
                false => text.to_vec(),
                true => {
                    let base = self.bases.get(&key).expect("a patch has a base");
                    let mut whole = Vec::new();
                    fossil::apply(base, text, 1000, &mut whole).expect("the base is the right one");
                    whole
                }
            };
            data = serde_json::from_slice(&whole).expect("JSON");
            self.bases.insert(key.clone(), whole);
        }
        self.entries.insert(key, data);
    }
}
