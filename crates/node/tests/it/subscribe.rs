//! Subscribing and unsubscribing (protocol §8, §15): checks in order, answers, and when publications flow.
//! In: dialogues → out: each row of the table that needs no token, seen by a peer.
//! Uses: `world`, `script`. Never: tokens (see `tokens.rs`).
//! Changed here: tests of the subscribe and unsubscribe commands.

use fanwire_node::options::{Namespace, RecoveryMode};
use fanwire_node::{ConnectionSelector, Options};

use crate::history::with_history;
use crate::script::{hello, play_in_both};
use crate::world::{Record, World, options};

fn check(options: &Options, rest: &str) {
    let connected = r#"
        ada opens
        ada > {"id":1,"connect":{}}
        ada < {"id":1,"connect":{"client":"ada","version":"test","ping":25,"pong":true}}
    "#;
    play_in_both(options, &format!("{connected}{rest}"));
}

fn refused(options: &Options, subscribe: &str, code: u32, message: &str) {
    check(
        options,
        &format!(
            r#"ada > {{"id":2,"subscribe":{subscribe}}}
               ada < {{"id":2,"error":{{"code":{code},"message":"{message}"}}}}"#
        ),
    );
}

#[test]
fn a_subscriber_hears_publications_until_it_unsubscribes() {
    check(
        &options(|_| {}),
        r#"
        api > news 0
        ada > {"id":2,"subscribe":{"channel":"news","flag":1}}
        ada < {"id":2,"subscribe":{}}
        api > news {"a":1}
        ada < {"push":{"channel":"news","pub":{"data":{"a":1}}}}
        api > other 2
        ada > {"id":3,"unsubscribe":{"channel":"news"}}
        ada < {"id":3,"unsubscribe":{}}
        api > news 3
    "#,
    );
}

#[test]
fn unsubscribe_is_answered_even_without_a_subscription() {
    check(
        &options(|_| {}),
        r#"
        ada > {"id":2,"unsubscribe":{"channel":"news"}}
        ada < {"id":2,"unsubscribe":{}}
        ada > {"id":3,"unsubscribe":{"channel":"unknown:news"}}
        ada < {"id":3,"unsubscribe":{}}
    "#,
    );
}

#[test]
fn a_channel_can_be_left_and_entered_again() {
    check(
        &options(|_| {}),
        r#"
        ada > {"id":2,"subscribe":{"channel":"a"}}\n{"id":3,"subscribe":{"channel":"b"}}\n{"id":4,"subscribe":{"channel":"c"}}
        ada < {"id":2,"subscribe":{}}
        ada < {"id":3,"subscribe":{}}
        ada < {"id":4,"subscribe":{}}
        ada > {"id":5,"unsubscribe":{"channel":"a"}}\n{"id":6,"subscribe":{"channel":"a"}}
        ada < {"id":5,"unsubscribe":{}}
        ada < {"id":6,"subscribe":{}}
        api > c 1
        api > a 2
        api > b 3
        ada < {"push":{"channel":"c","pub":{"data":1}}}
        ada < {"push":{"channel":"a","pub":{"data":2}}}
        ada < {"push":{"channel":"b","pub":{"data":3}}}
    "#,
    );
}

#[test]
fn a_name_that_is_too_long_is_107() {
    let channel = "a".repeat(256);
    let subscribe = format!(r#"{{"channel":"{channel}"}}"#);
    refused(&options(|_| {}), &subscribe, 107, "bad request");
}

#[test]
fn a_name_that_is_not_ascii_is_107() {
    refused(&options(|_| {}), r#"{"channel":"nä"}"#, 107, "bad request");
}

#[test]
fn an_unknown_namespace_is_102() {
    refused(&options(|_| {}), r#"{"channel":"chat:1"}"#, 102, "unknown channel");
}

#[test]
fn a_second_subscription_is_105() {
    check(
        &options(|_| {}),
        r#"
        ada > {"id":2,"subscribe":{"channel":"a"}}\n{"id":3,"subscribe":{"channel":"a"}}
        ada < {"id":2,"subscribe":{}}
        ada < {"id":3,"error":{"code":105,"message":"already subscribed"}}
    "#,
    );
}

#[test]
fn a_channel_above_the_limit_is_106_until_another_is_left() {
    check(
        &options(|options| options.client.channel_limit = 2),
        r#"
        ada > {"id":2,"subscribe":{"channel":"a"}}\n{"id":3,"subscribe":{"channel":"b"}}\n{"id":4,"subscribe":{"channel":"c"}}
        ada < {"id":2,"subscribe":{}}
        ada < {"id":3,"subscribe":{}}
        ada < {"id":4,"error":{"code":106,"message":"limit exceeded"}}
        ada > {"id":5,"unsubscribe":{"channel":"a"}}\n{"id":6,"subscribe":{"channel":"c"}}
        ada < {"id":5,"unsubscribe":{}}
        ada < {"id":6,"subscribe":{}}
    "#,
    );
}

#[test]
fn an_unknown_delta_is_3501_and_fossil_is_not_used_where_it_is_not_allowed() {
    check(
        &options(|_| {}),
        r#"
        ada > {"id":2,"subscribe":{"channel":"a","delta":"fossil"}}
        ada < {"id":2,"subscribe":{}}
        ada > {"id":3,"subscribe":{"channel":"b","delta":"other"}}
        ada x 3501 bad request
    "#,
    );
}

#[test]
fn checks_come_in_the_order_of_the_reference() {
    let long = "a".repeat(256);
    let tf = r#""tf":{"key":"k","cmp":"ex"}"#;
    let error = |code, message: &str| {
        format!("ada < {{\"id\":3,\"error\":{{\"code\":{code},\"message\":\"{message}\"}}}}")
    };
    let bad = error(107, "bad request");
    let limit = error(106, "limit exceeded");
    let again = error(105, "already subscribed");
    let unknown = error(102, "unknown channel");
    let subscribe = |rest: &str| format!("ada > {{\"id\":3,\"subscribe\":{{{rest}}}}}");
    let denied = error(103, "permission denied");
    let script = [
        subscribe(r#""channel":"a""#),
        r#"ada < {"id":3,"subscribe":{}}"#.to_owned(),
        subscribe(&format!(r#""channel":"a",{tf}"#)),
        again.clone(),
        subscribe(&format!(r#""channel":"x:a",{tf}"#)),
        unknown.clone(),
        subscribe(r#""channel":"x:ä""#),
        unknown,
        subscribe(&format!(r#""channel":"$a",{tf}"#)),
        denied,
        subscribe(r#""channel":"ä","type":1"#),
        bad.clone(),
        subscribe(r#""channel":"b","type":5"#),
        bad.clone(),
        subscribe(r#""channel":"a","type":-1"#),
        bad.clone(),
        subscribe(r#""channel":"b""#),
        r#"ada < {"id":3,"subscribe":{}}"#.to_owned(),
        subscribe(&format!(r#""channel":"{long}""#)),
        bad,
        subscribe(r#""channel":"a""#),
        again,
        subscribe(r#""channel":"c""#),
        limit,
        subscribe(r#""channel":"a","delta":"other""#),
        "ada x 3501 bad request".to_owned(),
    ];
    check(&options(|options| options.client.channel_limit = 2), &script.join("\n"));
}

#[test]
fn a_tag_filter_is_107_where_it_is_not_allowed() {
    let subscribe = r#"{"channel":"a","tf":{"key":"k","cmp":"eq","val":"v"}}"#;
    refused(&options(|_| {}), subscribe, 107, "bad request");
}

#[test]
fn without_permission_it_is_103_but_insecure_mode_allows() {
    let mut options = options(|options| options.channel.without_namespace = Namespace::default());
    refused(&options, r#"{"channel":"a"}"#, 103, "permission denied");
    options.client.insecure = true;
    check(
        &options,
        "ada > {\"id\":2,\"subscribe\":{\"channel\":\"a\"}}\n ada < {\"id\":2,\"subscribe\":{}}",
    );
}

#[test]
fn a_private_channel_without_a_token_is_103() {
    refused(&options(|_| {}), r#"{"channel":"$secret"}"#, 103, "permission denied");
}

#[test]
fn a_user_limited_channel_is_for_its_users_only() {
    let options = options(|options| {
        let open = &mut options.channel.without_namespace;
        open.allow_user_limited_channels = true;
    });
    refused(&options, r#"{"channel":"dialog#42,43"}"#, 103, "permission denied");
    let mut world = World::new(options);
    world.connected("ada", hello("as 43"));
    world.play("ada > {\"id\":2,\"subscribe\":{\"channel\":\"dialog#42,43\"}}\n ada < {\"id\":2,\"subscribe\":{}}");
}

/// An error 112 would make a client ask its application for a new position, which an empty cache would refuse again.
#[test]
fn an_empty_cache_is_never_112() {
    let options = with_history(|open| {
        open.force_recovery = true;
        open.force_recovery_mode = RecoveryMode::Cache;
    });
    check(
        &options,
        r#"
        ada > {"id":2,"subscribe":{"channel":"a","recover":true,"flag":2}}
        ada < {"id":2,"subscribe":{"recoverable":true,"epoch":"E1","positioned":true,"was_recovering":true}}
    "#,
    );
}

#[test]
fn recovery_wishes_are_harmless_where_there_is_no_history() {
    check(
        &options(|_| {}),
        r#"
        ada > {"id":2,"subscribe":{"channel":"a","recover":true,"epoch":"x","offset":7,"positioned":true,"recoverable":true,"join_leave":true,"flag":3}}
        ada < {"id":2,"subscribe":{"was_recovering":true}}
    "#,
    );
}

#[test]
fn the_shell_learns_which_subscription_ended_and_which_one_moved_there() {
    let mut world = World::new(options(|_| {}));
    world.connected("ada", hello(""));
    for channel in ["a", "b", "c"] {
        world.say("ada", &format!(r#"{{"id":2,"subscribe":{{"channel":"{channel}"}}}}"#));
    }
    let key = world.key("ada");
    let now = world.now;
    let mut record = Record::default();
    let unsubscribe = br#"{"id":3,"unsubscribe":{"channel":"a"}}"#;
    world.shard_of("ada").hub.receive(key, unsubscribe, now, &mut record);
    assert_eq!(record.ended, [(key.index, 0, 2)], "by a command");
    for (channel, place, last) in [("c", 0, 1), ("b", 0, 0)] {
        world
            .node
            .connections()
            .unsubscribe(ConnectionSelector::default(), Some(channel))
            .wait()
            .expect("a channel");
        let mut record = Record::default();
        for notice in world.shard_of("ada").mailbox.take() {
            world.shard_of("ada").hub.notice(notice, now, &mut record);
        }
        assert_eq!(record.ended, [(key.index, place, last)], "by the server, from {channel}");
    }
}
