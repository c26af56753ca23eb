//! The commands `presence` and `presence_stats` (protocol §17): who is there from when until when, permissions, codes.
//! In: dialogues → out: each rule, seen by a peer or by the server API.
//! Uses: `world`, `script`. Never: random lives (see the conformance suite of presence).
//! Changed here: tests of presence.

use std::sync::Arc;
use std::time::{Duration, Instant};

use fanwire_broker::{Answer, BrokerError, Presence, PresencePage, PresenceStats};
use fanwire_node::options::Namespace;
use fanwire_node::{Node, NodeParts, Options};
use fanwire_protocol::{ClientInfo, ErrorCode};

use crate::script::{hello, play_in_both};
use crate::tokens::{connect, guarded, token};
use crate::world::{UNIX, World, options};

/// Channels with presence that everybody may see.
pub(crate) fn with_presence(change: impl FnOnce(&mut Namespace)) -> Options {
    options(|options| {
        let open = &mut options.channel.without_namespace;
        open.presence = true;
        open.allow_presence_for_client = true;
        open.allow_presence_for_anonymous = true;
        change(open);
    })
}

const ADA: &str = r#"
    ada opens
    ada > {"id":1,"connect":{}}
    ada < {"id":1,"connect":{"client":"ada","version":"test","ping":25,"pong":true}}
"#;

fn check(options: &Options, rest: &str) {
    play_in_both(options, &format!("{ADA}{rest}"));
}

fn present(world: &World, channel: &str) -> (usize, usize) {
    let stats =
        world.node.channels().presence_stats(channel, world.now).wait().expect("there is presence");
    let members =
        world.node.channels().presence(channel, world.now).wait().expect("there is presence");
    assert_eq!(members.len(), stats.clients);
    (stats.clients, stats.users)
}

#[test]
fn a_client_is_there_as_soon_as_it_subscribed_and_until_it_unsubscribed() {
    check(
        &with_presence(|_| {}),
        r#"
        ada > {"id":2,"presence":{"channel":"room"}}
        ada < {"id":2,"presence":{"presence":{}}}
        ada > {"id":3,"presence_stats":{"channel":"room"}}
        ada < {"id":3,"presence_stats":{"num_clients":0,"num_users":0}}
        ada > {"id":4,"subscribe":{"channel":"room"}}
        ada < {"id":4,"subscribe":{}}
        ada > {"id":5,"presence":{"channel":"room"}}
        ada < {"id":5,"presence":{"presence":{"ada":{"user":"","client":"ada"}}}}
        ada > {"id":6,"presence_stats":{"channel":"room"}}
        ada < {"id":6,"presence_stats":{"num_clients":1,"num_users":1}}
        ada > {"id":7,"presence_stats":{"channel":"other"}}
        ada < {"id":7,"presence_stats":{"num_clients":0,"num_users":0}}
        ada > {"id":8,"unsubscribe":{"channel":"room"}}\n{"id":9,"presence":{"channel":"room"}}
        ada < {"id":8,"unsubscribe":{}}
        ada < {"id":9,"presence":{"presence":{}}}
    "#,
    );
}

#[test]
fn clients_of_both_shards_and_of_one_user_are_counted() {
    let mut world = World::new(with_presence(|_| {}));
    for (name, user) in [("ada", "json as 42"), ("bob", "protobuf as 43"), ("eve", "json as 42")] {
        world.connected(name, hello(user));
        world.play(&format!(
            r#"{name} > {{"id":2,"subscribe":{{"channel":"room"}}}}
               {name} < {{"id":2,"subscribe":{{}}}}"#
        ));
    }
    assert_eq!(present(&world, "room"), (3, 2));
    world.close("bob");
    assert_eq!(present(&world, "room"), (2, 1), "a socket that is gone removes at once");
    let target = fanwire_node::ConnectionSelector {
        user: "42".into(),
        ..fanwire_node::ConnectionSelector::default()
    };
    world.node.connections().unsubscribe(target, Some("room")).wait().expect("a possible channel");
    world.settle();
    assert_eq!(present(&world, "room"), (0, 0), "so does the server API");
}

#[test]
fn subscriptions_of_the_server_are_present_under_the_name_of_the_connection() {
    play_in_both(
        &with_presence(|_| {}),
        r#"
        ada opens
        ada > {"id":1,"connect":{"subs":{"room":{},"hall":{}}}}
        ada < {"id":1,"connect":{"client":"ada","version":"test","subs":{"hall":{},"room":{}},"ping":25,"pong":true}}
        ada > {"id":2,"presence":{"channel":"room"}}
        ada < {"id":2,"presence":{"presence":{"ada":{"user":"","client":"ada"}}}}
        ada > {"id":3,"presence_stats":{"channel":"hall"}}
        ada < {"id":3,"presence_stats":{"num_clients":1,"num_users":1}}
    "#,
    );
}

#[test]
fn members_carry_what_their_tokens_say() {
    let options = guarded(|options| {
        options.channel.without_namespace.presence = true;
        options.channel.without_namespace.allow_presence_for_subscriber = true;
    });
    let claims = r#"{"sub":"42","channel":"room","info":{"seat":7}}"#;
    let script = format!(
        r#"
        ada opens
        ada > {}
        ada < {{"id":1,"connect":{{"client":"ada","version":"test","ping":25,"pong":true}}}}
        ada > {{"id":2,"subscribe":{{"channel":"room","token":"{}"}}}}
        ada < {{"id":2,"subscribe":{{}}}}
        ada > {{"id":3,"presence":{{"channel":"room"}}}}
        ada < {{"id":3,"presence":{{"presence":{{"ada":{{"user":"42","client":"ada","conn_info":{{"name":"Ada"}},"chan_info":{{"seat":7}}}}}}}}}}
    "#,
        connect(r#"{"sub":"42","info":{"name":"Ada"}}"#),
        token(claims),
    );
    play_in_both(&options, &script);
}

#[test]
fn a_token_may_say_otherwise_than_its_namespace() {
    let overridden = |value: bool| {
        format!(r#"{{"sub":"42","channel":"room","override":{{"presence":{{"value":{value}}}}}}}"#)
    };
    for (keeps, says, expected) in [(true, false, 0), (true, true, 1), (false, true, 0)] {
        let options = guarded(|options| options.channel.without_namespace.presence = keeps);
        let mut world = World::new(options);
        world.open("ada", hello(""));
        world.say("ada", &connect(r#"{"sub":"42"}"#));
        let claims = token(&overridden(says));
        world.say(
            "ada",
            &format!(r#"{{"id":2,"subscribe":{{"channel":"room","token":"{claims}"}}}}"#),
        );
        let stats = world.node.channels().presence_stats("room", world.now).wait();
        if keeps {
            assert_eq!(stats.map(|stats| stats.clients), Ok(expected));
        } else {
            assert_eq!(stats, Err(ErrorCode::NOT_AVAILABLE), "seen only where the namespace says");
        }
    }
}

#[test]
fn presence_is_renewed_as_long_as_the_client_is_there() {
    let mut world = World::new(with_presence(|_| {}));
    for channels in ["room", "hall"] {
        world.connected(channels, hello("as 42"));
        world.play(&format!(
            r#"{channels} > {{"id":2,"subscribe":{{"channel":"room"}}}}
               {channels} < {{"id":2,"subscribe":{{}}}}"#
        ));
    }
    for _ in 0..50 {
        world.wait(Duration::from_secs(11));
        assert_eq!(present(&world, "room"), (2, 1));
    }
    world.say("hall", r#"{"id":3,"unsubscribe":{"channel":"room"}}"#);
    assert!(world.heard("hall").is_some());
    world.wait(Duration::from_secs(300));
    assert_eq!(present(&world, "room"), (1, 1));
}

#[test]
fn what_is_not_renewed_ends_with_its_time() {
    let world = {
        let mut world = World::new(with_presence(|_| {}));
        world.connected("ada", hello(""));
        world.say("ada", r#"{"id":2,"subscribe":{"channel":"room"}}"#);
        world
    };
    let later = |seconds| {
        let now = world.now + Duration::from_secs(seconds);
        world.node.channels().presence_stats("room", now).wait().expect("there is presence").clients
    };
    assert_eq!([later(0), later(59), later(60)], [1, 1, 0]);
}

fn refused(options: &Options, channel: &str, code: u32, message: &str) {
    for command in ["presence", "presence_stats"] {
        check(
            options,
            &format!(
                r#"
                ada > {{"id":2,"{command}":{{"channel":"{channel}"}}}}
                ada < {{"id":2,"error":{{"code":{code},"message":"{message}"}}}}
            "#
            ),
        );
    }
}

#[test]
fn presence_is_refused_with_its_code() {
    let closed = with_presence(|open| open.allow_presence_for_client = false);
    refused(&closed, "room", 103, "permission denied");
    let for_users = with_presence(|open| open.allow_presence_for_anonymous = false);
    refused(&for_users, "room", 103, "permission denied");
    refused(&options(|_| {}), "room", 108, "not available");
    refused(&options(|options| options.client.insecure = true), "room", 108, "not available");
    refused(&closed, "x:room", 102, "unknown channel");
    refused(&closed, "nä", 107, "bad request");
    for command in ["presence", "presence_stats"] {
        let unnamed = format!("ada > {{\"id\":2,\"{command}\":{{}}}}\n ada x 3501 bad request");
        check(&closed, &unnamed);
    }
    let world = World::new(options(|_| {}));
    let stats = |channel| world.node.channels().presence_stats(channel, world.now).wait();
    assert_eq!(stats("room"), Err(ErrorCode::NOT_AVAILABLE), "the API needs it, too");
    assert_eq!(stats("x:room"), Err(ErrorCode::UNKNOWN_CHANNEL));
    assert_eq!(
        World::new(closed).node.channels().presence_stats("room", world.now).wait(),
        Ok(PresenceStats::default())
    );
}

#[test]
fn presence_for_subscribers_is_for_those_who_are_subscribed() {
    let subscribers = with_presence(|open| {
        open.allow_presence_for_client = false;
        open.allow_presence_for_subscriber = true;
    });
    check(
        &subscribers,
        r#"
        ada > {"id":2,"presence_stats":{"channel":"room"}}
        ada < {"id":2,"error":{"code":103,"message":"permission denied"}}
        ada > {"id":3,"subscribe":{"channel":"room"}}
        ada < {"id":3,"subscribe":{}}
        ada > {"id":4,"presence_stats":{"channel":"room"}}
        ada < {"id":4,"presence_stats":{"num_clients":1,"num_users":1}}
    "#,
    );
}

/// A store that is away.
struct Unreachable;

impl Presence for Unreachable {
    fn add(&self, _: &str, _: ClientInfo, _: Duration, _: Instant) -> Answer<()> {
        Answer::now(Err(BrokerError::Unavailable))
    }

    fn remove(&self, _: &str, _: &str) -> Answer<()> {
        Answer::now(Err(BrokerError::Unavailable))
    }

    fn members(&self, _: &str, _: Instant) -> Answer<Vec<Arc<ClientInfo>>> {
        Answer::now(Err(BrokerError::Unavailable))
    }

    fn page(&self, _: &str, _: u64, _: usize, _: Instant) -> Answer<PresencePage> {
        Answer::now(Err(BrokerError::Unavailable))
    }

    fn stats(&self, _: &str, _: Instant) -> Answer<PresenceStats> {
        Answer::now(Err(BrokerError::Unavailable))
    }

    fn sweep(&self, _: Instant) {}
}

#[test]
fn a_store_that_fails_is_error_100_and_leaves_no_subscription() {
    let now = Instant::now();
    let presence: Option<Arc<dyn Presence>> = Some(Arc::new(Unreachable));
    let parts = NodeParts { presence, ..NodeParts::default() };
    let node = Node::with_parts(with_presence(|_| {}), now, UNIX * 1000, parts);
    let mut world = World::around(node.expect("the options are good"), now, 1);
    world.connected("ada", hello(""));
    world.play(
        r#"
        ada > {"id":2,"subscribe":{"channel":"room"}}
        ada < {"id":2,"error":{"code":100,"message":"internal server error","temporary":true}}
        ada > {"id":3,"presence":{"channel":"room"}}
        ada < {"id":3,"error":{"code":100,"message":"internal server error","temporary":true}}
        api > harness 1
        bob opens
        bob > {"id":1,"connect":{"subs":{"room":{}}}}
        bob < {"id":1,"error":{"code":100,"message":"internal server error","temporary":true}}
    "#,
    );
    let counts = world.node.counts();
    assert_eq!((counts.subscriptions, counts.connections), (0, 1));
}
