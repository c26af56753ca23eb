//! Subscriptions and lifetimes that the server API orders for connections that are there (server API §3 subscribe, refresh).
//! In: calls of `Node`, dialogues → out: pushes, what follows them, the ends of what expires, each refusal.
//! Uses: `world`, `script`. Never: HTTP; targets by themselves (see `api.rs`).
//! Changed here: tests of orders.

use std::time::Duration;

use fanwire_auth::Overrides;
use fanwire_broker::PublishOptions;
use fanwire_node::options::{Namespace, RecoveryMode};
use fanwire_node::{ConnectionSelector, Options, Renewal, ServerSubscription};
use fanwire_protocol::{ErrorCode, Publication, StreamPosition};

use crate::history::with_history;
use crate::presence::with_presence;
use crate::script::hello;
use crate::tokens::guarded;
use crate::world::{UNIX, World, options};

/// Ada is user 42, once in each encoding.
fn worlds(options: &Options) -> impl Iterator<Item = World> {
    ["json", "protobuf"].into_iter().map(|encoding| {
        let mut world = World::new(options.clone());
        world.connected("ada", hello(&format!("{encoding} as 42")));
        world
    })
}

fn user(user: &str) -> ConnectionSelector {
    ConnectionSelector { user: user.into(), ..ConnectionSelector::default() }
}

fn to(channel: &str) -> ServerSubscription {
    ServerSubscription { channel: channel.into(), ..ServerSubscription::default() }
}

fn subscribe(world: &mut World, subscription: ServerSubscription) {
    let ordered = world.node.connections().subscribe(user("42"), subscription, world.now);
    let ordered = ordered.ready().expect_err("nobody has obeyed yet");
    world.settle();
    world.settle(); // what obeying left in the inboxes
    assert_eq!(ordered.wait(), Ok(()));
}

fn check(options: &Options, subscription: &ServerSubscription, script: &str) {
    for mut world in worlds(options) {
        subscribe(&mut world, subscription.clone());
        world.play(script);
    }
}

/// Channels without permission to subscribe.
fn closed() -> Options {
    options(|options| options.channel.without_namespace = Namespace::default())
}

#[test]
fn an_order_subscribes_without_asking_for_permission() {
    check(
        &closed(),
        &ServerSubscription { data: r#"{"why":"api"}"#.into(), ..to("news") },
        r#"
        ada < {"push":{"channel":"news","subscribe":{"data":{"why":"api"}}}}
        api > news 1
        ada < {"push":{"channel":"news","pub":{"data":1}}}
        ada > {"id":2,"unsubscribe":{"channel":"news"}}
        ada < {"id":2,"unsubscribe":{}}
        api > news 2
    "#,
    );
}

#[test]
fn who_is_subscribed_already_hears_nothing_of_an_order() {
    for mut world in worlds(&options(|_| {})) {
        let order = ServerSubscription { data: "1".into(), ..to("a") };
        world.play(
            r#"ada > {"id":2,"subscribe":{"channel":"a"}}
               ada < {"id":2,"subscribe":{}}"#,
        );
        subscribe(&mut world, order.clone());
        subscribe(&mut world, to("b"));
        subscribe(&mut world, order);
        subscribe(&mut world, to("b"));
        world.play(r#"ada < {"push":{"channel":"b","subscribe":{}}}"#);
        assert_eq!(world.node.counts().subscriptions, 2);
    }
}

#[test]
fn an_order_reaches_the_connections_of_its_target_only() {
    let mut world = World::new(closed());
    for (name, words) in [("ada", "json as 42"), ("bob", "json as 42"), ("eve", "json as 43")] {
        world.connected(name, hello(words));
    }
    let client = world.id("bob").to_owned();
    let bob = ConnectionSelector { client, ..user("42") };
    let nobody = ConnectionSelector { session: "unknown".into(), ..user("42") };
    for target in [bob, nobody, user("99")] {
        let ordered = world.node.connections().subscribe(target, to("a"), world.now);
        world.settle();
        assert_eq!(ordered.wait(), Ok(()));
    }
    world.play(r#"bob < {"push":{"channel":"a","subscribe":{}}}"#);
}

#[test]
fn orders_that_cannot_be_are_refused() {
    let world = World::new(closed());
    let refused = |subscription| {
        world.node.connections().subscribe(user("42"), subscription, world.now).wait()
    };
    assert_eq!(refused(to("x:a")), Err(ErrorCode::UNKNOWN_CHANNEL));
    assert_eq!(refused(to("a\u{10ffff}1")), Err(ErrorCode::BAD_REQUEST), "a tile");
    assert_eq!(refused(to("")), Err(ErrorCode::BAD_REQUEST));
    for expire_at in [1, UNIX] {
        let past = ServerSubscription { expire_at: Some(expire_at), ..to("a") };
        assert_eq!(refused(past), Err(ErrorCode::BAD_REQUEST));
    }
}

#[test]
fn one_channel_too_many_is_3505() {
    let limited = options(|options| options.client.channel_limit = 2);
    for mut world in worlds(&limited) {
        subscribe(&mut world, to("a"));
        subscribe(&mut world, to("b"));
        subscribe(&mut world, to("b"));
        world.play(
            r#"ada < {"push":{"channel":"a","subscribe":{}}}
               ada < {"push":{"channel":"b","subscribe":{}}}"#,
        );
        subscribe(&mut world, to("c"));
        world.play("ada x 3505 channel limit");
        assert_eq!(world.node.counts().subscriptions, 0);
    }
}

#[test]
fn an_order_that_expires_ends_the_connection_with_3006_after_its_grace() {
    check(
        &closed(),
        &ServerSubscription { expire_at: Some(UNIX + 10), ..to("news") },
        r#"
        ada < {"push":{"channel":"news","subscribe":{}}}
        wait 34900ms
        ada receives nothing
        ada awaits 200ms
        ada x 3006 subscription expired
    "#,
    );
}

fn recoverable(change: impl FnOnce(&mut Namespace)) -> Options {
    with_history(|open| {
        open.force_recovery = true;
        change(open);
    })
}

fn since(offset: u64, epoch: &str) -> ServerSubscription {
    let recover_since = Some(StreamPosition { offset, epoch: epoch.into() });
    ServerSubscription { recover_since, ..to("news") }
}

/// Three publications before, and one after the subscription.
fn check_recovery(options: &Options, subscription: &ServerSubscription, pushes: &str) {
    for mut world in worlds(options) {
        for data in ["1", "2", "3"] {
            world.publish("news", data);
        }
        subscribe(&mut world, subscription.clone());
        world.play(&format!(
            r#"{pushes}
               api > news 4
               ada < {{"push":{{"channel":"news","pub":{{"data":4,"offset":4}}}}}}"#
        ));
    }
}

#[test]
fn an_order_may_recover_since_a_position() {
    check_recovery(
        &recoverable(|_| {}),
        &since(1, ""),
        r#"
        ada < {"push":{"channel":"news","subscribe":{"recoverable":true,"epoch":"E1","offset":1,"positioned":true}}}
        ada < {"push":{"channel":"news","pub":{"data":2,"offset":2}}}
        ada < {"push":{"channel":"news","pub":{"data":3,"offset":3}}}
    "#,
    );
}

#[test]
fn an_order_that_cannot_recover_tells_the_top() {
    let top = r#"
        ada < {"push":{"channel":"news","subscribe":{"recoverable":true,"epoch":"E1","offset":3,"positioned":true}}}
    "#;
    check_recovery(&recoverable(|_| {}), &since(1, "foreign"), top);
    check_recovery(&recoverable(|_| {}), &since(9, ""), top);
    check_recovery(&recoverable(|_| {}), &to("news"), top);
}

#[test]
fn an_order_recovers_a_stream_in_cache_mode_too() {
    let cache = recoverable(|open| {
        open.force_recovery_mode = RecoveryMode::Cache;
        open.auto_cache_recover = true;
    });
    check_recovery(
        &cache,
        &since(1, ""),
        r#"
        ada < {"push":{"channel":"news","subscribe":{"recoverable":true,"epoch":"E1","offset":1,"positioned":true}}}
        ada < {"push":{"channel":"news","pub":{"data":2,"offset":2}}}
        ada < {"push":{"channel":"news","pub":{"data":3,"offset":3}}}
    "#,
    );
    check_recovery(
        &cache,
        &to("news"),
        r#"ada < {"push":{"channel":"news","subscribe":{"recoverable":true,"epoch":"E1","offset":3,"positioned":true}}}"#,
    );
}

#[test]
fn overrides_say_otherwise_than_the_namespace() {
    let positioned = Overrides { force_positioning: Some(true), ..Overrides::default() };
    let plain = Overrides { force_recovery: Some(false), ..Overrides::default() };
    check_recovery(
        &with_history(|_| {}),
        &ServerSubscription { overrides: positioned, ..to("news") },
        r#"ada < {"push":{"channel":"news","subscribe":{"epoch":"E1","offset":3,"positioned":true}}}"#,
    );
    check_recovery(
        &recoverable(|_| {}),
        &ServerSubscription { overrides: plain, ..since(1, "") },
        r#"ada < {"push":{"channel":"news","subscribe":{}}}"#,
    );
}

/// Publishes into `news`, and leaves what follows in the inboxes.
fn publish(world: &World, data: &'static str) {
    let publication = Publication { data: data.into(), ..Publication::default() };
    let published =
        world.node.channels().publish("news", publication, PublishOptions::default(), world.now);
    published.wait().expect("published");
}

#[test]
fn publications_under_way_come_once_and_behind_the_push() {
    for mut world in worlds(&recoverable(|_| {})) {
        world.connected("bob", hello("json as 43")); // on the other shard
        drop(world.node.connections().subscribe(user("42"), since(0, ""), world.now));
        publish(&world, "1"); // after the order, before the hub obeys it
        publish(&world, "2");
        world.settle();
        world.play(
            r#"ada < {"push":{"channel":"news","subscribe":{"recoverable":true,"epoch":"E1","positioned":true}}}
               ada < {"push":{"channel":"news","pub":{"data":1,"offset":1}}}
               ada < {"push":{"channel":"news","pub":{"data":2,"offset":2}}}
               api > news 3
               ada < {"push":{"channel":"news","pub":{"data":3,"offset":3}}}"#,
        );
    }
}

#[test]
fn an_ordered_subscription_that_loses_its_place_ends_in_3010() {
    for mut world in worlds(&recoverable(|_| {})) {
        subscribe(&mut world, to("news"));
        world.play(
            r#"ada < {"push":{"channel":"news","subscribe":{"recoverable":true,"epoch":"E1","positioned":true}}}"#,
        );
        publish(&world, "1");
        world.shards.iter().for_each(|shard| drop(shard.mailbox.take()));
        world.play("api > news 2\n ada x 3010 insufficient state");
    }
}

#[test]
fn an_order_makes_its_client_present_and_heard_of() {
    let options = with_presence(|open| {
        open.join_leave = true;
        open.force_push_join_leave = true;
    });
    let order = ServerSubscription { info: r#"{"seat":7}"#.into(), ..to("room") };
    for mut world in worlds(&options) {
        subscribe(&mut world, order.clone());
        world.play(
            r#"ada < {"push":{"channel":"room","subscribe":{}}}
               ada < {"push":{"channel":"room","join":{"info":{"user":"42","client":"ada","chan_info":{"seat":7}}}}}
               ada > {"id":2,"presence":{"channel":"room"}}
               ada < {"id":2,"presence":{"presence":{"ada":{"user":"42","client":"ada","chan_info":{"seat":7}}}}}
               ada > {"id":3,"unsubscribe":{"channel":"room"}}
               ada < {"id":3,"unsubscribe":{}}
               ada > {"id":4,"presence_stats":{"channel":"room"}}
               ada < {"id":4,"presence_stats":{"num_clients":0,"num_users":0}}"#,
        );
        let quiet = Overrides {
            presence: Some(false),
            join_leave: Some(false),
            force_push_join_leave: Some(false),
            ..Overrides::default()
        };
        subscribe(&mut world, ServerSubscription { overrides: quiet, ..order.clone() });
        world.play(
            r#"ada < {"push":{"channel":"room","subscribe":{}}}
               ada > {"id":5,"presence_stats":{"channel":"room"}}
               ada < {"id":5,"presence_stats":{"num_clients":0,"num_users":0}}"#,
        );
    }
}

#[test]
fn data_that_is_not_json_ends_a_json_connection_with_3506() {
    let order = ServerSubscription { data: "no json".into(), ..to("a") };
    let mut world = worlds(&closed()).next().expect("JSON comes first");
    subscribe(&mut world, order);
    world.play("ada x 3506 inappropriate protocol");
    assert_eq!(world.node.counts().subscriptions, 0);
}

fn renewal(expire_at: Option<u64>, info: &'static str) -> Renewal {
    Renewal { expire_at, info: info.into() }
}

fn refresh(world: &mut World, renewal: Renewal) {
    assert_eq!(world.node.connections().refresh(user("42"), renewal).wait(), Ok(()));
    world.settle();
}

#[test]
fn an_ordered_refresh_gives_a_connection_another_end_and_tells_it() {
    for mut world in worlds(&closed()) {
        refresh(&mut world, renewal(Some(UNIX + 10), ""));
        world.play(
            r#"ada < {"push":{"refresh":{"expires":true,"ttl":10}}}
               wait 30s"#,
        );
        refresh(&mut world, renewal(Some(UNIX + 40), ""));
        world.play(
            r#"ada < {"push":{"refresh":{"expires":true,"ttl":10}}}
               wait 34900ms
               ada receives nothing
               ada awaits 200ms
               ada x 3005 connection expired"#,
        );
    }
}

#[test]
fn a_refresh_without_an_end_means_for_ever() {
    for mut world in worlds(&closed()) {
        refresh(&mut world, renewal(Some(UNIX + 10), ""));
        refresh(&mut world, renewal(None, ""));
        world.play(
            r#"ada < {"push":{"refresh":{"expires":true,"ttl":10}}}
               ada < {"push":{"refresh":{}}}
               wait 999s"#,
        );
    }
}

#[test]
fn a_refresh_to_the_past_is_3005() {
    for expire_at in [1, UNIX] {
        for mut world in worlds(&closed()) {
            refresh(&mut world, renewal(Some(expire_at), ""));
            world.play("ada x 3005 connection expired");
        }
    }
}

#[test]
fn a_refresh_that_comes_too_late_to_a_hub_is_3005() {
    for mut world in worlds(&closed()) {
        let done = world.node.connections().refresh(user("42"), renewal(Some(UNIX + 1), ""));
        assert_eq!(done.wait(), Ok(()));
        world.now += Duration::from_secs(2);
        world.settle();
        world.play("ada x 3005 connection expired");
    }
}

#[test]
fn a_refresh_changes_the_info_when_it_brings_one() {
    let seen = |info: &str| {
        format!(
            r#"ada > {{"id":2,"publish":{{"channel":"a","data":1}}}}
               ada < {{"push":{{"channel":"a","pub":{{"data":1,"info":{{"user":"42","client":"ada"{info}}}}}}}}}
               ada < {{"id":2,"publish":{{}}}}"#
        )
    };
    for mut world in worlds(&options(|_| {})) {
        subscribe(&mut world, to("a"));
        world.play(r#"ada < {"push":{"channel":"a","subscribe":{}}}"#);
        world.play(&seen(""));
        for info in [r#"{"name":"Ada"}"#, ""] {
            refresh(&mut world, renewal(None, info));
            world.play("ada < {\"push\":{\"refresh\":{}}}");
            world.play(&seen(r#","conn_info":{"name":"Ada"}"#));
        }
    }
}

#[test]
fn in_insecure_mode_nothing_ordered_expires() {
    let insecure = guarded(|options| options.client.insecure = true);
    for mut world in worlds(&insecure) {
        subscribe(&mut world, ServerSubscription { expire_at: Some(UNIX + 10), ..to("a") });
        refresh(&mut world, renewal(Some(UNIX + 10), ""));
        world.play(
            r#"ada < {"push":{"channel":"a","subscribe":{}}}
               ada < {"push":{"refresh":{}}}
               wait 999s"#,
        );
    }
}
