//! Hooks of event proxies: where they are asked, what they know of a client, chains with hooks of a program, refreshes.
//! In: dialogues with functions in place of a backend → out: what each client received, what the functions got.
//! Uses `world`, `script`. Never: calls; the crate of event proxies has them.
//! Changed here: tests of the port for event proxies. Other hooks are tested in `hooks`.

use std::sync::{Arc, Mutex};

use fanwire_broker::{Answer, Promise};
use fanwire_node::ConnectionInfo;
use fanwire_node::hooks::{
    ConnectEvent, ConnectGrant, Hook, Hooks, RefreshEvent, RefreshGrant, Rejection, RpcEvent,
    SubscribeEvent, SubscribeGrant,
};
use fanwire_node::options::{Namespace, Options, ProxyChoice, ProxyRoute};

use crate::script::hello;
use crate::world::{UNIX, World, options};

/// The promises of a hook, until the test keeps them.
type Asked = Arc<Mutex<Vec<Promise<Option<bytes::Bytes>, Rejection>>>>;

const ADA: &str = r#"ada opens
    ada > {"id":1,"connect":{}}
    ada < {"id":1,"connect":{"client":"ada","version":"test","ping":25,"pong":true}}"#;

/// A hook of proxies that decides at once.
fn proxy<E: 'static, G: 'static>(
    decide: impl Fn(E) -> Result<Option<G>, Rejection> + Send + Sync + 'static,
) -> Option<Hook<E, G>> {
    Some(Hook::of_proxies(move |event, _| Answer::now(decide(event))))
}

fn chosen(name: &str) -> ProxyChoice {
    ProxyChoice { enabled: true, name: name.into() }
}

/// A namespace `room` whose subscribes a proxy decides.
fn proxied(change: impl FnOnce(&mut Namespace)) -> Options {
    options(|options| {
        let mut room = Namespace {
            name: "room".into(),
            subscribe_proxy: chosen("one"),
            ..Namespace::default()
        };
        change(&mut room);
        options.channel.namespaces = vec![room];
    })
}

#[test]
fn a_proxy_is_asked_only_where_a_namespace_names_it() {
    let subscribe = |_: SubscribeEvent, route: ProxyRoute| {
        assert_eq!(route.proxy.as_deref(), Some("one"));
        let grant = SubscribeGrant { data: "1".into(), ..SubscribeGrant::default() };
        Answer::now(Ok(Some(grant)))
    };
    let hooks = Hooks { subscribe: Some(Hook::of_proxies(subscribe)), ..Hooks::default() };
    World::with_hooks(proxied(|_| {}), hooks).play(&format!(
        r#"{ADA}
           ada > {{"id":2,"subscribe":{{"channel":"a"}}}}
           ada < {{"id":2,"subscribe":{{}}}}
           ada > {{"id":3,"subscribe":{{"channel":"room:1"}}}}
           ada < {{"id":3,"subscribe":{{"data":1}}}}"#
    ));
}

#[test]
fn a_connect_requests_no_channel_that_a_proxy_decides_about() {
    let subscribe = |_: SubscribeEvent| -> Result<Option<SubscribeGrant>, Rejection> {
        panic!("a connect asks no hook about a channel")
    };
    let hooks = Hooks { subscribe: proxy(subscribe), ..Hooks::default() };
    let open = proxied(|room| room.allow_subscribe_for_client = true);
    World::with_hooks(open, hooks).play(
        r#"ada opens
           ada > {"id":1,"connect":{"subs":{"a":{},"room:1":{}}}}
           ada < {"id":1,"connect":{"client":"ada","version":"test","subs":{"a":{}},"ping":25,"pong":true}}"#,
    );
}

#[test]
fn methods_have_namespaces_with_proxies() {
    let rpc = |event: RpcEvent, route: ProxyRoute| {
        let data = format!(r#""{} {}""#, route.proxy.expect("a name"), event.method);
        Answer::now(Ok(Some(data.into())))
    };
    let hooks = Hooks { rpc: Some(Hook::of_proxies(rpc)), ..Hooks::default() };
    let options = options(|options| {
        options.rpc.namespaces.insert("shop".into(), chosen("two"));
        options.rpc.namespaces.insert("off".into(), ProxyChoice::default());
    });
    World::with_hooks(options, hooks).play(&format!(
        r#"{ADA}
           ada > {{"id":2,"rpc":{{"method":"shop:buy"}}}}
           ada < {{"id":2,"rpc":{{"data":"two shop:buy"}}}}
           ada > {{"id":3,"rpc":{{"method":"none:buy"}}}}
           ada < {{"id":3,"error":{{"code":104,"message":"method not found"}}}}
           ada > {{"id":4,"rpc":{{"method":"off:buy"}}}}
           ada < {{"id":4,"error":{{"code":108,"message":"not available"}}}}
           ada > {{"id":5,"rpc":{{"method":"buy"}}}}
           ada < {{"id":5,"error":{{"code":108,"message":"not available"}}}}"#
    ));
}

#[test]
fn hooks_of_a_program_are_asked_first_and_proxies_about_the_rest() {
    let first = Asked::default();
    let second = Asked::default();
    let later = |asked: &Asked| {
        let asked = Arc::clone(asked);
        Some(Hook::new(move |_: RpcEvent| {
            let (promise, answer) = Answer::later();
            asked.lock().expect("one thread").push(promise);
            answer
        }))
    };
    let hooks = Hooks { rpc: later(&first), ..Hooks::default() };
    let hooks = hooks.or(Hooks { rpc: later(&second), ..Hooks::default() });
    let mut world = World::with_hooks(options(|_| {}), hooks);
    world.play(&format!("{ADA}\n ada > {{\"id\":2,\"rpc\":{{\"method\":\"m\"}}}}"));
    let take = |asked: &Asked| asked.lock().expect("one thread").pop();
    assert!(take(&second).is_none(), "the first has not decided yet");
    take(&first).expect("asked").keep(Ok(None));
    take(&second).expect("asked").keep(Ok(Some("2".into())));
    world.settle();
    world.play(
        "ada < {\"id\":2,\"rpc\":{\"data\":2}}\n ada > {\"id\":3,\"rpc\":{\"method\":\"m\"}}",
    );
    take(&first).expect("asked").keep(Ok(Some("1".into())));
    world.settle();
    world.play("ada < {\"id\":3,\"rpc\":{\"data\":1}}");
    assert!(take(&second).is_none(), "the first has decided");
}

#[test]
fn a_hook_knows_headers_transport_and_meta_of_its_client() {
    let connect = |event: ConnectEvent| {
        assert_eq!(event.channels, ["a"]);
        let context = &event.context;
        assert_eq!((context.transport, context.protocol), ("websocket", "json"));
        assert_eq!(context.headers, [("cookie".to_owned(), "c=1".into())]);
        assert_eq!(context.emulated_headers, [("x-a".to_owned(), "1".to_owned())]);
        let meta = r#"{"m":1}"#.into();
        Ok(Some(ConnectGrant { meta, ignores_request: true, ..ConnectGrant::default() }))
    };
    let rpc = |event: RpcEvent| Ok(Some(event.context.meta.clone()));
    let hooks = Hooks {
        connect: proxy(connect),
        rpc: proxy(rpc),
        emulated_headers: vec!["x-a".into()],
        ..Hooks::default()
    };
    let options = options(|options| options.rpc.without_namespace = chosen("default"));
    let mut world = World::with_hooks(options, hooks);
    let headers = vec![("cookie".to_owned(), "c=1".into())];
    world.open("ada", ConnectionInfo { headers, ..hello("") });
    world.play(
        r#"ada > {"id":1,"connect":{"headers":{"X-A":"1","X-B":"2"},"subs":{"a":{}}}}
           ada < {"id":1,"connect":{"client":"ada","version":"test","ping":25,"pong":true}}
           ada > {"id":2,"rpc":{"method":"m"}}
           ada < {"id":2,"rpc":{"data":{"m":1}}}"#,
    );
}

#[test]
fn a_backend_without_an_answer_is_error_100_of_the_command() {
    let rpc = |_: RpcEvent| -> Result<Option<bytes::Bytes>, Rejection> {
        Err(Rejection::Unavailable("down".into()))
    };
    let hooks = Hooks { rpc: proxy(rpc), ..Hooks::default() };
    let options = options(|options| options.rpc.without_namespace = chosen("default"));
    World::with_hooks(options, hooks).play(&format!(
        r#"{ADA}
           ada > {{"id":2,"rpc":{{"method":"m"}}}}
           ada < {{"id":2,"error":{{"code":100,"message":"internal server error","temporary":true}}}}"#
    ));
}

#[test]
fn a_subscription_is_refreshed_by_its_proxy_until_it_is_not() {
    let answers = Arc::new(Mutex::new(vec![
        Ok(None),
        Err(Rejection::Unavailable("down".into())),
        Ok(Some(RefreshGrant { expire_at: Some(UNIX + 100), ..RefreshGrant::default() })),
    ]));
    let asked = Arc::clone(&answers);
    let refresh = move |event: RefreshEvent| {
        assert_eq!(event.channel.as_deref(), Some("room:1"));
        asked.lock().expect("one thread").pop().expect("a refresh too many")
    };
    let grant = |_| Ok(Some(SubscribeGrant { expire_at: Some(UNIX + 60), ..Default::default() }));
    let hooks = Hooks { subscribe: proxy(grant), sub_refresh: proxy(refresh), ..Hooks::default() };
    let mut world =
        World::with_hooks(proxied(|room| room.sub_refresh_proxy = chosen("one")), hooks);
    // The client does not learn of an end that the server moves.
    world.play(&format!(
        r#"{ADA}
           ada > {{"id":2,"subscribe":{{"channel":"room:1"}}}}
           ada < {{"id":2,"subscribe":{{}}}}
           wait 59s"#
    ));
    let left = || answers.lock().expect("one thread").len();
    assert_eq!(left(), 3);
    world.play("wait 2s");
    assert_eq!(left(), 2, "renewed until 100");
    world.play("wait 41s");
    assert_eq!(left(), 1, "the backend is down, the subscription goes on");
    world.play("wait 57s");
    assert_eq!(left(), 1, "asked again after a minute");
    world.play("wait 3s\n ada < {\"push\":{\"channel\":\"room:1\",\"unsubscribe\":{\"code\":2501,\"reason\":\"subscription expired\"}}}");
}

#[test]
fn a_client_may_not_refresh_what_a_proxy_refreshes() {
    let grant = |_| Ok(Some(SubscribeGrant { expire_at: Some(UNIX + 60), ..Default::default() }));
    let refresh = |_: RefreshEvent| Ok(None);
    for (sub_refresh_proxy, answer) in [
        (
            chosen("one"),
            "ada x 3501 bad request: the sub_refresh proxy of the namespace renews the subscription",
        ),
        (ProxyChoice::default(), "ada x 3500 invalid token"),
    ] {
        let hooks =
            Hooks { subscribe: proxy(grant), sub_refresh: proxy(refresh), ..Hooks::default() };
        let mut world = World::with_hooks(
            proxied(|room| room.sub_refresh_proxy = sub_refresh_proxy.clone()),
            hooks,
        );
        world.open("ada", hello(""));
        world.say("ada", r#"{"id":1,"connect":{}}"#);
        world.say("ada", r#"{"id":2,"subscribe":{"channel":"room:1"}}"#);
        let replies = [world.heard("ada"), world.heard("ada")];
        assert!(
            replies
                .iter()
                .all(|reply| reply.as_ref().is_some_and(|reply| !reply.contains("error")))
        );
        world.play(&format!("ada > {{\"id\":3,\"sub_refresh\":{{\"channel\":\"room:1\",\"token\":\"x.y.z\"}}}}\n {answer}"));
    }
}

#[test]
fn what_a_client_requests_is_not_given_where_a_grant_ignores_it() {
    let grant = |_| Ok(Some(SubscribeGrant { ignores_request: true, ..Default::default() }));
    let hooks = Hooks { subscribe: proxy(grant), ..Hooks::default() };
    let with_history = proxied(|room| {
        room.history_size = 10;
        room.history_ttl = std::time::Duration::from_secs(60);
        room.allow_recovery = true;
    });
    World::with_hooks(with_history, hooks).play(&format!(
        r#"{ADA}
           ada > {{"id":2,"subscribe":{{"channel":"room:1","recoverable":true}}}}
           ada < {{"id":2,"subscribe":{{}}}}"#
    ));
}
