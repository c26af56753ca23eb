//! Effects of the server API on connections (server API §3 disconnect, unsubscribe, channels, info).
//! In: calls of `Node` → out: who is disconnected or unsubscribed, counts, channel lists.
//! Uses: `world`, `script`. Never: HTTP.
//! Changed here: tests of notices with a target.

use std::collections::BTreeMap;

use fanwire_node::{ConnectionSelector, Counts};
use fanwire_protocol::{Disconnect, ErrorCode};

use crate::script::hello;
use crate::world::{World, options};

/// 42 has two connections, 43 and the anonymous user one each; all listen to `a` and `b`.
fn world() -> World {
    let mut world = World::new(options(|_| {}));
    for (name, words) in
        [("ada", "json as 42"), ("bob", "protobuf as 42"), ("eve", "json as 43"), ("ann", "json")]
    {
        world.connected(name, hello(words));
        for channel in ["a", "b"] {
            world.play(&format!(
                r#"{name} > {{"id":2,"subscribe":{{"channel":"{channel}"}}}}
                   {name} < {{"id":2,"subscribe":{{}}}}"#
            ));
        }
    }
    world
}

fn user(user: &str) -> ConnectionSelector {
    ConnectionSelector { user: user.into(), ..ConnectionSelector::default() }
}

fn disconnected(world: &mut World, target: ConnectionSelector) -> Vec<String> {
    assert_eq!(
        world.node.connections().disconnect(target, Disconnect::FORCE_DISCONNECT).wait(),
        Ok(())
    );
    world.settle();
    let unread = world.unread();
    assert!(unread.iter().all(|(_, text)| *text == "x 3503 force disconnect"), "{unread:?}");
    unread.iter().map(|(name, _)| (*name).to_owned()).collect()
}

#[test]
fn disconnect_means_all_connections_of_exactly_this_user() {
    assert_eq!(disconnected(&mut world(), user("42")), ["ada", "bob"]);
    assert_eq!(disconnected(&mut world(), user("")), ["ann"]);
    assert!(disconnected(&mut world(), user("4")).is_empty());
}

#[test]
fn client_session_and_whitelist_narrow_a_target() {
    let mut one = world();
    let client = one.id("bob").to_owned();
    let target = ConnectionSelector { client: client.clone(), ..user("42") };
    assert_eq!(disconnected(&mut one, target), ["bob"]);

    let mut other_user = world();
    let target = ConnectionSelector { client: other_user.id("bob").to_owned(), ..user("43") };
    assert!(disconnected(&mut other_user, target).is_empty());

    let mut spared = world();
    let target = ConnectionSelector { whitelist: vec![spared.id("bob").to_owned()], ..user("42") };
    assert_eq!(disconnected(&mut spared, target), ["ada"]);

    let target = ConnectionSelector { session: "any".into(), ..user("42") };
    assert!(disconnected(&mut world(), target).is_empty());
}

#[test]
fn unsubscribe_pushes_its_code_and_then_nothing_more_of_that_channel() {
    let mut world = world();
    let done = world.node.connections().unsubscribe(user("42"), Some("a"));
    assert_eq!(done.wait(), Ok(()));
    world.settle();
    world.play(
        r#"
        api > a 1
        api > b 2
        ada < {"push":{"channel":"a","unsubscribe":{"code":2000,"reason":"server unsubscribe"}}}
        ada < {"push":{"channel":"b","pub":{"data":2}}}
        bob < {"push":{"channel":"a","unsubscribe":{"code":2000,"reason":"server unsubscribe"}}}
        bob < {"push":{"channel":"b","pub":{"data":2}}}
        eve < {"push":{"channel":"a","pub":{"data":1}}}
        eve < {"push":{"channel":"b","pub":{"data":2}}}
        ann < {"push":{"channel":"a","pub":{"data":1}}}
        ann < {"push":{"channel":"b","pub":{"data":2}}}
        ada > {"id":9,"subscribe":{"channel":"a"}}
        ada < {"id":9,"subscribe":{}}
    "#,
    );
}

#[test]
fn unsubscribe_without_a_channel_means_all_of_them() {
    let mut world = world();
    let done = world.node.connections().unsubscribe(user("43"), None);
    assert_eq!(done.wait(), Ok(()));
    world.settle();
    world.play(
        r#"
        eve < {"push":{"channel":"b","unsubscribe":{"code":2000,"reason":"server unsubscribe"}}}
        eve < {"push":{"channel":"a","unsubscribe":{"code":2000,"reason":"server unsubscribe"}}}
    "#,
    );
    assert_eq!(world.node.counts().subscriptions, 6);
}

#[test]
fn unsubscribe_of_an_unknown_namespace_is_102_and_of_nobody_is_fine() {
    let mut world = world();
    let unknown = world.node.connections().unsubscribe(user("42"), Some("x:a"));
    assert_eq!(unknown.wait(), Err(ErrorCode::UNKNOWN_CHANNEL));
    assert_eq!(world.node.connections().unsubscribe(user("99"), Some("a")).wait(), Ok(()));
    assert_eq!(world.node.connections().unsubscribe(user("42"), Some("c")).wait(), Ok(()));
    world.settle();
    world.play("");
}

#[test]
fn channels_and_counts_say_what_is_there() {
    let mut world = world();
    let all = BTreeMap::from([("a".to_owned(), 4), ("b".to_owned(), 4)]);
    assert_eq!(world.node.list_channels("", world.now).wait(), Ok(all));
    assert_eq!(
        world.node.list_channels("[b-z]", world.now).wait(),
        Ok(BTreeMap::from([("b".to_owned(), 4)]))
    );
    assert_eq!(world.node.list_channels("[", world.now).wait(), Err(ErrorCode::BAD_REQUEST));
    let counts =
        Counts { connections: 4, users: 3, channels: 2, subscriptions: 8, history_bytes: 0 };
    assert_eq!(world.node.counts(), counts);
    for name in ["ada", "bob", "eve", "ann"] {
        world.close(name);
    }
    assert_eq!(world.node.counts(), Counts::default());
    assert_eq!(world.node.list_channels("", world.now).wait(), Ok(BTreeMap::new()));
}
