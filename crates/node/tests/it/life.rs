//! The life of a connection (protocol §5, §6): order of commands, ids, bad frames, pings, staleness.
//! In: dialogues → out: each MUST of those sections, seen by a peer.
//! Uses: `world`, `script`. Never: tokens (see `tokens.rs`).
//! Changed here: tests of the shared rules of all commands.

use crate::script::play_in_both;
use crate::world::{World, options};

const CONNECTED: &str = r#"
    ada opens
    ada > {"id":1,"connect":{}}
    ada < {"id":1,"connect":{"client":"ada","version":"test","ping":25,"pong":true}}
"#;

fn check(rest: &str) {
    play_in_both(&options(|_| {}), &format!("{CONNECTED}{rest}"));
}

#[test]
fn the_first_command_must_be_connect() {
    for command in [
        r#"{"id":1,"subscribe":{"channel":"news"}}"#,
        r#"{"id":1,"rpc":{}}"#,
        r#"{"id":1}"#,
        r#"{}"#,
        r#"{"send":{}}"#,
    ] {
        play_in_both(
            &options(|_| {}),
            &format!("ada opens\n ada > {command}\n ada x 3501 bad request"),
        );
    }
}

#[test]
fn a_second_connect_is_3501() {
    check(
        r#"
        ada > {"id":2,"connect":{}}
        ada x 3501 bad request
    "#,
    );
}

#[test]
fn an_id_of_zero_is_3501_except_for_send_and_pong() {
    for command in
        [r#"{"rpc":{}}"#, r#"{"subscribe":{"channel":"a"}}"#, r#"{"unsubscribe":{"channel":"a"}}"#]
    {
        check(&format!("ada > {command}\n ada x 3501 bad request"));
    }
    play_in_both(&options(|_| {}), "ada opens\n ada > {\"connect\":{}}\n ada x 3501 bad request");
}

#[test]
fn a_command_without_a_known_request_is_3501() {
    check("ada > {\"id\":2}\n ada x 3501 bad request");
    check("ada > {\"id\":2,\"ping\":{}}\n ada x 3501 bad request");
}

#[test]
fn a_channel_command_without_a_channel_is_3501() {
    for command in [
        "subscribe",
        "unsubscribe",
        "publish",
        "presence",
        "presence_stats",
        "history",
        "sub_refresh",
    ] {
        check(&format!("ada > {{\"id\":2,\"{command}\":{{}}}}\n ada x 3501 bad request"));
    }
}

#[test]
fn a_frame_that_does_not_decode_is_3501_after_its_good_commands() {
    let mut world = World::new(options(|_| {}));
    world.play(CONNECTED);
    world.play(
        r#"
        ada > {"id":2,"unsubscribe":{"channel":"a"}}\n{"id":
        ada < {"id":2,"unsubscribe":{}}
        ada x 3501 bad request
    "#,
    );
    for frame in [&b""[..], b"\n", b"[]", b"{\"id\":-1}", b"\xff\xfe"] {
        let mut world = World::new(options(|_| {}));
        world.play(CONNECTED);
        world.say_bytes("ada", frame);
        world.play("ada x 3501 bad request");
    }
}

#[test]
fn broken_protobuf_is_3501() {
    for frame in [&b""[..], &[0x80], &[5, 1], &[1, 0xff], &[0xff; 11]] {
        let mut world = World::new(options(|_| {}));
        world.play(&CONNECTED.replace("opens", "opens protobuf"));
        world.say_bytes("ada", frame);
        world.play("ada x 3501 bad request");
    }
}

#[test]
fn commands_of_one_frame_are_answered_in_order() {
    check(
        r#"
        ada > {"id":9,"subscribe":{"channel":"a"}}\n{"id":4,"publish":{"channel":"a","data":1}}\n{"id":9,"unsubscribe":{"channel":"a"}}
        ada < {"id":9,"subscribe":{}}
        ada < {"push":{"channel":"a","pub":{"data":1,"info":{"user":"","client":"ada"}}}}
        ada < {"id":4,"publish":{}}
        ada < {"id":9,"unsubscribe":{}}
    "#,
    );
}

#[test]
fn after_a_disconnect_nothing_more_is_heard_or_done() {
    let mut world = World::new(options(|_| {}));
    world.play(CONNECTED);
    world.play(
        r#"
        ada > {"id":2,"subscribe":{"channel":"a"}}
        ada < {"id":2,"subscribe":{}}
        ada > {"send":{}}\n{"id":3,"publish":{"channel":"a","data":1}}
        ada x 3508 not available
        api > a 2
        ada > {"id":4,"rpc":{}}
        wait 60s
        ada closes
    "#,
    );
    assert_eq!(world.node.counts(), fanwire_node::Counts::default());
}

#[test]
fn commands_without_their_feature_answer_108() {
    for command in ["presence", "presence_stats", "history"] {
        check(&format!(
            r#"ada > {{"id":2,"{command}":{{"channel":"a"}}}}
               ada < {{"id":2,"error":{{"code":108,"message":"not available"}}}}
               ada > {{"id":3,"{command}":{{"channel":"unknown:a"}}}}
               ada < {{"id":3,"error":{{"code":102,"message":"unknown channel"}}}}"#
        ));
    }
    check(
        r#"
        ada > {"id":2,"rpc":{"method":"ping"}}
        ada < {"id":2,"error":{"code":108,"message":"not available"}}
        ada > {"id":3,"subscribe":{"channel":"a","type":4}}
        ada < {"id":3,"error":{"code":103,"message":"permission denied"}}
        ada > {"id":4,"publish":{"channel":"a","data":1,"type":1}}
        ada < {"id":4,"error":{"code":103,"message":"permission denied"}}
    "#,
    );
}

#[test]
fn the_built_in_ping_answers_and_other_methods_are_104() {
    let options = options(|options| options.rpc.ping = true);
    play_in_both(
        &options,
        &format!(
            r#"{CONNECTED}
        ada > {{"id":2,"rpc":{{"method":"ping","data":{{}}}}}}
        ada < {{"id":2,"rpc":{{}}}}
        ada > {{"id":3,"rpc":{{"method":"other"}}}}
        ada < {{"id":3,"error":{{"code":104,"message":"method not found"}}}}
    "#
        ),
    );
}

#[test]
fn the_first_ping_comes_between_half_an_interval_and_a_whole_one() {
    check(
        r#"
        ada sleeps
        wait 12400ms
        ada receives nothing
        ada awaits 12700ms
        ada < {}
    "#,
    );
}

#[test]
fn pings_come_every_interval_as_long_as_they_are_answered() {
    let mut world = World::new(options(|_| {}));
    world.play(CONNECTED);
    world.play("wait 600s");
    let pings = world.shard_of("ada").hub.counters().pings.value();
    assert!((23..=24).contains(&pings), "{pings}");
}

#[test]
fn a_ping_without_a_pong_ends_in_3012_after_the_timeout() {
    check(
        r#"
        ada sleeps
        ada awaits 25100ms
        ada < {}
        wait 7900ms
        ada receives nothing
        ada awaits 200ms
        ada x 3012 no pong
    "#,
    );
}

#[test]
fn a_pong_nobody_asked_for_is_3501() {
    check(
        r#"
        ada > {}
        ada x 3501 bad request
    "#,
    );
    check(
        r#"
        ada sleeps
        ada awaits 25100ms
        ada < {}
        ada > {}
        ada > {}
        ada x 3501 bad request
    "#,
    );
}

#[test]
fn native_pings_replace_those_of_the_protocol_when_asked_for() {
    let mut world = World::new(options(|_| {}));
    world.play(
        r#"
        ada opens frame_ping
        ada > {"id":1,"connect":{}}
        ada < {"id":1,"connect":{"client":"ada","version":"test"}}
        wait 300s
        ada sleeps
        ada awaits 25100ms
        ada < ping frame
        wait 7900ms
        ada receives nothing
        ada awaits 200ms
        ada x 3012 no pong
    "#,
    );
}

#[test]
fn with_native_pings_a_pong_of_the_protocol_is_3501() {
    World::new(options(|_| {})).play(
        r#"
        ada opens frame_ping
        ada > {"id":1,"connect":{}}
        ada < {"id":1,"connect":{"client":"ada","version":"test"}}
        ada sleeps
        ada awaits 25100ms
        ada < ping frame
        ada > {}
        ada x 3501 bad request
    "#,
    );
}

#[test]
fn a_native_pong_answers_no_ping_of_the_protocol() {
    let mut world = World::new(options(|_| {}));
    world.play(CONNECTED);
    world.play("ada sleeps\n ada awaits 25100ms\n ada < {}");
    world.pong_frame("ada");
    world.play("ada awaits 8100ms\n ada x 3012 no pong");
}

#[test]
fn a_connection_that_is_gone_has_no_deadline() {
    let mut world = World::new(options(|_| {}));
    world.play(CONNECTED);
    world.close("ada");
    assert_eq!(world.shard_of("ada").hub.next_deadline(), None);
}

#[test]
fn a_connection_that_never_connects_is_stale() {
    play_in_both(
        &options(|_| {}),
        r#"
        ada opens
        wait 9900ms
        wait 200ms
        ada x 3502 stale
    "#,
    );
}

#[test]
fn a_connected_connection_is_never_stale() {
    check("wait 60s");
}

#[test]
fn an_index_used_again_belongs_to_the_new_connection_only() {
    let mut world = World::with_shards(options(|_| {}), 1);
    world.play(CONNECTED);
    let old = world.key("ada");
    let now = world.now;
    let new = fanwire_node::ConnectionKey { generation: old.generation + 1, ..old };
    let hub = &mut world.shards[0].hub;
    hub.open(new, crate::script::hello(""), now);
    hub.close(old, now);
    let mut record = crate::world::Record::default();
    hub.receive(old, b"{\"id\":1,\"connect\":{}}", now, &mut record);
    assert!(record.effects.is_empty());
    hub.receive(new, b"{\"id\":1,\"connect\":{}}", now, &mut record);
    assert_eq!(record.effects.len(), 1);
    assert_eq!(world.node.counts().connections, 1);
}
