//! Hooks: what they receive, what their grants and rejections do, and what waits for them.
//! In: dialogues with functions that answer at once or when the test says so → out: what each client received.
//! Uses: `world`, `script`. Never: threads; timeouts belong to the program around the node.
//! Changed here: tests of what a hook decides. What runs hooks is tested in `fanwire`.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use fanwire_auth::{ChannelGrant, Overrides};
use fanwire_broker::{Answer, Promise};
use fanwire_node::Options;
use fanwire_node::hooks::{
    ClientReport, ConnectEvent, ConnectGrant, Hook, Hooks, PublishEvent, PublishGrant,
    RefreshEvent, RefreshGrant, Rejection, RpcEvent, SubscribeEvent, SubscribeGrant,
};
use fanwire_protocol::{Disconnect, ProtocolError};

use crate::tokens::{connect, guarded};
use crate::world::{UNIX, World, options};

/// Events with the promises of their answers, until the test keeps them.
type Asked<E, G> = Arc<Mutex<Vec<(E, Promise<Option<G>, Rejection>)>>>;

/// A hook whose answers come when the test says so.
fn later<E: Send + 'static, G: Send + 'static>(asked: &Asked<E, G>) -> Option<Hook<E, G>> {
    let asked = Arc::clone(asked);
    Some(Hook::new(move |event| {
        let (promise, answer) = Answer::later();
        asked.lock().expect("one thread").push((event, promise));
        answer
    }))
}

/// A hook that answers at once.
fn now<E, G>(
    decide: impl Fn(E) -> Result<Option<G>, Rejection> + Send + Sync + 'static,
) -> Option<Hook<E, G>> {
    Some(Hook::new(move |event| Answer::now(decide(event))))
}

fn one<E, G>(asked: &Asked<E, G>) -> (E, Promise<Option<G>, Rejection>) {
    let mut asked = asked.lock().expect("one thread");
    assert_eq!(asked.len(), 1, "events that wait");
    asked.pop().expect("one")
}

fn error(code: u32) -> Rejection {
    ProtocolError { code, message: "not today".to_owned(), temporary: false }.into()
}

const ADA: &str = r#"ada opens
    ada > {"id":1,"connect":{}}
    ada < {"id":1,"connect":{"client":"ada","version":"test","ping":25,"pong":true}}"#;

#[test]
fn a_connect_waits_for_its_hook_and_gets_user_data_and_channels() {
    let asked = Asked::<ConnectEvent, ConnectGrant>::default();
    let hooks = Hooks { connect: later(&asked), ..Hooks::default() };
    let mut world = World::with_hooks(guarded(|_| {}), hooks);
    world.play(
        r#"ada opens
           ada > {"id":1,"connect":{"token":"","data":{"room":7},"name":"js","version":"5"}}\n{"id":2,"presence":{"channel":"a"}}
           ada receives nothing"#,
    );
    let (event, promise) = one(&asked);
    assert_eq!((event.name.as_str(), event.version.as_str()), ("js", "5"));
    assert_eq!(event.data, r#"{"room":7}"#);
    let channels = [("a".to_owned(), ChannelGrant { data: "5".into(), ..Default::default() })];
    promise.keep(Ok(Some(ConnectGrant {
        user: "42".to_owned(),
        data: r#"{"hello":1}"#.into(),
        channels: BTreeMap::from(channels),
        ..ConnectGrant::default()
    })));
    world.settle();
    world.play(
        r#"ada < {"id":1,"connect":{"client":"ada","version":"test","data":{"hello":1},"subs":{"a":{"data":5}},"ping":25,"pong":true}}
           ada < {"id":2,"error":{"code":108,"message":"not available"}}"#,
    );
    assert_eq!(world.id("ada"), event.client, "the hook knew the id");
}

#[test]
fn as_many_calls_as_allowed_are_in_flight_and_later_commands_wait_for_the_next() {
    let asked = Asked::<RpcEvent, Bytes>::default();
    let hooks = Hooks { rpc: later(&asked), ..Hooks::default() };
    let mut world = World::with_hooks(options(|options| options.client.concurrency = 2), hooks);
    world.play(ADA);
    let rpc = |id: u32| format!(r#"{{"id":{id},"rpc":{{"method":"m","data":{id}}}}}"#);
    world.say("ada", &format!("{}\n{}", rpc(2), rpc(3)));
    world.say("ada", &format!(r#"{}{}{{"id":5,"rpc":{{"method":"ping"}}}}"#, rpc(4), "\n"));
    let take = |place: usize| asked.lock().expect("one thread").remove(place).1;
    assert_eq!(asked.lock().expect("one thread").len(), 2, "the third waits");
    take(1).keep(Ok(Some("33".into())));
    world.settle();
    world.play(r#"ada < {"id":3,"rpc":{"data":33}}"#);
    assert_eq!(asked.lock().expect("one thread").len(), 2, "the first and the third");
    take(0).keep(Err(error(1000)));
    world.settle();
    world.play(r#"ada < {"id":2,"error":{"code":1000,"message":"not today"}}"#);
    assert_eq!(asked.lock().expect("one thread").len(), 2, "one ended, and the last begins");
    world.close("ada");
    take(0).keep(Ok(Some("4".into())));
    world.settle();
}

#[test]
fn a_token_that_a_key_verifies_is_not_shown_to_the_hook() {
    let hooks = Hooks { connect: now(|_| panic!("not asked")), ..Hooks::default() };
    World::with_hooks(guarded(|_| {}), hooks).play(&format!(
        r#"ada opens
           ada > {}
           ada < {{"id":1,"connect":{{"client":"ada","version":"test","ping":25,"pong":true}}}}"#,
        connect(r#"{"sub":"42"}"#),
    ));
    let decide = |event: ConnectEvent| {
        assert_eq!(event.token, "opaque");
        Ok(Some(ConnectGrant { expire_at: Some(UNIX + 60), ..ConnectGrant::default() }))
    };
    let hooks = Hooks { connect: now(decide), ..Hooks::default() };
    World::with_hooks(Options { version: "test".into(), ..Options::default() }, hooks).play(
        r#"ada opens
           ada > {"id":1,"connect":{"token":"opaque"}}
           ada < {"id":1,"connect":{"client":"ada","version":"test","expires":true,"ttl":60,"ping":25,"pong":true}}"#,
    );
}

#[test]
fn a_hook_without_a_decision_leaves_it_to_the_options() {
    let hooks = || Hooks {
        connect: now(|_| Ok(None)),
        subscribe: now(|_| Ok(None)),
        publish: now(|_| Ok(None)),
        rpc: now(|_| Ok(None)),
        ..Hooks::default()
    };
    World::with_hooks(guarded(|_| {}), hooks()).play(
        r#"ada opens
           ada > {"id":1,"connect":{}}
           ada x 3501 bad request: the connect proxy or hook gave no result, and client.allow_anonymous_connect_without_token is off"#,
    );
    World::with_hooks(options(|_| {}), hooks()).play(&format!(
        r#"{ADA}
           ada > {{"id":2,"subscribe":{{"channel":"a"}}}}
           ada < {{"id":2,"subscribe":{{}}}}
           ada > {{"id":3,"publish":{{"channel":"a","data":1}}}}
           ada < {{"push":{{"channel":"a","pub":{{"data":1,"info":{{"user":"","client":"ada"}}}}}}}}
           ada < {{"id":3,"publish":{{}}}}
           ada > {{"id":4,"rpc":{{"method":"x"}}}}
           ada < {{"id":4,"error":{{"code":104,"message":"method not found"}}}}"#
    ));
}

#[test]
fn a_subscribe_waits_for_its_hook_and_other_clients_do_not() {
    let asked = Asked::<SubscribeEvent, SubscribeGrant>::default();
    let hooks = Hooks { subscribe: later(&asked), ..Hooks::default() };
    let closed = options(|options| {
        options.channel.without_namespace.allow_subscribe_for_client = false;
        options.channel.without_namespace.subscribe_rate.limit = 1;
    });
    let mut world = World::with_hooks(closed, hooks);
    world.play(&format!(
        r#"{ADA}
           bob opens
           bob > {{"id":1,"connect":{{}}}}
           bob < {{"id":1,"connect":{{"client":"bob","version":"test","ping":25,"pong":true}}}}
           ada > {{"id":2,"subscribe":{{"channel":"a","data":[3]}}}}\n{{"id":3,"unsubscribe":{{"channel":"a"}}}}
           ada receives nothing
           bob > {{"id":2,"publish":{{"channel":"b","data":1}}}}
           bob < {{"id":2,"publish":{{}}}}"#
    ));
    let (event, promise) = one(&asked);
    assert_eq!((event.channel.as_str(), &event.data[..]), ("a", &b"[3]"[..]));
    assert_eq!(event.client.client, world.id("ada"));
    let overrides = Overrides { presence: Some(true), ..Overrides::default() };
    let info = "1".into();
    promise.keep(Ok(Some(SubscribeGrant {
        info,
        data: r#""hi""#.into(),
        overrides,
        ..Default::default()
    })));
    world.settle();
    world.play(
        r#"ada < {"id":2,"subscribe":{"data":"hi"}}
           ada < {"id":3,"unsubscribe":{}}"#,
    );
}

#[test]
fn a_client_that_closes_while_a_hook_decides_leaves_nothing() {
    let asked = Asked::<SubscribeEvent, SubscribeGrant>::default();
    let hooks = Hooks { subscribe: later(&asked), ..Hooks::default() };
    let mut world = World::with_hooks(options(|_| {}), hooks);
    world.play(&format!(
        r#"{ADA}
           ada > {{"id":2,"subscribe":{{"channel":"a"}}}}
           ada closes"#
    ));
    one(&asked).1.keep(Ok(Some(SubscribeGrant::default())));
    world.settle();
    assert!(!world.node.channels().has_subscribers("a"));
}

#[test]
fn rejections_are_errors_with_codes_of_the_program_or_ends() {
    let reject = |event: SubscribeEvent| match event.channel.as_str() {
        "error" => Err(error(1000)),
        "zero" => Err(error(0)),
        "end" => Err(Disconnect { code: 4501, reason: "banned".into() }.into()),
        "odd" => Err(Disconnect { code: 999, reason: "odd".into() }.into()),
        _ => Err(Rejection::Failed("the subscribe hook panicked".into())),
    };
    let cases = [
        ("error", r#"< {"id":2,"error":{"code":1000,"message":"not today"}}"#),
        ("zero", "x 3004 internal server error: a hook returned an error with code 0"),
        ("end", "x 4501 banned"),
        (
            "odd",
            "x 3004 internal server error: a hook returned a code that no close frame may have",
        ),
        ("panic", "x 3004 internal server error: the subscribe hook panicked"),
    ];
    for (channel, expected) in cases {
        let hooks = Hooks { subscribe: now(reject), ..Hooks::default() };
        World::with_hooks(options(|_| {}), hooks).play(&format!(
            "{ADA}\n ada > {{\"id\":2,\"subscribe\":{{\"channel\":\"{channel}\"}}}}\n ada {expected}"
        ));
    }
}

#[test]
fn a_dropped_promise_ends_the_connection() {
    let asked = Asked::<RpcEvent, Bytes>::default();
    let hooks = Hooks { rpc: later(&asked), ..Hooks::default() };
    let mut world = World::with_hooks(options(|_| {}), hooks);
    world.play(&format!("{ADA}\n ada > {{\"id\":2,\"rpc\":{{\"method\":\"m\",\"data\":7}}}}"));
    let (event, promise) = one(&asked);
    assert_eq!((event.method.as_str(), &event.data[..]), ("m", &b"7"[..]));
    drop(promise);
    world.settle();
    world.play("ada x 3004 internal server error: the hook ended without an answer");
}

#[test]
fn a_message_without_reply_reaches_the_hook_as_a_method() {
    let decide = |event: RpcEvent| match (event.method.as_str(), &event.data[..]) {
        ("note", b"1") => Ok(Some("2".into())),
        ("note", b"3") => Ok(None),
        ("note", b"4") => Err(Rejection::Error(ProtocolError {
            code: 400,
            message: "no".into(),
            temporary: false,
        })),
        ("note", b"5") => Err(Disconnect { code: 4_500, reason: "enough".into() }.into()),
        _ => Ok(Some("6".into())),
    };
    let hooks = Hooks { rpc: now(decide), ..Hooks::default() };
    let noted = options(|options| options.rpc.send_method = "note".to_owned());
    World::with_hooks(noted, hooks).play(&format!(
        r#"{ADA}
           ada > {{"send":{{"data":1}}}}\n{{"send":{{"data":3}}}}\n{{"send":{{"data":4}}}}\n{{"id":2,"rpc":{{"method":"m"}}}}
           ada < {{"id":2,"rpc":{{"data":6}}}}
           ada > {{"send":{{"data":5}}}}
           ada x 4500 enough"#
    ));
    let asked = Asked::<RpcEvent, Bytes>::default();
    let noted = options(|options| options.rpc.send_method = "note".to_owned());
    let mut world = World::with_hooks(noted, Hooks { rpc: later(&asked), ..Hooks::default() });
    world.play(&format!("{ADA}\n ada > {{\"send\":{{\"data\":1}}}}\n ada > {{\"id\":2,\"rpc\":{{\"method\":\"m\"}}}}"));
    one(&asked).1.keep(Ok(Some("7".into())));
    world.settle();
    one(&asked).1.keep(Ok(Some("8".into())));
    world.settle();
    world.play(r#"ada < {"id":2,"rpc":{"data":8}}"#);
}

#[test]
fn a_publish_hook_changes_replaces_or_takes_a_publication() {
    let decide = |event: PublishEvent| {
        Ok(Some(PublishGrant {
            data: Some(format!("[{}]", String::from_utf8_lossy(&event.data)).into()),
            tags: BTreeMap::from([("by".to_owned(), "hook".to_owned())]),
            is_processed: event.data == "1",
            ..PublishGrant::default()
        }))
    };
    let hooks = Hooks { publish: now(decide), ..Hooks::default() };
    let closed =
        options(|options| options.channel.without_namespace.allow_publish_for_client = false);
    World::with_hooks(closed, hooks).play(&format!(
        r#"{ADA}
           ada > {{"id":2,"subscribe":{{"channel":"a"}}}}
           ada < {{"id":2,"subscribe":{{}}}}
           ada > {{"id":3,"publish":{{"channel":"a","data":1}}}}
           ada < {{"id":3,"publish":{{}}}}
           ada > {{"id":4,"publish":{{"channel":"a","data":2}}}}
           ada < {{"push":{{"channel":"a","pub":{{"data":[2],"info":{{"user":"","client":"ada"}},"tags":{{"by":"hook"}}}}}}}}
           ada < {{"id":4,"publish":{{}}}}"#
    ));
}

#[test]
fn an_expired_connection_is_refreshed_by_the_hook_or_ends() {
    let asked = Asked::<RefreshEvent, RefreshGrant>::default();
    let grant = |_| Ok(Some(ConnectGrant { expire_at: Some(UNIX + 60), ..Default::default() }));
    let hooks = Hooks { connect: now(grant), refresh: later(&asked), ..Hooks::default() };
    let mut world = World::with_hooks(options(|_| {}), hooks);
    // The client does not learn of an end that the server moves.
    world.play(&format!("{ADA}\n wait 59s"));
    assert!(asked.lock().expect("one thread").is_empty());
    world.play("wait 2s");
    let renewal = RefreshGrant { expire_at: Some(UNIX + 100), ..RefreshGrant::default() };
    one(&asked).1.keep(Ok(Some(renewal)));
    world.settle();
    world.play("wait 40s"); // the client never knew of an end
    one(&asked).1.keep(Err(Rejection::Failed("too slow".into())));
    world.play("wait 50s");
    assert!(asked.lock().expect("one thread").is_empty(), "asked again after a minute");
    world.play("wait 11s");
    one(&asked).1.keep(Ok(None));
    world.settle();
    world.play("ada x 3005 connection expired");
}

#[test]
fn a_client_that_refreshes_against_a_refresh_hook_ends() {
    let hooks = Hooks { refresh: now(|_| Ok(None)), ..Hooks::default() };
    World::with_hooks(options(|_| {}), hooks).play(&format!(
        "{ADA}\n ada > {{\"id\":2,\"refresh\":{{\"token\":\"t\"}}}}
         ada x 3501 bad request: the refresh hook of the server renews the connection"
    ));
}

#[test]
fn reports_follow_each_client_in_order() {
    let reports = Arc::<Mutex<Vec<String>>>::default();
    let line = |report: ClientReport| match report {
        ClientReport::Connected { client } => format!("{} ok", client.user),
        ClientReport::Subscribed { client, channel, data } => {
            format!("{} + {channel} {}", client.user, String::from_utf8_lossy(&data))
        }
        ClientReport::ViewChanged { .. } => unreachable!("no views"),
        ClientReport::Unsubscribed { client, channel } => format!("{} - {channel}", client.user),
        ClientReport::Disconnected { client, disconnect } => {
            format!("{} x {disconnect}", client.user)
        }
    };
    let sink = Arc::clone(&reports);
    let report = move |report| sink.lock().expect("one thread").push(line(report));
    let decide = |event: ConnectEvent| {
        let user = String::from_utf8_lossy(&event.data).into_owned();
        Ok(Some(ConnectGrant { user, ..ConnectGrant::default() }))
    };
    let hooks = Hooks { connect: now(decide), report: Some(Box::new(report)), ..Hooks::default() };
    let mut world = World::with_hooks(options(|_| {}), hooks);
    for name in ["ada", "bob", "eve"] {
        world.open(name, crate::script::hello(""));
    }
    for name in ["ada", "bob"] {
        let user = name.len();
        let client = name;
        world.say(client, &format!(r#"{{"id":1,"connect":{{"data":{user}}}}}"#));
        world.say(client, r#"{"id":2,"subscribe":{"channel":"a","data":[1]}}"#);
    }
    world.say("ada", r#"{"id":3,"unsubscribe":{"channel":"a"}}"#);
    world.close("bob");
    world.close("eve"); // never connected
    world.say("ada", r#"{"id":0,"subscribe":{"channel":"a"}}"#);
    let reports = reports.lock().expect("one thread");
    let expected = [
        "3 ok",
        "3 + a [1]",
        "3 ok",
        "3 + a [1]",
        "3 - a",
        "3 - a",
        "3 x connection closed (3000)",
        "3 x bad request: the command has no id (3501)",
    ];
    assert_eq!(*reports, expected);
}
