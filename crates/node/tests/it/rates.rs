//! Rates of one connection: commands, publishes, subscribes; 111 beyond them, and 3509 for who does not stop.
//! In: dialogues → out: which command is refused when, and that time brings it back.
//! Uses: `world`, `script`. Never: the arithmetic of buckets (tested in its module).
//! Changed here: tests of what clients see of rates. What rates cost is tested in `memory.rs`.

use std::time::Duration;

use fanwire_node::Options;
use fanwire_node::options::{Namespace, Rate};

use crate::script::play_in_both;
use crate::world::options;

fn check(options: &Options, rest: &str) {
    let connected = r#"
        ada opens
        ada > {"id":1,"connect":{}}
        ada < {"id":1,"connect":{"client":"ada","version":"test","ping":25,"pong":true}}
    "#;
    play_in_both(options, &format!("{connected}{rest}"));
}

fn rate(limit: u32) -> Rate {
    Rate { limit, interval: Duration::from_secs(2) }
}

#[test]
fn commands_beyond_the_rate_are_refused_until_time_has_passed_but_never_an_unsubscribe() {
    check(
        &options(|options| options.client.command_rate = rate(2)),
        r#"
        ada > {"id":2,"subscribe":{"channel":"a"}}
        ada < {"id":2,"subscribe":{}}
        ada > {"id":3,"publish":{"channel":"b","data":1}}
        ada < {"id":3,"publish":{}}
        ada > {"id":4,"publish":{"channel":"b","data":1}}
        ada < {"id":4,"error":{"code":111,"message":"too many requests","temporary":true}}
        ada > {"id":5,"rpc":{"method":"x"}}
        ada < {"id":5,"error":{"code":111,"message":"too many requests","temporary":true}}
        ada > {"id":6,"unsubscribe":{"channel":"a"}}
        ada < {"id":6,"unsubscribe":{}}
        wait 999ms
        ada > {"id":7,"subscribe":{"channel":"a"}}
        ada < {"id":7,"error":{"code":111,"message":"too many requests","temporary":true}}
        wait 1ms
        ada > {"id":8,"subscribe":{"channel":"a"}}\n{"id":9,"subscribe":{"channel":"b"}}
        ada < {"id":8,"subscribe":{}}
        ada < {"id":9,"error":{"code":111,"message":"too many requests","temporary":true}}
    "#,
    );
}

#[test]
fn publishes_and_subscribes_have_rates_by_namespace_and_connection() {
    let limited = options(|options| {
        let chat = Namespace {
            name: "chat".into(),
            publish_rate: rate(1),
            subscribe_rate: rate(1),
            ..options.channel.without_namespace.clone()
        };
        options.channel.namespaces = vec![chat];
    });
    check(
        &limited,
        r#"
        ada > {"id":2,"publish":{"channel":"chat:a","data":1}}
        ada < {"id":2,"publish":{}}
        ada > {"id":3,"publish":{"channel":"chat:b","data":1}}
        ada < {"id":3,"error":{"code":111,"message":"too many requests","temporary":true}}
        ada > {"id":4,"subscribe":{"channel":"chat:a"}}
        ada < {"id":4,"subscribe":{}}
        ada > {"id":5,"subscribe":{"channel":"chat:b"}}
        ada < {"id":5,"error":{"code":111,"message":"too many requests","temporary":true}}
        ada > {"id":6,"publish":{"channel":"a","data":1}}\n{"id":7,"publish":{"channel":"a","data":1}}
        ada < {"id":6,"publish":{}}
        ada < {"id":7,"publish":{}}
        bob opens
        bob > {"id":1,"connect":{}}\n{"id":2,"publish":{"channel":"chat:b","data":1}}
        bob < {"id":1,"connect":{"client":"bob","version":"test","ping":25,"pong":true}}
        bob < {"id":2,"publish":{}}
        wait 2s
        ada > {"id":8,"publish":{"channel":"chat:b","data":1}}\n{"id":9,"subscribe":{"channel":"chat:b"}}
        ada < {"id":8,"publish":{}}
        ada < {"id":9,"subscribe":{}}
    "#,
    );
}

#[test]
fn who_goes_on_after_refusals_is_disconnected_with_3509() {
    check(
        &options(|options| {
            options.client.command_rate = rate(1);
            options.client.refusal_rate = rate(2);
        }),
        r#"
        ada > {"id":2,"publish":{"channel":"a","data":1}}
        ada < {"id":2,"publish":{}}
        ada > {"id":3,"publish":{"channel":"a","data":1}}
        ada < {"id":3,"error":{"code":111,"message":"too many requests","temporary":true}}
        ada > {"id":4,"publish":{"channel":"a","data":1}}
        ada < {"id":4,"error":{"code":111,"message":"too many requests","temporary":true}}
        ada > {"id":5,"publish":{"channel":"a","data":1}}
        ada x 3509 too many errors
    "#,
    );
}

#[test]
fn a_new_connection_begins_with_full_buckets() {
    check(
        &options(|options| options.client.command_rate = rate(1)),
        r#"
        ada > {"id":2,"publish":{"channel":"a","data":1}}
        ada < {"id":2,"publish":{}}
        ada closes
        eve opens
        eve > {"id":1,"connect":{}}\n{"id":2,"publish":{"channel":"a","data":1}}
        eve < {"id":1,"connect":{"client":"eve","version":"test","ping":25,"pong":true}}
        eve < {"id":2,"publish":{}}
    "#,
    );
}
