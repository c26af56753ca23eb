//! Bad input of maps: limits, cursors, positions and keys that no SDK sends, steps at the wrong time, connections that end in the middle.
//! In: scripts of clients → out: replies, and what is left of a subscribe.
//! Uses `world` and `script`. Never: random frames, which are in `hostile.rs`.
//! Changed here: dialogues of clients that break a rule. Those that keep the rules are in `subscribe.rs` and `publish.rs`.

use std::sync::Arc;
use std::time::{Duration, Instant};

use fanwire_node::options::{MapMode, Namespace, SubscriptionType};
use fanwire_node::{Counts, Node, NodeParts};

use super::maps;
use crate::publish::{Unreachable, check};
use crate::script::hello;
use crate::tokens::{SECRET, token};
use crate::world::{UNIX, World, options};

/// Makes `script` one with the keys a, b and c of the map.
fn with_keys(script: &str) -> String {
    format!("api sets m a 1\n api sets m b 1\n api sets m c 1\n {script}")
}

/// The same with this value.
fn set_keys(world: &mut World, data: &str) {
    for key in ["a", "b", "c"] {
        world.set_key("m", key, data);
    }
}

#[test]
fn a_limit_that_is_no_size_of_a_page_is_the_nearest_one() {
    let one = r#""cursor":"a","state":[{"data":1,"offset":1,"key":"a"}]"#;
    let two =
        r#""cursor":"b","state":[{"data":1,"offset":1,"key":"a"},{"data":1,"offset":2,"key":"b"}]"#;
    for (limit, page) in [(i32::MIN, two), (-1, two), (0, two), (1, one), (i32::MAX, two)] {
        check(
            &maps(MapMode::Persistent, |_| {}),
            &with_keys(&format!(
                r#"
                ada > {{"id":2,"subscribe":{{"channel":"m","type":1,"phase":2,"limit":{limit}}}}}
                ada < {{"id":2,"subscribe":{{"epoch":"E1","offset":3,"type":1,"phase":2,{page}}}}}
            "#
            )),
        );
    }
}

#[test]
fn a_limit_that_no_field_can_hold_is_3501() {
    let mut world = World::new(maps(MapMode::Persistent, |_| {}));
    world.connected("ada", hello("json"));
    world.play(
        r#"
        ada > {"id":2,"subscribe":{"channel":"m","type":1,"phase":2,"limit":2147483648}}
        ada x 3501 bad request
    "#,
    );
}

/// A client that skips entries is live without them; others are not affected.
#[test]
fn a_cursor_that_was_made_up_is_a_place_behind_which_pages_go_on() {
    let long = "x".repeat(60_000);
    for (cursor, state) in [
        ("b", r#","state":[{"data":1,"offset":3,"key":"c"}]"#),
        (
            "a\\u0000b",
            r#","state":[{"data":1,"offset":2,"key":"b"},{"data":1,"offset":3,"key":"c"}]"#,
        ),
        ("é", ""),
        (&long, ""),
    ] {
        check(
            &maps(MapMode::Persistent, |_| {}),
            &with_keys(&format!(
                r#"
                ada > {{"id":2,"subscribe":{{"channel":"m","type":1,"phase":2,"limit":1}}}}
                ada < {{"id":2,"subscribe":{{"epoch":"E1","offset":3,"type":1,"phase":2,"cursor":"a","state":[{{"data":1,"offset":1,"key":"a"}}]}}}}
                ada > {{"id":3,"subscribe":{{"channel":"m","type":1,"phase":2,"cursor":"{cursor}"}}}}
                ada < {{"id":3,"subscribe":{{"recoverable":true,"epoch":"E1","offset":3,"type":1{state}}}}}
            "#
            )),
        );
    }
}

#[test]
fn a_position_that_the_map_never_had_is_112() {
    for position in [
        r#""offset":4,"epoch":"E1""#,
        r#""offset":18446744073709551615,"epoch":"E1""#,
        r#""offset":3,"epoch":"ABCDEFGH""#,
        r#""offset":3,"epoch":"made up""#,
    ] {
        for phase in ["", r#""phase":1,"#] {
            check(
                &maps(MapMode::Persistent, |_| {}),
                &with_keys(&format!(
                    r#"
                    ada > {{"id":2,"subscribe":{{"channel":"m","type":1,"phase":2}}}}
                    ada < {{"id":2,"subscribe":{{"epoch":"E1","offset":3,"type":1,"phase":2,"cursor":"b","state":[{{"data":1,"offset":1,"key":"a"}},{{"data":1,"offset":2,"key":"b"}}]}}}}
                    ada > {{"id":3,"unsubscribe":{{"channel":"m"}}}}
                    ada < {{"id":3,"unsubscribe":{{}}}}
                    ada > {{"id":4,"subscribe":{{"channel":"m","type":1,{phase}"recover":true,{position}}}}}
                    ada < {{"id":4,"error":{{"code":112,"message":"unrecoverable position"}}}}
                "#
                )),
            );
        }
    }
}

/// Centrifugo refuses the second one with 113; here a command is answered before the next one begins.
#[test]
fn two_pages_at_once_are_answered_one_after_the_other() {
    check(
        &maps(MapMode::Ephemeral, |_| {}),
        &with_keys(
            r#"
            ada > {"id":2,"subscribe":{"channel":"m","type":1,"phase":2}}\n{"id":3,"subscribe":{"channel":"m","type":1,"phase":2,"cursor":"b"}}\n{"id":4,"subscribe":{"channel":"m","type":1,"phase":2,"cursor":"b"}}
            ada < {"id":2,"subscribe":{"type":1,"phase":2,"cursor":"b","state":[{"data":1,"key":"a"},{"data":1,"key":"b"}]}}
            ada < {"id":3,"subscribe":{"type":1,"state":[{"data":1,"key":"c"}]}}
            ada < {"id":4,"error":{"code":105,"message":"already subscribed"}}
        "#,
        ),
    );
}

#[test]
fn pages_of_changes_that_an_ephemeral_map_does_not_have_are_107() {
    check(
        &maps(MapMode::Ephemeral, |_| {}),
        &with_keys(
            r#"
            ada > {"id":2,"subscribe":{"channel":"m","type":1,"phase":1,"recover":true}}
            ada < {"id":2,"error":{"code":107,"message":"bad request"}}
            ada > {"id":3,"subscribe":{"channel":"m","type":1}}
            ada < {"id":3,"error":{"code":107,"message":"bad request"}}
            ada > {"id":4,"subscribe":{"channel":"m","type":1,"phase":-1}}
            ada < {"id":4,"error":{"code":107,"message":"bad request"}}
        "#,
        ),
    );
}

/// Its place is free as soon as the client begins another subscribe.
#[test]
fn a_subscribe_that_took_too_long_ends_with_the_next_one_to_another_map() {
    for mode in [MapMode::Persistent, MapMode::Ephemeral] {
        let mut world = World::new(maps(mode, |options| options.client.channel_limit = 1));
        world.connected("ada", hello("json"));
        let page = |world: &mut World, channel: &str| {
            world.say(
                "ada",
                &format!(r#"{{"id":2,"subscribe":{{"channel":"{channel}","type":1,"phase":2}}}}"#),
            );
            world.heard("ada").expect("a reply")
        };
        set_keys(&mut world, "1");
        assert!(page(&mut world, "m").contains("cursor"));
        assert!(page(&mut world, "n").contains(r#""code":106"#), "{mode:?}");
        world.play("wait 5s");
        let other = page(&mut world, "n");
        assert!(other.contains(r#""type":1"#), "{mode:?}: {other}");
    }
}

#[test]
fn a_subscribe_that_is_given_up_ends_and_one_that_lacks_too_many_changes_is_112() {
    check(
        &maps(MapMode::Persistent, |_| {}),
        &with_keys(
            r#"
            ada > {"id":2,"subscribe":{"channel":"m","type":1,"phase":2,"limit":1}}
            ada < {"id":2,"subscribe":{"epoch":"E1","offset":3,"type":1,"phase":2,"cursor":"a","state":[{"data":1,"offset":1,"key":"a"}]}}
            ada > {"id":3,"unsubscribe":{"channel":"m"}}
            ada < {"id":3,"unsubscribe":{}}
            ada > {"id":4,"subscribe":{"channel":"m","type":1,"phase":2,"cursor":"a","offset":3,"epoch":"E1"}}
            ada < {"id":4,"error":{"code":103,"message":"permission denied"}}
            ada > {"id":5,"subscribe":{"channel":"m","type":1,"phase":2,"tf":{"key":"t","cmp":"ex"}}}
            ada < {"id":5,"error":{"code":107,"message":"bad request"}}
            ada > {"id":6,"subscribe":{"channel":"m","type":1,"recover":true,"epoch":"E1"}}
            ada < {"id":6,"error":{"code":112,"message":"unrecoverable position"}}
            ada > {"id":7,"subscribe":{"channel":"m","type":1,"recover":true,"offset":1,"epoch":"E1"}}
            ada < {"id":7,"subscribe":{"recoverable":true,"epoch":"E1","publications":[{"data":1,"offset":2,"key":"b"},{"data":1,"offset":3,"key":"c"}],"recovered":true,"offset":3,"was_recovering":true,"type":1}}
        "#,
        ),
    );
}

#[test]
fn a_token_that_expires_while_pages_are_read_is_110() {
    let options = maps(MapMode::Persistent, |options| {
        options.client.token.hmac_secret_key = SECRET.into();
        options.channel.without_namespace.map.subscribe_catch_up_timeout = Duration::ZERO;
    });
    let token = token(&format!(r#"{{"channel":"m","exp":{}}}"#, UNIX + 10));
    let begin = format!(r#""subscribe":{{"channel":"m","type":1,"phase":2,"token":"{token}"}}"#);
    let page = r#""subscribe":{"epoch":"E1","offset":3,"type":1,"phase":2,"cursor":"b","state":[{"data":1,"offset":1,"key":"a"},{"data":1,"offset":2,"key":"b"}]}"#;
    let next =
        r#""subscribe":{"channel":"m","type":1,"phase":2,"cursor":"b","offset":3,"epoch":"E1"}"#;
    check(
        &options,
        &with_keys(&format!(
            r#"
            ada > {{"id":2,{begin}}}
            ada < {{"id":2,{page}}}
            ada > {{"id":3,{next}}}
            ada < {{"id":3,"subscribe":{{"expires":true,"ttl":10,"recoverable":true,"epoch":"E1","offset":3,"type":1,"state":[{{"data":1,"offset":3,"key":"c"}}]}}}}
            ada > {{"id":4,"unsubscribe":{{"channel":"m"}}}}
            ada < {{"id":4,"unsubscribe":{{}}}}
            ada > {{"id":5,{begin}}}
            ada < {{"id":5,{page}}}
            wait 11s
            ada > {{"id":6,{next}}}
            ada < {{"id":6,"error":{{"code":110,"message":"expired"}}}}
            ada > {{"id":7,{next}}}
            ada < {{"id":7,"error":{{"code":103,"message":"permission denied"}}}}
        "#
        )),
    );
}

#[test]
fn a_connection_that_ends_in_any_step_leaves_nothing() {
    for mode in [MapMode::Persistent, MapMode::Recoverable, MapMode::Ephemeral] {
        for steps in 1..=4 {
            let mut world = World::new(maps(mode, |_| {}));
            world.connected("bob", hello("json"));
            set_keys(&mut world, "1");
            let before = world.node.counts();
            world.connected("ada", hello("json"));
            let requests = [
                r#""phase":2"#,
                r#""phase":2,"cursor":"b""#,
                r#""phase":1,"offset":3"#,
                r#""phase":1,"offset":5"#,
            ];
            for (id, request) in (2..).zip(&requests[..steps]) {
                set_keys(&mut world, "2");
                let page =
                    format!(r#"{{"id":{id},"subscribe":{{"channel":"m","type":1,{request}}}}}"#);
                world.say_unsettled("ada", &page);
            }
            world.close("ada");
            world.settle();
            let after = Counts { history_bytes: before.history_bytes, ..world.node.counts() };
            assert_eq!(after, before, "{mode:?} after {steps} steps");
            world.set_key("m", "a", "3");
            assert!(
                world.shards.iter().all(|shard| shard.mailbox.is_empty()),
                "no shard follows it"
            );
        }
    }
}

#[test]
fn clients_cannot_take_maps_and_streams_for_each_other() {
    let options = options(|options| {
        let map = maps(MapMode::Persistent, |_| {}).channel.without_namespace;
        options.channel.namespaces.push(Namespace { name: "map".into(), ..map });
        let polled = Namespace {
            name: "poll".into(),
            subscription_type: SubscriptionType::SharedPoll,
            allow_subscribe_for_client: true,
            allow_subscribe_for_anonymous: true,
            allow_publish_for_client: true,
            allow_publish_for_anonymous: true,
            ..Namespace::default()
        };
        options.channel.namespaces.push(polled);
        options.shared_poll.hmac_secret_key = "a secret of tests".into();
    });
    check(
        &options,
        r#"
        ada > {"id":2,"subscribe":{"channel":"a","type":1,"phase":2}}
        ada < {"id":2,"error":{"code":103,"message":"permission denied"}}
        ada > {"id":3,"subscribe":{"channel":"map:a","recover":true}}
        ada < {"id":3,"error":{"code":103,"message":"permission denied"}}
        ada > {"id":4,"subscribe":{"channel":"map:a","type":4}}
        ada < {"id":4,"error":{"code":103,"message":"permission denied"}}
        ada > {"id":5,"subscribe":{"channel":"poll:a","type":1,"phase":2}}
        ada < {"id":5,"error":{"code":103,"message":"permission denied"}}
        ada > {"id":6,"publish":{"channel":"a","type":1,"key":"k","data":1}}
        ada < {"id":6,"error":{"code":103,"message":"permission denied"}}
        ada > {"id":7,"publish":{"channel":"map:a","data":1}}
        ada < {"id":7,"error":{"code":103,"message":"permission denied"}}
        ada > {"id":8,"publish":{"channel":"poll:a","type":1,"key":"k","data":1}}
        ada < {"id":8,"error":{"code":103,"message":"permission denied"}}
        ada > {"id":9,"publish":{"channel":"poll:a","data":1}}
        ada < {"id":9,"error":{"code":108,"message":"not available"}}
        ada > {"id":10,"subscribe":{"channel":"map:a","type":1,"phase":2}}
        ada < {"id":10,"subscribe":{"recoverable":true,"epoch":"E1","type":1}}
        ada > {"id":11,"sub_refresh":{"channel":"map:a","type":1,"track":[{"signature":"s","items":[{"key":"k"}]}]}}
        ada < {"id":11,"error":{"code":107,"message":"bad request"}}
        ada > {"id":12,"history":{"channel":"poll:a"}}
        ada < {"id":12,"error":{"code":108,"message":"not available"}}
    "#,
    );
}

#[test]
fn a_client_of_an_engine_without_maps_gets_108() {
    let parts = NodeParts::with_broker(|_| Arc::new(Unreachable));
    let now = Instant::now();
    let options = maps(MapMode::Persistent, |options| {
        options.client.explains_disconnects = true;
        let map = &mut options.channel.without_namespace.map;
        map.allow_publish_for_client = true;
        map.allow_publish_for_anonymous = true;
    });
    let node = Node::with_parts(options, now, 0, parts).expect("valid options");
    World::around(node, now, 2).play(
        r#"
        ada opens
        ada > {"id":1,"connect":{}}
        ada < {"id":1,"connect":{"client":"ada","version":"test","ping":25,"pong":true}}
        ada > {"id":2,"subscribe":{"channel":"m","type":1,"phase":2}}
        ada < {"id":2,"error":{"code":108,"message":"not available"}}
        ada > {"id":3,"publish":{"channel":"m","type":1,"key":"k","data":1}}
        ada < {"id":3,"error":{"code":108,"message":"not available"}}
    "#,
    );
}

/// The codes of JSON and Protobuf have no other strings.
#[test]
fn a_key_is_any_text_of_255_bytes() {
    let long = "é".repeat(127) + "x";
    let options = maps(MapMode::Persistent, |options| {
        let map = &mut options.channel.without_namespace.map;
        map.allow_publish_for_client = true;
        map.allow_publish_for_anonymous = true;
    });
    let mut world = World::new(options);
    world.connected("ada", hello("protobuf"));
    world.say("ada", r#"{"id":2,"subscribe":{"channel":"m","type":1,"phase":2}}"#);
    world.heard("ada");
    for key in ["\0", "\u{2028}\u{feff}\"\\", " ", long.as_str()] {
        let key = serde_json::to_string(key).expect("a string");
        world.say(
            "ada",
            &format!(r#"{{"id":3,"publish":{{"channel":"m","type":1,"key":{key},"data":1}}}}"#),
        );
        let push: serde_json::Value =
            serde_json::from_str(&world.heard("ada").expect("a push")).expect("JSON");
        assert_eq!(push["push"]["pub"]["key"].to_string(), key);
        assert!(world.heard("ada").is_some_and(|reply| reply.contains(r#""publish":{}"#)));
    }
}
