//! Changes of maps by clients: permissions, keys, limits, what others receive (protocol §16, §27).
//! In: scripts of clients → out: replies and pushes, word for word.
//! Uses `world` and `script`. Never: the server API; `crates/api` tests its methods.
//! Changed here: dialogues of publishes and removals.

use fanwire_broker::Answer;
use fanwire_broker::map::KeyMode;
use fanwire_node::hooks::{Hook, Hooks, MapEvent, MapGrant, Rejection};
use fanwire_node::options::{
    ClientKey, DataFormat, MapMode, MapOptions, Options, ProxyChoice, ProxyRoute,
};
use fanwire_protocol::ErrorCode;

use super::maps;
use crate::publish::check;
use crate::script::{hello, play_in_both};
use crate::world::World;

fn with(change: impl FnOnce(&mut MapOptions)) -> Options {
    maps(MapMode::Persistent, |options| {
        let map = &mut options.channel.without_namespace.map;
        map.allow_publish_for_client = true;
        map.allow_publish_for_anonymous = true;
        map.allow_remove_for_client = true;
        map.allow_remove_for_anonymous = true;
        change(map);
    })
}

#[test]
fn a_client_sets_and_removes_keys_and_receives_its_own_changes() {
    check(
        &with(|_| {}),
        r#"
        ada > {"id":2,"subscribe":{"channel":"m","type":1,"phase":2}}
        ada < {"id":2,"subscribe":{"recoverable":true,"epoch":"E1","type":1}}
        ada > {"id":3,"publish":{"channel":"m","type":1,"key":"k","data":{"x":1}}}
        ada < {"push":{"channel":"m","pub":{"data":{"x":1},"info":{"user":"","client":"ada"},"offset":1,"key":"k","epoch":"E1"}}}
        ada < {"id":3,"publish":{}}
        ada > {"id":4,"publish":{"channel":"m","type":1,"key":"k","removed":true}}
        ada < {"push":{"channel":"m","pub":{"offset":2,"key":"k","removed":true}}}
        ada < {"id":4,"publish":{}}
        ada > {"id":5,"publish":{"channel":"m","type":1,"key":"k","removed":true}}
        ada < {"id":5,"publish":{}}
    "#,
    );
}

#[test]
fn without_a_permission_a_change_is_103() {
    let refused = r#"
        ada > {"id":2,"publish":{"channel":"m","type":1,"key":"k","data":1}}
        ada < {"id":2,"error":{"code":103,"message":"permission denied"}}
        ada > {"id":3,"publish":{"channel":"m","type":1,"key":"k","removed":true}}
        ada < {"id":3,"error":{"code":103,"message":"permission denied"}}
        ada > {"id":4,"publish":{"channel":"m","key":"k","data":1}}
        ada < {"id":4,"error":{"code":103,"message":"permission denied"}}
    "#;
    check(&maps(MapMode::Persistent, |_| {}), refused);
    check(
        &with(|map| {
            map.allow_publish_for_anonymous = false;
            map.allow_remove_for_anonymous = false;
        }),
        refused,
    );
    let subscribers = with(|map| {
        map.allow_publish_for_client = false;
        map.allow_publish_for_subscriber = true;
        map.allow_remove_for_client = false;
    });
    check(
        &subscribers,
        &format!(
            r#"{refused}
            ada > {{"id":5,"subscribe":{{"channel":"m","type":1,"phase":2}}}}
            ada < {{"id":5,"subscribe":{{"recoverable":true,"epoch":"E1","type":1}}}}
            ada > {{"id":6,"publish":{{"channel":"m","type":1,"key":"k","removed":true}}}}
            ada < {{"id":6,"error":{{"code":103,"message":"permission denied"}}}}
            ada > {{"id":7,"publish":{{"channel":"m","type":1,"key":"k","data":1}}}}
            ada < {{"push":{{"channel":"m","pub":{{"data":1,"info":{{"user":"","client":"ada"}},"offset":1,"key":"k","epoch":"E1"}}}}}}
            ada < {{"id":7,"publish":{{}}}}
        "#
        ),
    );
}

#[test]
fn keys_and_data_that_are_not_valid_are_107() {
    let long = "k".repeat(256);
    let options = maps(MapMode::Persistent, |options| {
        let namespace = &mut options.channel.without_namespace;
        namespace.publication_data_format = DataFormat::JsonObject;
        namespace.map.allow_publish_for_client = true;
        namespace.map.allow_publish_for_anonymous = true;
        namespace.map.entries_max = 1;
    });
    check(
        &options,
        &format!(
            r#"
            ada > {{"id":2,"publish":{{"channel":"m","type":1,"data":{{}}}}}}
            ada < {{"id":2,"error":{{"code":107,"message":"bad request"}}}}
            ada > {{"id":3,"publish":{{"channel":"m","type":1,"key":"{long}","data":{{}}}}}}
            ada < {{"id":3,"error":{{"code":107,"message":"bad request"}}}}
            ada > {{"id":4,"publish":{{"channel":"m","type":1,"key":"k","data":1}}}}
            ada < {{"id":4,"error":{{"code":107,"message":"bad request"}}}}
            ada > {{"id":5,"publish":{{"channel":"m","type":1,"key":"k","data":{{}}}}}}
            ada < {{"id":5,"publish":{{}}}}
            ada > {{"id":6,"publish":{{"channel":"m","type":1,"key":"l","data":{{}}}}}}
            ada < {{"id":6,"error":{{"code":111,"message":"too many requests","temporary":true}}}}
        "#
        ),
    );
}

#[test]
fn the_key_of_a_client_is_its_id_or_that_of_its_user() {
    check(
        &with(|map| map.client_key = ClientKey::ClientId),
        r#"
        ada > {"id":2,"subscribe":{"channel":"m","type":1,"phase":2}}
        ada < {"id":2,"subscribe":{"recoverable":true,"epoch":"E1","type":1}}
        ada > {"id":3,"publish":{"channel":"m","type":1,"key":"k","data":1}}
        ada < {"push":{"channel":"m","pub":{"data":1,"info":{"user":"","client":"ada"},"offset":1,"key":"ada","epoch":"E1"}}}
        ada < {"id":3,"publish":{}}
    "#,
    );
    check(
        &with(|map| map.client_key = ClientKey::UserId),
        r#"
        ada > {"id":2,"publish":{"channel":"m","type":1,"key":"k","data":1}}
        ada < {"id":2,"error":{"code":103,"message":"permission denied"}}
    "#,
    );
}

/// A backend that refuses the key `no`, puts a word before others, and sets no key twice.
fn proxied() -> Hooks {
    let publish = |event: MapEvent, route: ProxyRoute| {
        assert_eq!(route.proxy.as_deref(), Some("cards"));
        if event.key == "no" {
            return Answer::now(Err(Rejection::Error(ErrorCode::TOO_MANY_REQUESTS.into())));
        }
        Answer::now(Ok(Some(MapGrant {
            key: Some(format!("card {}", event.key)),
            tags: [("of".to_owned(), event.command.channel)].into(),
            key_mode: KeyMode::IfNew { refreshes: false },
            ..MapGrant::default()
        })))
    };
    let remove = |event: MapEvent, _: ProxyRoute| {
        assert!(event.command.data.is_empty());
        Answer::now(Ok(Some(MapGrant::default())))
    };
    Hooks {
        map_publish: Some(Hook::of_proxies(publish)),
        map_remove: Some(Hook::of_proxies(remove)),
        ..Hooks::default()
    }
}

#[test]
fn a_proxy_decides_about_changes_instead_of_permissions() {
    let chosen = ProxyChoice { enabled: true, name: "cards".into() };
    let options = maps(MapMode::Persistent, |options| {
        let namespace = &mut options.channel.without_namespace;
        namespace.map.publish_proxy = chosen.clone();
        namespace.map.remove_proxy = chosen;
        namespace.publication_data_format = DataFormat::JsonObject;
    });
    World::with_hooks(options, proxied()).play(
        r#"
        ada opens
        ada > {"id":1,"connect":{}}
        ada < {"id":1,"connect":{"client":"ada","version":"test","ping":25,"pong":true}}
        ada > {"id":2,"subscribe":{"channel":"m","type":1,"phase":2}}
        ada < {"id":2,"subscribe":{"recoverable":true,"epoch":"E1","type":1}}
        ada > {"id":3,"publish":{"channel":"m","type":1,"key":"k","data":{"x":1}}}
        ada < {"push":{"channel":"m","pub":{"data":{"x":1},"info":{"user":"","client":"ada"},"offset":1,"tags":{"of":"m"},"key":"card k","epoch":"E1"}}}
        ada < {"id":3,"publish":{}}
        ada > {"id":4,"publish":{"channel":"m","type":1,"key":"k","data":{"x":2}}}
        ada < {"id":4,"publish":{}}
        ada > {"id":5,"publish":{"channel":"m","type":1,"key":"no","data":{}}}
        ada < {"id":5,"error":{"code":111,"message":"too many requests","temporary":true}}
        ada > {"id":6,"publish":{"channel":"m","type":1,"key":"k","data":3}}
        ada < {"id":6,"error":{"code":107,"message":"bad request"}}
        ada > {"id":7,"publish":{"channel":"m","type":1,"key":"card k","removed":true}}
        ada < {"push":{"channel":"m","pub":{"offset":2,"tags":{"of":"m"},"key":"card k","removed":true}}}
        ada < {"id":7,"publish":{}}
    "#,
    );
}

#[test]
fn without_a_proxy_of_the_namespace_permissions_decide() {
    World::with_hooks(maps(MapMode::Persistent, |_| {}), proxied()).play(
        r#"
        ada opens
        ada > {"id":1,"connect":{}}
        ada < {"id":1,"connect":{"client":"ada","version":"test","ping":25,"pong":true}}
        ada > {"id":2,"publish":{"channel":"m","type":1,"key":"k","data":{}}}
        ada < {"id":2,"error":{"code":103,"message":"permission denied"}}
        ada > {"id":3,"publish":{"channel":"m","type":1,"key":"k","removed":true}}
        ada < {"id":3,"error":{"code":103,"message":"permission denied"}}
    "#,
    );
}

#[test]
fn the_entry_of_a_client_is_removed_when_its_subscription_ends() {
    let options = with(|map| {
        map.client_key = ClientKey::ClientId;
        map.remove_client_on_unsubscribe = true;
    });
    for end in [
        "ada > {\"id\":4,\"unsubscribe\":{\"channel\":\"m\"}}\n ada < {\"id\":4,\"unsubscribe\":{}}",
        "ada closes",
    ] {
        play_in_both(
            &options,
            &format!(
                r#"
                ada opens
                ada > {{"id":1,"connect":{{}}}}
                ada < {{"id":1,"connect":{{"client":"ada","version":"test","ping":25,"pong":true}}}}
                bob opens
                bob > {{"id":1,"connect":{{}}}}
                bob < {{"id":1,"connect":{{"client":"bob","version":"test","ping":25,"pong":true}}}}
                ada > {{"id":2,"subscribe":{{"channel":"m","type":1,"phase":2}}}}
                ada < {{"id":2,"subscribe":{{"recoverable":true,"epoch":"E1","type":1}}}}
                ada > {{"id":3,"publish":{{"channel":"m","type":1,"data":1}}}}
                ada < {{"push":{{"channel":"m","pub":{{"data":1,"info":{{"user":"","client":"ada"}},"offset":1,"key":"ada","epoch":"E1"}}}}}}
                ada < {{"id":3,"publish":{{}}}}
                bob > {{"id":2,"subscribe":{{"channel":"m","type":1,"phase":2}}}}
                bob < {{"id":2,"subscribe":{{"recoverable":true,"epoch":"E1","offset":1,"type":1,"state":[{{"data":1,"info":{{"user":"","client":"ada"}},"offset":1,"key":"ada"}}]}}}}
                {end}
                bob < {{"push":{{"channel":"m","pub":{{"offset":2,"key":"ada","removed":true}}}}}}
            "#
            ),
        );
    }
}

/// Updates of one key are patches of its value; another key between them does not matter, and a removal is in full.
#[test]
fn live_changes_are_patches_by_key() {
    let options = maps(MapMode::Persistent, |options| {
        let namespace = &mut options.channel.without_namespace;
        namespace.allowed_delta_types = vec!["fossil".into()];
        namespace.delta_publish = true;
    });
    let mut world = World::new(options);
    world.connected("ada", hello("json"));
    let value = |end: &str| format!("{{\"text\":\"{}{end}\"}}", "x".repeat(100));
    world.set_key("m", "a", &value("1"));
    world.say("ada", r#"{"id":2,"subscribe":{"channel":"m","type":1,"phase":2,"delta":"fossil"}}"#);
    let reply: serde_json::Value =
        serde_json::from_str(&world.heard("ada").expect("a reply")).expect("JSON");
    assert_eq!(reply["subscribe"]["delta"], true);
    assert_eq!(reply["subscribe"]["state"][0]["data"], value("1"), "a string");
    let pushed = |world: &mut World| -> serde_json::Value {
        let push: serde_json::Value =
            serde_json::from_str(&world.heard("ada").expect("a push")).expect("JSON");
        push["push"]["pub"].clone()
    };
    world.set_key("m", "b", &value("1"));
    assert_eq!(pushed(&mut world)["data"], value("1"), "a new key has no base");
    world.set_key("m", "a", &value("2"));
    let patch = pushed(&mut world);
    assert_eq!((&patch["delta"], &patch["key"]), (&true.into(), &"a".into()));
    assert!(patch["data"].as_str().is_some_and(|data| data.len() < 50), "{patch}");
    world.unset_key("m", "a");
    let removal = pushed(&mut world);
    assert_eq!((&removal["removed"], &removal["data"]), (&true.into(), &"null".into()));
    world.set_key("m", "a", &value("3"));
    let full = pushed(&mut world);
    assert!(full["delta"].is_null() && full["data"] == value("3"), "{full}");
}

/// A change may reach a client for the second time there, so that no value is a safe base.
#[test]
fn ephemeral_maps_send_all_data_in_full() {
    let options = maps(MapMode::Ephemeral, |options| {
        let namespace = &mut options.channel.without_namespace;
        namespace.allowed_delta_types = vec!["fossil".into()];
        namespace.delta_publish = true;
    });
    let mut world = World::new(options);
    world.connected("ada", hello("json"));
    let value = format!("\"{}\"", "x".repeat(100));
    world.set_key("m", "k", &value);
    world.say("ada", r#"{"id":2,"subscribe":{"channel":"m","type":1,"phase":2,"delta":"fossil"}}"#);
    let reply = world.heard("ada").expect("a reply");
    assert!(reply.contains(r#""delta":true"#), "{reply}");
    world.set_key("m", "k", &value);
    let push = world.heard("ada").expect("a push");
    assert!(!push.contains("delta") && push.len() > 100, "{push}");
}
