//! Joins and leaves (protocol §19): who receives of them, when, in which order with replies and publications.
//! In: dialogues → out: each rule, seen by peers on two shards.
//! Uses: `world`, `script`. Never: presence (see `presence.rs`).
//! Changed here: tests of joins and leaves.

use fanwire_node::Options;
use fanwire_node::options::Namespace;

use crate::script::{hello, play_in_both};
use crate::tokens::{guarded, token};
use crate::world::{World, options};

/// Channels with joins and leaves, for those that ask.
fn with_joins(change: impl FnOnce(&mut Namespace)) -> Options {
    options(|options| {
        let open = &mut options.channel.without_namespace;
        open.join_leave = true;
        open.allow_presence_for_client = true;
        open.allow_presence_for_anonymous = true;
        change(open);
    })
}

const CONNECTED: &str = r#"
    ada opens
    ada > {"id":1,"connect":{}}
    ada < {"id":1,"connect":{"client":"ada","version":"test","ping":25,"pong":true}}
    bob opens
    bob > {"id":1,"connect":{}}
    bob < {"id":1,"connect":{"client":"bob","version":"test","ping":25,"pong":true}}
"#;

fn check(options: &Options, rest: &str) {
    play_in_both(options, &format!("{CONNECTED}{rest}"));
}

#[test]
fn who_asked_hears_of_others_and_of_itself_after_the_reply() {
    check(
        &with_joins(|_| {}),
        r#"
        ada > {"id":2,"subscribe":{"channel":"room","join_leave":true}}
        ada < {"id":2,"subscribe":{}}
        ada < {"push":{"channel":"room","join":{"info":{"user":"","client":"ada"}}}}
        bob > {"id":2,"subscribe":{"channel":"room"}}
        bob < {"id":2,"subscribe":{}}
        ada < {"push":{"channel":"room","join":{"info":{"user":"","client":"bob"}}}}
        bob > {"id":3,"publish":{"channel":"room","data":1}}\n{"id":4,"unsubscribe":{"channel":"room"}}
        bob < {"push":{"channel":"room","pub":{"data":1,"info":{"user":"","client":"bob"}}}}
        bob < {"id":3,"publish":{}}
        bob < {"id":4,"unsubscribe":{}}
        ada < {"push":{"channel":"room","pub":{"data":1,"info":{"user":"","client":"bob"}}}}
        bob > {"id":5,"subscribe":{"channel":"room"}}
        bob < {"id":5,"subscribe":{}}
        ada < {"push":{"channel":"room","leave":{"info":{"user":"","client":"bob"}}}}
        ada < {"push":{"channel":"room","join":{"info":{"user":"","client":"bob"}}}}
        bob closes
        ada < {"push":{"channel":"room","leave":{"info":{"user":"","client":"bob"}}}}
        ada > {"id":3,"unsubscribe":{"channel":"room"}}
        ada < {"id":3,"unsubscribe":{}}
    "#,
    );
}

#[test]
fn where_it_is_forced_everybody_hears() {
    check(
        &with_joins(|open| open.force_push_join_leave = true),
        r#"
        ada > {"id":2,"subscribe":{"channel":"room"}}
        ada < {"id":2,"subscribe":{}}
        ada < {"push":{"channel":"room","join":{"info":{"user":"","client":"ada"}}}}
        bob > {"id":2,"subscribe":{"channel":"room"}}
        bob < {"id":2,"subscribe":{}}
        ada < {"push":{"channel":"room","join":{"info":{"user":"","client":"bob"}}}}
        bob < {"push":{"channel":"room","join":{"info":{"user":"","client":"bob"}}}}
        ada closes
        bob < {"push":{"channel":"room","leave":{"info":{"user":"","client":"ada"}}}}
    "#,
    );
}

#[test]
fn who_may_not_see_presence_asks_in_vain() {
    let nobody_hears = r#"
        ada > {"id":2,"subscribe":{"channel":"room","join_leave":true}}
        ada < {"id":2,"subscribe":{}}
        bob > {"id":2,"subscribe":{"channel":"room","join_leave":true}}
        bob < {"id":2,"subscribe":{}}
        bob closes
    "#;
    check(&with_joins(|open| open.allow_presence_for_client = false), nobody_hears);
    check(&with_joins(|open| open.allow_presence_for_anonymous = false), nobody_hears);
    check(&with_joins(|open| open.join_leave = false), nobody_hears);
    let forced = with_joins(|open| {
        open.join_leave = false;
        open.force_push_join_leave = true;
    });
    check(&forced, nobody_hears);
}

#[test]
fn subscriptions_of_the_server_join_under_their_name_after_the_connect_reply() {
    play_in_both(
        &with_joins(|open| open.force_push_join_leave = true),
        r#"
        ada opens
        ada > {"id":1,"connect":{"subs":{"room":{}}}}
        ada < {"id":1,"connect":{"client":"ada","version":"test","subs":{"room":{}},"ping":25,"pong":true}}
        ada < {"push":{"channel":"room","join":{"info":{"user":"","client":"ada"}}}}
    "#,
    );
}

#[test]
fn who_comes_back_at_once_does_not_hear_of_its_own_leave() {
    check(
        &with_joins(|open| open.force_push_join_leave = true),
        r#"
        ada > {"id":2,"subscribe":{"channel":"room"}}
        ada < {"id":2,"subscribe":{}}
        ada < {"push":{"channel":"room","join":{"info":{"user":"","client":"ada"}}}}
        eve opens
        eve > {"id":1,"connect":{}}\n{"id":2,"subscribe":{"channel":"room"}}
        eve < {"id":1,"connect":{"client":"eve","version":"test","ping":25,"pong":true}}
        eve < {"id":2,"subscribe":{}}
        eve < {"push":{"channel":"room","join":{"info":{"user":"","client":"eve"}}}}
        ada < {"push":{"channel":"room","join":{"info":{"user":"","client":"eve"}}}}
        ada > {"id":3,"unsubscribe":{"channel":"room"}}\n{"id":4,"subscribe":{"channel":"room"}}
        ada < {"id":3,"unsubscribe":{}}
        ada < {"id":4,"subscribe":{}}
        ada < {"push":{"channel":"room","join":{"info":{"user":"","client":"ada"}}}}
        eve < {"push":{"channel":"room","leave":{"info":{"user":"","client":"ada"}}}}
        eve < {"push":{"channel":"room","join":{"info":{"user":"","client":"ada"}}}}
    "#,
    );
}

#[test]
fn an_unsubscribe_by_the_server_is_a_leave_too() {
    let mut world = World::new(with_joins(|_| {}));
    world.connected("ada", hello("as 42"));
    world.connected("bob", hello("protobuf as 43"));
    world.play(
        r#"
        ada > {"id":2,"subscribe":{"channel":"room","join_leave":true}}
        ada < {"id":2,"subscribe":{}}
        ada < {"push":{"channel":"room","join":{"info":{"user":"42","client":"ada"}}}}
        bob > {"id":2,"subscribe":{"channel":"room"}}
        bob < {"id":2,"subscribe":{}}
        ada < {"push":{"channel":"room","join":{"info":{"user":"43","client":"bob"}}}}
    "#,
    );
    let target = fanwire_node::ConnectionSelector {
        user: "43".into(),
        ..fanwire_node::ConnectionSelector::default()
    };
    world.node.connections().unsubscribe(target, None).wait().expect("no name is checked");
    world.settle();
    world.settle();
    world.play(
        r#"
        bob < {"push":{"channel":"room","unsubscribe":{"code":2000,"reason":"server unsubscribe"}}}
        ada < {"push":{"channel":"room","leave":{"info":{"user":"43","client":"bob"}}}}
    "#,
    );
}

#[test]
fn a_token_may_force_what_its_namespace_does_not() {
    let mut world = World::new(guarded(|_| {}));
    world.open("ada", hello(""));
    world.say("ada", &crate::tokens::connect(r#"{"sub":"42"}"#));
    assert!(world.heard("ada").is_some());
    let overrides = r#"{"join_leave":{"value":true},"force_push_join_leave":{"value":true}}"#;
    let claims =
        format!(r#"{{"sub":"42","channel":"room","info":{{"seat":7}},"override":{overrides}}}"#);
    world.play(&format!(
        r#"
        ada > {{"id":2,"subscribe":{{"channel":"room","token":"{}"}}}}
        ada < {{"id":2,"subscribe":{{}}}}
        ada < {{"push":{{"channel":"room","join":{{"info":{{"user":"42","client":"ada","chan_info":{{"seat":7}}}}}}}}}}
    "#,
        token(&claims),
    ));
}

#[test]
fn an_info_that_is_no_json_ends_json_sessions_that_hear_of_it_with_3506() {
    let options = guarded(|options| {
        let open = &mut options.channel.without_namespace;
        open.join_leave = true;
        open.force_push_join_leave = true;
    });
    let mut world = World::new(options);
    for (name, words) in [("ada", "json"), ("bob", "protobuf")] {
        world.open(name, hello(words));
        world.say(name, &crate::tokens::connect(r#"{"sub":"42"}"#));
        let claims = match name {
            "ada" => r#"{"sub":"42","channel":"room"}"#,
            _ => r#"{"sub":"42","channel":"room","b64info":"/w=="}"#,
        };
        assert!(world.heard(name).is_some(), "connected");
        if name == "bob" {
            world.say_unsettled(name, &crate::tokens::subscribe("room", claims));
        } else {
            world.say(name, &crate::tokens::subscribe("room", claims));
            assert!(world.heard(name).is_some(), "subscribed");
            assert!(world.heard(name).is_some(), "its own join");
        }
    }
    for shard in &mut world.shards {
        let mut record = crate::world::Record::default();
        for notice in shard.mailbox.take() {
            shard.hub.notice(notice, world.now, &mut record);
        }
        for (_, effect) in record.effects {
            if let crate::world::Effect::Disconnect(disconnect) = effect {
                assert_eq!(disconnect.code, 3506);
            }
        }
    }
    assert_eq!(world.node.counts().connections, 1, "who speaks Protobuf stays");
}

#[test]
fn a_leave_is_announced_before_the_shard_stops_listening() {
    let options = with_joins(|open| open.force_push_join_leave = true);
    let mut world = World::with_shards(options, 1);
    for name in ["ada", "bob"] {
        world.connected(name, hello(""));
    }
    let subscribe = r#"{"id":2,"subscribe":{"channel":"room"}}"#;
    world.say_unsettled("ada", subscribe);
    world.close("ada"); // its join is in the inbox, and no other client listens
    world.say_unsettled("bob", subscribe);
    world.settle();
    world.play(
        r#"
        ada < {"id":2,"subscribe":{}}
        bob < {"id":2,"subscribe":{}}
        bob < {"push":{"channel":"room","join":{"info":{"user":"","client":"ada"}}}}
        bob < {"push":{"channel":"room","leave":{"info":{"user":"","client":"ada"}}}}
        bob < {"push":{"channel":"room","join":{"info":{"user":"","client":"bob"}}}}
    "#,
    );
}
