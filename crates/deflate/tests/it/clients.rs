//! A simulation of clients of a gap coder: their inflaters reproduce every message.
//! Random publications, joins, replies, losses, resized histories → the invariants of gap coding.
//! Uses `channel` and `client`, which check their input.
//! Changed here: the possible events. The checks are `client`; realistic traffic is `fan_out`.

use std::collections::VecDeque;

use fanwire_deflate::Compressor;
use fanwire_deflate::gap::History;
use proptest::collection::vec;
use proptest::prelude::*;

use crate::channel::{Channel, SharedFrames};
use crate::client::Client;

const CHANNELS: usize = 4;

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]
    #[test]
    fn every_client_gets_every_message(
        clients in vec((8..=15u8, vec(any::<bool>(), CHANNELS)), 1..6),
        bytes_max in bytes_max(),
        depth in 1..=8usize,
        level in 1..=9u8,
        behind in 0..4usize,
        steps in vec(step(), 1..120),
    ) {
        let mut simulation = Simulation::new(&clients, bytes_max, depth, level, behind);
        for step in &steps {
            simulation.take(step);
        }
        simulation.deliver(0);
    }
}

#[test]
fn one_channel_of_slowly_changing_state_costs_a_tenth_in_context() {
    let mut simulation = Simulation::new(&[(15, vec![true; 1])], 32_768, 4, 6, 0);
    for at in 0..200 {
        simulation.take(&Step::Publish { channel: 0, seed: at, rows: 40 });
    }
    let client = &simulation.clients[0];
    let plaintext_bytes = client.plaintext_bytes();
    assert!(client.received * 10 < plaintext_bytes, "{} of {plaintext_bytes}", client.received);
}

#[test]
fn a_large_publication_is_referred_to_until_it_leaves_the_window() {
    let messages = [state(1, 40), state(2, 40)];
    let bytes = messages[1].len();
    let received = |gap: usize| {
        let mut simulation = Simulation::new(&[(15, vec![true])], 32_768, 4, 6, 0);
        simulation.publish(0, messages[0].clone());
        simulation.reply(0, &vec![b'x'; gap - messages[0].len()]);
        simulation.clients[0].received = 0;
        simulation.publish(0, messages[1].clone());
        simulation.clients[0].received
    };
    let (whole, last) = (32_768 - bytes, 32_768 - bytes / 8);
    for near in [whole, whole + 1, whole.midpoint(last), last] {
        assert!(received(near) < 150, "{} B at {near}", received(near));
    }
    for far in [last + 1, 32_768] {
        assert!(received(far) > 200, "{} B at {far}", received(far));
    }
}

#[test]
fn the_first_publication_after_a_quote_costs_little_more_than_the_next_one() {
    let mut simulation = Simulation::new(&[(15, vec![true]), (15, vec![])], 32_768, 4, 6, 0);
    let mut sizes = [0; 4];
    for (at, size) in (0..).zip(&mut sizes) {
        simulation.take(&Step::Publish { channel: 0, seed: at, rows: 40 });
        if at == 1 {
            simulation.take(&Step::Recover { client: 1, channel: 0 });
            simulation.take(&Step::Reply { client: 1, rows: 2 });
            simulation.clients[1].received = 0;
        }
        *size = simulation.clients[1].received;
    }
    let [_, _, first, both] = sizes;
    assert!(first < 200 && both < first + 150, "{sizes:?}");
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
    /// Two publications in one message, which need not be neighbours in any window.
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
    /// The client subscribes again, and the reply holds a part of the newest publication.
    Recover {
        client: usize,
        channel: usize,
    },
    Leave {
        client: usize,
        channel: usize,
    },
    /// The client misses the next publication of the channel that is delivered.
    Miss {
        client: usize,
        channel: usize,
    },
    /// The client's connection ends, and it opens a new one.
    Reconnect {
        client: usize,
    },
    /// The channel's history was freed and begins again.
    Forget {
        channel: usize,
    },
    Resize {
        channel: usize,
        bytes_max: usize,
    },
    Deepen {
        channel: usize,
        depth: usize,
    },
}

fn step() -> impl Strategy<Value = Step> {
    let channel = 0..CHANNELS;
    let both = || (0..6usize, 0..CHANNELS);
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
        1 => both().prop_map(|(client, channel)| Step::Join { client, channel }),
        2 => both().prop_map(|(client, channel)| Step::Recover { client, channel }),
        1 => both().prop_map(|(client, channel)| Step::Leave { client, channel }),
        1 => both().prop_map(|(client, channel)| Step::Miss { client, channel }),
        1 => (0..6usize).prop_map(|client| Step::Reconnect { client }),
        1 => channel.clone().prop_map(|channel| Step::Forget { channel }),
        1 => (channel.clone(), bytes_max())
            .prop_map(|(channel, bytes_max)| Step::Resize { channel, bytes_max }),
        1 => (channel, 1..=8usize).prop_map(|(channel, depth)| Step::Deepen { channel, depth }),
    ]
}

fn bytes_max() -> impl Strategy<Value = usize> {
    prop_oneof![Just(600usize), Just(4_000), Just(8_192), Just(32_768)]
}

/// A channel's publication or another message, which one queue delivers in their order.
type QueuedMessage = (usize, Vec<u8>, Option<SharedFrames>);

struct Simulation {
    channels: Vec<Channel>,
    clients: Vec<Client>,
    misses: Vec<(usize, usize)>,
    compressor: Compressor,
    new_history: Box<dyn Fn() -> History>,
    /// Messages published and not delivered yet, at most `behind`.
    queue: VecDeque<QueuedMessage>,
    behind: usize,
}

impl Simulation {
    fn new(
        clients: &[(u8, Vec<bool>)],
        bytes_max: usize,
        depth: usize,
        level: u8,
        behind: usize,
    ) -> Self {
        let new_history = move || History::new(bytes_max, depth, level);
        let client = |(window_bits, joined): &(u8, Vec<bool>)| {
            let mut client = Client::new(*window_bits);
            let joined = (0..CHANNELS).filter(|channel| joined.get(*channel) == Some(&true));
            joined.for_each(|channel| client.join(channel));
            client
        };
        Self {
            channels: (0..CHANNELS).map(|_| Channel::new(new_history())).collect(),
            clients: clients.iter().map(client).collect(),
            misses: Vec::new(),
            compressor: Compressor::new(level),
            new_history: Box::new(new_history),
            queue: VecDeque::new(),
            behind,
        }
    }

    fn take(&mut self, step: &Step) {
        let count = self.clients.len();
        match step {
            Step::Publish { channel, seed, rows } => self.publish(*channel, state(*seed, *rows)),
            Step::Bytes { channel, bytes } => self.publish(*channel, bytes.clone()),
            Step::Twice { channel, seed, rows } => {
                self.publish(*channel, state(*seed, *rows).repeat(2));
            }
            Step::Reply { client, rows } => self.reply(client % count, &state(7, *rows)),
            Step::Join { client, channel } => self.clients[client % count].join(*channel),
            Step::Recover { client, channel } => self.recover(client % count, *channel),
            Step::Leave { client, channel } => self.clients[client % count].leave(*channel),
            Step::Miss { client, channel } => self.misses.push((client % count, *channel)),
            Step::Reconnect { client } => {
                let client = &mut self.clients[client % count];
                let mut new = Client::new(client.window_bits());
                (0..CHANNELS).filter(|at| client.is_subscribed(*at)).for_each(|at| new.join(at));
                *client = new;
            }
            Step::Forget { channel } => {
                self.deliver(0);
                self.channels[*channel] = Channel::new((self.new_history)());
            }
            Step::Resize { channel, bytes_max } => {
                self.channels[*channel].resize(*bytes_max);
            }
            Step::Deepen { channel, depth } => self.channels[*channel].history.set_depth(*depth),
        }
    }

    fn publish(&mut self, channel: usize, message: Vec<u8>) {
        let shared_frames = self.channels[channel].publish(&message);
        self.queue.push_back((channel, message, shared_frames));
        self.deliver(self.behind);
    }

    /// Delivers all messages but `behind`.
    fn deliver(&mut self, behind: usize) {
        while self.queue.len() > behind {
            let mut post = self.queue.pop_front().expect("more than none");
            (0..self.clients.len()).for_each(|client| self.deliver_to(client, &mut post));
        }
    }

    fn deliver_to(&mut self, client: usize, (channel, message, shared_frames): &mut QueuedMessage) {
        if !self.clients[client].is_subscribed(*channel) {
            return;
        }
        let missed = self.misses.iter().position(|missed| *missed == (client, *channel));
        if let Some(missed) = missed {
            self.misses.swap_remove(missed);
            return;
        }
        let Some(shared_frames) = shared_frames else { return self.reply(client, message) };
        let channel_now = &self.channels[*channel];
        let client = &mut self.clients[client];
        let plaintexts = &channel_now.plaintexts[..=shared_frames.index];
        let reference = client
            .reference(*channel, &shared_frames.publication, plaintexts)
            .expect("a subscription was seen");
        let frame = shared_frames.frame(reference, channel_now, &mut self.compressor).to_vec();
        client.publication(*channel, &shared_frames.publication, &frame, message);
    }

    fn recover(&mut self, client: usize, channel: usize) {
        self.clients[client].join(channel);
        let Some((message, at, embedded_part)) = self.channels[channel].reply() else { return };
        let client = &mut self.clients[client];
        client.embed(channel, embedded_part, at);
        let mut frame = Vec::new();
        self.compressor.standalone_within(client.window_bits(), &message, &mut frame);
        client.other(&frame, &message);
    }

    fn reply(&mut self, client: usize, message: &[u8]) {
        let client = &mut self.clients[client];
        let mut frame = Vec::new();
        self.compressor.standalone_within(client.window_bits(), message, &mut frame);
        client.other(&frame, message);
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
