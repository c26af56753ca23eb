//! Rates of one connection: commands, publishes, subscribes; rates of tenants; 111 beyond them, and 3509 for who does not stop.
//! In: dialogues → out: which command is refused when, and that time brings it back.
//! Uses: `world`, `script`. Never: the arithmetic of buckets (tested in its module).
//! Changed here: tests of what clients see of rates. What rates cost is tested in `memory.rs`.

use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use fanwire_node::Options;
use fanwire_node::options::{
    MapMode, Namespace, NamespaceLimits, Rate, SubscriptionType, TenantRate,
};

use crate::script::{hello, play_in_both, play_in_both_without_moves};
use crate::world::{World, options};

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

fn tenant_rate(limit: u32, dry_run: bool) -> TenantRate {
    TenantRate { limit, interval: Duration::from_secs(2), dry_run }
}

/// A namespace with a limit for each user and one for all of them.
fn limited(users: TenantRate, all: TenantRate) -> Options {
    options(|options| {
        let chat = Namespace {
            name: "chat".into(),
            limits: NamespaceLimits { user_publish: users, publish: all },
            ..options.channel.without_namespace.clone()
        };
        options.channel.namespaces = vec![chat];
    })
}

#[test]
fn connections_of_a_user_share_a_rate_and_all_users_another() {
    let refuse = |limit| tenant_rate(limit, false);
    play_in_both_without_moves(
        &limited(refuse(1), refuse(3)),
        r#"
        ada opens as 1
        bob opens as 1
        eve opens as 2
        ada > {"id":1,"connect":{}}\n{"id":2,"publish":{"channel":"chat:a","data":1}}
        ada < {"id":1,"connect":{"client":"ada","version":"test","ping":25,"pong":true}}
        ada < {"id":2,"publish":{}}
        bob > {"id":1,"connect":{}}\n{"id":2,"publish":{"channel":"chat:b","data":1}}
        bob < {"id":1,"connect":{"client":"bob","version":"test","ping":25,"pong":true}}
        bob < {"id":2,"error":{"code":111,"message":"too many requests","temporary":true}}
        bob > {"id":3,"publish":{"channel":"a","data":1}}
        bob < {"id":3,"publish":{}}
        eve > {"id":1,"connect":{}}\n{"id":2,"publish":{"channel":"chat:b","data":1}}
        eve < {"id":1,"connect":{"client":"eve","version":"test","ping":25,"pong":true}}
        eve < {"id":2,"publish":{}}
        joe opens
        joe > {"id":1,"connect":{}}
        joe < {"id":1,"connect":{"client":"joe","version":"test","ping":25,"pong":true}}
        joe > {"id":2,"publish":{"channel":"chat:b","data":1}}\n{"id":3,"publish":{"channel":"chat:b","data":1}}
        joe < {"id":2,"publish":{}}
        joe < {"id":3,"error":{"code":111,"message":"too many requests","temporary":true}}
        wait 2s
        bob > {"id":4,"publish":{"channel":"chat:b","data":1}}
        bob < {"id":4,"publish":{}}
    "#,
    );
}

#[test]
fn a_dry_run_refuses_nothing_and_counts() {
    let counted = tenant_rate(1, true);
    let mut world = World::new(limited(counted, counted));
    world.connected("ada", hello("as 1"));
    for _ in 0..3 {
        world.say("ada", r#"{"id":2,"publish":{"channel":"chat:a","data":1}}"#);
        assert_eq!(world.heard("ada").as_deref(), Some(r#"{"id":2,"publish":{}}"#));
    }
    let exceeded =
        world.node.channels().usage().exceeded().map(|(limit, counts)| (limit, counts.values()));
    let expected = [("user_publish", [0, 2]), ("publish", [0, 2]), ("address_connections", [0, 0])];
    assert_eq!(exceeded, expected);
    let used = world.node.channels().usage().by_namespace();
    let (name, chat) = &used[1];
    let publications = chat.publications.load(Relaxed);
    let bytes = chat.publication_bytes.load(Relaxed);
    assert_eq!((name.as_str(), publications, bytes), ("chat", 3, 3));
}

#[test]
fn changes_of_maps_count_as_publishes() {
    let refuse = tenant_rate(1, false);
    let mut options = limited(refuse, TenantRate::default());
    let board = &mut options.channel.namespaces[0];
    board.subscription_type = SubscriptionType::Map;
    board.map.mode = MapMode::Ephemeral;
    board.map.key_ttl = Duration::from_secs(60);
    board.map.allow_publish_for_client = true;
    let mut world = World::new(options);
    world.connected("ada", hello("as 1"));
    world.say("ada", r#"{"id":2,"publish":{"channel":"chat:a","key":"k","data":1,"type":1}}"#);
    assert_eq!(world.heard("ada").as_deref(), Some(r#"{"id":2,"publish":{}}"#));
    world.say("ada", r#"{"id":3,"publish":{"channel":"chat:a","key":"k","data":1,"type":1}}"#);
    let refused = r#"{"id":3,"error":{"code":111,"message":"too many requests","temporary":true}}"#;
    assert_eq!(world.heard("ada").as_deref(), Some(refused));
}
