//! Personal channels (`client.subscribe_to_user_personal_channel`): who is subscribed to which, and single connections.
//! In: dialogues, connections at one moment → out: subscriptions at connect, 3504 for older connections.
//! Uses: `world`, `script`, tokens of `tokens.rs`.
//! Changed here: tests of personal channels.

use fanwire_auth::OptionsError;
use fanwire_node::Options;
use fanwire_node::options::{Namespace, PersonalChannelOptions};

use crate::script::{hello, play_in_both};
use crate::tokens::{connect, guarded, token};
use crate::world::{UNIX, World, options};

fn personal(change: impl FnOnce(&mut PersonalChannelOptions)) -> Options {
    guarded(|options| {
        options.client.allow_anonymous_connect_without_token = true;
        let namespace = Namespace { name: "news".into(), ..Namespace::default() };
        options.channel.namespaces.push(namespace);
        let personal = &mut options.client.subscribe_to_user_personal_channel;
        personal.enabled = true;
        change(personal);
    })
}

fn connected(subs: &str) -> String {
    format!(
        r#"{{"id":1,"connect":{{"client":"ada","version":"test","subs":{subs},"ping":25,"pong":true}}}}"#
    )
}

fn check(options: &Options, claims: &str, subs: &str, rest: &str) {
    let script =
        format!("ada opens\n ada > {}\n ada < {}\n{rest}", connect(claims), connected(subs));
    play_in_both(options, &script);
}

#[test]
fn every_connection_of_a_user_is_subscribed_to_the_users_channel() {
    check(
        &personal(|_| {}),
        r#"{"sub":"42"}"#,
        r##"{"#42":{}}"##,
        r##"
        api > #42 1
        ada < {"push":{"channel":"#42","pub":{"data":1}}}
        api > #43 2
        ada > {"id":2,"subscribe":{"channel":"#43"}}
        ada < {"id":2,"error":{"code":103,"message":"permission denied"}}
    "##,
    );
}

#[test]
fn personal_channels_may_have_a_namespace_and_stand_beside_those_of_a_token() {
    check(
        &personal(|personal| personal.personal_channel_namespace = "news".into()),
        r#"{"sub":"42","subs":{"a":{},"news:#42":{"data":7}}}"#,
        r##"{"a":{},"news:#42":{"data":7}}"##,
        "",
    );
}

#[test]
fn nobody_has_no_personal_channel() {
    play_in_both(
        &personal(|personal| personal.single_connection = true),
        r#"ada opens
           ada > {"id":1,"connect":{}}
           ada < {"id":1,"connect":{"client":"ada","version":"test","ping":25,"pong":true}}
           bob opens
           bob > {"id":1,"connect":{}}
           bob < {"id":1,"connect":{"client":"bob","version":"test","ping":25,"pong":true}}"#,
    );
}

#[test]
fn a_user_id_may_have_any_characters_and_any_length() {
    let mut options = personal(|_| {});
    options.channel.without_namespace.presence = true;
    options.channel.without_namespace.allow_presence_for_subscriber = true;
    options.channel.without_namespace.allow_user_limited_channels = true;
    for user in ["jürgen", "a:b", &"x".repeat(300)] {
        let channel = format!("#{user}");
        let claims = format!(r#"{{"sub":"{user}"}}"#);
        let rest = format!(
            r##"
            api > {channel} 1
            ada < {{"push":{{"channel":"{channel}","pub":{{"data":1}}}}}}
            ada > {{"id":2,"presence_stats":{{"channel":"{channel}"}}}}
            ada < {{"id":2,"presence_stats":{{"num_clients":1,"num_users":1}}}}
            ada > {{"id":3,"unsubscribe":{{"channel":"{channel}"}}}}
            ada < {{"id":3,"unsubscribe":{{}}}}
            ada > {{"id":4,"subscribe":{{"channel":"{channel}"}}}}
            ada < {{"id":4,"subscribe":{{}}}}
            api > {channel} 2
            ada < {{"push":{{"channel":"{channel}","pub":{{"data":2}}}}}}
        "##
        );
        check(&options, &claims, &format!(r#"{{"{channel}":{{}}}}"#), &rest);
    }
}

#[test]
fn other_clients_cannot_name_such_a_channel() {
    check(
        &personal(|_| {}),
        r#"{"sub":"42"}"#,
        r##"{"#42":{}}"##,
        r##"
        ada > {"id":2,"subscribe":{"channel":"#jürgen"}}
        ada < {"id":2,"error":{"code":107,"message":"bad request"}}
        ada > {"id":3,"publish":{"channel":"#jürgen","data":{}}}
        ada < {"id":3,"error":{"code":107,"message":"bad request"}}
    "##,
    );
}

#[test]
fn a_user_whose_channel_others_could_subscribe_to_has_none() {
    for user in ["1,2", "a#b", "#", ","] {
        let script = format!(
            r#"ada opens
               ada > {}
               ada < {{"id":1,"connect":{{"client":"ada","version":"test","ping":25,"pong":true}}}}
               api > #{user} 1
               ada receives nothing"#,
            connect(&format!(r#"{{"sub":"{user}"}}"#))
        );
        play_in_both(&personal(|_| {}), &script);
    }
}

#[test]
fn a_refresh_does_not_take_the_personal_channel_for_a_change() {
    let refresh = token(&format!(r#"{{"sub":"42","exp":{}}}"#, UNIX + 50));
    check(
        &personal(|_| {}),
        r#"{"sub":"42"}"#,
        r##"{"#42":{}}"##,
        &format!(
            r#"ada > {{"id":5,"refresh":{{"token":"{refresh}"}}}}
               ada < {{"id":5,"refresh":{{"expires":true,"ttl":50}}}}"#
        ),
    );
}

fn single() -> Options {
    let mut options = personal(|personal| personal.single_connection = true);
    options.client.allow_anonymous_connect_without_token = false;
    options
}

#[test]
fn a_new_connection_closes_the_older_ones_of_its_user() {
    let mut world = World::with_shards(single(), 2);
    for name in ["ada", "bob", "eve"] {
        world.connected(name, hello(if name == "eve" { "json as 43" } else { "json as 42" }));
    }
    world.play("ada x 3504 connection limit");
    world.connected("ann", hello("protobuf as 42"));
    world.play(
        r##"bob x 3504 connection limit
            api > #42 1
            ann < {"push":{"channel":"#42","pub":{"data":1}}}"##,
    );
    assert_eq!(world.node.counts().connections, 2);
    world.close("ann");
    world.connected("new", hello("json as 42"));
    world.play("new receives nothing");
}

#[test]
fn of_connections_at_one_moment_the_last_stays() {
    let mut world = World::with_shards(single(), 3);
    let names = ["ada", "bob", "eve", "ann"];
    for name in names {
        world.open(name, hello("json as 42"));
    }
    for name in names {
        world.say_unsettled(name, r#"{"id":1,"connect":{}}"#);
    }
    world.settle();
    for name in names {
        assert!(world.heard(name).is_some_and(|reply| reply.contains("connect")));
    }
    world.play(
        "ada x 3504 connection limit\n bob x 3504 connection limit\n eve x 3504 connection limit",
    );
    assert_eq!(world.node.counts().connections, 1);
}

#[test]
fn without_single_connection_a_user_has_as_many_as_it_likes() {
    let mut world = World::new(personal(|_| {}));
    world.connected("ada", hello("json as 42"));
    world.connected("bob", hello("json as 42"));
    world.play("ada receives nothing");
}

#[test]
fn options_that_make_no_channel_are_refused() {
    let refused = |change: fn(&mut Options)| {
        let options = options(|options| {
            options.client.subscribe_to_user_personal_channel.enabled = true;
            change(options);
        });
        options.validate().map_err(|error: OptionsError| error.to_string())
    };
    assert_eq!(
        refused(|options| {
            options.client.subscribe_to_user_personal_channel.personal_channel_namespace =
                "nowhere".into();
        }),
        Err(
            "client.subscribe_to_user_personal_channel.personal_channel_namespace is \"nowhere\", \
             expected the name of one of channel.namespaces, or \"\" for none"
                .to_owned()
        )
    );
    assert_eq!(
        refused(|options| options.channel.user_boundary.clear()),
        Err("channel.user_boundary is \"\", expected one character, for \
             client.subscribe_to_user_personal_channel.enabled"
            .to_owned())
    );
    assert_eq!(refused(|_| {}), Ok(()));
}

#[test]
fn rules_for_names_bind_clients_alone() {
    let options = guarded(|options| {
        options.channel.max_length = 10;
        options.channel.without_namespace.channel_regex = "^[a-z]+$".to_owned();
    });
    let long = "longer-than-ten-bytes";
    check(
        &options,
        &format!(r#"{{"sub":"42","channels":["комната","UPPER","{long}"]}}"#),
        &format!(r#"{{"UPPER":{{}},"{long}":{{}},"комната":{{}}}}"#),
        r#"
        api > комната 1
        ada < {"push":{"channel":"комната","pub":{"data":1}}}
        ada > {"id":2,"subscribe":{"channel":"OTHER"}}
        ada < {"id":2,"error":{"code":107,"message":"bad request"}}
    "#,
    );
}

#[test]
fn a_user_whose_id_has_the_mark_of_tiles_has_no_personal_channel() {
    let options = personal(|personal| personal.personal_channel_namespace = "news".into());
    let connect = connect("{\"sub\":\"a\u{10ffff}1\"}");
    let connected = r#"{"id":1,"connect":{"client":"ada","version":"test","ping":25,"pong":true}}"#;
    play_in_both(&options, &format!("ada opens\n ada > {connect}\n ada < {connected}"));
}
