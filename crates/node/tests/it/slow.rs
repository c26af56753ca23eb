//! A broker and a presence that answer later: commands wait, and nothing is lost, doubled or reordered.
//! In: a memory broker whose answers a test holds back → out: what each peer heard, before and after they come.
//! Uses: `world`, its scripts. Never: threads; the test decides when an answer comes.
//! Changed here: promises about waiting. What holds for every broker is tested in the other rooms.

mod kept;
mod positions;
mod revoked;

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use fanwire_broker::{
    Answer, Broker, Change, MemoryBroker, MemoryPresence, Position, Presence, PresencePage,
    PresenceStats, PublishOptions, Query, Retention, StreamSlice,
};
use fanwire_node::protocol::{ClientInfo, ErrorCode, Publication, StreamPosition};
use fanwire_node::{ConnectionSelector, NodeParts, Options, ServerSubscription};
use proptest::prelude::*;

use crate::history::with_history;
use crate::script::hello;
use crate::world::World;

/// Answers that are held back: each call brings one.
type Held = Arc<Mutex<Vec<Box<dyn FnOnce() + Send>>>>;

/// Does everything at once and answers when the test says so.
struct Slow<B> {
    inner: B,
    held: Held,
}

impl<B> Slow<B> {
    fn later<T: Send + 'static>(&self, answer: Answer<T>) -> Answer<T> {
        let (promise, later) = Answer::later();
        let result = answer.wait();
        self.held.lock().expect("one thread").push(Box::new(move || promise.keep(result)));
        later
    }
}

impl Broker for Slow<MemoryBroker> {
    fn publish(
        &self,
        channel: &str,
        publication: Publication,
        options: &PublishOptions,
        retention: Retention,
        now: Instant,
    ) -> Answer<Position> {
        self.later(self.inner.publish(channel, publication, options, retention, now))
    }

    fn history(
        &self,
        channel: &str,
        query: Query,
        retention: Retention,
        now: Instant,
    ) -> Answer<StreamSlice> {
        self.later(self.inner.history(channel, query, retention, now))
    }

    fn follow(
        &self,
        channel: &str,
        query: Option<Query>,
        retention: Retention,
        now: Instant,
    ) -> Answer<StreamSlice> {
        self.later(self.inner.follow(channel, query, retention, now))
    }

    fn publish_join_leave(&self, channel: &str, change: Change, info: ClientInfo) -> Answer<()> {
        self.later(self.inner.publish_join_leave(channel, change, info))
    }

    fn remove_history(&self, channel: &str, now: Instant) -> Answer<()> {
        self.later(self.inner.remove_history(channel, now))
    }

    fn subscribe(&self, channel: &str) {
        self.inner.subscribe(channel);
    }

    fn unsubscribe(&self, channel: &str) {
        self.inner.unsubscribe(channel);
    }

    fn sweep(&self, now: Instant) {
        self.inner.sweep(now);
    }

    fn history_bytes(&self) -> usize {
        self.inner.history_bytes()
    }
}

impl Presence for Slow<MemoryPresence> {
    fn add(&self, channel: &str, info: ClientInfo, ttl: Duration, now: Instant) -> Answer<()> {
        self.later(self.inner.add(channel, info, ttl, now))
    }

    fn remove(&self, channel: &str, client: &str) -> Answer<()> {
        self.later(self.inner.remove(channel, client))
    }

    fn members(&self, channel: &str, now: Instant) -> Answer<Vec<Arc<ClientInfo>>> {
        self.later(self.inner.members(channel, now))
    }

    fn page(&self, channel: &str, cursor: u64, limit: usize, now: Instant) -> Answer<PresencePage> {
        self.later(self.inner.page(channel, cursor, limit, now))
    }

    fn stats(&self, channel: &str, now: Instant) -> Answer<PresenceStats> {
        self.later(self.inner.stats(channel, now))
    }

    fn sweep(&self, now: Instant) {
        self.inner.sweep(now);
    }
}

struct SlowWorld {
    world: World,
    held: Held,
}

impl SlowWorld {
    fn new(options: Options) -> Self {
        let held = Held::default();
        let of_broker = Arc::clone(&held);
        let presence = Arc::new(Slow { inner: MemoryPresence::new(), held: Arc::clone(&held) });
        let parts = NodeParts {
            presence: Some(presence),
            ..NodeParts::with_broker(|router| {
                Arc::new(Slow { inner: MemoryBroker::new(router, 1 << 30), held: of_broker })
            })
        };
        Self { world: World::with_parts(options, parts, 2), held }
    }

    /// A world in which these peers are connected already.
    fn with(options: Options, names: &[&str]) -> Self {
        let mut slow = Self::new(options);
        names.iter().for_each(|name| slow.world.connected(name, hello("")));
        slow
    }

    /// One answer comes, the one at `place` among those held back.
    fn answer(&mut self, place: usize) {
        let mut held = self.held.lock().expect("one thread");
        if !held.is_empty() {
            let place = place % held.len();
            let answer = held.remove(place);
            drop(held);
            answer();
        }
        self.world.settle();
    }

    /// All answers come, also those to what is asked because of them.
    fn answer_all(&mut self) {
        while !self.held.lock().expect("one thread").is_empty() {
            self.answer(0);
        }
    }

    fn publish(&mut self, channel: &str, data: &str) {
        let publication = Publication { data: data.to_owned().into(), ..Publication::default() };
        let options = PublishOptions::default();
        let channels = self.world.node.channels();
        channels.publish(channel, publication, options, self.world.now).then(drop);
        self.world.settle();
    }
}

fn tracked() -> Options {
    with_history(|namespace| {
        namespace.force_recovery = true;
        namespace.history_size = 1000;
        namespace.allow_subscribe_for_client = true;
    })
}

#[test]
fn a_subscribe_is_answered_when_the_broker_is_and_publications_follow_it() {
    let mut slow = SlowWorld::with(tracked(), &["ada"]);
    slow.publish("news", "1");
    slow.answer_all();
    slow.world.play("ada > {\"id\":2,\"subscribe\":{\"channel\":\"news\"}}\n ada receives nothing");
    slow.publish("news", "2");
    slow.publish("news", "3");
    slow.world.play("ada receives nothing");
    slow.answer_all();
    slow.world.play(
        r#"
        ada < {"id":2,"subscribe":{"recoverable":true,"epoch":"E1","offset":1,"positioned":true}}
        ada < {"push":{"channel":"news","pub":{"data":2,"offset":2}}}
        ada < {"push":{"channel":"news","pub":{"data":3,"offset":3}}}
    "#,
    );
    slow.publish("news", "4");
    slow.world.play(r#"ada < {"push":{"channel":"news","pub":{"data":4,"offset":4}}}"#);
}

#[test]
fn a_filter_holds_for_what_is_published_while_its_subscription_is_being_made() {
    let options = with_history(|namespace| {
        namespace.force_recovery = true;
        namespace.allow_tags_filter = true;
    });
    let mut slow = SlowWorld::with(options, &["ada"]);
    slow.world.play(
        r#"ada > {"id":2,"subscribe":{"channel":"news","tf":{"key":"k","cmp":"eq","val":"v"}}}"#,
    );
    for (number, tag) in [("1", "v"), ("2", "x"), ("3", "v")] {
        let tags = [("k".to_owned(), tag.to_owned())].into();
        let publication = Publication { data: number.into(), tags, ..Publication::default() };
        let options = PublishOptions::default();
        slow.world.node.channels().publish("news", publication, options, slow.world.now).then(drop);
        slow.world.settle();
    }
    slow.answer_all();
    slow.publish("news", "4");
    slow.world.play(
        r#"
        ada < {"id":2,"subscribe":{"recoverable":true,"epoch":"E1","positioned":true}}
        ada < {"push":{"channel":"news","pub":{"data":1,"offset":1,"tags":{"k":"v"},"epoch":"E1"}}}
        ada < {"push":{"channel":"news","pub":{"data":3,"offset":3,"tags":{"k":"v"}}}}
    "#,
    );
}

#[test]
fn an_ordered_subscription_waits_its_turn_and_what_follows_waits_for_it() {
    let mut slow = SlowWorld::with(tracked(), &["ada"]);
    slow.publish("news", "1");
    slow.answer_all();
    let recover_since = Some(StreamPosition::default());
    let mut answers = Vec::new();
    for channel in ["news", "other", "news"] {
        let order = ServerSubscription {
            channel: channel.into(),
            recover_since: recover_since.clone(),
            ..ServerSubscription::default()
        };
        let now = slow.world.now;
        answers.push(slow.world.node.connections().subscribe(Default::default(), order, now));
    }
    slow.world.settle();
    let answers: Vec<_> = answers.into_iter().filter_map(|answer| answer.ready().err()).collect();
    assert_eq!(answers.len(), 3, "whoever gave them waits, too");
    slow.publish("news", "2");
    slow.world
        .play("ada > {\"id\":2,\"unsubscribe\":{\"channel\":\"news\"}}\n ada receives nothing");
    slow.answer_all();
    slow.world.play(
        r#"
        ada < {"push":{"channel":"news","subscribe":{"recoverable":true,"epoch":"E1","positioned":true}}}
        ada < {"push":{"channel":"news","pub":{"data":1,"offset":1}}}
        ada < {"push":{"channel":"news","pub":{"data":2,"offset":2}}}
        ada < {"push":{"channel":"other","subscribe":{"recoverable":true,"epoch":"E2","positioned":true}}}
        ada < {"id":2,"unsubscribe":{}}
    "#,
    );
    answers.into_iter().for_each(|answer| assert_eq!(answer.wait(), Ok(())));
    slow.publish("news", "3");
    slow.publish("other", "4");
    slow.world
        .play(r#"ada < {"push":{"channel":"other","pub":{"data":4,"offset":1,"epoch":"E2"}}}"#);
    assert_eq!(slow.world.node.counts().subscriptions, 1);
}

#[test]
fn an_order_that_the_broker_fails_is_an_error_to_whoever_gave_it() {
    let mut slow = SlowWorld::with(tracked(), &["ada", "bob"]);
    let order = ServerSubscription { channel: "news".into(), ..ServerSubscription::default() };
    let answer = slow.world.node.connections().subscribe(Default::default(), order, slow.world.now);
    slow.world.settle();
    drop(slow.held.lock().expect("one thread").remove(1)); // a promise that is dropped is broken
    slow.answer_all();
    let pushed = r#"{"push":{"channel":"news","subscribe":{"recoverable":true,"epoch":"E1","positioned":true}}}"#;
    slow.world.play(&format!("ada < {pushed}\n bob receives nothing"));
    assert_eq!(answer.wait(), Err(ErrorCode::INTERNAL));
    assert_eq!(slow.world.node.counts().subscriptions, 1);
}

#[test]
fn an_order_for_a_client_that_goes_is_over() {
    let mut slow = SlowWorld::with(tracked(), &["ada"]);
    let order = ServerSubscription { channel: "news".into(), ..ServerSubscription::default() };
    let answer = slow.world.node.connections().subscribe(Default::default(), order, slow.world.now);
    slow.world.settle();
    slow.world.play("ada closes");
    assert_eq!(answer.wait(), Ok(()));
    slow.answer_all();
    assert_eq!(slow.world.node.counts().subscriptions, 0);
}

#[test]
fn what_a_client_says_meanwhile_waits_in_order() {
    let mut slow = SlowWorld::with(tracked(), &["ada"]);
    slow.world.play(
        r#"
        ada > {"id":2,"publish":{"channel":"news","data":1}}\n{"id":3,"rpc":{"method":"x"}}
        ada > {"id":4,"publish":{"channel":"news","data":2}}\n{"id":5,"history":{"channel":"news"}}
        ada > {"id":6,"unsubscribe":{"channel":"news"}}
        ada receives nothing
    "#,
    );
    slow.answer(0);
    slow.world.play(
        r#"
        ada < {"id":2,"publish":{}}
        ada < {"id":3,"error":{"code":108,"message":"not available"}}
        ada receives nothing
    "#,
    );
    slow.answer_all();
    slow.world.play(
        r#"
        ada < {"id":4,"publish":{}}
        ada < {"id":5,"history":{"publications":[],"epoch":"E1","offset":2}}
        ada < {"id":6,"unsubscribe":{}}
    "#,
    );
}

#[test]
fn a_connection_that_goes_while_it_waits_leaves_nothing_behind() {
    let options = with_history(|namespace| {
        namespace.force_recovery = true;
        namespace.presence = true;
        namespace.allow_subscribe_for_client = true;
    });
    let mut slow = SlowWorld::with(options, &["ada", "bob"]);
    slow.world.play(r#"ada > {"id":2,"subscribe":{"channel":"news"}}"#);
    assert_eq!(slow.world.node.counts().channels, 1, "on its way");
    slow.world.close("ada");
    assert_eq!(slow.world.node.counts().channels, 0);
    slow.answer_all();
    let stats = slow.world.node.channels().presence_stats("news", slow.world.now);
    slow.answer_all();
    assert_eq!(stats.wait().map(|stats| stats.clients), Ok(0));
    slow.world.play("ada receives nothing");
}

#[test]
fn an_unsubscribe_by_the_api_meets_a_subscription_that_is_being_made() {
    let mut slow = SlowWorld::with(tracked(), &["ada"]);
    slow.world.play(r#"ada > {"id":2,"subscribe":{"channel":"news"}}"#);
    let everyone = ConnectionSelector::default();
    drop(slow.world.node.connections().unsubscribe(everyone, Some("news")));
    slow.world.settle();
    slow.answer_all();
    slow.world.play(
        r#"
        ada < {"id":2,"subscribe":{"recoverable":true,"epoch":"E1","positioned":true}}
        ada < {"push":{"channel":"news","unsubscribe":{"code":2000,"reason":"server unsubscribe"}}}
    "#,
    );
    assert_eq!(slow.world.node.counts().subscriptions, 0);
}

#[test]
fn a_connect_waits_for_all_its_channels() {
    let mut slow = SlowWorld::new(tracked());
    slow.world.play(
        r#"
        ada opens
        ada > {"id":1,"connect":{"subs":{"a":{},"b":{}}}}\n{"id":2,"unsubscribe":{"channel":"a"}}
        ada receives nothing
    "#,
    );
    slow.answer(1);
    slow.world.play("ada receives nothing");
    slow.publish("b", "1");
    slow.answer_all();
    let connected = slow.world.heard("ada").expect("the reply");
    assert!(connected.starts_with(r#"{"id":1,"connect":{"client":"ada","#), "{connected}");
    assert!(connected.contains(r#""a":{"recoverable":true"#), "{connected}");
    slow.world.play(
        r#"
        ada < {"push":{"channel":"b","pub":{"data":1,"offset":1,"epoch":"E1"}}}
        ada < {"id":2,"unsubscribe":{}}
    "#,
    );
}

#[test]
fn a_connection_that_waits_for_ever_is_stale() {
    let mut slow = SlowWorld::new(tracked());
    slow.world.play(
        r#"
        ada opens
        ada > {"id":1,"connect":{"subs":{"a":{}}}}
        wait 11s
        ada x 3502 stale
    "#,
    );
    assert_eq!(slow.world.node.counts().subscriptions, 0);
}

/// An SDK: it keeps its position and wants to go on from there.
#[derive(Default)]
struct Sdk {
    id: u32,
    /// Replies that are owed, in order.
    owed: std::collections::VecDeque<u32>,
    /// Offset of the last publication, from the first subscribe on.
    offset: Option<u64>,
    epoch: String,
    subscribed: bool,
    wants: bool,
}

impl Sdk {
    fn subscribe(&mut self) -> String {
        (self.id, self.wants) = (self.id + 1, true);
        self.owed.push_back(self.id);
        let id = self.id;
        let epoch = &self.epoch;
        let recover = match self.offset {
            Some(offset) => format!(r#","recover":true,"offset":{offset},"epoch":"{epoch}""#),
            None => String::new(),
        };
        format!(r#"{{"id":{id},"subscribe":{{"channel":"news"{recover}}}}}"#)
    }

    fn unsubscribe(&mut self) -> String {
        (self.id, self.wants) = (self.id + 1, false);
        self.owed.push_back(self.id);
        format!(r#"{{"id":{},"unsubscribe":{{"channel":"news"}}}}"#, self.id)
    }

    fn receive(&mut self, text: &str) {
        let heard: serde_json::Value = serde_json::from_str(text).expect("JSON");
        if let Some(id) = heard["id"].as_u64() {
            assert_eq!(self.owed.pop_front(), Some(id as u32), "one reply each, in order: {text}");
        }
        if let Some(result) = heard.get("subscribe") {
            self.subscribed = true;
            let top = result["offset"].as_u64().unwrap_or(0);
            match self.offset {
                None => (self.offset, self.epoch) = (Some(top), text_of(&result["epoch"])),
                Some(offset) => {
                    assert_eq!(result["recovered"], true, "{text}");
                    assert_eq!(top, offset, "{text}");
                }
            }
            let publications = result["publications"].as_array().cloned().unwrap_or_default();
            publications.iter().for_each(|publication| self.next(publication));
        } else if heard.get("unsubscribe").is_some() {
            self.subscribed = false;
        } else {
            assert!(heard["push"]["unsubscribe"].is_null(), "no position is lost: {text}");
            assert!(self.subscribed, "nothing comes after an unsubscribe: {text}");
            self.next(&heard["push"]["pub"]);
        }
    }

    fn next(&mut self, publication: &serde_json::Value) {
        let offset = publication["offset"].as_u64().expect("stored");
        assert_eq!(Some(offset), self.offset.map(|offset| offset + 1), "no hole, nothing twice");
        assert_eq!(publication["data"], offset, "and it is that one");
        self.offset = Some(offset);
    }
}

fn text_of(value: &serde_json::Value) -> String {
    value.as_str().expect("an epoch").to_owned()
}

proptest! {
    /// Three clients on two shards come and go while others publish, and answers come in any order.
    #[test]
    fn nothing_is_lost_or_doubled_whenever_answers_come(
        steps in prop::collection::vec((0..3usize, 0..7u8, any::<prop::sample::Index>()), 1..120),
    ) {
        let names = ["ada", "bob", "eve"];
        let mut slow = SlowWorld::with(tracked(), &names);
        let mut sdks: [Sdk; 3] = Default::default();
        sdks.iter_mut().for_each(|sdk| sdk.id = 1);
        let mut published = 0;
        for (client, what, place) in steps {
            let sdk = &mut sdks[client];
            match what {
                0 if !sdk.wants && sdk.owed.is_empty() => {
                    let text = sdk.subscribe();
                    slow.world.say(names[client], &text);
                }
                1 if sdk.wants => {
                    let text = sdk.unsubscribe();
                    slow.world.say(names[client], &text);
                }
                2 | 3 => {
                    published += 1;
                    slow.publish("news", &published.to_string());
                }
                _ => {
                    let count = slow.held.lock().expect("one thread").len();
                    slow.answer(place.index(count.max(1)));
                }
            }
            for (name, sdk) in names.iter().zip(&mut sdks) {
                while let Some(text) = slow.world.heard(name) {
                    sdk.receive(&text);
                }
            }
        }
        slow.answer_all();
        for (name, sdk) in names.iter().zip(&mut sdks) {
            while let Some(text) = slow.world.heard(name) {
                sdk.receive(&text);
            }
            prop_assert!(sdk.owed.is_empty(), "{name} waits for nothing");
            prop_assert!(!sdk.subscribed || sdk.offset == Some(published), "{name} has everything");
        }
    }
}

/// Knowledge of a client about a channel that only the server subscribes it to.
#[derive(Default)]
struct Listener {
    subscribed: bool,
    offset: u64,
}

impl Listener {
    fn receive(&mut self, text: &str) {
        let push = &serde_json::from_str::<serde_json::Value>(text).expect("JSON")["push"];
        let offset = |push: &serde_json::Value| push["offset"].as_u64().unwrap_or_default();
        if push["subscribe"].is_object() {
            assert!(!self.subscribed, "twice: {text}");
            (self.subscribed, self.offset) = (true, offset(&push["subscribe"]));
        } else if push["unsubscribe"].is_object() {
            assert!(std::mem::take(&mut self.subscribed), "from nothing: {text}");
        } else {
            assert!(self.subscribed, "after the end: {text}");
            assert_eq!(offset(&push["pub"]), self.offset + 1, "{text}");
            self.offset += 1;
        }
    }
}

proptest! {
    /// The API subscribes and unsubscribes three clients while others publish, and answers come in any order.
    #[test]
    fn orders_are_obeyed_one_after_the_other_whenever_answers_come(
        steps in prop::collection::vec((0..3usize, 0..8u8, any::<prop::sample::Index>()), 1..120),
    ) {
        let names = ["ada", "bob", "eve"];
        let mut slow = SlowWorld::with(tracked(), &names);
        let mut listeners: [Listener; 3] = Default::default();
        let mut wanted = [false; 3];
        let mut published = 0;
        for (client, what, place) in steps {
            let id = slow.world.id(names[client]).to_owned();
            let target = ConnectionSelector { client: id, ..ConnectionSelector::default() };
            match what {
                0 | 1 => {
                    let recover_since = Some(StreamPosition::default());
                    let order = ServerSubscription { channel: "news".into(), recover_since, ..Default::default() };
                    drop(slow.world.node.connections().subscribe(target, order, slow.world.now));
                    wanted[client] = true;
                    slow.world.settle();
                }
                2 => {
                    drop(slow.world.node.connections().unsubscribe(target, Some("news")));
                    wanted[client] = false;
                    slow.world.settle();
                }
                3 | 4 => {
                    published += 1;
                    slow.publish("news", &published.to_string());
                }
                _ => {
                    let count = slow.held.lock().expect("one thread").len();
                    slow.answer(place.index(count.max(1)));
                }
            }
            for (name, listener) in names.iter().zip(&mut listeners) {
                while let Some(text) = slow.world.heard(name) {
                    listener.receive(&text);
                }
            }
        }
        slow.answer_all();
        for ((name, listener), wanted) in names.iter().zip(&mut listeners).zip(wanted) {
            while let Some(text) = slow.world.heard(name) {
                listener.receive(&text);
            }
            prop_assert_eq!(listener.subscribed, wanted, "{}", name);
            prop_assert!(!wanted || listener.offset == published, "{name} has everything");
        }
    }
}
