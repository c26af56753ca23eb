//! A simulation of clients of a gap coder: whatever they are sent, their inflaters reproduce it.
//! Random publications, joins, replies, losses and windows → the invariants of gap coding.
//! Uses `puff` and zlib-rs as clients, each with the window it agreed to.
//! Change here: what may happen to a client. Which frames it gets is decided in `gap`.

use std::collections::HashMap;

use fanwire_deflate::gap::{Counter, History, Publication, Reach, Reference};
use fanwire_deflate::{Compressor, FLUSH_TAIL};
use proptest::collection::vec;
use proptest::prelude::*;

use crate::puff;

const CHANNELS: usize = 4;

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]
    #[test]
    fn every_client_gets_every_message(
        clients in vec((8..=15u8, vec(any::<bool>(), CHANNELS)), 1..6),
        bytes_max in prop_oneof![Just(600usize), Just(4_000), Just(32_768)],
        depth in 1..=4usize,
        level in 1..=9u8,
        steps in vec(step(), 1..120),
    ) {
        let mut house = House::new(&clients, bytes_max, depth, level);
        for step in &steps {
            house.take(step);
        }
    }
}

#[test]
fn one_channel_of_slowly_changing_state_costs_a_tenth_in_context() {
    let mut house = House::new(&[(15, vec![true; 1])], 32_768, 4, 6);
    for at in 0..200 {
        house.take(&Step::Publish { channel: 0, seed: at, rows: 40 });
    }
    let client = &house.clients[0];
    assert!(client.received * 10 < client.plain, "{} of {}", client.received, client.plain);
}

#[derive(Clone, Debug)]
enum Step {
    Publish {
        channel: usize,
        seed: u32,
        rows: usize,
    },
    Bytes {
        channel: usize,
        bytes: Vec<u8>,
    },
    /// As if two publications, which in no window need to be neighbours.
    Twice {
        channel: usize,
        seed: u32,
        rows: usize,
    },
    Reply {
        client: usize,
        rows: usize,
    },
    Join {
        client: usize,
        channel: usize,
    },
    Leave {
        client: usize,
        channel: usize,
    },
    /// The client misses the next publication of the channel.
    Miss {
        client: usize,
        channel: usize,
    },
    /// The channel's history was freed and begins anew.
    Forget {
        channel: usize,
    },
}

fn step() -> impl Strategy<Value = Step> {
    let channel = 0..CHANNELS;
    prop_oneof![
        6 => (channel.clone(), 0..3u32, 0..4usize)
            .prop_map(|(channel, seed, rows)| Step::Publish { channel, seed, rows }),
        8 => (channel.clone(), any::<u32>(), 0..60usize)
            .prop_map(|(channel, seed, rows)| Step::Publish { channel, seed, rows }),
        2 => (channel.clone(), 0..3u32, 0..4usize)
            .prop_map(|(channel, seed, rows)| Step::Twice { channel, seed, rows }),
        2 => (channel.clone(), vec(any::<u8>(), 1..700))
            .prop_map(|(channel, bytes)| Step::Bytes { channel, bytes }),
        2 => (0..6usize, 0..30usize).prop_map(|(client, rows)| Step::Reply { client, rows }),
        1 => (0..6usize, channel.clone()).prop_map(|(client, channel)| Step::Join { client, channel }),
        1 => (0..6usize, channel.clone()).prop_map(|(client, channel)| Step::Leave { client, channel }),
        1 => (0..6usize, channel.clone()).prop_map(|(client, channel)| Step::Miss { client, channel }),
        1 => channel.prop_map(|channel| Step::Forget { channel }),
    ]
}

struct House {
    histories: Vec<History>,
    clients: Vec<Client>,
    compressor: Compressor,
    new_history: Box<dyn Fn() -> History>,
}

impl House {
    fn new(clients: &[(u8, Vec<bool>)], bytes_max: usize, depth: usize, level: u8) -> Self {
        let new_history = move || History::new(bytes_max, depth, level);
        Self {
            histories: (0..CHANNELS).map(|_| new_history()).collect(),
            clients: clients.iter().map(|(bits, joined)| Client::new(*bits, joined)).collect(),
            compressor: Compressor::new(level),
            new_history: Box::new(new_history),
        }
    }

    fn take(&mut self, step: &Step) {
        let count = self.clients.len();
        match step {
            Step::Publish { channel, seed, rows } => self.publish(*channel, &state(*seed, *rows)),
            Step::Bytes { channel, bytes } => self.publish(*channel, bytes),
            Step::Twice { channel, seed, rows } => {
                self.publish(*channel, &state(*seed, *rows).repeat(2));
            }
            Step::Reply { client, rows } => {
                let message = state(7, *rows);
                self.clients[client % count].reply(&message, &mut self.compressor);
            }
            Step::Join { client, channel } => {
                self.clients[client % count].reach.insert(*channel, Reach::default());
            }
            Step::Leave { client, channel } => {
                self.clients[client % count].reach.remove(channel);
            }
            Step::Miss { client, channel } => self.clients[client % count].misses.push(*channel),
            Step::Forget { channel } => self.histories[*channel] = (self.new_history)(),
        }
    }

    fn publish(&mut self, channel: usize, message: &[u8]) {
        let Some(publication) = self.histories[channel].publish(message) else { return };
        // Equal references share one frame, as in a shard.
        let mut frames = HashMap::new();
        for client in &mut self.clients {
            let history = &self.histories[channel];
            client.publication(channel, message, &publication, |reference| {
                frames.entry(reference).or_insert_with(|| {
                    let parse = || history.parse(&publication, reference.depth());
                    let parse =
                        publication.parse(reference.depth(), parse).expect("the newest one");
                    let mut frame = Vec::new();
                    parse.emit(reference.gaps(), &mut frame);
                    frame
                })
            });
        }
    }
}

struct Client {
    window_bits: u8,
    counter: Counter,
    reach: HashMap<usize, Reach>,
    misses: Vec<usize>,
    /// What the peer has: all plaintext of compressed messages, and an inflater in context.
    stream: Vec<u8>,
    inflate: zlib_rs::Inflate,
    received: usize,
    plain: usize,
}

impl Client {
    fn new(window_bits: u8, joined: &[bool]) -> Self {
        let joined = (0..CHANNELS).filter(|channel| joined.get(*channel) == Some(&true));
        Self {
            window_bits,
            counter: Counter::default(),
            reach: joined.map(|channel| (channel, Reach::default())).collect(),
            misses: Vec::new(),
            stream: Vec::new(),
            inflate: zlib_rs::Inflate::new(false, 15),
            received: 0,
            plain: 0,
        }
    }

    fn publication<'f>(
        &mut self,
        channel: usize,
        message: &[u8],
        publication: &Publication,
        frame: impl FnOnce(Reference) -> &'f mut Vec<u8>,
    ) {
        let Some(reach) = self.reach.get_mut(&channel) else { return };
        if let Some(at) = self.misses.iter().position(|missed| *missed == channel) {
            self.misses.swap_remove(at);
            return;
        }
        let reference = reach.reference(publication, self.counter, self.window_bits);
        reach.queued(publication, &mut self.counter);
        self.receive(frame(reference), message);
    }

    fn reply(&mut self, message: &[u8], compressor: &mut Compressor) {
        let mut frame = Vec::new();
        compressor.standalone_within(self.window_bits, message, &mut frame);
        self.counter.advance(message.len());
        self.receive(&frame, message);
    }

    fn receive(&mut self, frame: &[u8], message: &[u8]) {
        let data = [frame, &FLUSH_TAIL].concat();
        let window = &self.stream[self.stream.len().saturating_sub(1 << self.window_bits)..];
        let plain = puff::inflate_within(&data, window, 1 << self.window_bits).expect("valid");
        assert_eq!(plain.bytes, message, "the plaintext by puff");
        assert_eq!(plain.final_blocks, 0, "BFINAL is never set");
        let mut out = vec![0; message.len() + 1];
        let before = self.inflate.total_out();
        self.inflate
            .decompress(&data, &mut out, zlib_rs::InflateFlush::SyncFlush)
            .expect("valid for zlib-rs");
        out.truncate((self.inflate.total_out() - before) as usize);
        assert_eq!(out, message, "the plaintext by zlib-rs");
        self.stream.extend_from_slice(message);
        self.received += frame.len();
        self.plain += message.len();
    }
}

/// A state of a game that differs a little from those of other seeds.
fn state(seed: u32, rows: usize) -> Vec<u8> {
    let rows = (0..rows as u32).map(|row| {
        let score = if row % 7 == seed % 7 { seed % 100 } else { row };
        format!(r#"{{"player":"player {row}","score":{score},"team":"blue"}}"#)
    });
    format!(r#"{{"seq":{seed},"state":[{}]}}"#, rows.collect::<Vec<_>>().join(",")).into_bytes()
}
