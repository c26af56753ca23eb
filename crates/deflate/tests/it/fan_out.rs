//! A day of a node in small: connections with one to five channels come and go.
//! A seed → deliveries, each checked by its client, of which nearly all must be in context.
//! Uses `channel` and `client`. Another seed: FANWIRE_SEED=… cargo test -p fanwire-deflate fan_out
//! Changed here: the traffic. Popularity, sizes of connections and lifetimes are those of the
//! compression lab, a fiftieth of its size. Rare cases are `clients`.

use fanwire_deflate::Compressor;
use fanwire_deflate::gap::{Depth, History};

use crate::channel::Channel;
use crate::client::Client;

#[test]
fn of_a_hundred_deliveries_98_are_in_context() {
    let seed = std::env::var("FANWIRE_SEED").map_or(1, |seed| seed.parse().expect("a number"));
    println!("FANWIRE_SEED={seed}");
    let mut node = Node::new(seed);
    (0..PUBLICATIONS / 3).for_each(|_| node.publish());
    (node.deliveries, node.in_context, node.received) = (0, 0, 0);
    (0..PUBLICATIONS * 2 / 3).for_each(|_| node.publish());
    let share = node.in_context as f64 / node.deliveries as f64;
    println!("{share:.4} of {} deliveries, {} bytes", node.deliveries, node.received);
    assert!(node.deliveries > 5_000, "{} deliveries are no day", node.deliveries);
    assert!(share >= 0.98, "{share:.4} of {} deliveries", node.deliveries);
}

struct Node {
    channels: Vec<Channel>,
    connections: Vec<Connection>,
    compressor: Compressor,
    random: Random,
    /// Publications so far, which stand for the time.
    now: f64,
    published: Vec<u32>,
    deliveries: usize,
    in_context: usize,
    received: usize,
}

struct Connection {
    client: Client,
    ends: f64,
}

impl Node {
    fn new(seed: u64) -> Self {
        let mut random = Random(seed);
        let histories = (0..CHANNELS).map(|_| History::new(4_096, 4, 6));
        let connections = (0..CONNECTIONS).map(|_| Connection::new(0.0, &mut random)).collect();
        Self {
            channels: histories.map(Channel::new).collect(),
            connections,
            compressor: Compressor::new(6),
            random,
            now: 0.0,
            published: vec![0; CHANNELS],
            deliveries: 0,
            in_context: 0,
            received: 0,
        }
    }

    fn publish(&mut self) {
        self.now += 1.0;
        self.renew_connections();
        // A channel's rate falls with the root of its rank.
        let channel = self.random.rank(0.5);
        self.published[channel] += 1;
        let message = message(channel, self.published[channel], &mut self.random);
        let shard = &mut self.channels[channel];
        let mut shared_frames = shard.publish(&message).expect("a usual length");
        for connection in &mut self.connections {
            let client = &mut connection.client;
            let plaintexts = &shard.plaintexts;
            let reference = client.reference(channel, &shared_frames.publication, plaintexts);
            let Some(reference) = reference else { continue };
            let frame = shared_frames.frame(reference, shard, &mut self.compressor).to_vec();
            client.publication(channel, &shared_frames.publication, &frame, &message);
            self.deliveries += 1;
            self.in_context += usize::from(reference.depth() != Depth::Alone);
            self.received += frame.len();
        }
        self.reply();
    }

    /// Ends the connections whose time is over, and opens as many.
    fn renew_connections(&mut self) {
        for connection in &mut self.connections {
            if connection.ends <= self.now {
                *connection = Connection::new(self.now, &mut self.random);
            }
        }
    }

    /// Sends a message to one connection alone, from time to time.
    fn reply(&mut self) {
        let index = self.random.below(CONNECTIONS * 2);
        let Some(connection) = self.connections.get_mut(index) else { return };
        let reply = format!(r#"{{"id":{},"rpc":{{"data":{{}}}}}}"#, self.random.below(1_000));
        let mut frame = Vec::new();
        self.compressor.standalone(reply.as_bytes(), &mut frame);
        connection.client.other(&frame, reply.as_bytes());
    }
}

impl Connection {
    fn new(now: f64, random: &mut Random) -> Self {
        let mut client = Client::new(15);
        let count = 1 + [40, 65, 80, 92].partition_point(|share| *share <= random.below(100));
        (0..count).for_each(|_| client.join(random.rank(1.0)));
        Self { client, ends: now - LIFETIME * random.unit().ln() }
    }
}

/// A message of the channel's kind: a state, a tick, or chat.
fn message(channel: usize, at: u32, random: &mut Random) -> Vec<u8> {
    let number = random.below(10_000);
    let body = match channel % 3 {
        0 => (0..12).map(|row| format!(r#"{{"row":{row},"v":{}}},"#, (row + at) / 7)).collect(),
        1 => format!(r#"{{"symbol":"S{channel}","bid":{}.{number:04},"size":{}}}"#, 17, at % 9),
        _ => {
            let words = ["send", "the", "list", "again", "tomorrow", "now", "to", "all"];
            (0..12).map(|_| words[random.below(words.len())]).collect::<Vec<_>>().join(" ")
        }
    };
    format!(r#"{{"push":{{"channel":"c{channel}","pub":{{"data":{body},"offset":{at}}}}}}}"#)
        .into_bytes()
}

struct Random(u64);

impl Random {
    /// SplitMix64.
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ mixed >> 31
    }

    /// Above 0, up to 1.
    fn unit(&mut self) -> f64 {
        ((self.next() >> 11) + 1) as f64 / (1u64 << 53) as f64
    }

    fn below(&mut self, end: usize) -> usize {
        (self.next() % end as u64) as usize
    }

    /// A channel, whose weight is its rank to the power of -`exponent`.
    fn rank(&mut self, exponent: f64) -> usize {
        let weight = |rank: usize| (rank as f64 + 1.0).powf(-exponent);
        let all: f64 = (0..CHANNELS).map(weight).sum();
        let mut rest = self.unit() * all;
        for rank in 0..CHANNELS {
            rest -= weight(rank);
            if rest <= 0.0 {
                return rank;
            }
        }
        CHANNELS - 1
    }
}

const CONNECTIONS: usize = 40;
const CHANNELS: usize = 20;
const PUBLICATIONS: usize = 4_500;

/// Mean lifetime of a client, in publications of the whole node.
const LIFETIME: f64 = 3_000.0;
