//! Large answers, which a hub hands out instead of making them in its turn.
//! In: a channel with hundreds of members or publications → out: what clients receive before and after the encode_job is done.
//! Uses: `world`, which keeps encode_jobs until a test has them done. Never: threads.
//! Changed here: promises about large answers. What is large is tested in `src/encode_job/tests.rs`.

use fanwire_broker::PublishOptions;
use fanwire_node::protocol::Disconnect;
use fanwire_node::{ConnectionSelector, Options, ServerSubscription};
use fanwire_protocol::{Publication, StreamPosition};
use serde_json::Value;

use crate::history::with_history;
use crate::script::hello;
use crate::world::World;

/// Everybody may ask for everything.
fn open() -> Options {
    with_history(|open| {
        open.presence = true;
        open.allow_presence_for_client = true;
        open.allow_presence_for_anonymous = true;
        open.history_size = MANY;
    })
}

/// Ada and bob receive `news`, ada on the shard of half a crowd, which is in `crowd`, where as much was published.
fn world(encoding: &str) -> World {
    let mut world = World::new(open());
    for name in ["ada", "bob"] {
        world.connected(name, hello(encoding));
        world.say(name, r#"{"id":2,"subscribe":{"channel":"news"}}"#);
        assert!(world.heard(name).is_some_and(|reply| reply.contains(r#""subscribe":{"#)));
    }
    for number in 0..MANY {
        let name = number.to_string();
        world.connected(&name, hello(encoding));
        world.say(&name, r#"{"id":2,"subscribe":{"channel":"population"}}"#);
        assert!(world.heard(&name).is_some());
        publish(&mut world, "quiet", LONG);
    }
    world
}

fn publish(world: &mut World, channel: &str, data: &'static str) {
    let publication = Publication { data: data.into(), ..Publication::default() };
    let published =
        world.node.channels().publish(channel, publication, PublishOptions::default(), world.now);
    published.wait().expect("the memory broker never fails");
    world.settle();
}

fn json(text: Option<String>) -> Value {
    serde_json::from_str(&text.expect("a reply")).expect("JSON")
}

/// Ada requests a large reply; her next commands wait, and publications do not.
fn check(command: &str, entries: impl Fn(&Value) -> Option<usize>) {
    for encoding in ["json", "protobuf"] {
        let mut world = world(encoding);
        world.say("ada", &format!("{command}\n{{\"id\":4,\"rpc\":{{}}}}"));
        world.say("ada", r#"{"id":5,"rpc":{}}"#);
        assert_eq!(world.heard("ada"), None);
        assert_eq!(world.encode_jobs.len(), 1);
        publish(&mut world, "news", "1");
        assert_eq!(json(world.heard("ada"))["push"]["pub"]["data"], 1);
        world.do_errands();
        let reply = json(world.heard("ada"));
        assert_eq!((reply["id"].as_u64(), entries(&reply)), (Some(3), Some(MANY)));
        world.settle(); // after a long reply, others have their turn
        for id in [4, 5] {
            assert_eq!(json(world.heard("ada"))["id"], id);
        }
        assert_eq!(world.heard("ada"), None);
    }
}

#[test]
fn a_large_presence_is_encoded_elsewhere_while_deliveries_go_on() {
    let members = |reply: &Value| Some(reply["presence"]["presence"].as_object()?.len());
    check(r#"{"id":3,"presence":{"channel":"population"}}"#, members);
}

#[test]
fn a_large_history_is_encoded_elsewhere_while_deliveries_go_on() {
    let publications = |reply: &Value| Some(reply["history"]["publications"].as_array()?.len());
    check(r#"{"id":3,"history":{"channel":"quiet","limit":-1}}"#, publications);
}

const ASK: &str = r#"{"id":3,"presence":{"channel":"population"}}"#;

#[test]
fn small_answers_are_made_at_once() {
    let mut world = world("json");
    world.say("ada", r#"{"id":3,"presence":{"channel":"news"}}"#);
    assert!(world.encode_jobs.is_empty());
    assert!(world.heard("ada").is_some_and(|reply| reply.contains(r#""presence":{"#)));
}

#[test]
fn an_errand_for_a_client_that_went_reaches_nobody() {
    let mut world = world("json");
    world.say("ada", ASK);
    world.close("ada");
    world.say("bob", ASK);
    let bob =
        ConnectionSelector { client: world.id("bob").into(), ..ConnectionSelector::default() };
    assert_eq!(
        world.node.connections().disconnect(bob, Disconnect::FORCE_DISCONNECT).wait(),
        Ok(())
    );
    world.settle();
    assert_eq!(world.heard("bob").as_deref(), Some("x 3503 force disconnect"), "it does not wait");
    assert_eq!(world.encode_jobs.len(), 2);
    world.do_errands();
    assert_eq!((world.heard("ada"), world.heard("bob")), (None, None));
}

#[test]
fn an_errand_that_nobody_does_is_an_error_for_its_client() {
    let mut world = world("json");
    world.say("ada", ASK);
    world.encode_jobs.clear();
    world.settle();
    assert_eq!(json(world.heard("ada"))["error"]["code"], 100);
    world.say("ada", r#"{"id":4,"rpc":{}}"#);
    assert_eq!(json(world.heard("ada"))["id"], 4);
}

/// Everybody recovers.
fn recovering() -> Options {
    with_history(|open| {
        open.force_recovery = true;
        open.allowed_delta_types = vec!["fossil".to_owned()];
        open.history_size = 2 * MANY;
    })
}

/// A world in which ada asks for all that she missed of a channel.
fn recovering_ada(encoding: &str, wish: &str) -> World {
    let mut world = World::new(recovering());
    world.connected("ada", hello(encoding));
    world.connected("bob", hello(encoding));
    world.say("bob", r#"{"id":2,"subscribe":{"channel":"population"}}"#);
    let epoch = json(world.heard("bob"))["subscribe"]["epoch"].clone();
    for _ in 0..MANY {
        publish(&mut world, "population", LONG);
        assert!(world.heard("bob").is_some());
    }
    let claim = format!(r#""channel":"population","recover":true,"epoch":{epoch}{wish}"#);
    world.say("ada", &format!("{{\"id\":3,\"subscribe\":{{{claim}}}}}\n{{\"id\":4,\"rpc\":{{}}}}"));
    world
}

#[test]
fn a_large_recovery_is_encoded_elsewhere_and_what_is_published_meanwhile_follows_it() {
    for (encoding, wish) in [("json", ""), ("protobuf", ""), ("json", r#","delta":"fossil""#)] {
        let mut world = recovering_ada(encoding, wish);
        assert_eq!(world.heard("ada"), None);
        assert_eq!(world.encode_jobs.len(), 1);
        for number in ["1", "2"] {
            publish(&mut world, "population", number);
            assert!(json(world.heard("bob"))["push"]["pub"]["offset"].is_u64());
        }
        assert_eq!(world.heard("ada"), None, "her reply comes first");
        world.do_errands();
        let reply = json(world.heard("ada"));
        let missed = reply["subscribe"]["publications"].as_array().expect("what she missed");
        assert_eq!((&reply["id"], missed.len()), (&3.into(), MANY));
        assert_eq!(reply["subscribe"]["recovered"], true);
        assert_eq!(missed[1]["delta"] == true, !wish.is_empty(), "{}", missed[1]);
        publish(&mut world, "population", "3");
        let mut next = MANY;
        while next < MANY + 3 {
            let told = json(world.heard("ada"));
            if told["id"] == 4 {
                assert_eq!(next, MANY + 2, "what was held comes with the reply");
                continue;
            }
            next += 1;
            assert_eq!(told["push"]["pub"]["offset"], next);
        }
        assert_eq!(world.heard("ada"), None);
    }
}

#[test]
fn who_goes_or_fails_while_a_recovery_is_encoded_has_entered_nothing() {
    let mut world = recovering_ada("json", "");
    world.close("ada");
    world.do_errands();
    assert_eq!(world.node.counts().subscriptions, 1, "bob");

    let mut world = recovering_ada("json", "");
    world.encode_jobs.clear();
    world.settle();
    assert_eq!(json(world.heard("ada"))["error"]["code"], 100);
    assert_eq!(json(world.heard("ada"))["id"], 4);
    publish(&mut world, "population", "1");
    assert_eq!(world.heard("ada"), None);
    world.say("ada", r#"{"id":5,"subscribe":{"channel":"population"}}"#);
    assert_eq!(json(world.heard("ada"))["subscribe"]["offset"], MANY + 1);
}

/// A world in which as much was published in each of two channels as is large together, and their epochs.
fn two_channels() -> (World, Vec<Value>) {
    let mut world = World::new(recovering());
    world.connected("bob", hello(""));
    let epochs = ["a", "b"].map(|channel| {
        world.say("bob", &format!(r#"{{"id":2,"subscribe":{{"channel":"{channel}"}}}}"#));
        let epoch = json(world.heard("bob"))["subscribe"]["epoch"].clone();
        for _ in 0..MANY / 2 {
            publish(&mut world, channel, LONG);
            assert!(world.heard("bob").is_some());
        }
        epoch
    });
    (world, epochs.into())
}

/// Ada connects and wants all that she missed of two channels.
fn returning_ada(encoding: &str) -> World {
    let (mut world, epochs) = two_channels();
    world.open("ada", hello(encoding));
    let sub = |epoch: &Value| format!(r#"{{"recover":true,"epoch":{epoch}}}"#);
    let subs = format!(r#"{{"a":{},"b":{}}}"#, sub(&epochs[0]), sub(&epochs[1]));
    world.say(
        "ada",
        &format!("{{\"id\":1,\"connect\":{{\"subs\":{subs}}}}}\n{{\"id\":2,\"rpc\":{{}}}}"),
    );
    assert_eq!((world.heard("ada"), world.encode_jobs.len()), (None, 1));
    world
}

#[test]
fn a_large_welcome_is_encoded_elsewhere_and_what_is_published_meanwhile_follows_it() {
    for encoding in ["json", "protobuf"] {
        let mut world = returning_ada(encoding);
        assert_eq!(world.node.counts().connections, 1, "bob");
        publish(&mut world, "b", "2");
        assert_eq!(world.heard("ada"), None, "her reply comes first");
        world.do_errands();
        let reply = json(world.heard("ada"));
        assert_eq!(reply["id"], 1);
        for channel in ["a", "b"] {
            let sub = &reply["connect"]["subs"][channel];
            assert_eq!(sub["publications"].as_array().map(Vec::len), Some(MANY / 2), "{channel}");
            assert_eq!(sub["recovered"], true);
        }
        let told = json(world.heard("ada"));
        assert_eq!(
            (&told["push"]["channel"], &told["push"]["pub"]["data"]),
            (&"b".into(), &2.into())
        );
        assert_eq!(json(world.heard("ada"))["id"], 2);
        publish(&mut world, "a", "3");
        assert_eq!(json(world.heard("ada"))["push"]["pub"]["offset"], MANY / 2 + 1);
        assert_eq!((world.node.counts().connections, world.node.counts().subscriptions), (2, 4));
    }
}

#[test]
fn who_goes_or_fails_while_a_welcome_is_encoded_has_connected_to_nothing() {
    let mut world = returning_ada("json");
    world.close("ada");
    world.do_errands();
    assert_eq!((world.node.counts().connections, world.node.counts().subscriptions), (1, 2), "bob");

    let mut world = returning_ada("json");
    world.encode_jobs.clear();
    world.settle();
    assert_eq!(json(world.heard("ada"))["error"]["code"], 100);
    assert_eq!(world.heard("ada"), None, "the rest of her message is dropped");
    world.say("ada", r#"{"id":3,"rpc":{}}"#);
    assert_eq!(world.heard("ada").as_deref(), Some("x 3501 bad request: connect was refused"));
    publish(&mut world, "a", "2");
    assert_eq!(world.heard("ada"), None);
    assert_eq!((world.node.counts().connections, world.node.counts().subscriptions), (1, 2), "bob");
}

#[test]
fn what_an_order_recovers_that_is_large_is_encoded_elsewhere() {
    for encoding in ["json", "protobuf"] {
        let mut world = World::new(recovering());
        world.connected("ada", hello(encoding));
        for _ in 0..MANY {
            publish(&mut world, "population", LONG);
        }
        let subscription = ServerSubscription {
            channel: "population".into(),
            recover_since: Some(StreamPosition::default()),
            ..ServerSubscription::default()
        };
        let ordered = world.node.connections().subscribe(
            ConnectionSelector::default(),
            subscription,
            world.now,
        );
        world.settle();
        assert_eq!((world.heard("ada"), world.encode_jobs.len()), (None, 1));
        let ordered = ordered.ready().expect_err("she is not subscribed yet");
        publish(&mut world, "population", "2");
        world.do_errands();
        assert_eq!(ordered.wait(), Ok(()));
        assert_eq!(json(world.heard("ada"))["push"]["subscribe"]["recoverable"], true);
        for offset in 1..=MANY + 1 {
            assert_eq!(json(world.heard("ada"))["push"]["pub"]["offset"], offset);
        }
        assert_eq!(world.heard("ada"), None);
    }
}

/// More members, and publications of [`LONG`], than are encoded in a turn.
const MANY: usize = 300;

/// A JSON string.
const LONG: &str = match str::from_utf8(&LONG_BYTES) {
    Ok(text) => text,
    Err(_) => panic!("it is ASCII"),
};

const LONG_BYTES: [u8; 512] = {
    let mut text = [b'a'; 512];
    (text[0], text[511]) = (b'"', b'"');
    text
};
