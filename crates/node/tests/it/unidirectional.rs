//! Unidirectional clients (protocol §25): one connect request, then only pushes; what else they send is discarded.
//! In: dialogues → out: what each client received, in messages whose envelope the shell removes.
//! Uses: `world`, `script`, tokens of `tokens.rs`. Never: transports; their frames are tested in `fanwire`.
//! Changed here: tests of sessions without commands.

use std::collections::BTreeMap;

use fanwire_auth::ChannelGrant;
use fanwire_broker::Answer;
use fanwire_node::hooks::{ConnectGrant, Hook, Hooks, Rejection};
use fanwire_node::options::{ConnectCodeTransform, Namespace};
use fanwire_node::{ConnectionSelector, Options, Renewal, ServerSubscription};
use fanwire_protocol::{Disconnect, ProtocolError};

use crate::history::with_history;
use crate::script::hello;
use crate::tokens::{guarded, token};
use crate::world::{UNIX, World, options};

/// Ada opens, sends this and receives the connect push with these members after its version.
fn connected(world: &mut World, request: &str, members: &str) {
    world.play(&format!(
        r#"ada opens uni
           ada > {request}
           ada < {{"push":{{"connect":{{"client":"ada","version":"test",{members}"session":"S","node":"N"}}}}}}"#
    ));
}

fn refused(options: Options, request: &str, end: &str) {
    World::new(options).play(&format!("ada opens uni\n ada > {request}\n ada x {end}"));
}

#[test]
fn the_first_message_is_a_connect_request_and_the_answer_a_push() {
    for request in ["{}", "null", r#"{"name":"js","version":"1","headers":{"a":"b"}}"#] {
        connected(&mut World::new(options(|_| {})), request, r#""ping":25,"#);
    }
}

#[test]
fn what_is_no_connect_request_ends_the_connection_with_3501() {
    for message in ["nothing", "[]", r#"{"token":5}"#, "{}{}"] {
        let end =
            "3501 bad request: the first message is not a connect request in JSON or Protobuf";
        refused(options(|_| {}), message, end);
    }
}

#[test]
fn a_client_that_sends_nothing_is_stale() {
    World::new(options(|_| {})).play("ada opens uni\n wait 10100ms\n ada x 3502 stale");
}

#[test]
fn later_messages_are_discarded() {
    let mut world = World::new(options(|_| {}));
    connected(&mut world, r#"{"subs":{"a":{}}}"#, r#""subs":{"a":{}},"ping":25,"#);
    world.play(
        r#"
        ada > {}
        ada > {"token":"x"}
        ada > nothing
        ada > {"id":2,"publish":{"channel":"a","data":1}}
        ada receives nothing
        api > a 2
        ada < {"push":{"channel":"a","pub":{"data":2}}}
    "#,
    );
}

#[test]
fn commands_in_requests_of_their_own_are_discarded_too() {
    let mut world = World::new(options(|_| {}));
    world.open("ada", hello("uni"));
    world.say("ada", r#"{"subs":{"a":{}}}"#);
    let push = world.heard("ada").expect("the connect push");
    let session = session(&world, &push);
    let commands = r#"{"id":2,"publish":{"channel":"a","data":1}}"#;
    let node = world.node.uid().to_owned();
    world.node.connections().emulate(&node, &session, commands.into()).wait().expect("this node");
    world.settle();
    world.play("ada receives nothing");
}

#[test]
fn it_gets_the_requested_channels_that_it_may_subscribe_to() {
    let mut options = options(|options| {
        let namespace = Namespace { name: "closed".into(), ..Namespace::default() };
        options.channel.namespaces.push(namespace);
    });
    options.channel.without_namespace.allow_user_limited_channels = true;
    let requested = r##"{"subs":{"a":{},"$private":{},"closed:b":{},"users#42":{},"b":null}}"##;
    connected(&mut World::new(options.clone()), requested, r#""subs":{"a":{},"b":{}},"ping":25,"#);
    let end = "3501 bad request: a channel of connect.subs has no namespace in channel.namespaces";
    refused(options, r#"{"subs":{"a":{},"unknown:b":{}}}"#, end);
}

#[test]
fn missed_publications_are_in_the_connect_push() {
    let mut world = World::new(with_history(|open| open.force_recovery = true));
    let subs = r#""subs":{"a":{"recoverable":true,"epoch":"E1","positioned":true}},"ping":25,"#;
    connected(&mut world, r#"{"subs":{"a":{}}}"#, subs);
    world.play(
        r#"
        ada closes
        api > a 1
        api > a 2
        bob opens uni
        bob > {"subs":{"a":{"recover":true,"offset":1,"epoch":"E1"}}}
        bob < {"push":{"connect":{"client":"bob","version":"test","subs":{"a":{"recoverable":true,"epoch":"E1","publications":[{"data":2,"offset":2}],"recovered":true,"offset":1,"positioned":true,"was_recovering":true}},"ping":25,"session":"S","node":"N"}}}
        eve opens uni
        eve > {"subs":{"a":{"recover":true,"offset":1,"epoch":"x"}}}
        eve < {"push":{"connect":{"client":"eve","version":"test","subs":{"a":{"recoverable":true,"epoch":"E1","offset":2,"positioned":true,"was_recovering":true}},"ping":25,"session":"S","node":"N"}}}
        api > a 3
        bob < {"push":{"channel":"a","pub":{"data":3,"offset":3}}}
        eve < {"push":{"channel":"a","pub":{"data":3,"offset":3}}}
    "#,
    );
}

#[test]
fn a_connect_push_with_many_publications_is_encoded_by_a_worker() {
    let mut world = World::new(with_history(|open| {
        open.force_recovery = true;
        open.history_size = 300;
    }));
    for number in 0..300 {
        world.publish("a", &format!("\"{number:0500}\""));
    }
    world.open("ada", hello("uni"));
    world.say("ada", r#"{"subs":{"a":{"recover":true}}}"#);
    assert_eq!(world.heard("ada"), None, "a worker encodes it");
    world.say("ada", "nothing, which is discarded while the request waits");
    world.do_errands();
    let push = world.heard("ada").expect("the connect push");
    assert!(push.starts_with(r#"{"push":{"connect":{"client":"#), "{push}");
    assert!(push.contains(r#"299","offset":300}],"recovered":true"#), "{push}");
    world.play("ada receives nothing");
}

#[test]
fn pings_are_pushes_that_need_no_pong() {
    let mut world = World::new(options(|_| {}));
    connected(&mut world, "{}", r#""ping":25,"#);
    world.play(
        r#"
        ada sleeps
        ada awaits 25100ms
        ada < {}
        ada awaits 25100ms
        ada < {}
        ada awaits 25100ms
        ada < {}
    "#,
    );
}

#[test]
fn a_websocket_gets_ping_frames_too_and_must_answer_them() {
    let mut world = World::new(options(|_| {}));
    world.play(
        r#"
        ada opens uni frame_ping
        ada > {}
        ada < {"push":{"connect":{"client":"ada","version":"test","ping":25,"session":"S","node":"N"}}}
        wait 300s
        ada sleeps
        ada awaits 25100ms
        ada < ping frame
        ada < {}
        ada > {}
        wait 7900ms
        ada receives nothing
        ada awaits 200ms
        ada x 3012 no pong
    "#,
    );
}

#[test]
fn errors_of_connect_are_disconnects() {
    let expired = format!(r#"{{"token":"{}"}}"#, token(r#"{"sub":"42","exp":1}"#));
    refused(guarded(|_| {}), &expired, "3005 connection expired");
    refused(guarded(|_| {}), r#"{"token":"x"}"#, "3500 invalid token");
    refused(guarded(|_| {}), "{}", "3501 bad request");
    let unknown = token(r#"{"sub":"42","channels":["unknown:a"]}"#);
    let unknown = format!(r#"{{"token":"{unknown}"}}"#);
    refused(guarded(|_| {}), &unknown, "3004 internal server error");
    let transformed = guarded(|options| {
        let to = Disconnect { code: 4102, reason: "no such channel".into() };
        let transforms = vec![ConnectCodeTransform { code: 102, to }];
        options.client.connect_code_to_unidirectional_disconnect = transforms;
    });
    refused(transformed.clone(), &unknown, "4102 no such channel");
    refused(transformed, &expired, "3005 connection expired");
}

#[test]
fn a_hook_decides_and_its_errors_are_disconnects_too() {
    type Decided = Result<Option<ConnectGrant>, Rejection>;
    let with = |decided: Decided| {
        let decide = move |_| Answer::now(decided.clone());
        let hooks = Hooks { connect: Some(Hook::new(decide)), ..Hooks::default() };
        World::with_hooks(guarded(|_| {}), hooks)
    };
    let error = |code| Err(ProtocolError { code, message: "no".into(), temporary: false }.into());
    for (decided, end) in [
        (error(103), "3507 permission denied"),
        (error(111), "3013 too many requests"),
        (error(400), "3004 internal server error"),
        (Err(Rejection::Disconnect(Disconnect { code: 4000, reason: "no".into() })), "4000 no"),
        (
            Ok(Some(ConnectGrant { expire_at: Some(1), ..Default::default() })),
            "3005 connection expired",
        ),
    ] {
        with(decided).play(&format!("ada opens uni\n ada > {{}}\n ada x {end}"));
    }
    let channels = BTreeMap::from([("a".to_owned(), ChannelGrant::default())]);
    let grant =
        ConnectGrant { user: "42".into(), data: "5".into(), channels, ..Default::default() };
    let members = r#""data":5,"subs":{"a":{}},"ping":25,"#;
    connected(&mut with(Ok(Some(grant))), "{}", members);
}

#[test]
fn channels_of_the_subscribe_hook_are_not_granted_on_request() {
    let mut options = options(|_| {});
    options.channel.without_namespace.allow_user_limited_channels = true;
    let refuse = |_| Answer::now(Err(Rejection::Failed("not asked at connect".into())));
    let hooks = Hooks { subscribe: Some(Hook::new(refuse)), ..Hooks::default() };
    let mut world = World::with_hooks(options, hooks);
    world.play(
        r##"ada opens uni as 42
           ada > {"subs":{"a":{},"b#42":{}}}
           ada < {"push":{"connect":{"client":"ada","version":"test","subs":{"b#42":{}},"ping":25,"session":"S","node":"N"}}}"##,
    );
}

#[test]
fn a_request_waits_for_a_hook_and_is_read_once() {
    let (promise, answer) = Answer::<Option<ConnectGrant>, Rejection>::later();
    let answer = std::sync::Mutex::new(Some(answer));
    let decide = move |event: fanwire_node::hooks::ConnectEvent| {
        assert_eq!(event.name, "js");
        answer.lock().expect("one thread").take().expect("it is asked once")
    };
    let hooks = Hooks { connect: Some(Hook::new(decide)), ..Hooks::default() };
    let mut world = World::with_hooks(guarded(|_| {}), hooks);
    world.play("ada opens uni\n ada > {\"name\":\"js\"}\n ada > {}\n ada receives nothing");
    promise.keep(Ok(Some(ConnectGrant::default())));
    world.settle();
    world.play(
        r#"ada < {"push":{"connect":{"client":"ada","version":"test","ping":25,"session":"S","node":"N"}}}"#,
    );
}

#[test]
fn the_server_api_works_as_for_other_clients_and_may_name_the_session() {
    let mut world = World::new(options(|_| {}));
    world.open("ada", hello("uni as 42"));
    world.say("ada", "{}");
    let push = world.heard("ada").expect("the connect push");
    let session = session(&world, &push);
    let target = |session: &str| ConnectionSelector {
        user: "42".into(),
        session: session.to_owned(),
        ..ConnectionSelector::default()
    };
    let subscription = ServerSubscription { channel: "a".into(), ..Default::default() };
    let subscribed = world.node.connections().subscribe(target(&session), subscription, world.now);
    world.settle();
    subscribed.wait().expect("the session is there");
    world.play(
        r#"ada < {"push":{"channel":"a","subscribe":{}}}
           api > a 1
           ada < {"push":{"channel":"a","pub":{"data":1}}}"#,
    );
    world.node.connections().unsubscribe(target("foreign"), Some("a")).wait().expect("one node");
    world.node.connections().unsubscribe(target(&session), Some("a")).wait().expect("one node");
    world.settle();
    world.play(
        r#"ada < {"push":{"channel":"a","unsubscribe":{"code":2000,"reason":"server unsubscribe"}}}"#,
    );
    world
        .node
        .connections()
        .disconnect(target("foreign"), Disconnect::FORCE_DISCONNECT)
        .wait()
        .expect("one node");
    world.settle();
    world.play("ada receives nothing");
    world
        .node
        .connections()
        .disconnect(target(&session), Disconnect::FORCE_DISCONNECT)
        .wait()
        .expect("one node");
    world.settle();
    world.play("ada x 3503 force disconnect");
}

#[test]
fn only_the_server_api_prolongs_it_and_else_it_ends_with_3005() {
    let mut world = World::new(guarded(|_| {}));
    let claims = format!(r#"{{"sub":"42","exp":{}}}"#, UNIX + 60);
    let request = format!(r#"{{"token":"{}"}}"#, token(&claims));
    connected(&mut world, &request, r#""expires":true,"ttl":60,"ping":25,"#);
    let target = ConnectionSelector { user: "42".into(), ..ConnectionSelector::default() };
    let renewal = Renewal { expire_at: Some(UNIX + 120), ..Renewal::default() };
    world.node.connections().refresh(target, renewal).wait().expect("one node");
    world.settle();
    world.play(
        r#"
        ada < {"push":{"refresh":{"expires":true,"ttl":120}}}
        wait 144s
        ada receives nothing
        ada awaits 2s
        ada x 3005 connection expired
    "#,
    );
}

/// Ada's session id in her connect push, where the client id reads as her name.
fn session(world: &World, push: &str) -> String {
    let (_, rest) = push.split_once(r#""session":"ada."#).expect("a session id");
    format!("{}.{}", world.id("ada"), rest.split('"').next().expect("its end"))
}
