//! Random life of a channel with history on two shards against a naive model: offsets, epochs, pages, recovery, positions.
//! In: random sequences of publications, time, removals, subscriptions → out: the same answers and events in both.
//! Uses: a node, two hubs and a virtual clock; a difference is printed with its seed (`FANWIRE_SEED` plays it again).
//! Changed here: how the node is driven. What should happen stands in `streams/model.rs`, what happens in `streams/steps.rs`.

mod model;
mod steps;

use std::sync::Arc;
use std::time::{Duration, Instant};

use fanwire_broker::{Position, PublishOptions};
use fanwire_node::options::RecoveryMode;
use fanwire_node::{CommandSource, ConnectionInfo, ConnectionKey, Node, Page};
use fanwire_protocol::{Encoding, ErrorCode, Publication, Reply, StreamPosition};
use prost::Message as _;

use crate::history::with_history;
use crate::world::{Effect, Record, Shard, protobuf};
use model::{Model, Settings, place, shard_of};
use steps::{Ask, Dice, EpochName, Publish, Step};

/// A node with one kind of channels and three connected clients; two share a shard.
struct Real {
    node: Arc<Node>,
    now: Instant,
    shards: [Shard; 2],
    channel: String,
    /// Epochs in the order in which they were first heard of.
    epochs: Vec<String>,
    published: usize,
    heard: [Vec<String>; 3],
}

const CLIENTS: [Encoding; 3] = [Encoding::Json, Encoding::Protobuf, Encoding::Json];

impl Real {
    fn new(settings: Settings) -> Self {
        let now = Instant::now();
        let mut options = with_history(|open| {
            open.history_size = settings.size;
            open.history_ttl = Duration::from_secs(settings.ttl);
            open.history_meta_ttl = Duration::from_secs(settings.meta_ttl);
            open.force_recovery = settings.forced;
            open.auto_cache_recover = settings.auto;
            if settings.cache {
                open.force_recovery_mode = RecoveryMode::Cache;
            }
        });
        options.channel.history_meta_ttl = Duration::ZERO;
        options.client.recovery_max_publication_limit = settings.limit;
        options.client.ping_interval = Duration::from_secs(1 << 40);
        if settings.meta_ttl > 0 {
            // A check reads, and so keeps streams alive that the model lets go.
            options.client.channel_position_check_delay = Duration::ZERO;
        }
        let node = Node::starting_at(options, now, 1_000_000).expect("the options are good");
        let shards = [(); 2].map(|()| Shard::new(&node));
        let channel = Default::default();
        let epochs = Default::default();
        let heard = Default::default();
        let mut real = Self { node, now, shards, channel, epochs, published: 0, heard };
        for (who, encoding) in CLIENTS.into_iter().enumerate() {
            let hello = ConnectionInfo {
                encoding,
                frame_ping: false,
                transport: "websocket",
                command_source: CommandSource::Connection,
                user: None,
                last_event_id: None,
                headers: Vec::new(),
            };
            real.shards[shard_of(who)].hub.open(key(who), hello, now);
            real.say(who, r#"{"id":1,"connect":{}}"#);
        }
        real
    }

    /// Starts a new channel for all further steps.
    fn begin(&mut self, channel: String) {
        self.channel = channel;
        self.epochs.clear();
        self.published = 0;
        self.heard.iter_mut().for_each(Vec::clear);
    }

    fn step(&mut self, step: &Step) -> String {
        match step {
            Step::Publish(publish) => return self.publish(publish),
            Step::Read { limit, since, reverse } => {
                return self.read(Page {
                    limit: *limit,
                    since: since.map(|(offset, epoch)| StreamPosition {
                        offset,
                        epoch: self.epoch_text(epoch),
                    }),
                    reverse: *reverse,
                });
            }
            Step::Remove => {
                self.node
                    .channels()
                    .remove_history(&self.channel, self.now)
                    .wait()
                    .expect("there is history");
            }
            Step::Wait { seconds } => self.wait(*seconds),
            Step::Sweep => self.node.tick(self.now),
            Step::Drain { shard } => self.drain(*shard),
            Step::Subscribe { who, ask } => self.subscribe(*who, *ask),
            Step::Unsubscribe { who } => {
                let command =
                    format!(r#"{{"id":1,"unsubscribe":{{"channel":"{}"}}}}"#, self.channel);
                self.say(*who, &command);
            }
        }
        String::new()
    }

    fn publish(&mut self, publish: &Publish) -> String {
        let options = PublishOptions {
            idempotency_key: publish.key.into(),
            skip_history: publish.skip,
            version: publish.version,
            version_epoch: publish.version_epoch.into(),
            ..PublishOptions::default()
        };
        let data = self.published.to_string();
        let publication = Publication { data: data.into(), ..Publication::default() };
        let published = self.node.channels().publish(&self.channel, publication, options, self.now);
        let position = published.wait().expect("the broker is there");
        if position == Position::default() { "nowhere".into() } else { self.place(position) }
    }

    fn read(&mut self, page: Page) -> String {
        match self.node.channels().history(&self.channel, &page, self.now).wait() {
            Err(code) => {
                if code == ErrorCode::UNRECOVERABLE_POSITION {
                    self.look();
                }
                format!("error {}", code.code)
            }
            Ok(slice) => {
                format!("{} {:?}", self.place(slice.top), pairs(&slice.publications))
            }
        }
    }

    /// Error 112 does not tell the epoch of the stream it looked into, and may have begun.
    fn look(&mut self) {
        let page = Page { limit: Some(0), ..Page::default() };
        let slice = self
            .node
            .channels()
            .history(&self.channel, &page, self.now)
            .wait()
            .expect("there is history");
        self.place(slice.top);
    }

    /// Time passes; what lies in the inboxes stays there, as if the shards were slow.
    fn wait(&mut self, seconds: u64) {
        self.now += Duration::from_secs(seconds);
        if self.shards.iter().all(|shard| shard.mailbox.is_empty()) {
            for shard in 0..2 {
                let mut record = Record::default();
                self.shards[shard].hub.advance(self.now, &mut record);
                self.receive(shard, record);
            }
        }
    }

    fn drain(&mut self, shard: usize) {
        let mut record = Record::default();
        for notice in self.shards[shard].mailbox.take() {
            self.shards[shard].hub.notice(notice, self.now, &mut record);
        }
        self.receive(shard, record);
    }

    fn subscribe(&mut self, who: usize, ask: Ask) {
        let Ask { positioned, recoverable, claim, only_recovered } = ask;
        let claim = claim.map_or_else(String::new, |(offset, epoch)| {
            let epoch = self.epoch_text(epoch);
            format!(r#","recover":true,"offset":{offset},"epoch":"{epoch}""#)
        });
        let channel = &self.channel;
        let flag = if only_recovered { 3 } else { 1 };
        let command = format!(
            r#"{{"id":1,"subscribe":{{"channel":"{channel}","positioned":{positioned},"recoverable":{recoverable},"flag":{flag}{claim}}}}}"#
        );
        self.say(who, &command);
    }

    fn say(&mut self, who: usize, text: &str) {
        let frame = match CLIENTS[who] {
            Encoding::Json => text.as_bytes().to_vec(),
            Encoding::Protobuf => protobuf(text),
        };
        let shard = shard_of(who);
        let mut record = Record::default();
        self.shards[shard].hub.receive(key(who), &frame, self.now, &mut record);
        self.receive(shard, record);
    }

    fn receive(&mut self, shard: usize, record: Record) {
        for (index, effect) in record.effects {
            let who = shard * 2 + index as usize;
            let what = match effect {
                Effect::Message(message) => self.said(CLIENTS[who], &message),
                Effect::Publication(broadcast, _) => {
                    let message = broadcast.message(CLIENTS[who]).expect("numbers are JSON");
                    self.said(CLIENTS[who], message)
                }
                Effect::PingFrame => "ping".into(),
                Effect::Disconnect(disconnect) => format!("x {}", disconnect.code),
            };
            self.heard[who].push(what);
        }
    }

    /// A reply or push in the words of the model.
    fn said(&mut self, encoding: Encoding, message: &[u8]) -> String {
        let reply: Reply = match encoding {
            Encoding::Json => serde_json::from_slice(message).expect("a JSON reply"),
            Encoding::Protobuf => Reply::decode_length_delimited(message).expect("a reply"),
        };
        if let Some(error) = reply.error {
            if error.code == ErrorCode::UNRECOVERABLE_POSITION.code {
                self.look();
            }
            return format!("error {}", error.code);
        }
        if let Some(result) = reply.subscribe {
            if !result.positioned {
                return "subscribed".into();
            }
            let at = place(self.epoch_number(&result.epoch), result.offset);
            let missed = pairs(&result.publications);
            return format!(
                "subscribed {at} recoverable {} recovering {} recovered {} {missed:?}",
                result.recoverable, result.was_recovering, result.recovered
            );
        }
        match reply.push {
            None => if reply.unsubscribe.is_some() { "unsubscribed" } else { "connected" }.into(),
            Some(push) => match (push.r#pub, push.unsubscribe) {
                (Some(publication), _) => {
                    let is_first = publication.offset == 1;
                    assert_eq!(is_first, !publication.epoch.is_empty(), "the first has an epoch");
                    let pair = pairs(std::slice::from_ref(&publication))[0];
                    format!("{} {}", pair.0, pair.1)
                }
                (None, Some(end)) => format!("ended {}", end.code),
                (None, None) => "another push".into(),
            },
        }
    }

    fn place(&mut self, position: Position) -> String {
        let epoch = self.epoch_number(position.epoch.as_str());
        place(epoch, position.offset)
    }

    fn epoch_number(&mut self, epoch: &str) -> usize {
        let known = self.epochs.iter().position(|known| known == epoch);
        known.unwrap_or_else(|| {
            self.epochs.push(epoch.to_owned());
            self.epochs.len() - 1
        })
    }

    fn epoch_text(&self, name: EpochName) -> String {
        match name {
            EpochName::Empty => "",
            EpochName::Never => "_",
            EpochName::Number(number) => self.epochs.get(number).map_or("_", |epoch| epoch),
        }
        .to_owned()
    }
}

fn key(who: usize) -> ConnectionKey {
    ConnectionKey { index: who as u32 % 2, generation: 1 }
}

/// Offset and number of each.
fn pairs(publications: &[Publication]) -> Vec<(u64, usize)> {
    let number = |data: &[u8]| std::str::from_utf8(data).ok()?.parse().ok();
    publications.iter().map(|one| (one.offset, number(&one.data).expect("a number"))).collect()
}

/// One sequence, step by step in both worlds.
fn play(real: &mut Real, settings: Settings, seed: u64) {
    let mut model = Model::new(settings);
    let mut dice = Dice::new(seed);
    real.begin(format!("channel-{seed}"));
    let mut history = Vec::new();
    let length = 4 + dice.roll(16);
    let last = [0, 1].map(|shard| Step::Drain { shard });
    let leave = [0, 1, 2].map(|who| Step::Unsubscribe { who });
    for number in 0..length + 5 {
        let step = match number.checked_sub(length) {
            None => dice.step(|who| model.known(who)),
            Some(end) => last.iter().chain(&leave).nth(end as usize).expect("five of them").clone(),
        };
        history.push(step.clone());
        real.published = model.published();
        let expected = (model.step(&step), [0, 1, 2].map(|who| model.heard(who)));
        let answered = (real.step(&step), real.heard.each_mut().map(std::mem::take));
        assert_eq!(answered, expected, "FANWIRE_SEED={seed} {settings:?} after {history:#?}");
    }
}

/// Kinds of channels: sizes, lifetimes and modes that make every rule matter.
fn kinds() -> Vec<Settings> {
    let stream = Settings {
        size: 3,
        ttl: 60,
        meta_ttl: 0,
        limit: 300,
        cache: false,
        auto: false,
        forced: true,
    };
    vec![
        stream,
        Settings { size: 10, limit: 2, ..stream },
        Settings { size: 1, ttl: 7, forced: false, ..stream },
        Settings { meta_ttl: 60, ..stream },
        Settings { size: 5, ttl: 30, meta_ttl: 61, limit: 0, forced: false, ..stream },
        Settings { cache: true, ..stream },
        Settings { cache: true, auto: true, size: 1, meta_ttl: 60, ttl: 7, ..stream },
    ]
}

/// 10,000 sequences or `FANWIRE_SEQUENCES`, in as many threads as there are cores; `FANWIRE_SEED` plays one sequence in every
/// kind of channel.
#[test]
fn a_channel_does_what_the_model_says() {
    let chosen = |name: &str| std::env::var(name).ok().and_then(|text| text.parse().ok());
    if let Some(seed) = chosen("FANWIRE_SEED") {
        return kinds().into_iter().for_each(|kind| play(&mut Real::new(kind), kind, seed));
    }
    let (seed, sequences): (u64, _) =
        (rand::random(), chosen("FANWIRE_SEQUENCES").unwrap_or(SEQUENCES));
    println!("seeds from {seed}");
    let threads = std::thread::available_parallelism().map_or(1, usize::from) as u64;
    std::thread::scope(|scope| {
        for thread in 0..threads {
            scope.spawn(move || {
                let mut reals: Vec<_> =
                    kinds().into_iter().map(|kind| (Real::new(kind), kind)).collect();
                let kinds = reals.len() as u64;
                for number in (thread..sequences).step_by(threads as usize) {
                    let (real, kind) = &mut reals[(number / threads % kinds) as usize];
                    play(real, *kind, seed.wrapping_add(number));
                }
            });
        }
    });
}

const SEQUENCES: u64 = 4_000;
