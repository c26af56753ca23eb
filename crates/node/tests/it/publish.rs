//! Publishing (protocol §16, server API §3 publish): by clients and by the API, and who receives it how.
//! In: dialogues → out: order of checks, `info`, mixed encodings, data that is not JSON.
//! Uses: `world`, `script`. Never: several threads (see `threads.rs`).
//! Changed here: tests of the publish command and of `Node::publish`.

use std::sync::Arc;
use std::time::Instant;

use fanwire_broker::{
    Answer, Broker, BrokerError, Change, Position, PublishOptions, Query, Retention, StreamSlice,
};
use fanwire_node::options::{DataFormat, Namespace, SubscriptionType};
use fanwire_node::{ConnectionSelector, Node, NodeParts, Options, ServerSubscription};
use fanwire_protocol::{ClientInfo, ErrorCode, Publication};

use crate::script::{hello, play_in_both};
use crate::world::{UNIX, World, options};

pub(crate) fn check(options: &Options, rest: &str) {
    let connected = r#"
        ada opens
        ada > {"id":1,"connect":{}}
        ada < {"id":1,"connect":{"client":"ada","version":"test","ping":25,"pong":true}}
    "#;
    play_in_both(options, &format!("{connected}{rest}"));
}

fn publication(data: &'static [u8]) -> Publication {
    Publication { data: data.into(), ..Publication::default() }
}

#[test]
fn a_publisher_hears_its_own_publication_with_its_info() {
    check(
        &options(|_| {}),
        r#"
        ada > {"id":2,"subscribe":{"channel":"a"}}
        ada < {"id":2,"subscribe":{}}
        ada > {"id":3,"publish":{"channel":"a","data":{"text":"<hi>"}}}
        ada < {"push":{"channel":"a","pub":{"data":{"text":"<hi>"},"info":{"user":"","client":"ada"}}}}
        ada < {"id":3,"publish":{}}
    "#,
    );
}

#[test]
fn several_publishes_of_one_message_are_answered_after_the_publications_and_before_other_commands()
{
    check(
        &options(|_| {}),
        r#"
        ada > {"id":2,"subscribe":{"channel":"a"}}
        ada < {"id":2,"subscribe":{}}
        ada > {"id":3,"publish":{"channel":"a","data":1}}\n{"id":4,"publish":{"channel":"b","data":2}}\n{"id":5,"publish":{"channel":"a"}}\n{"id":6,"publish":{"channel":"a","data":3}}\n{"id":7,"unsubscribe":{"channel":"a"}}
        ada < {"push":{"channel":"a","pub":{"data":1,"info":{"user":"","client":"ada"}}}}
        ada < {"push":{"channel":"a","pub":{"data":3,"info":{"user":"","client":"ada"}}}}
        ada < {"id":3,"publish":{}}
        ada < {"id":4,"publish":{}}
        ada < {"id":5,"error":{"code":107,"message":"bad request"}}
        ada < {"id":6,"publish":{}}
        ada < {"id":7,"unsubscribe":{}}
    "#,
    );
}

#[test]
fn a_disconnect_behind_publishes_comes_after_their_replies() {
    check(
        &options(|_| {}),
        r#"
        ada > {"id":2,"subscribe":{"channel":"a"}}
        ada < {"id":2,"subscribe":{}}
        ada > {"id":3,"publish":{"channel":"a","data":1}}\n{"id":4,"publish":{"data":2}}
        ada < {"id":3,"publish":{}}
        ada x 3501 bad request
    "#,
    );
}

#[test]
fn a_publisher_that_does_not_receive_its_publication_is_answered_at_once() {
    let mut world = World::with_shards(
        options(|options| options.channel.without_namespace.exclude_publisher = true),
        1,
    );
    world.connected("ada", hello("json"));
    world.say("ada", r#"{"id":2,"subscribe":{"channel":"a"}}"#);
    assert_eq!(world.heard("ada").as_deref(), Some(r#"{"id":2,"subscribe":{}}"#));
    for channel in ["a", "b"] {
        let publish = format!(r#"{{"id":3,"publish":{{"channel":"{channel}","data":1}}}}"#);
        world.say_unsettled("ada", &publish);
        assert_eq!(world.heard("ada").as_deref(), Some(r#"{"id":3,"publish":{}}"#), "{channel}");
    }
}

/// A namespace whose publications of clients have their key in `id`.
fn keyed() -> Options {
    options(|options| options.channel.without_namespace.client_idempotency.field = "id".into())
}

#[test]
fn a_publication_of_a_client_that_is_sent_again_is_published_once() {
    check(
        &keyed(),
        r#"
        ada > {"id":2,"subscribe":{"channel":"a"}}
        ada < {"id":2,"subscribe":{}}
        ada > {"id":3,"publish":{"channel":"a","data":{"id":"m1","text":"hi"}}}
        ada < {"push":{"channel":"a","pub":{"data":{"id":"m1","text":"hi"},"info":{"user":"","client":"ada"}}}}
        ada < {"id":3,"publish":{}}
        ada > {"id":4,"publish":{"channel":"a","data":{"id":"m1","text":"hi"}}}
        ada < {"id":4,"publish":{}}
        ada > {"id":5,"publish":{"channel":"b","data":{"id":"m1"}}}
        ada < {"id":5,"publish":{}}
        ada > {"id":6,"publish":{"channel":"a","data":{"id":"m2"}}}
        ada < {"push":{"channel":"a","pub":{"data":{"id":"m2"},"info":{"user":"","client":"ada"}}}}
        ada < {"id":6,"publish":{}}
        wait 86399s
        ada > {"id":7,"publish":{"channel":"a","data":{"id":"m1"}}}
        ada < {"id":7,"publish":{}}
        wait 2s
        ada > {"id":8,"publish":{"channel":"a","data":{"id":"m1"}}}
        ada < {"push":{"channel":"a","pub":{"data":{"id":"m1"},"info":{"user":"","client":"ada"}}}}
        ada < {"id":8,"publish":{}}
    "#,
    );
}

#[test]
fn a_payload_without_the_key_is_107() {
    let long = format!(r#"{{"id":"{}"}}"#, "k".repeat(257));
    for data in ["{}", "1", r#"{"id":1}"#, r#"{"id":""}"#, r#"{"id":null}"#, &long] {
        check(
            &keyed(),
            &format!(
                r#"ada > {{"id":2,"publish":{{"channel":"a","data":{data}}}}}
                   ada < {{"id":2,"error":{{"code":107,"message":"bad request"}}}}"#
            ),
        );
    }
}

/// A user has the same keys on each of its connections; other users, connections without one, and the API have their own.
#[test]
fn a_key_belongs_to_its_user() {
    let mut world = World::new(keyed());
    for (name, hello) in
        [("ada", "as 42"), ("ann", "as 42"), ("bob", "as 43"), ("eve", ""), ("eva", "")]
    {
        world.connected(name, crate::script::hello(hello));
    }
    world.play(
        r#"bob > {"id":2,"subscribe":{"channel":"a"}}
           bob < {"id":2,"subscribe":{}}"#,
    );
    let command = PublishOptions { idempotency_key: "m1".to_owned(), ..PublishOptions::default() };
    let api = world.node.channels().publish("a", publication(b"0"), command, world.now);
    assert!(api.wait().is_ok());
    world.settle();
    world.play(r#"bob < {"push":{"channel":"a","pub":{"data":0}}}"#);
    for (name, is_new) in
        [("ada", true), ("ann", false), ("bob", true), ("eve", true), ("eva", true)]
    {
        world.say(name, r#"{"id":3,"publish":{"channel":"a","data":{"id":"m1"}}}"#);
        assert_eq!(
            world.heard("bob").is_some_and(|it| it.contains(r#""data":{"id":"m1"}"#)),
            is_new,
            "{name}"
        );
        assert_eq!(world.heard(name).as_deref(), Some(r#"{"id":3,"publish":{}}"#));
    }
}

#[test]
fn checks_come_in_order_102_then_107_then_103() {
    check(
        &options(|options| options.channel.without_namespace = Namespace::default()),
        r#"
        ada > {"id":2,"publish":{"channel":"x:a"}}
        ada < {"id":2,"error":{"code":102,"message":"unknown channel"}}
        ada > {"id":3,"publish":{"channel":"a"}}
        ada < {"id":3,"error":{"code":107,"message":"bad request"}}
        ada > {"id":4,"publish":{"channel":"a","data":1}}
        ada < {"id":4,"error":{"code":103,"message":"permission denied"}}
    "#,
    );
}

#[test]
fn channels_of_maps_are_not_taken_for_streams() {
    let options = options(|options| {
        options.channel.without_namespace.subscription_type = SubscriptionType::SharedPoll;
        options.shared_poll.hmac_secret_key = "a secret of tests".into();
    });
    check(
        &options,
        r#"
        ada > {"id":2,"subscribe":{"channel":"a"}}
        ada < {"id":2,"error":{"code":103,"message":"permission denied"}}
        ada > {"id":3,"publish":{"channel":"a","data":1}}
        ada < {"id":3,"error":{"code":108,"message":"not available"}}
        bob opens
        bob > {"id":1,"connect":{"subs":{"a":{}}}}
        bob < {"id":1,"connect":{"client":"bob","version":"test","ping":25,"pong":true}}
    "#,
    );
    let world = World::new(options);
    let order = ServerSubscription { channel: "a".into(), ..ServerSubscription::default() };
    let ordered =
        world.node.connections().subscribe(ConnectionSelector::default(), order, world.now);
    assert_eq!(ordered.wait(), Err(ErrorCode::BAD_REQUEST));
    let answer =
        world.node.channels().publish("a", publication(b"1"), PublishOptions::default(), world.now);
    assert_eq!(answer.wait(), Err(ErrorCode::BAD_REQUEST));
}

#[test]
fn where_only_subscribers_may_publish_one_has_to_subscribe_first() {
    check(
        &options(|options| {
            let open = &mut options.channel.without_namespace;
            open.allow_publish_for_client = false;
            open.allow_publish_for_subscriber = true;
        }),
        r#"
        ada > {"id":2,"publish":{"channel":"a","data":1}}\n{"id":3,"subscribe":{"channel":"a"}}
        ada < {"id":2,"error":{"code":103,"message":"permission denied"}}
        ada < {"id":3,"subscribe":{}}
        ada > {"id":4,"publish":{"channel":"a","data":2}}
        ada < {"push":{"channel":"a","pub":{"data":2,"info":{"user":"","client":"ada"}}}}
        ada < {"id":4,"publish":{}}
    "#,
    );
}

#[test]
fn peers_of_both_encodings_hear_each_other() {
    World::new(options(|_| {})).play(
        r#"
        ada opens json
        bob opens protobuf
        ada > {"id":1,"connect":{}}\n{"id":2,"subscribe":{"channel":"a"}}
        bob > {"id":1,"connect":{}}\n{"id":2,"subscribe":{"channel":"a"}}
        ada < {"id":1,"connect":{"client":"ada","version":"test","ping":25,"pong":true}}
        ada < {"id":2,"subscribe":{}}
        bob < {"id":1,"connect":{"client":"bob","version":"test","ping":25,"pong":true}}
        bob < {"id":2,"subscribe":{}}
        ada > {"id":3,"publish":{"channel":"a","data":{"from":"ada"}}}
        bob > {"id":3,"publish":{"channel":"a","data":{"from":"bob"}}}
        bob < {"push":{"channel":"a","pub":{"data":{"from":"ada"},"info":{"user":"","client":"ada"}}}}
        bob < {"push":{"channel":"a","pub":{"data":{"from":"bob"},"info":{"user":"","client":"bob"}}}}
        bob < {"id":3,"publish":{}}
        ada < {"push":{"channel":"a","pub":{"data":{"from":"ada"},"info":{"user":"","client":"ada"}}}}
        ada < {"id":3,"publish":{}}
        ada < {"push":{"channel":"a","pub":{"data":{"from":"bob"},"info":{"user":"","client":"bob"}}}}
    "#,
    );
}

#[test]
fn json_subscribers_of_data_that_is_not_json_are_3506_and_the_others_hear_it() {
    let mut world = World::with_shards(options(|_| {}), 1);
    world.play(
        r#"
        ada opens json
        bob opens protobuf
        eve opens json
        ada > {"id":1,"connect":{}}\n{"id":2,"subscribe":{"channel":"a"}}
        ada < {"id":1,"connect":{"client":"ada","version":"test","ping":25,"pong":true}}
        ada < {"id":2,"subscribe":{}}
        eve > {"id":1,"connect":{}}\n{"id":2,"subscribe":{"channel":"b"}}
        eve < {"id":1,"connect":{"client":"eve","version":"test","ping":25,"pong":true}}
        eve < {"id":2,"subscribe":{}}
        bob > {"id":1,"connect":{}}\n{"id":2,"subscribe":{"channel":"a"}}
        bob < {"id":1,"connect":{"client":"bob","version":"test","ping":25,"pong":true}}
        bob < {"id":2,"subscribe":{}}
    "#,
    );
    let hub = &mut world.shards[0].hub;
    let before = hub.counters().deliveries.value();
    let published = world
        .node
        .channels()
        .publish("a", publication(b"boom"), PublishOptions::default(), world.now)
        .wait();
    published.expect("any data by default");
    let mut record = crate::world::Record::default();
    for notice in world.shards[0].mailbox.take() {
        world.shards[0].hub.notice(notice, world.now, &mut record);
    }
    let mut seen: Vec<_> = record.effects.iter().map(|(index, effect)| (*index, effect)).collect();
    assert!(matches!(seen.remove(0), (1, crate::world::Effect::Publication(..))), "bob");
    assert!(
        matches!(seen.remove(0), (0, crate::world::Effect::Disconnect(d)) if d.code == 3506),
        "ada"
    );
    assert!(seen.is_empty());
    assert_eq!(world.shards[0].hub.counters().deliveries.value(), before + 1);
    assert_eq!(world.node.counts().subscriptions, 2);
}

#[test]
fn the_api_is_checked_like_clients_but_needs_no_permission() {
    let mut options = options(|options| {
        options.channel.without_namespace = Namespace::default();
        options.channel.namespaces.push(Namespace {
            name: "objects".into(),
            publication_data_format: DataFormat::JsonObject,
            ..Namespace::default()
        });
    });
    options.client.channel_limit = 1;
    let world = World::new(options);
    let publish = |channel: &str, data| {
        let options = PublishOptions::default();
        world.node.channels().publish(channel, publication(data), options, world.now).wait()
    };
    assert_eq!(publish("a", b"1").map(|position| position.offset), Ok(0));
    assert_eq!(publish("", b"1"), Err(ErrorCode::BAD_REQUEST));
    assert_eq!(publish("a", b""), Err(ErrorCode::BAD_REQUEST));
    assert_eq!(publish("x:a", b"1"), Err(ErrorCode::UNKNOWN_CHANNEL));
    assert_eq!(publish("objects:a", b"1"), Err(ErrorCode::BAD_REQUEST));
    assert!(publish("objects:a", b"{}").is_ok());
}

#[test]
fn a_repeated_idempotency_key_is_heard_once() {
    let mut world = World::new(options(|_| {}));
    world.connected("ada", hello(""));
    world.play(
        "ada > {\"id\":2,\"subscribe\":{\"channel\":\"a\"}}\n ada < {\"id\":2,\"subscribe\":{}}",
    );
    let once = PublishOptions { idempotency_key: "k".into(), ..PublishOptions::default() };
    for _ in 0..2 {
        world
            .node
            .channels()
            .publish("a", publication(b"1"), once.clone(), world.now)
            .wait()
            .expect("published");
    }
    world.settle();
    world.play("ada < {\"push\":{\"channel\":\"a\",\"pub\":{\"data\":1}}}");
}

#[test]
fn what_nobody_listens_to_reaches_no_inbox() {
    let mut world = World::new(options(|_| {}));
    world.connected("ada", hello(""));
    world.play(
        "ada > {\"id\":2,\"subscribe\":{\"channel\":\"a\"}}\n ada < {\"id\":2,\"subscribe\":{}}",
    );
    for channel in ["a", "b"] {
        let options = PublishOptions::default();
        world
            .node
            .channels()
            .publish(channel, publication(b"1"), options, world.now)
            .wait()
            .expect("published");
    }
    let notices: Vec<_> = world.shards.iter().map(|shard| shard.mailbox.take().len()).collect();
    assert_eq!(notices, [1, 0], "only the shard of the one subscriber, only its channel");
}

/// A broker that cannot be reached.
pub(crate) struct Unreachable;

impl Broker for Unreachable {
    fn publish(
        &self,
        _channel: &str,
        _publication: Publication,
        _options: &PublishOptions,
        _retention: Retention,
        _now: Instant,
    ) -> Answer<Position> {
        away()
    }

    fn history(
        &self,
        _channel: &str,
        _query: Query,
        _retention: Retention,
        _now: Instant,
    ) -> Answer<StreamSlice> {
        away()
    }

    fn follow(
        &self,
        _channel: &str,
        _query: Option<Query>,
        _retention: Retention,
        _now: Instant,
    ) -> Answer<StreamSlice> {
        away()
    }

    fn publish_join_leave(&self, _: &str, _: Change, _: ClientInfo) -> Answer<()> {
        away()
    }

    fn remove_history(&self, _channel: &str, _now: Instant) -> Answer<()> {
        away()
    }

    fn subscribe(&self, _channel: &str) {}

    fn unsubscribe(&self, _channel: &str) {}

    fn sweep(&self, _now: Instant) {}

    fn history_bytes(&self) -> usize {
        0
    }
}

#[test]
fn a_broker_that_fails_is_error_100_and_temporary() {
    let now = Instant::now();
    let parts = NodeParts::with_broker(|_| Arc::new(Unreachable));
    let node = Node::with_parts(options(|_| {}), now, UNIX * 1000, parts);
    let mut world = World::around(node.expect("the options are good"), now, 1);
    let options = PublishOptions::default();
    let published = world.node.channels().publish("a", publication(b"1"), options, now).wait();
    assert_eq!(published, Err(ErrorCode::INTERNAL));
    world.connected("ada", hello(""));
    world.play(
        r#"
        ada > {"id":2,"publish":{"channel":"a","data":1}}
        ada < {"id":2,"error":{"code":100,"message":"internal server error","temporary":true}}
    "#,
    );
}

fn away<T>() -> Answer<T> {
    Answer::now(Err(BrokerError::Unavailable))
}
