//! The flight recorder: what the logs of connections say, on all nodes, and which memory they take.
//! In: dialogues, time → out: events of logs, the rows of `connection_log`.
//! Uses: `world`, `script`, the options of `history.rs`. Never: sockets; stalls are reported by the test.
//! Changed here: tests of what is recorded. How events are stored is tested in the crate `recorder`.

use std::collections::BTreeMap;
use std::time::Duration;

use fanwire_node::questions::{
    ConnectionLogQuery, ConnectionLogQuestion, ConnectionLogRecord, ConnectionQuestion,
    HotListsQuestion,
};
use fanwire_node::{ConnectionSelector, RevocationKind};

use crate::history::with_history;
use crate::revocations::{change, revoke};
use crate::script::hello;
use crate::tokens::{guarded, token};
use crate::world::{UNIX, World};

pub(crate) fn logs(
    world: &mut World,
    user: Option<&str>,
    client: &str,
) -> Vec<ConnectionLogRecord> {
    let user = user.map(str::to_owned);
    let query = ConnectionLogQuery { user, client: client.to_owned(), limit: 10 };
    let node = world.node.clone();
    let answer = node.ask(ConnectionLogQuestion::from(query), world.now);
    world.settle();
    let answers = answer.wait().expect("the shards have answered").found.nodes;
    assert_eq!(answers.len(), 1, "one node");
    answers.into_iter().flat_map(|answer| answer.logs).collect()
}

/// Events as text: milliseconds after the connect, name, code, numbers and texts.
pub(crate) fn events(log: &ConnectionLogRecord) -> Vec<String> {
    let text = |event: &fanwire_node::questions::LoggedEvent| {
        let after = event.at_ms - log.opened_ms;
        let words = format!(
            "{after} {} {} {} {} {} {}",
            event.name, event.code, event.first, event.second, event.text, event.detail
        );
        words.trim().to_owned()
    };
    log.events.iter().map(text).collect()
}

#[test]
fn a_log_says_what_happened_to_a_connection() {
    let mut world = World::new(with_history(|open| open.force_recovery = true));
    world.open("ada", hello("as 42"));
    world.play(
        r#"
        ada > {"id":1,"connect":{"name":"js","version":"5"}}
        ada < {"id":1,"connect":{"client":"ada","version":"test","ping":25,"pong":true}}
        ada > {"id":2,"subscribe":{"channel":"news"}}
        ada < {"id":2,"subscribe":{"recoverable":true,"epoch":"E1","positioned":true}}
        ada > {"id":3,"unsubscribe":{"channel":"news"}}
        ada < {"id":3,"unsubscribe":{}}
        api > news 1
        api > news 2
        ada > {"id":4,"subscribe":{"channel":"news","recover":true,"offset":0,"epoch":"E1"}}
        ada < {"id":4,"subscribe":{"recoverable":true,"epoch":"E1","publications":[{"data":1,"offset":1},{"data":2,"offset":2}],"recovered":true,"positioned":true,"was_recovering":true}}
        ada > {"id":5,"subscribe":{"channel":"news"}}
        ada < {"id":5,"error":{"code":105,"message":"already subscribed"}}
        ada > {"id":6,"subscribe":{"channel":"chat","recover":true,"offset":9,"epoch":"other"}}
        ada < {"id":6,"subscribe":{"recoverable":true,"epoch":"E2","positioned":true,"was_recovering":true}}
    "#,
    );
    let key = world.key("ada");
    let now = world.now;
    let hub = &mut world.shard_of("ada").hub;
    hub.stalled(key, 700, now);
    hub.stalled(key, 5000, now + Duration::from_millis(300));
    hub.stalled(key, 0, now + Duration::from_millis(400));
    world.wait(Duration::from_secs(30));
    world.close("ada");
    let client = world.id("ada").to_owned();
    let found = logs(&mut world, Some("42"), "");
    let by_client = logs(&mut world, None, &client);
    assert_eq!((found.len(), &found), (1, &by_client));
    let log = &found[0];
    assert_eq!(
        (log.client.as_str(), log.user.as_str(), log.transport.as_str()),
        (client.as_str(), "42", "websocket")
    );
    assert_eq!((log.opened_ms, log.ended_ms), (UNIX * 1000, UNIX * 1000 + 30_000));
    assert_eq!(log.ping_ms, Some(0));
    let ping = log.events[7].at_ms - log.opened_ms;
    assert_eq!(
        events(log),
        [
            "0 connect 0 0 0 js 5",
            "0 subscribe 0 0 0 news",
            "0 unsubscribe 0 0 0 news",
            "0 recover 0 0 2 news",
            "0 refuse 105 0 0 the client is subscribed to the channel already subscribe",
            "0 unrecovered 0 9 0 chat epoch",
            "400 stall 0 400 5000",
            &format!("{ping} ping 0 0 0"),
            "30000 close 3000 0 0 connection closed",
        ]
    );
    assert_eq!(logs(&mut world, Some("43"), ""), []);
    assert_eq!(logs(&mut world, None, "no client id"), []);
    assert_eq!(logs(&mut world, Some("43"), &client), []);
    world.wait(Duration::from_secs(3600));
    assert_eq!(logs(&mut world, Some("42"), ""), [], "after an hour");
}

#[test]
fn a_refused_connect_has_a_log_with_the_user_that_its_token_names_and_is_in_the_hot_list() {
    let mut world = World::new(guarded(|_| {}));
    let expired = token(r#"{"sub":"42","exp":1}"#);
    let forged = format!("{}A", token(r#"{"sub":"42"}"#));
    let blocked = token(r#"{"sub":"43"}"#);
    revoke(&mut world, RevocationKind::BlockUser, change("43"));
    for (name, token) in
        [("ivy", &blocked), ("ada", &expired), ("bob", &forged), ("eve", &"no token".to_owned())]
    {
        world.open(name, hello(""));
        world.say(name, &format!(r#"{{"id":1,"connect":{{"token":"{token}"}}}}"#));
        assert!(world.heard(name).is_some());
    }
    let found = logs(&mut world, Some("42"), "");
    let events: Vec<_> = found.iter().map(events).collect();
    assert_eq!(found.len(), 2, "{events:?}");
    assert_eq!(events[0][0], "0 refuse 3500 0 0 the token has a wrong signature connect");
    assert!(events[1][0].starts_with("0 refuse 109 0 0 the token is expired"), "{events:?}");
    assert!(found.iter().all(|log| log.client.is_empty()));
    let node = world.node.clone();
    let answer = node.ask(HotListsQuestion { limit: 5 }, world.now);
    world.settle();
    let hot = answer.wait().expect("one node").found.nodes.remove(0).lists;
    let mut refusals = BTreeMap::<&str, u64>::new(); // each shard has a list
    hot.refusals.iter().for_each(|it| *refusals.entry(&it.user).or_default() += it.value);
    assert_eq!(refusals, [("", 1), ("42", 2), ("43", 1)].into());
}

#[test]
fn the_end_by_a_missing_pong_is_in_the_log_and_an_answered_one_in_connections() {
    let mut world = World::new(with_history(|_| {}));
    world.open("ada", hello("as 42"));
    world.say("ada", r#"{"id":1,"connect":{}}"#);
    world.heard("ada").expect("a reply");
    world.wait(Duration::from_secs(30));
    let target = ConnectionSelector { user: "42".into(), ..ConnectionSelector::default() };
    let node = world.node.clone();
    let all = node.ask(ConnectionQuestion::of(&target), world.now);
    world.settle();
    let all = all.wait().expect("the shards have answered").found.connections;
    assert_eq!(all.values().map(|record| record.ping_ms).collect::<Vec<_>>(), [Some(0)]);

    world.keeps_silent("ada");
    world.wait(Duration::from_secs(60));
    while world.heard("ada").is_some() {}
    let found = logs(&mut world, Some("42"), "");
    let last = found[0].events.last().expect("the end is an event");
    assert_eq!((last.name.as_str(), last.code), ("close", 3012));
    assert_eq!(found[0].ended_ms, last.at_ms);
}

#[test]
fn without_memory_there_are_no_logs() {
    let mut options = with_history(|_| {});
    options.recorder_memory_max = 0;
    let mut world = World::new(options);
    world.open("ada", hello("as 42"));
    world.say("ada", r#"{"id":1,"connect":{}}"#);
    world.heard("ada").expect("a reply");
    world.close("ada");
    assert_eq!(logs(&mut world, Some("42"), ""), []);
}
