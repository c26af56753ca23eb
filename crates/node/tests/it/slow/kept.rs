//! State of waiting sessions: limits with their consequences, and that other sessions are not affected.
//! In: clients that wait for a slow broker, orders, publications, time → out: who is let in, who is disconnected.
//! Uses: the slow world of the room above. Never: threads.
//! Changed here: promises about limits of waiting. Order and completeness are tested in the room above.

use std::time::Duration;

use fanwire_node::protocol::Disconnect;
use fanwire_node::{ConnectionSelector, Renewal, ServerSubscription};

use super::{SlowWorld, tracked};
use crate::history::with_history;
use crate::tokens::{connect, guarded, subscribe};
use crate::world::UNIX;

#[test]
fn a_channel_that_somebody_is_always_entering_lets_everybody_in() {
    let mut slow = SlowWorld::with(tracked(), &["ada", "eve", "bob"]); // ada and bob are on one shard
    let mut entering = "ada";
    let mut other = "bob";
    let mut id = 1;
    let mut published = 0;
    let subscribe = |id| format!(r#"{{"id":{id},"subscribe":{{"channel":"news"}}}}"#);
    slow.world.say(other, &subscribe(id));
    for _ in 0..4 {
        id += 1;
        slow.world.say(entering, &subscribe(id));
        slow.answer(0); // the other one is in
        let reply = slow.world.heard(other).expect("a reply");
        assert!(reply.contains(r#""subscribe":{"#), "after {published} publications: {reply}");
        slow.world.say(other, r#"{"id":9,"unsubscribe":{"channel":"news"}}"#);
        while slow.world.heard(other).is_some() {}
        for _ in 0..1400 {
            published += 1;
            slow.publish("news", &published.to_string());
            slow.answer(1);
        }
        std::mem::swap(&mut entering, &mut other);
    }
}

#[test]
fn what_follows_a_connect_in_its_message_is_dropped_with_it() {
    let mut slow = SlowWorld::new(tracked());
    slow.world.play(
        r#"
        ada opens
        ada > {"id":1,"connect":{"subs":{"a":{}}}}\n{"id":2,"subscribe":{"channel":"b"}}
        ada receives nothing
    "#,
    );
    slow.held.lock().expect("one thread").clear(); // which breaks the promises
    slow.world.settle();
    slow.world.play(
        r#"
        ada < {"id":1,"error":{"code":100,"message":"internal server error","temporary":true}}
        ada receives nothing
        ada > {"id":3,"subscribe":{"channel":"b"}}
        ada x 3501 bad request
    "#,
    );
}

#[test]
fn who_is_told_more_than_can_be_kept_while_it_waits_is_disconnected() {
    let mut slow = SlowWorld::with(tracked(), &["ada", "bob", "eve"]);
    for name in ["ada", "bob", "eve"] {
        slow.world.say(name, r#"{"id":2,"publish":{"channel":"news","data":1}}"#);
    }
    let large = "x".repeat(1 << 20);
    for id in 3..=5 {
        let rpc = format!(r#"{{"id":{id},"rpc":{{"method":"{large}"}}}}"#);
        slow.world.say("ada", &rpc);
    }
    slow.world.play("ada x 3013 too many requests");
    let bob = ConnectionSelector {
        client: slow.world.id("bob").to_owned(),
        ..ConnectionSelector::default()
    };
    for _ in 0..20_000 {
        let done = slow.world.node.connections().unsubscribe(bob.clone(), Some("news"));
        done.wait().expect("a channel");
    }
    slow.world.settle();
    slow.world.play("bob x 3013 too many requests");
    slow.world.say("eve", &format!(r#"{{"id":3,"rpc":{{"method":"{}"}}}}"#, large.repeat(8)));
    slow.answer_all();
    slow.world.play(
        r#"
        eve < {"id":2,"publish":{}}
        eve < {"id":3,"error":{"code":108,"message":"not available"}}
        ada receives nothing
        bob receives nothing
    "#,
    );
}

#[test]
fn a_client_whose_pong_waits_with_it_is_not_silent() {
    let mut slow = SlowWorld::with(tracked(), &["ada"]);
    slow.world.play(
        r#"
        ada > {"id":2,"publish":{"channel":"news","data":1}}
        wait 100s
        ada receives nothing
    "#,
    );
    slow.answer_all();
    slow.world.play("ada < {\"id\":2,\"publish\":{}}\n wait 100s\n ada receives nothing");
    slow.world.keeps_silent("ada");
    slow.world.say("ada", r#"{"id":3,"publish":{"channel":"news","data":2}}"#);
    slow.world.wait(Duration::from_secs(100));
    assert_eq!(
        slow.world.heard("ada").as_deref(),
        Some("{}"),
        "one ping, and no other before its pong"
    );
    slow.world.play("ada receives nothing");
    slow.answer_all();
    slow.world.play("ada < {\"id\":3,\"publish\":{}}\n wait 9s\n ada x 3012 no pong");
}

#[test]
fn an_end_by_the_api_reaches_a_connection_whose_connect_waits() {
    let mut slow = SlowWorld::new(tracked());
    slow.world.play(
        r#"
        ada opens
        ada > {"id":1,"connect":{"subs":{"a":{},"b":{}}}}
        bob opens
        bob > {"id":1,"connect":{"subs":{"a":{},"b":{}}}}
    "#,
    );
    assert_eq!(
        slow.world.node.connections().unsubscribe(ConnectionSelector::default(), Some("a")).wait(),
        Ok(())
    );
    slow.world.settle();
    slow.answer_all();
    for name in ["ada", "bob"] {
        let connected = slow.world.heard(name).expect("the reply");
        assert!(connected.contains(r#""connect":{"#), "{connected}");
        let ended =
            r#"{"push":{"channel":"a","unsubscribe":{"code":2000,"reason":"server unsubscribe"}}}"#;
        assert_eq!(slow.world.heard(name).as_deref(), Some(ended));
    }
    slow.world.play(
        r#"
        ada closes
        bob closes
        eve opens
        eve > {"id":1,"connect":{"subs":{"a":{}}}}
    "#,
    );
    let done = slow
        .world
        .node
        .connections()
        .disconnect(ConnectionSelector::default(), Disconnect::FORCE_DISCONNECT);
    assert_eq!(done.wait(), Ok(()));
    slow.world.settle();
    slow.world.play("eve x 3503 force disconnect");
    slow.answer_all();
    slow.world.play("eve receives nothing");
    assert_eq!(slow.world.node.counts().subscriptions, 0);
}

#[test]
fn a_subscription_by_the_api_reaches_a_connection_whose_connect_waits() {
    let mut slow = SlowWorld::new(tracked());
    let order = |slow: &mut SlowWorld, channel: &str| {
        let subscription = ServerSubscription { channel: channel.into(), ..Default::default() };
        let ordered = slow.world.node.connections().subscribe(
            ConnectionSelector::default(),
            subscription,
            slow.world.now,
        );
        slow.world.settle();
        ordered
    };
    slow.world.play("ada opens\n ada > {\"id\":1,\"connect\":{\"subs\":{\"a\":{}}}}");
    let answers = [order(&mut slow, "a"), order(&mut slow, "b")];
    slow.world.play("ada receives nothing");
    slow.answer_all();
    let connected = slow.world.heard("ada").expect("the reply");
    assert!(connected.contains(r#""subs":{"a":{"#), "{connected}");
    slow.publish("b", "1");
    slow.answer_all();
    slow.world.play(
        r#"
        ada < {"push":{"channel":"b","subscribe":{"recoverable":true,"epoch":"E1","positioned":true}}}
        ada < {"push":{"channel":"b","pub":{"data":1,"offset":1,"epoch":"E1"}}}
    "#,
    );
    answers.into_iter().for_each(|answer| assert_eq!(answer.wait(), Ok(())));

    slow.world.play("bob opens\n bob > {\"id\":1,\"connect\":{\"subs\":{\"a\":{}}}}");
    let answer = order(&mut slow, "c");
    drop(slow.held.lock().expect("one thread").remove(0)); // a promise that is dropped is broken
    slow.answer_all();
    assert_eq!(answer.wait(), Ok(()), "ada is subscribed, and bob is not connected");
    let subscribed = slow.world.heard("ada").expect("the push");
    assert!(subscribed.contains(r#""channel":"c","subscribe":{"#), "{subscribed}");
    slow.world.play(
        r#"bob < {"id":1,"error":{"code":100,"message":"internal server error","temporary":true}}"#,
    );
    slow.world.play("bob receives nothing");
    assert_eq!(slow.world.node.counts().subscriptions, 3, "a, b and c of ada");
}

#[test]
fn another_lifetime_by_the_api_reaches_a_connection_whose_connect_waits() {
    let mut slow = SlowWorld::new(tracked());
    let refresh = |slow: &mut SlowWorld, expire_at| {
        let renewal = Renewal { expire_at: Some(expire_at), ..Renewal::default() };
        assert_eq!(
            slow.world.node.connections().refresh(ConnectionSelector::default(), renewal).wait(),
            Ok(())
        );
        slow.world.settle();
    };
    let connecting = |slow: &mut SlowWorld, name: &str| {
        slow.world.play(&format!(
            "{name} opens\n {name} > {{\"id\":1,\"connect\":{{\"subs\":{{\"a\":{{}}}}}}}}"
        ));
    };
    connecting(&mut slow, "ada");
    refresh(&mut slow, UNIX + 60);
    connecting(&mut slow, "bob");
    refresh(&mut slow, UNIX - 1);
    slow.answer_all();
    for (name, then) in [
        ("ada", r#"{"push":{"refresh":{"expires":true,"ttl":60}}}"#),
        ("bob", "x 3005 connection expired"),
    ] {
        let connected = slow.world.heard(name).expect("the reply");
        assert!(connected.contains(r#""connect":{"#), "{connected}");
        assert_eq!(slow.world.heard(name).as_deref(), Some(then));
    }
    slow.world.play("ada x 3005 connection expired");
    connecting(&mut slow, "eve");
    refresh(&mut slow, UNIX + 60);
    drop(slow.held.lock().expect("one thread").remove(0)); // a promise that is dropped is broken
    slow.world.settle();
    slow.world.play(
        r#"eve < {"id":1,"error":{"code":100,"message":"internal server error","temporary":true}}"#,
    );
    slow.world.play("eve receives nothing");
}

#[test]
fn the_time_that_is_left_is_that_of_the_moment_of_the_reply() {
    let mut slow = SlowWorld::new(guarded(|_| {}));
    slow.world.play("ada opens");
    let claims = |more: &str| format!(r#"{{"sub":"42","exp":{}{more}}}"#, UNIX + 60);
    let mut check = |command: &str, ttl: &str| {
        slow.world.say("ada", command);
        slow.world.wait(Duration::from_secs(10));
        slow.world.play("ada receives nothing");
        slow.answer_all();
        let reply = slow.world.heard("ada").expect("the reply");
        assert!(reply.contains(&format!(r#""expires":true,"ttl":{ttl}"#)), "{reply}");
    };
    check(&connect(&claims(r#","channels":["a"]"#)), "50");
    check(&subscribe("b", &claims(r#","channel":"b""#)), "40");
}

#[test]
fn who_is_there_is_known_after_the_reply_whatever_happened_before_it() {
    let options = with_history(|namespace| {
        namespace.presence = true;
        namespace.join_leave = true;
        namespace.force_push_join_leave = true;
        namespace.allow_presence_for_client = true;
        namespace.allow_presence_for_anonymous = true;
    });
    let mut slow = SlowWorld::with(options, &["ada", "bob", "eve"]);
    slow.world.play(r#"eve > {"id":2,"subscribe":{"channel":"news"}}"#);
    slow.answer_all();
    while slow.world.heard("eve").is_some() {}
    slow.world.play(r#"ada > {"id":2,"subscribe":{"channel":"news"}}"#);
    slow.world.play(r#"bob > {"id":2,"subscribe":{"channel":"news"}}"#);
    for _ in 0..2 {
        slow.answer(2); // those of bob: he joins while ada waits
    }
    slow.world.say("eve", r#"{"id":3,"unsubscribe":{"channel":"news"}}"#);
    slow.answer_all();
    slow.world.say("ada", r#"{"id":3,"presence":{"channel":"news"}}"#);
    slow.answer_all();
    let mut present = None;
    while let Some(text) = slow.world.heard("ada") {
        let heard: serde_json::Value = serde_json::from_str(&text).expect("JSON");
        present = heard["presence"]["presence"].as_object().cloned().or(present);
    }
    let present = present.expect("the reply");
    assert_eq!(present.keys().collect::<Vec<_>>(), ["ada", "bob"]);
}
