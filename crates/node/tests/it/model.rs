//! Random life on several hubs against a naive model: who receives what, in which order, exactly once.
//! In: random operations, with inboxes emptied at random moments → out: the same events in hub and model.
//! Uses: hubs and inboxes by hand; proptest prints what failed. Never: tokens, timers (see `expiry.rs`, `life.rs`).
//! Changed here: the model. It knows nothing of lists, places and slabs: only of sets and of one queue per shard.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use fanwire_broker::PublishOptions;
use fanwire_node::{ConnectionKey, ConnectionSelector, Node};
use fanwire_protocol::{Disconnect, Encoding, Publication, Reply};
use proptest::prelude::*;
use prost::Message as _;

use crate::script::hello;
use crate::world::{Effect, Record, Shard, options, protobuf};

const SHARDS: usize = 3;
const CHANNEL_LIMIT: usize = 3;

#[derive(Clone, Debug)]
enum Step {
    Open { who: usize },
    Connect { who: usize },
    Subscribe { who: usize, channel: u8 },
    Unsubscribe { who: usize, channel: u8 },
    Publish { channel: u8, is_json: bool },
    ClientPublish { who: usize, channel: u8 },
    Close { who: usize },
    DisconnectUser { user: usize },
    UnsubscribeUser { user: usize, channel: Option<u8> },
    Drain { shard: usize },
}

fn step() -> impl Strategy<Value = Step> {
    let who = 0..12usize;
    let channel = 0..5u8;
    let user = 0..3usize;
    prop_oneof![
        4 => who.clone().prop_map(|who| Step::Open { who }),
        6 => who.clone().prop_map(|who| Step::Connect { who }),
        12 => (who.clone(), channel.clone()).prop_map(|(who, channel)| Step::Subscribe { who, channel }),
        4 => (who.clone(), channel.clone()).prop_map(|(who, channel)| Step::Unsubscribe { who, channel }),
        9 => (channel.clone(), prop::bool::weighted(0.95))
            .prop_map(|(channel, is_json)| Step::Publish { channel, is_json }),
        4 => (who.clone(), channel.clone()).prop_map(|(who, channel)| Step::ClientPublish { who, channel }),
        1 => who.prop_map(|who| Step::Close { who }),
        1 => user.clone().prop_map(|user| Step::DisconnectUser { user }),
        1 => (user, prop::option::of(channel))
            .prop_map(|(user, channel)| Step::UnsubscribeUser { user, channel }),
        6 => (0..SHARDS).prop_map(|shard| Step::Drain { shard }),
    ]
}

/// One connection of the model. `who` decides shard, user and encoding.
#[derive(Default)]
struct Connection {
    here: bool,
    connected: bool,
    channels: BTreeSet<u8>,
}

#[derive(Clone)]
enum Queued {
    Publication { channel: u8, number: usize, is_json: bool },
    DisconnectUser { user: usize },
    UnsubscribeUser { user: usize, channel: Option<u8> },
}

/// Expected behaviour.
#[derive(Default)]
struct Model {
    connections: BTreeMap<usize, Connection>,
    queues: [Vec<Queued>; SHARDS],
    published: usize,
    /// Messages by `who`: everything that was heard under this number, over all its connections.
    heard: BTreeMap<usize, Vec<String>>,
}

fn shard_of(who: usize) -> usize {
    who % SHARDS
}

fn user_of(who: usize) -> usize {
    who / SHARDS % 3
}

fn encoding_of(who: usize) -> Encoding {
    Encoding::ALL[who % 2]
}

impl Model {
    fn step(&mut self, step: &Step) {
        match *step {
            Step::Open { who } => {
                self.connections.insert(who, Connection { here: true, ..Connection::default() });
            }
            Step::Connect { who } => {
                if self.in_order(who, false) {
                    self.connection(who).connected = true;
                    self.receives(who, "connected");
                }
            }
            Step::Subscribe { who, channel } => {
                if self.in_order(who, true) {
                    let channels = &mut self.connection(who).channels;
                    let answer = if channels.contains(&channel) {
                        "error 105"
                    } else if channels.len() == CHANNEL_LIMIT {
                        "error 106"
                    } else {
                        channels.insert(channel);
                        "subscribed"
                    };
                    self.receives(who, answer);
                }
            }
            Step::Unsubscribe { who, channel } => {
                if self.in_order(who, true) {
                    self.connection(who).channels.remove(&channel);
                    self.receives(who, "unsubscribed");
                }
            }
            Step::Publish { channel, is_json } => self.publish(channel, is_json),
            Step::ClientPublish { who, channel } => {
                self.step(&Step::Drain { shard: shard_of(who) });
                if self.in_order(who, true) {
                    self.publish(channel, true);
                    self.step(&Step::Drain { shard: shard_of(who) });
                    self.receives(who, "published");
                }
            }
            Step::Close { who } => *self.connection(who) = Connection::default(),
            Step::DisconnectUser { user } => {
                self.queues
                    .iter_mut()
                    .for_each(|queue| queue.push(Queued::DisconnectUser { user }));
            }
            Step::UnsubscribeUser { user, channel } => {
                let queued = Queued::UnsubscribeUser { user, channel };
                self.queues.iter_mut().for_each(|queue| queue.push(queued.clone()));
            }
            Step::Drain { shard } => {
                for queued in std::mem::take(&mut self.queues[shard]) {
                    self.drain(shard, &queued);
                }
            }
        }
    }

    fn connection(&mut self, who: usize) -> &mut Connection {
        self.connections.entry(who).or_default()
    }

    fn receives(&mut self, who: usize, what: impl Into<String>) {
        self.heard.entry(who).or_default().push(what.into());
    }

    fn disconnected(&mut self, who: usize, code: u16) {
        self.receives(who, format!("x {code}"));
        *self.connection(who) = Connection::default();
    }

    /// Whether a command of this connection is processed at all; out of order it ends the connection.
    fn in_order(&mut self, who: usize, needs_connect: bool) -> bool {
        let connection = self.connection(who);
        let here = connection.here;
        let connected = connection.connected;
        if here && connected != needs_connect {
            self.disconnected(who, 3501);
        }
        here && connected == needs_connect
    }

    /// Queues a publication for every shard that has subscribers at this moment.
    fn publish(&mut self, channel: u8, is_json: bool) {
        self.published += 1;
        let number = self.published;
        for shard in 0..SHARDS {
            if !self.subscribers(shard, channel).is_empty() {
                self.queues[shard].push(Queued::Publication { channel, number, is_json });
            }
        }
    }

    fn subscribers(&self, shard: usize, channel: u8) -> Vec<usize> {
        let here = self.connections.iter().filter(|(who, _)| shard_of(**who) == shard);
        here.filter(|(_, connection)| connection.channels.contains(&channel))
            .map(|(who, _)| *who)
            .collect()
    }

    fn connected_users(&self, shard: usize, user: usize) -> Vec<usize> {
        let here = self.connections.iter().filter(|(who, _)| shard_of(**who) == shard);
        here.filter(|(who, connection)| connection.connected && user_of(**who) == user)
            .map(|(who, _)| *who)
            .collect()
    }

    fn drain(&mut self, shard: usize, queued: &Queued) {
        match *queued {
            Queued::Publication { channel, number, is_json } => {
                for who in self.subscribers(shard, channel) {
                    if is_json || encoding_of(who) == Encoding::Protobuf {
                        self.receives(who, format!("{channel}: {number}"));
                    } else {
                        self.disconnected(who, 3506);
                    }
                }
            }
            Queued::DisconnectUser { user } => {
                for who in self.connected_users(shard, user) {
                    self.disconnected(who, 3503);
                }
            }
            Queued::UnsubscribeUser { user, channel } => {
                for who in self.connected_users(shard, user) {
                    let own = &mut self.connection(who).channels;
                    let ended: Vec<_> =
                        own.extract_if(.., |own| channel.is_none_or(|c| c == *own)).collect();
                    for channel in ended {
                        self.receives(who, format!("{channel}: ended"));
                    }
                }
            }
        }
    }
}

/// Actual behaviour.
struct Real {
    node: Arc<Node>,
    now: std::time::Instant,
    shards: Vec<Shard>,
    generations: BTreeMap<usize, u32>,
    published: usize,
    heard: BTreeMap<usize, Vec<String>>,
}

impl Real {
    fn new() -> Self {
        let options = options(|options| options.client.channel_limit = CHANNEL_LIMIT);
        let node = Node::new(options).expect("the options are good");
        let shards = (0..SHARDS).map(|_| Shard::new(&node)).collect();
        let now = std::time::Instant::now();
        let generations = BTreeMap::new();
        let heard = BTreeMap::new();
        Self { node, now, shards, generations, published: 0, heard }
    }

    fn step(&mut self, step: &Step) {
        match *step {
            Step::Open { who } => {
                *self.generations.entry(who).or_default() += 1;
                let hello = hello(&format!("as {}", user_of(who)));
                let hello = fanwire_node::ConnectionInfo { encoding: encoding_of(who), ..hello };
                let key = self.key(who);
                self.shards[shard_of(who)].hub.open(key, hello, self.now);
            }
            Step::Connect { who } => self.say(who, r#"{"id":1,"connect":{}}"#),
            Step::Subscribe { who, channel } => {
                self.say(who, &format!(r#"{{"id":1,"subscribe":{{"channel":"{channel}"}}}}"#));
            }
            Step::Unsubscribe { who, channel } => {
                self.say(who, &format!(r#"{{"id":1,"unsubscribe":{{"channel":"{channel}"}}}}"#));
            }
            Step::Publish { channel, is_json } => {
                self.published += 1;
                let data = format!("{}{}", if is_json { "" } else { "!" }, self.published);
                let publication = Publication { data: data.into(), ..Publication::default() };
                let options = PublishOptions::default();
                let published = self.node.channels().publish(
                    &channel.to_string(),
                    publication,
                    options,
                    self.now,
                );
                published.wait().expect("published");
            }
            Step::ClientPublish { who, channel } => {
                self.step(&Step::Drain { shard: shard_of(who) });
                let data = self.published + 1;
                let before = self.heard.get(&who).map_or(0, Vec::len);
                let command =
                    format!(r#"{{"id":1,"publish":{{"channel":"{channel}","data":{data}}}}}"#);
                self.say(who, &command);
                self.step(&Step::Drain { shard: shard_of(who) });
                let heard = self.heard.get(&who).into_iter().flatten().skip(before);
                self.published += heard.filter(|what| *what == "published").count();
            }
            Step::Close { who } => {
                let key = self.key(who);
                self.shards[shard_of(who)].hub.close(key, self.now);
            }
            Step::DisconnectUser { user } => {
                let done =
                    self.node.connections().disconnect(target(user), Disconnect::FORCE_DISCONNECT);
                done.wait().expect("a node alone");
            }
            Step::UnsubscribeUser { user, channel } => {
                let channel = channel.map(|channel| channel.to_string());
                let done = self.node.connections().unsubscribe(target(user), channel.as_deref());
                done.wait().expect("the channel is possible");
            }
            Step::Drain { shard } => {
                let mut record = Record::default();
                let now = self.now;
                for notice in self.shards[shard].mailbox.take() {
                    self.shards[shard].hub.notice(notice, now, &mut record);
                }
                self.receive(shard, record);
            }
        }
    }

    fn key(&self, who: usize) -> ConnectionKey {
        let generation = self.generations.get(&who).copied().unwrap_or(0);
        ConnectionKey { index: (who / SHARDS) as u32, generation }
    }

    fn say(&mut self, who: usize, text: &str) {
        let frame = match encoding_of(who) {
            Encoding::Json => text.as_bytes().to_vec(),
            Encoding::Protobuf => protobuf(text),
        };
        let mut record = Record::default();
        let key = self.key(who);
        self.shards[shard_of(who)].hub.receive(key, &frame, self.now, &mut record);
        self.receive(shard_of(who), record);
    }

    fn receive(&mut self, shard: usize, record: Record) {
        for (index, effect) in record.effects {
            let who = index as usize * SHARDS + shard;
            let what = match effect {
                Effect::Message(message) => said(encoding_of(who), &message),
                Effect::Publication(broadcast, _) => {
                    let message = broadcast.message(encoding_of(who)).expect("it exists");
                    said(encoding_of(who), message)
                }
                Effect::PingFrame => "ping".into(),
                Effect::Disconnect(disconnect) => format!("x {}", disconnect.code),
            };
            self.heard.entry(who).or_default().push(what);
        }
    }
}

fn target(user: usize) -> ConnectionSelector {
    ConnectionSelector { user: user.to_string(), ..ConnectionSelector::default() }
}

/// A reply or push in the words of the model.
fn said(encoding: Encoding, message: &[u8]) -> String {
    let reply: Reply = match encoding {
        Encoding::Json => serde_json::from_slice(message).expect("a JSON reply"),
        Encoding::Protobuf => Reply::decode_length_delimited(message).expect("a Protobuf reply"),
    };
    if let Some(error) = reply.error {
        return format!("error {}", error.code);
    }
    if let Some(push) = reply.push {
        let what = push.r#pub.map_or("ended".into(), |publication| {
            String::from_utf8_lossy(&publication.data).trim_start_matches('!').to_owned()
        });
        return format!("{}: {what}", push.channel);
    }
    let results = [
        (reply.connect.is_some(), "connected"),
        (reply.subscribe.is_some(), "subscribed"),
        (reply.unsubscribe.is_some(), "unsubscribed"),
        (reply.publish.is_some(), "published"),
    ];
    results.iter().find(|(is_there, _)| *is_there).expect("one of these").1.to_owned()
}

/// The order in which the channels of one call end is not promised.
fn without_order_of_ends(mut heard: Vec<String>) -> Vec<String> {
    for run in heard.chunk_by_mut(|a, b| a.ends_with("ended") && b.ends_with("ended")) {
        run.sort();
    }
    heard
}

proptest! {
    #[test]
    fn everybody_hears_what_the_model_says(steps in prop::collection::vec(step(), 1..250)) {
        let mut model = Model::default();
        let mut real = Real::new();
        for step in steps.iter().chain(&[0, 1, 2].map(|shard| Step::Drain { shard })) {
            model.step(step);
            real.step(step);
        }
        for who in 0..12 {
            let expected = model.heard.remove(&who).unwrap_or_default();
            let heard = real.heard.remove(&who).unwrap_or_default();
            prop_assert_eq!(without_order_of_ends(heard), without_order_of_ends(expected), "{}", who);
        }
        let counts = real.node.counts();
        let connected = model.connections.values().filter(|connection| connection.connected);
        prop_assert_eq!(counts.connections, connected.count());
        let subscriptions = model.connections.values().map(|connection| connection.channels.len());
        prop_assert_eq!(counts.subscriptions, subscriptions.sum::<usize>());
    }
}
