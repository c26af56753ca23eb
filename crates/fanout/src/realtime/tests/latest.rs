//! Latest-state delivery over real sockets: readers of every speed get the newest state, and every frame decodes.
//! In: random publications and reads → out: for each client the publications it read, in their order.
//! Uses turns on the test's own thread, and flate2 and `protocol::fossil` as clients; never a thread or a clock.
//! Changed here: what a slow reader is promised. The order of a backlog alone is tested in `backlog`.

use std::collections::HashMap;
use std::io::{ErrorKind, Read as _};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use fanwire_broker::{DeliveryClass, PublishOptions};
use fanwire_node::Options;
use fanwire_node::options::{DeliveryOptions, Namespace};
use fanwire_protocol::{Disconnect, Publication, fossil};
use fanwire_shard::Compression;
use flate2::Decompress;
use proptest::{collection::vec, prelude::*};
use serde_json::{Value, json};

use super::server::Server;
use crate::realtime::testing::{frames, inflate};

proptest! {
    #![proptest_config(ProptestConfig::with_cases(6))]
    #[test]
    fn readers_of_every_speed_end_with_the_newest_state(
        clients in vec(client(), 1..6),
        steps in vec(step(), 1..200),
    ) {
        let mut world = World::new();
        clients.iter().for_each(|(compression, delta)| world.open(*compression, *delta));
        for step in &steps {
            world.take(step);
        }
        world.check();
    }
}

fn client() -> impl Strategy<Value = (Compression, bool)> {
    let compression = prop_oneof![
        Just(Compression::Raw),
        Just(Compression::Standalone { window_bits: 15 }),
        Just(Compression::Context { window_bits: 15 }),
        Just(Compression::Dedicated { window_bits: 15 }),
    ];
    (compression, any::<bool>())
}

#[derive(Clone, Debug)]
enum Step {
    State { bytes: usize },
    Reliable { bytes: usize },
    Symbol { symbol: u8, bytes: usize },
    Read { client: usize, bytes: usize },
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => (0..60_000_usize).prop_map(|bytes| Step::State { bytes }),
        1 => (0..5_000_usize).prop_map(|bytes| Step::Reliable { bytes }),
        4 => (0..6_u8, 0..60_000_usize).prop_map(|(symbol, bytes)| Step::Symbol { symbol, bytes }),
        2 => (0..6_usize, 0..1_000_000_usize).prop_map(|(client, bytes)| Step::Read { client, bytes }),
    ]
}

#[test]
fn a_stopped_reader_is_not_disconnected_and_goes_on_with_the_newest_state() {
    let mut world = World::new();
    world.open(Compression::Raw, false);
    world.open(Compression::Context { window_bits: 15 }, true);
    for _ in 0..150 {
        world.take(&Step::State { bytes: 60_000 });
    }
    assert!(world.server.backlogs[1].conflated.value() > 150);
    assert_eq!(world.server.backlogs[1].subscriptions.value(), 2);
    world.check();
    assert!(world.clients.iter().all(|client| client.read.len() < 50), "the newest comes next");
    assert_eq!(world.server.backlogs[1].subscriptions.value(), 0);
}

#[test]
fn a_state_larger_than_the_queue_arrives() {
    let mut world = World::new();
    world.open(Compression::Raw, false);
    for _ in 0..3 {
        world.take(&Step::State { bytes: 3 << 20 });
    }
    world.check();
}

#[test]
fn reliable_publications_behind_a_state_count_against_the_queue() {
    let mut world = World::new();
    world.open(Compression::Raw, false);
    for _ in 0..40 {
        world.take(&Step::State { bytes: 60_000 });
    }
    for _ in 0..30 {
        world.take(&Step::Reliable { bytes: 50_000 });
    }
    let mut disconnects = world.server.counters.disconnects();
    let slow = disconnects.find(|(code, _)| *code == Some(Disconnect::SLOW.code));
    assert_eq!(slow, Some((Some(Disconnect::SLOW.code), 1)));
    assert_eq!(world.server.backlogs[1].subscriptions.value(), 0);
}

#[test]
fn the_value_that_changed_longest_ago_is_dropped_beyond_the_limit() {
    let mut world = World::new();
    world.open(Compression::Raw, false);
    for number in 0..200 {
        world.take(&Step::Symbol { symbol: number, bytes: 60_000 });
    }
    let dropped = world.server.backlogs[2].keys_dropped.value();
    assert!((150..200).contains(&dropped), "{dropped}");
    world.read_all();
    let client = &world.clients[0];
    let last: Vec<u64> = client.read.iter().rev().take(8).map(|read| read.number).collect();
    assert_eq!(last, Vec::from_iter((193..=200).rev()));
}

#[test]
fn nothing_that_waited_arrives_after_an_unsubscribe() {
    let mut world = World::new();
    world.open(Compression::Raw, false);
    for _ in 0..40 {
        world.take(&Step::Symbol { symbol: 1, bytes: 60_000 });
        world.take(&Step::State { bytes: 60_000 });
    }
    let message = r#"{"id":9,"unsubscribe":{"channel":"state:a"}}"#;
    world.server.send(0, message);
    world.newest.remove("state:a");
    world.read_all();
    let client = &world.clients[0];
    let replied = client.replies.iter().position(|(id, _)| *id == 9).expect("a reply");
    let (_, read) = client.replies[replied];
    assert!(client.read[read..].iter().all(|one| one.channel != "state:a"), "nothing after it");
    world.check();
}

struct World {
    server: Server,
    clients: Vec<Client>,
    published: u64,
    /// The number of the newest publication of each channel and symbol.
    newest: HashMap<String, u64>,
    reliable: Vec<u64>,
}

struct Client {
    socket: TcpStream,
    stream: Vec<u8>,
    zlib: Decompress,
    /// The data of the last publication of the channel with deltas.
    base: Vec<u8>,
    read: Vec<Received>,
    /// Ids of replies, and how many publications were read before each.
    replies: Vec<(u64, usize)>,
}

/// A publication as a client read it.
struct Received {
    channel: String,
    symbol: String,
    number: u64,
}

impl World {
    fn new() -> Self {
        let mut options = Options::default();
        options.client.insecure = true;
        // No client here answers a ping, and a busy machine takes longer than the default interval.
        options.client.ping_interval = Duration::from_secs(3600);
        options.client.pong_timeout = Duration::from_secs(3599);
        let latest = |name: &str, key_tag: &str| Namespace {
            name: name.into(),
            allowed_delta_types: vec![Namespace::FOSSIL.into()],
            delta_publish: true,
            keep_latest_publication: true,
            delivery: DeliveryOptions {
                class: DeliveryClass::Latest,
                key_tag: key_tag.into(),
                keys_max: 8,
                ..DeliveryOptions::default()
            },
            ..Namespace::default()
        };
        options.channel.namespaces = vec![latest("state", ""), latest("keyed", "symbol")];
        let server = Server::of(options);
        let (clients, newest, reliable) = Default::default();
        Self { server, clients, published: 0, newest, reliable }
    }

    fn open(&mut self, compression: Compression, with_deltas: bool) {
        let delta = if with_deltas { "fossil" } else { "" };
        let commands = format!(
            r#"{{"id":1,"connect":{{}}}}
            {{"id":2,"subscribe":{{"channel":"state:a","delta":"{delta}"}}}}
            {{"id":3,"subscribe":{{"channel":"keyed:a"}}}}"#
        );
        self.server.open_with(compression, None, &commands);
        let socket = self.server.peers.last().expect("one was opened").try_clone().expect("open");
        socket.set_nonblocking(true).expect("a socket");
        self.clients.push(Client {
            socket,
            stream: Vec::new(),
            zlib: Decompress::new_with_window_bits(false, 15),
            base: Vec::new(),
            read: Vec::new(),
            replies: Vec::new(),
        });
    }

    fn take(&mut self, step: &Step) {
        match step {
            Step::State { bytes } => self.publish("state:a", "", *bytes, None),
            Step::Reliable { bytes } => {
                self.publish("state:a", "", *bytes, Some(DeliveryClass::Reliable));
                self.reliable.push(self.published);
            }
            Step::Symbol { symbol, bytes } => {
                self.publish("keyed:a", &symbol.to_string(), *bytes, None);
            }
            Step::Read { client, bytes } => {
                let at = client % self.clients.len();
                self.clients[at].read(*bytes);
            }
        }
        self.server.shard.turn_with_events(Duration::ZERO);
    }

    fn publish(&mut self, channel: &str, symbol: &str, bytes: usize, class: Option<DeliveryClass>) {
        self.published += 1;
        let number = self.published;
        if class.is_none() {
            self.newest.insert(format!("{channel}{symbol}"), number);
        }
        let data = json!({ "number": number, "noise": noise(number, bytes) }).to_string();
        let tags = [("symbol".to_owned(), symbol.to_owned())];
        let publication =
            Publication { data: data.into(), tags: tags.into(), ..Publication::default() };
        let options = PublishOptions { delivery: class, ..PublishOptions::default() };
        let published =
            self.server.node.channels().publish(channel, publication, options, Instant::now());
        published.wait().expect("accepted");
    }

    /// Every client reads until the server has nothing to write, and then up to the reply to one more command.
    fn read_all(&mut self) {
        while self.read_some() || self.server.shard.is_busy() {
            self.server.shard.turn_with_events(EVENT_WAIT);
        }
        for client in 0..self.clients.len() {
            self.server.send(client, r#"{"id":1000,"rpc":{}}"#);
        }
        let is_last = |(id, _): &(u64, usize)| *id == 1000;
        while !self.clients.iter().all(|client| client.replies.last().is_some_and(is_last)) {
            self.read_some();
            self.clients.iter_mut().for_each(Client::decode_all);
            self.server.shard.turn_with_events(EVENT_WAIT);
        }
    }

    fn read_some(&mut self) -> bool {
        self.clients.iter_mut().fold(false, |has_read, one| one.read(usize::MAX) | has_read)
    }

    /// Every client has the newest of everything and all that was reliable, once it has read.
    fn check(&mut self) {
        self.read_all();
        for client in &mut self.clients {
            let mut numbers = HashMap::<&str, u64>::new();
            let mut newest = HashMap::<String, u64>::new();
            for read in &client.read {
                let before = numbers.insert(&read.channel, read.number).unwrap_or(0);
                assert!(before < read.number, "{} after {before}", read.number);
                if !self.reliable.contains(&read.number) {
                    newest.insert(format!("{}{}", read.channel, read.symbol), read.number);
                }
            }
            newest.retain(|key, _| self.newest.contains_key(key));
            assert_eq!(newest, self.newest);
            let is_reliable = |number: &u64| self.reliable.contains(number);
            let reliable = client.read.iter().map(|read| read.number).filter(is_reliable);
            assert_eq!(Vec::from_iter(reliable), self.reliable);
        }
        assert_eq!(self.server.shard.counters().verify_failures.value(), 0);
    }
}

impl Client {
    /// Reads at most this number of bytes. Returns whether there were any.
    fn read(&mut self, mut bytes: usize) -> bool {
        let (mut buffer, before) = ([0; 1 << 16], self.stream.len());
        while bytes > 0 {
            let part = bytes.min(buffer.len());
            match self.socket.read(&mut buffer[..part]) {
                Ok(0) => break,
                Ok(count) => {
                    self.stream.extend_from_slice(&buffer[..count]);
                    bytes -= count;
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) => panic!("{error}"),
            }
        }
        self.stream.len() > before
    }

    fn decode_all(&mut self) {
        let stream = std::mem::take(&mut self.stream);
        let mut decoded = 0;
        for (head, payload) in frames(&stream) {
            decoded = payload.as_ptr_range().end.addr() - stream.as_ptr().addr();
            let message = match head & 0x40 {
                0 => payload.to_vec(),
                _ => inflate(&mut self.zlib, payload),
            };
            for line in message.split(|byte| *byte == b'\n') {
                let json = serde_json::from_slice(line);
                self.decode(&json.unwrap_or_else(|_| panic!("{head:x} {}", line.escape_ascii())));
            }
        }
        self.stream = stream[decoded..].to_vec();
    }

    fn decode(&mut self, message: &Value) {
        if let Some(id) = message["id"].as_u64() {
            return self.replies.push((id, self.read.len()));
        }
        let push = &message["push"];
        let publication = &push["pub"];
        let data = match &publication["data"] {
            Value::String(text) => {
                let mut data = text.clone().into_bytes();
                if publication["delta"] == true {
                    let (delta, mut patched) = (std::mem::take(&mut data), Vec::new());
                    fossil::apply(&self.base, &delta, 1 << 24, &mut patched).expect("a delta");
                    data = patched;
                }
                self.base.clone_from(&data);
                serde_json::from_slice(&data).expect("JSON")
            }
            data => data.clone(),
        };
        self.read.push(Received {
            channel: push["channel"].as_str().expect("a push").to_owned(),
            symbol: publication["tags"]["symbol"].as_str().unwrap_or_default().to_owned(),
            number: data["number"].as_u64().expect("our data"),
        });
    }
}

/// Letters that compress badly.
fn noise(seed: u64, bytes: usize) -> String {
    let mut state = seed;
    let mut letter = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"[(state >> 58) as usize]
    };
    (0..bytes).map(|_| char::from(letter())).collect()
}

/// Sockets of one machine are writable again long before.
const EVENT_WAIT: Duration = Duration::from_millis(50);
