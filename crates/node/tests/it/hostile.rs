//! Bad input: whatever bytes a peer sends, nothing panics, and the other connections notice nothing.
//! In: random bytes, broken commands and commands out of place, in every phase → out: one peer that receives what it should.
//! Uses: `world`; proptest prints what failed. Never: judges the answers to nonsense (see `life.rs` for those).
//! Changed here: what a hostile peer may say.

use fanwire_node::Counts;
use fanwire_node::auth::{TrackClaim, sign_track};
use fanwire_node::options::{MapMode, Namespace, SubscriptionType};
use fanwire_protocol::Encoding;
use proptest::prelude::*;

use crate::maps::maps;
use crate::script::hello;
use crate::tokens::token;
use crate::world::{UNIX, World, options, protobuf};

/// Commands that are well formed, with values that often are not.
fn command() -> impl Strategy<Value = String> {
    let channel = prop_oneof![
        Just("a".to_owned()),
        Just("$a".to_owned()),
        Just("x:a".to_owned()),
        Just("a#1,2".to_owned()),
        Just(String::new()),
        "\\PC{0,300}",
    ];
    let names = prop::sample::select(vec![
        "connect",
        "subscribe",
        "unsubscribe",
        "publish",
        "presence",
        "presence_stats",
        "history",
        "rpc",
        "send",
        "refresh",
        "sub_refresh",
        "ping",
        "other",
    ]);
    let bodies = (channel, 0..9u8, any::<i32>(), any::<u64>());
    (0..3u32, names, bodies).prop_map(|(id, name, (channel, kind, number, offset))| {
        let channel = serde_json::to_string(&channel).expect("a string");
        let signed = token(&format!(r#"{{"sub":"","channel":{channel},"exp":{offset}}}"#));
        let entry = token(&format!(r#"{{"sub":"","channels":[{channel}],"expire_at":{UNIX}}}"#));
        let body = match kind {
            0 => "{}".to_owned(),
            1 => format!(r#"{{"channel":{channel}}}"#),
            2 => format!(r#"{{"channel":{channel},"data":{number},"type":{number}}}"#),
            3 => format!(r#"{{"channel":{channel},"token":"{signed}"}}"#),
            4 => format!(r#"{{"token":"{entry}"}}"#),
            5 => format!(
                r#"{{"channel":{channel},"recover":true,"offset":{offset},"flag":{number}}}"#
            ),
            6 => format!(r#"{{"subs":{{{channel}:{{}},"b":{{"offset":{offset}}}}}}}"#),
            7 => format!(r#"{{"channel":{channel},"token":"a.b.c","data":[{number}]}}"#),
            _ => "null".to_owned(),
        };
        format!(r#"{{"id":{id},"{name}":{body}}}"#)
    })
}

/// Commands to maps and to shared polls, in any order.
fn keyed_command() -> impl Strategy<Value = String> {
    let channels = prop::sample::select(vec!["kept:a", "short:a", "short:b", "polled:a", "a"]);
    let names = prop::sample::select(vec![
        "subscribe",
        "subscribe",
        "unsubscribe",
        "publish",
        "sub_refresh",
    ]);
    let cursors = prop::sample::select(vec!["", "key 1", "made up"]);
    let place = (cursors, -1..4_i32, 0..5_u64, any::<bool>());
    (1..3u32, names, channels, (0..6_i32, any::<i32>(), place)).prop_map(
        |(id, name, channel, (kind, limit, (cursor, phase, offset, recovers)))| {
            let claim = TrackClaim { user: "", channel, keys: &["k"] };
            let signature = sign_track(&SECRET.into(), claim, UNIX, 0).expect("a secret, and no NUL");
            let track = format!(r#"[{{"signature":"{signature}","items":[{{"key":"k","version":{offset}}}]}}]"#);
            format!(
                r#"{{"id":{id},"{name}":{{"channel":"{channel}","type":{kind},"phase":{phase},"cursor":"{cursor}",
                "limit":{limit},"offset":{offset},"recover":{recovers},"key":"{cursor}","track":{track},"untrack":["k"]}}}}"#
            )
            .replace('\n', "")
        },
    )
}

fn commands(encoding: Encoding) -> impl Strategy<Value = Vec<u8>> {
    prop::collection::vec(prop_oneof![command(), keyed_command()], 1..4).prop_map(move |commands| {
        let text = commands.join("\n");
        if encoding == Encoding::Json { text.into_bytes() } else { protobuf(&text) }
    })
}

/// Commands, commands with one wrong byte, noise, and the two frames that lead further.
fn frame(encoding: Encoding) -> impl Strategy<Value = Vec<u8>> {
    let anywhere = any::<prop::sample::Index>();
    let broken = (commands(encoding), anywhere, any::<u8>()).prop_map(|(mut frame, at, byte)| {
        let at = at.index(frame.len());
        frame[at] = byte;
        frame
    });
    let connect = if encoding == Encoding::Json {
        br#"{"id":1,"connect":{}}"#.to_vec()
    } else {
        protobuf(r#"{"id":1,"connect":{}}"#)
    };
    prop_oneof![
        4 => commands(encoding),
        2 => broken,
        1 => prop::collection::vec(any::<u8>(), 0..40),
        2 => Just(connect),
        1 => Just(fanwire_protocol::ping(encoding).to_vec()),
    ]
}

fn check(encoding: &str, frames: &[Vec<u8>]) {
    let options = options(|options| {
        options.client.token.hmac_secret_key = SECRET.into();
        options.shared_poll.hmac_secret_key = SECRET.into();
        let polled = SubscriptionType::SharedPoll;
        options.channel.namespaces = vec![
            open_namespace("kept", MapMode::Persistent),
            open_namespace("short", MapMode::Ephemeral),
            Namespace { subscription_type: polled, ..open_namespace("polled", MapMode::Unset) },
        ];
    });
    let mut world = World::with_shards(options, 1);
    for channel in ["kept:a", "short:a"] {
        (0..3).for_each(|number| world.set_key(channel, &format!("key {number}"), "1"));
    }
    world.connected("ada", hello("json as ada"));
    world.play(
        r#"
        ada > {"id":2,"subscribe":{"channel":"quiet"}}
        ada < {"id":2,"subscribe":{}}
    "#,
    );
    world.open("mallory", hello(encoding));
    for frame in frames {
        world.say_bytes("mallory", frame);
        while world.heard("mallory").is_some() {}
    }
    world.close("mallory");
    world.play(
        r#"
        api > quiet 1
        ada < {"push":{"channel":"quiet","pub":{"data":1}}}
    "#,
    );
    let history_bytes = world.node.counts().history_bytes;
    let counts = Counts { connections: 1, users: 1, channels: 1, subscriptions: 1, history_bytes };
    assert_eq!(world.node.counts(), counts);
}

/// A namespace for everyone, whose pages have one entry.
fn open_namespace(name: &str, mode: MapMode) -> Namespace {
    let map = maps(mode, |options| {
        let namespace = &mut options.channel.without_namespace;
        namespace.map.default_page_size = 1;
        namespace.map.allow_publish_for_client = true;
        namespace.map.allow_publish_for_anonymous = true;
    });
    Namespace { name: name.into(), ..map.channel.without_namespace }
}

const SECRET: &str = "secret";

proptest! {
    #[test]
    fn no_json_of_a_peer_reaches_a_panic(
        frames in prop::collection::vec(frame(Encoding::Json), 1..12),
    ) {
        check("json", &frames);
    }

    #[test]
    fn no_protobuf_of_a_peer_reaches_a_panic(
        frames in prop::collection::vec(frame(Encoding::Protobuf), 1..12),
    ) {
        check("protobuf", &frames);
    }
}
