//! Filters that the server sets (protocol §13): by tokens and hooks, for every way in which publications reach a client.
//! In: dialogues with signed tokens and deciding hooks → out: what each subscriber heard, refusals.
//! Uses: `world`, `script`, `tokens`. Never: operators of filters; deltas, which `deltas/filtered.rs` tests.
//! Changed here: tests of grants with a filter.

use std::sync::Mutex;
use std::time::Duration;

use fanwire_broker::{Answer, PublishOptions};
use fanwire_node::Options;
use fanwire_node::area::Place;
use fanwire_node::hooks::{
    Hook, Hooks, RefreshEvent, RefreshGrant, Rejection, SubscribeEvent, SubscribeGrant,
};
use fanwire_node::options::{
    AreaOptions, MapMode, MapOptions, Namespace, RecoveryMode, SubscriptionType,
};
use fanwire_protocol::Publication;

use crate::script::{hello, play_in_both};
use crate::tokens::{connect, guarded, token};
use crate::world::{UNIX, World};

/// Channels that only tokens open, with a history that their subscribers may read.
fn guarded_history(change: impl FnOnce(&mut Namespace)) -> Options {
    guarded(|options| {
        let namespace = &mut options.channel.without_namespace;
        namespace.history_size = 9;
        namespace.history_ttl = Duration::from_secs(600);
        namespace.allow_tags_filter = true;
        change(namespace);
    })
}

fn team(name: &str) -> String {
    format!(r#"{{"key":"team","cmp":"eq","val":"{name}"}}"#)
}

/// A token of channel `a` with these claims behind those of the user and the channel.
fn granting(claims: &str) -> String {
    token(&format!(r#"{{"sub":"42","channel":"a"{claims}}}"#))
}

fn with_team(name: &str) -> String {
    granting(&format!(r#","server_tags_filter":{}"#, team(name)))
}

/// Ada is user 42, and `TOKEN` stands for a token of channel `a` with the filter of the red team.
fn check(options: &Options, rest: &str) {
    let connected = format!(
        r#"ada opens
           ada > {}
           ada < {{"id":1,"connect":{{"client":"ada","version":"test","ping":25,"pong":true}}}}
        "#,
        connect(r#"{"sub":"42"}"#),
    );
    let rest = rest.replace("TOKEN", &with_team("red"));
    play_in_both(options, &format!("{connected}{rest}"));
}

/// A world in which Ada is user 42 and speaks JSON.
fn connected(options: Options) -> World {
    let mut world = World::new(options);
    world.open("ada", hello("json"));
    world.say("ada", &connect(r#"{"sub":"42"}"#));
    assert!(world.heard("ada").is_some());
    world
}

#[test]
fn a_subscriber_gets_what_the_filter_of_its_token_lets_through() {
    check(
        &guarded(|_| {}),
        r#"
        ada > {"id":2,"subscribe":{"channel":"a","token":"TOKEN"}}
        ada < {"id":2,"subscribe":{}}
        api tags team=blue: a 1
        api > a 2
        api tags team=blue: a no-json
        api tags team=red: a 3
        ada < {"push":{"channel":"a","pub":{"data":3,"tags":{"team":"red"}}}}
    "#,
    );
}

#[test]
fn the_filter_of_the_client_only_narrows_that_of_the_server() {
    check(
        &guarded_history(|_| {}),
        r#"
        ada > {"id":2,"subscribe":{"channel":"a","token":"TOKEN","tf":{"op":"or","nodes":[{"key":"team","cmp":"nex"},{"key":"about","cmp":"eq","val":"art"}]}}}
        ada < {"id":2,"subscribe":{}}
        api > a 1
        api tags team=blue,about=art: a 2
        api tags team=red: a 3
        api tags team=red,about=art: a 4
        ada < {"push":{"channel":"a","pub":{"data":4,"offset":4,"tags":{"about":"art","team":"red"}}}}
    "#,
    );
}

#[test]
fn recovery_leaves_out_what_the_filter_hides() {
    check(
        &guarded_history(|namespace| namespace.force_recovery = true),
        r#"
        ada > {"id":2,"subscribe":{"channel":"a","token":"TOKEN"}}
        ada < {"id":2,"subscribe":{"recoverable":true,"epoch":"E1","positioned":true}}
        ada > {"id":3,"unsubscribe":{"channel":"a"}}
        ada < {"id":3,"unsubscribe":{}}
        api tags team=blue: a 1
        api tags team=red: a 2
        api tags team=blue: a 3
        ada > {"id":4,"subscribe":{"channel":"a","token":"TOKEN","recover":true,"epoch":"E1"}}
        ada < {"id":4,"subscribe":{"recoverable":true,"epoch":"E1","publications":[{"data":2,"offset":2,"tags":{"team":"red"}}],"recovered":true,"positioned":true,"was_recovering":true}}
        api tags team=blue: a 4
        api tags team=red: a 5
        ada < {"push":{"channel":"a","pub":{"data":5,"offset":5,"tags":{"team":"red"}}}}
    "#,
    );
}

#[test]
fn a_cache_has_the_newest_publication_that_the_filter_lets_through() {
    check(
        &guarded_history(|namespace| {
            namespace.force_recovery = true;
            namespace.force_recovery_mode = RecoveryMode::Cache;
            namespace.auto_cache_recover = true;
        }),
        r#"
        api tags team=red: a 1
        api tags team=blue: a 2
        ada > {"id":2,"subscribe":{"channel":"a","token":"TOKEN"}}
        ada < {"id":2,"subscribe":{"recoverable":true,"epoch":"E1","publications":[{"data":1,"offset":1,"tags":{"team":"red"}}],"recovered":true,"positioned":true,"was_recovering":true}}
    "#,
    );
}

#[test]
fn a_page_of_history_has_what_the_filter_lets_through() {
    check(
        &guarded_history(|namespace| namespace.allow_history_for_subscriber = true),
        r#"
        ada > {"id":2,"subscribe":{"channel":"a","token":"TOKEN"}}
        ada < {"id":2,"subscribe":{}}
        api tags team=red: a 1
        ada < {"push":{"channel":"a","pub":{"data":1,"offset":1,"tags":{"team":"red"},"epoch":"E1"}}}
        api tags team=blue: a 2
        api > a 3
        api tags team=red: a 4
        ada < {"push":{"channel":"a","pub":{"data":4,"offset":4,"tags":{"team":"red"}}}}
        ada > {"id":3,"history":{"channel":"a","limit":2}}
        ada < {"id":3,"history":{"publications":[{"data":1,"offset":1,"tags":{"team":"red"}},{"data":4,"offset":4,"tags":{"team":"red"}}],"epoch":"E1","offset":4}}
        ada > {"id":4,"history":{"channel":"a","limit":1,"reverse":true}}
        ada < {"id":4,"history":{"publications":[{"data":4,"offset":4,"tags":{"team":"red"}}],"epoch":"E1","offset":4}}
        ada > {"id":5,"history":{"channel":"a"}}
        ada < {"id":5,"history":{"publications":[],"epoch":"E1","offset":4}}
        ada > {"id":6,"unsubscribe":{"channel":"a"}}
        ada < {"id":6,"unsubscribe":{}}
        ada > {"id":7,"history":{"channel":"a","limit":2}}
        ada < {"id":7,"error":{"code":103,"message":"permission denied"}}
    "#,
    );
}

#[test]
fn a_refresh_replaces_the_filter_at_once_and_a_token_without_one_removes_it() {
    let refresh = |token: String| {
        format!(
            r#"ada > {{"id":3,"sub_refresh":{{"channel":"a","token":"{token}"}}}}
               ada < {{"id":3,"sub_refresh":{{}}}}"#
        )
    };
    check(
        &guarded(|_| {}),
        &format!(
            r#"
            ada > {{"id":2,"subscribe":{{"channel":"a","token":"TOKEN"}}}}
            ada < {{"id":2,"subscribe":{{}}}}
            {}
            api tags team=red: a 1
            api tags team=blue: a 2
            ada < {{"push":{{"channel":"a","pub":{{"data":2,"tags":{{"team":"blue"}}}}}}}}
            {}
            api > a 3
            ada < {{"push":{{"channel":"a","pub":{{"data":3}}}}}}
            {}
            api > a 4
            ada receives nothing"#,
            refresh(with_team("blue")),
            refresh(granting("")),
            refresh(with_team("red")),
        ),
    );
}

#[test]
fn a_grant_with_a_filter_that_is_none_is_refused() {
    for claim in [r#"{}"#, r#"{"key":"team","cmp":"eq"}"#, r#""team""#, "[]", "1"] {
        let bad = granting(&format!(r#","server_tags_filter":{claim}"#));
        check(
            &guarded(|_| {}),
            &format!(
                r#"
                ada > {{"id":2,"subscribe":{{"channel":"a","token":"{bad}"}}}}
                ada < {{"id":2,"error":{{"code":103,"message":"permission denied"}}}}
                ada > {{"id":3,"subscribe":{{"channel":"a","token":"TOKEN"}}}}
                ada < {{"id":3,"subscribe":{{}}}}
                ada > {{"id":4,"sub_refresh":{{"channel":"a","token":"{bad}"}}}}
                ada x 3500 invalid token"#
            ),
        );
    }
    let none = granting(r#","server_tags_filter":null"#);
    check(
        &guarded(|_| {}),
        &format!(
            r#"
            ada > {{"id":2,"subscribe":{{"channel":"a","token":"{none}"}}}}
            ada < {{"id":2,"subscribe":{{}}}}
            api > a 1
            ada < {{"push":{{"channel":"a","pub":{{"data":1}}}}}}"#
        ),
    );
}

#[test]
fn a_connection_token_has_filters_of_the_subscriptions_that_it_makes() {
    let subs = |filter: &str| format!(r#"{{"sub":"42","subs":{{"a":{filter},"b":{{}}}}}}"#);
    let with = |name: &str| subs(&format!(r#"{{"server_tags_filter":{}}}"#, team(name)));
    let refresh = |claims: String| {
        format!(
            r#"ada > {{"id":3,"refresh":{{"token":"{}"}}}}
               ada < {{"id":3,"refresh":{{}}}}"#,
            token(&claims),
        )
    };
    let script = format!(
        r#"ada opens
           ada > {}
           ada < {{"id":1,"connect":{{"client":"ada","version":"test","subs":{{"a":{{}},"b":{{}}}},"ping":25,"pong":true}}}}
           api tags team=blue: a 1
           api tags team=red: a 2
           ada < {{"push":{{"channel":"a","pub":{{"data":2,"tags":{{"team":"red"}}}}}}}}
           api > b 3
           ada < {{"push":{{"channel":"b","pub":{{"data":3}}}}}}
           {}
           api tags team=red: a 4
           api tags team=blue: a 5
           ada < {{"push":{{"channel":"a","pub":{{"data":5,"tags":{{"team":"blue"}}}}}}}}
           {}
           api > a 6
           ada < {{"push":{{"channel":"a","pub":{{"data":6}}}}}}"#,
        connect(&with("red")),
        refresh(with("blue")),
        refresh(subs("{}")),
    );
    play_in_both(&guarded(|_| {}), &script);
    let bad = connect(&subs(r#"{"server_tags_filter":{"op":"xor"}}"#));
    play_in_both(&guarded(|_| {}), &format!("ada opens\n ada > {bad}\n ada x 3500 invalid token"));
}

/// A hook that answers at once.
fn now<E, G>(
    decide: impl Fn(E) -> Result<Option<G>, Rejection> + Send + Sync + 'static,
) -> Option<Hook<E, G>> {
    Some(Hook::new(move |event| Answer::now(decide(event))))
}

fn grant(filter: &str) -> SubscribeGrant {
    let expire_at = Some(UNIX + 60);
    let server_tags_filter = filter.to_owned().into();
    SubscribeGrant { expire_at, server_tags_filter, ..SubscribeGrant::default() }
}

#[test]
fn a_hook_sets_a_filter_and_its_refresh_replaces_it() {
    let subscribe = |event: SubscribeEvent| match event.channel.as_str() {
        "bad" => Ok(Some(grant("{}"))),
        _ => Ok(Some(grant(&team("red")))),
    };
    let renewals = [(900, "{}".to_owned()), (180, String::new()), (120, team("blue"))];
    let renewals = Mutex::new(Vec::from(renewals));
    let refresh = move |_: RefreshEvent| {
        let renewal = renewals.lock().expect("one thread").pop();
        let (seconds, filter) = renewal.expect("a refresh too many");
        let expire_at = Some(UNIX + seconds);
        let server_tags_filter = filter.into();
        Ok(Some(RefreshGrant { expire_at, server_tags_filter, ..RefreshGrant::default() }))
    };
    let hooks = Hooks { subscribe: now(subscribe), sub_refresh: now(refresh), ..Hooks::default() };
    let mut world = World::with_hooks(crate::world::options(|_| {}), hooks);
    world.connected("ada", hello("json"));
    let only = |team: &str| {
        let tags = format!(r#"{{"team":"{team}"}}"#);
        format!(
            r#"api tags team=red: a 1
               api tags team=blue: a 1
               ada < {{"push":{{"channel":"a","pub":{{"data":1,"tags":{tags}}}}}}}"#
        )
    };
    world.play(
        r#"ada > {"id":2,"subscribe":{"channel":"bad"}}
           ada < {"id":2,"error":{"code":103,"message":"permission denied"}}
           ada > {"id":3,"subscribe":{"channel":"a"}}
           ada < {"id":3,"subscribe":{}}"#,
    );
    world.play(&only("red"));
    world.play("wait 61s");
    world.play(&only("blue"));
    world.play("wait 60s");
    world.play(&only("blue"));
    world.play("wait 60s");
    world.play(&only("blue"));
}

#[test]
fn a_view_of_tiles_has_the_filter_of_its_channel() {
    let mut world = connected(guarded(|options| {
        options.channel.without_namespace.areas =
            AreaOptions { tile_size: 10, tiles_max: 16, rings: Vec::new() };
    }));
    world.play(&format!(
        r#"ada > {{"id":2,"subscribe":{{"channel":"a","token":"{}","data":{{"view":{{"x":5,"y":5,"radius":1}}}}}}}}
           ada < {{"id":2,"subscribe":{{}}}}"#,
        with_team("red"),
    ));
    let publish = |world: &mut World, team: &str, data: &'static str| {
        let tags = [("team".to_owned(), team.to_owned())].into();
        let publication = Publication { data: data.into(), tags, ..Publication::default() };
        let place = Place { x: 5.0, y: 5.0, layer: 0 };
        let channels = world.node.channels();
        let options = PublishOptions::default();
        let published = channels.publish_at(place, "a", publication, options, world.now);
        published.wait().expect("a place");
        world.settle();
    };
    publish(&mut world, "blue", "1");
    publish(&mut world, "red", "2");
    world.play(r#"ada < {"push":{"channel":"a","pub":{"data":2,"tags":{"team":"red"}}}}"#);
    world.play(&format!(
        r#"ada > {{"id":3,"sub_refresh":{{"channel":"a","token":"{}"}}}}
           ada < {{"id":3,"sub_refresh":{{}}}}"#,
        with_team("blue"),
    ));
    publish(&mut world, "red", "3");
    publish(&mut world, "blue", "4");
    world.play(r#"ada < {"push":{"channel":"a","pub":{"data":4,"tags":{"team":"blue"}}}}"#);
}

/// Maps with deltas that only tokens open.
fn guarded_maps() -> Options {
    guarded(|options| {
        let namespace = &mut options.channel.without_namespace;
        namespace.subscription_type = SubscriptionType::Map;
        namespace.allowed_delta_types = vec![Namespace::FOSSIL.into()];
        namespace.delta_publish = true;
        namespace.map = MapOptions {
            mode: MapMode::Persistent,
            default_page_size: 2,
            min_page_size: 1,
            max_page_size: 2,
            ..MapOptions::default()
        };
    })
}

#[test]
fn a_map_has_the_entries_that_the_filter_lets_through() {
    check(
        &guarded_maps(),
        r#"
        api sets a k1#team=blue 1
        api sets a k2#team=red 2
        api sets a k3#team=red 3
        ada > {"id":2,"subscribe":{"channel":"a","type":1,"phase":2,"token":"TOKEN"}}
        ada < {"id":2,"subscribe":{"epoch":"E1","offset":3,"type":1,"phase":2,"cursor":"k2","state":[{"data":2,"offset":2,"tags":{"team":"red"},"key":"k2"}]}}
        api sets a k1#team=blue 4
        api sets a k2#team=red 5
        ada > {"id":3,"subscribe":{"channel":"a","type":1,"phase":2,"offset":3,"epoch":"E1","cursor":"k2","token":"TOKEN"}}
        ada < {"id":3,"subscribe":{"recoverable":true,"epoch":"E1","publications":[{"data":5,"offset":5,"tags":{"team":"red"},"key":"k2"}],"offset":5,"type":1,"state":[{"data":3,"offset":3,"tags":{"team":"red"},"key":"k3"}]}}
        api sets a k1#team=blue 6
        api unsets a k1
        api sets a k3#team=red 7
        ada < {"push":{"channel":"a","pub":{"data":7,"offset":8,"tags":{"team":"red"},"key":"k3"}}}
        api unsets a k3
        ada < {"push":{"channel":"a","pub":{"offset":9,"tags":{"team":"red"},"key":"k3","removed":true}}}
    "#,
    );
}

#[test]
fn a_change_of_a_map_is_no_patch_of_a_value_that_the_filter_hid() {
    let hidden = format!(r#""{}""#, "a secret of the blue team ".repeat(9));
    let seen = hidden.replace("blue", "pink");
    let text = seen.replace('"', r#"\""#);
    let mut world = connected(guarded_maps());
    world.play(&format!(
        r#"ada > {{"id":2,"subscribe":{{"channel":"a","type":1,"phase":2,"delta":"fossil","token":"{}"}}}}
           ada < {{"id":2,"subscribe":{{"recoverable":true,"epoch":"E1","delta":true,"type":1}}}}
           api sets a k#team=blue {hidden}
           api sets a j#team=red 1
           ada < {{"push":{{"channel":"a","pub":{{"data":"1","offset":2,"tags":{{"team":"red"}},"key":"j"}}}}}}
           api sets a k#team=red {seen}
           ada < {{"push":{{"channel":"a","pub":{{"data":"{text}","offset":3,"tags":{{"team":"red"}},"key":"k"}}}}}}"#,
        with_team("red"),
    ));
}
