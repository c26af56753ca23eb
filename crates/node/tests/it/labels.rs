//! Labels of connections: where they come from, and commands of the server API that select connections by them.
//! In: tokens and hooks with labels, calls of `Node` with a filter → out: who is disconnected, subscribed, listed.
//! Uses `world`, `script`, tokens of `tokens.rs`. Never: operators of filters, which have unit tests.
//! Changed here: tests of labels. Messages between nodes are tested in `cluster`, several nodes in `cluster.rs`.

use std::collections::BTreeSet;

use fanwire_broker::Answer;
use fanwire_node::hooks::{ConnectGrant, Hook, Hooks};
use fanwire_node::questions::{ConnectionQuestion, TokenRecord};
use fanwire_node::{ConnectionSelector, Renewal, ServerSubscription, check_filter};
use fanwire_protocol::{Disconnect, ErrorCode, FilterNode};

use crate::script::hello;
use crate::tokens::{connect, guarded, subscribe};
use crate::world::{UNIX, World, options};

fn filter(key: &str, cmp: &str, val: &str) -> FilterNode {
    let [key, cmp, val] = [key, cmp, val].map(str::to_owned);
    FilterNode { key, cmp, val, ..FilterNode::default() }
}

fn all(label_filter: Option<FilterNode>) -> ConnectionSelector {
    let label_filter = label_filter.map(Box::new);
    ConnectionSelector { label_filter, all_users: true, ..ConnectionSelector::default() }
}

fn user(user: &str) -> ConnectionSelector {
    ConnectionSelector { user: user.into(), ..ConnectionSelector::default() }
}

/// Four connections: Ada and Bob in two regions, Eve without labels, and an anonymous one.
fn world() -> World {
    let mut world = World::with_shards(guarded(|_| {}), 2);
    for (name, claims) in [
        ("ada", r#"{"sub":"ada","labels":{"region":"eu","age":"30"}}"#),
        ("bob", r#"{"sub":"bob","labels":{"region":"us","age":"7"}}"#),
        ("eve", r#"{"sub":"eve"}"#),
        ("anonymous", r#"{"labels":{"region":"eu"}}"#),
    ] {
        world.open(name, hello(""));
        world.say(name, &connect(claims));
        assert!(world.heard(name).is_some_and(|heard| heard.contains(r#""connect":{"#)), "{name}");
    }
    world
}

const NAMES: [&str; 4] = ["ada", "bob", "eve", "anonymous"];

/// Who hears something now.
fn hearers(world: &mut World) -> BTreeSet<&'static str> {
    (0..4).for_each(|_| world.settle());
    NAMES.into_iter().filter(|name| std::iter::from_fn(|| world.heard(name)).count() > 0).collect()
}

#[test]
fn every_command_selects_by_labels_and_all_users() {
    let eu = || Some(filter("region", "eq", "eu"));
    let targets = [
        (user("ada"), "ada"),
        (user(""), "anonymous"),
        (all(None), "ada anonymous bob eve"),
        (all(eu()), "ada anonymous"),
        (all(Some(filter("region", "neq", "eu"))), "bob eve"),
        (all(Some(filter("age", "gt", "10"))), "ada"),
        (ConnectionSelector { all_users: true, ..user("bob") }, "bob"),
        (ConnectionSelector { label_filter: eu().map(Box::new), ..user("ada") }, "ada"),
        (ConnectionSelector { label_filter: eu().map(Box::new), ..user("bob") }, ""),
        (ConnectionSelector { label_filter: eu().map(Box::new), ..user("") }, "anonymous"),
        (all(Some(filter("region", "wrong", "eu"))), ""),
    ];
    for (target, expect) in targets {
        let expect: BTreeSet<_> = expect.split_whitespace().collect();
        let mut world = world();
        let node = world.node.clone();
        let now = world.now;
        let channel =
            ServerSubscription { channel: "news".into(), ..ServerSubscription::default() };
        let renewal = Renewal { expire_at: Some(UNIX + 60), ..Renewal::default() };
        let steps: [(&str, Answer<(), ErrorCode>); 2] = [
            ("subscribe", node.connections().subscribe(target.clone(), channel, now)),
            ("refresh", node.connections().refresh(target.clone(), renewal)),
        ];
        for (step, answer) in steps {
            let heard = hearers(&mut world);
            // Both commands were sent before the first one was executed.
            assert!(heard == expect || heard.is_empty(), "{step} {target:?}: {heard:?}");
            assert_eq!(answer.wait(), Ok(()), "{step}");
        }
        let spared =
            ConnectionSelector { whitelist: vec![world.id("ada").into()], ..target.clone() };
        drop(node.connections().unsubscribe(spared, Some("news")));
        let others: BTreeSet<_> = expect.iter().copied().filter(|name| *name != "ada").collect();
        assert_eq!(hearers(&mut world), others, "unsubscribe {target:?}");
        drop(node.connections().disconnect(target.clone(), Disconnect::FORCE_DISCONNECT));
        assert_eq!(hearers(&mut world), expect, "disconnect {target:?}");
    }
    assert_eq!(check_filter(&filter("region", "wrong", "eu")), Err(ErrorCode::BAD_REQUEST));
}

#[test]
fn a_command_for_more_connections_than_one_turn_executes_reaches_all() {
    let mut world = World::new(options(|_| {}));
    for number in 0..300 {
        world.open(&number.to_string(), hello("as 42"));
        world.say_unsettled(&number.to_string(), r#"{"id":1,"connect":{}}"#);
    }
    world.settle();
    assert_eq!(world.node.counts().connections, 300);
    let listed = world.node.ask(ConnectionQuestion::of(&all(None)), world.now);
    (0..4).for_each(|_| world.settle());
    assert_eq!(listed.wait().map(|all| all.found.connections.len()), Ok(300));
    drop(world.node.connections().disconnect(all(None), Disconnect::FORCE_DISCONNECT));
    (0..4).for_each(|_| world.settle());
    assert_eq!(world.node.counts().connections, 0);
    (0..300).for_each(|number| while world.heard(&number.to_string()).is_some() {});
}

/// Opens connections of the user 42.
fn open(world: &mut World, numbers: std::ops::Range<u32>) {
    for number in numbers {
        world.open(&number.to_string(), hello("as 42"));
        world.say_unsettled(&number.to_string(), r#"{"id":1,"connect":{}}"#);
    }
    world.settle();
}

#[test]
fn pages_have_every_connection_that_stays_once_while_others_come_and_go() {
    for selector in [user("42"), all(None)] {
        let mut world = World::with_shards(options(|_| {}), 2);
        open(&mut world, 0..100);
        let stays = |number: &u32| !number.is_multiple_of(3);
        let staying: Vec<String> =
            (0..100).filter(stays).map(|number| world.id(&number.to_string()).to_owned()).collect();
        let mut seen = Vec::new();
        let mut question = ConnectionQuestion::of(&selector);
        question.limit = 9;
        for page in 0.. {
            let listed = world.node.ask(question.clone(), world.now);
            (0..4).for_each(|_| world.settle());
            let mut listed = listed.wait().expect("one node").found.connections;
            assert!(listed.len() <= 9 + 1, "{}", listed.len());
            let has_more = listed.len() > 9;
            if has_more {
                listed.pop_last();
            }
            question.after =
                listed.last_key_value().map(|(client, _)| client.clone()).unwrap_or_default();
            seen.extend(listed.into_keys());
            if !has_more {
                break;
            }
            let leaving = ConnectionSelector {
                client: world.id(&(page * 27 % 100).to_string()).to_owned(),
                ..user("42")
            };
            if !staying.contains(&leaving.client) {
                drop(world.node.connections().disconnect(leaving, Disconnect::FORCE_DISCONNECT));
            }
            open(&mut world, 100 + page * 5..105 + page * 5);
        }
        assert!(seen.is_sorted_by(|one, next| one < next), "none is there twice");
        assert!(staying.iter().all(|client| seen.binary_search(client).is_ok()));
        let heard: Vec<_> = world.unread().into_iter().map(|(name, _)| name.to_owned()).collect();
        heard.iter().for_each(|name| drop(world.heard(name)));
    }
}

#[test]
fn connections_are_listed_by_labels_with_their_users() {
    let mut world = world();
    let has_region = all(Some(filter("region", "ex", "")));
    let listed = world.node.ask(ConnectionQuestion::of(&has_region), world.now);
    (0..4).for_each(|_| world.settle());
    let listed = listed.wait().expect("one node").found.connections;
    let of = |name: &str| {
        listed.get(world.id(name)).map(|it| (it.user.as_str(), &it.labels["region"][..]))
    };
    assert_eq!(NAMES.map(of), [Some(("ada", "eu")), Some(("bob", "us")), None, Some(("", "eu"))]);
}

#[test]
fn a_record_has_the_meta_and_the_tokens_that_are_in_use() {
    let mut world = World::new(guarded(|_| {}));
    world.open("ada", hello(""));
    world.say("ada", &connect(r#"{"sub":"ada","jti":"c","iat":5,"meta":{"a":1}}"#));
    world.say("ada", &subscribe("news", r#"{"sub":"ada","channel":"news","jti":"s","iat":6}"#));
    assert!(world.heard("ada").is_some() && world.heard("ada").is_some());
    let listed = world.node.ask(ConnectionQuestion::of(&user("ada")), world.now);
    world.settle();
    let record = listed
        .wait()
        .expect("one node")
        .found
        .connections
        .remove(world.id("ada"))
        .expect("connected");
    let token = |uid: &str, issued_at| TokenRecord { uid: uid.to_owned(), issued_at };
    assert_eq!(record.meta, r#"{"a":1}"#);
    assert_eq!(record.token, Some(token("c", 5)));
    assert_eq!(record.subscription_tokens, [("news".to_owned(), token("s", 6))].into());
}

#[test]
fn labels_that_are_not_texts_or_too_many_are_refused_and_those_of_a_hook_count() {
    let many: Vec<String> = (0..33).map(|number| format!(r#""{number}":"x""#)).collect();
    let long = "x".repeat(2048);
    for (labels, is_refused) in [
        (r#"{"a":1}"#, true),
        (r#"{"a":null}"#, true),
        (r#"["a"]"#, true),
        ("null", false),
        ("{}", false),
        (&format!("{{{}}}", many.join(",")), true),
        (&format!("{{{}}}", many[1..].join(",")), false),
        (&format!(r#"{{"a":"{long}"}}"#), true),
        (&format!(r#"{{"a":"{}"}}"#, &long[1..]), false),
    ] {
        let mut world = World::new(guarded(|_| {}));
        world.open("ada", hello(""));
        world.say("ada", &connect(&format!(r#"{{"sub":"ada","labels":{labels}}}"#)));
        let heard = world.heard("ada").expect("an answer");
        assert_eq!(heard.starts_with("x 3500"), is_refused, "{labels}: {heard}");
    }
    let labels = [("plan".to_owned(), "free".to_owned())];
    let grant = ConnectGrant { labels: labels.clone().into(), ..ConnectGrant::default() };
    let connect = Hook::new(move |_| Answer::now(Ok(Some(grant.clone()))));
    let publish = Hook::new(move |event: fanwire_node::hooks::PublishEvent| {
        assert_eq!(*event.context.labels, labels.clone().into());
        Answer::now(Ok(None))
    });
    let hooks = Hooks { connect: Some(connect), publish: Some(publish), ..Hooks::default() };
    let mut world = World::with_hooks(options(|_| {}), hooks);
    world.open("ada", hello(""));
    world.say("ada", r#"{"id":1,"connect":{}}"#);
    assert!(world.heard("ada").is_some());
    world.say("ada", r#"{"id":2,"publish":{"channel":"news","data":1}}"#);
    assert!(world.heard("ada").is_some());
    drop(
        world
            .node
            .connections()
            .disconnect(all(Some(filter("plan", "eq", "free"))), Disconnect::FORCE_DISCONNECT),
    );
    world.settle();
    world.play("ada x 3503 force disconnect");
}
