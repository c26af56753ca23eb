//! Tag filters at work (protocol §13): who gets what live, in recovery and from the cache; refusals; hostile trees.
//! In: dialogues, trees as bytes → out: what each subscriber heard, error 107, disconnects.
//! Uses: `world`, `script`. Never: single operators (unit tests of `filter`).
//! Changed here: tests of filters on subscriptions.

use std::time::Duration;

use fanwire_node::Options;
use fanwire_node::options::{Namespace, RecoveryMode};

use crate::history::with_history;
use crate::script::{hello, play_in_both};
use crate::tokens::{connect, guarded, subscribe, token};
use crate::world::{UNIX, World, options};

fn filtering() -> Options {
    options(|options| options.channel.without_namespace.allow_tags_filter = true)
}

fn recoverable(change: impl FnOnce(&mut Namespace)) -> Options {
    with_history(|open| {
        open.allow_tags_filter = true;
        open.force_recovery = true;
        change(open);
    })
}

/// Ada and Bob are connected; Ada subscribes to `news` with this filter, Bob without.
fn check(options: &Options, filter: &str, rest: &str) {
    let connect = |name: &str| {
        format!(
            r#"{name} opens
               {name} > {{"id":1,"connect":{{}}}}
               {name} < {{"id":1,"connect":{{"client":"{name}","version":"test","ping":25,"pong":true}}}}
            "#
        )
    };
    let script = format!(
        r#"{}{}
           ada > {{"id":2,"subscribe":{{"channel":"news","tf":{filter}}}}}
           {rest}"#,
        connect("ada"),
        connect("bob"),
    );
    play_in_both(options, &script);
}

const ABOUT_ART: &str = r#"{"key":"about","cmp":"eq","val":"art"}"#;

#[test]
fn a_subscriber_gets_what_matches_and_others_get_everything() {
    check(
        &filtering(),
        ABOUT_ART,
        r#"
        ada < {"id":2,"subscribe":{}}
        bob > {"id":2,"subscribe":{"channel":"news"}}
        bob < {"id":2,"subscribe":{}}
        api tags about=art: news 1
        ada < {"push":{"channel":"news","pub":{"data":1,"tags":{"about":"art"}}}}
        bob < {"push":{"channel":"news","pub":{"data":1,"tags":{"about":"art"}}}}
        api tags about=war: news 2
        bob < {"push":{"channel":"news","pub":{"data":2,"tags":{"about":"war"}}}}
        api > news 3
        bob < {"push":{"channel":"news","pub":{"data":3}}}
        ada > {"id":3,"unsubscribe":{"channel":"news"}}
        ada < {"id":3,"unsubscribe":{}}
        ada > {"id":4,"subscribe":{"channel":"news"}}
        ada < {"id":4,"subscribe":{}}
        api tags about=war: news 4
        ada < {"push":{"channel":"news","pub":{"data":4,"tags":{"about":"war"}}}}
        bob < {"push":{"channel":"news","pub":{"data":4,"tags":{"about":"war"}}}}
    "#,
    );
}

#[test]
fn a_filter_that_may_not_be_or_is_wrong_is_107() {
    let bad_request = r#"ada < {"id":2,"error":{"code":107,"message":"bad request"}}"#;
    check(&options(|_| {}), ABOUT_ART, bad_request);
    for filter in ["{}", r#"{"key":"about","cmp":"eq"}"#, r#"{"op":"not","nodes":[]}"#] {
        check(&filtering(), filter, bad_request);
    }
    let mut world = World::new(filtering());
    world.connected("ada", hello("json"));
    world.play(&format!(
        r#"ada > {{"id":2,"subscribe":{{"channel":"x:a","tf":{ABOUT_ART}}}}}
           ada < {{"id":2,"error":{{"code":102,"message":"unknown channel"}}}}"#
    ));
}

#[test]
fn a_filter_and_a_delta_together_give_the_filter() {
    let mut world = World::new(filtering());
    world.connected("ada", hello("json"));
    world.play(&format!(
        r#"ada > {{"id":2,"subscribe":{{"channel":"news","delta":"fossil","tf":{ABOUT_ART}}}}}
           ada < {{"id":2,"subscribe":{{}}}}
           api tags about=war: news 1
           ada receives nothing"#
    ));
}

#[test]
fn what_does_not_match_counts_as_seen() {
    check(
        &recoverable(|_| {}),
        ABOUT_ART,
        r#"
        ada < {"id":2,"subscribe":{"recoverable":true,"epoch":"E1","positioned":true}}
        bob > {"id":2,"subscribe":{"channel":"news"}}
        bob < {"id":2,"subscribe":{"recoverable":true,"epoch":"E1","positioned":true}}
        api tags about=war: news 1
        bob < {"push":{"channel":"news","pub":{"data":1,"offset":1,"tags":{"about":"war"},"epoch":"E1"}}}
        api tags about=war: news 2
        bob < {"push":{"channel":"news","pub":{"data":2,"offset":2,"tags":{"about":"war"}}}}
        wait 100s
        api tags about=art: news 3
        ada < {"push":{"channel":"news","pub":{"data":3,"offset":3,"tags":{"about":"art"}}}}
        bob < {"push":{"channel":"news","pub":{"data":3,"offset":3,"tags":{"about":"art"}}}}
    "#,
    );
}

#[test]
fn recovery_brings_what_matches_of_what_was_missed() {
    check(
        &recoverable(|_| {}),
        ABOUT_ART,
        r#"
        ada < {"id":2,"subscribe":{"recoverable":true,"epoch":"E1","positioned":true}}
        ada > {"id":3,"unsubscribe":{"channel":"news"}}
        ada < {"id":3,"unsubscribe":{}}
        api tags about=war: news 1
        api tags about=art: news 2
        api tags about=war: news 3
        ada > {"id":4,"subscribe":{"channel":"news","recover":true,"epoch":"E1","tf":{"key":"about","cmp":"eq","val":"art"}}}
        ada < {"id":4,"subscribe":{"recoverable":true,"epoch":"E1","publications":[{"data":2,"offset":2,"tags":{"about":"art"}}],"recovered":true,"positioned":true,"was_recovering":true}}
        api tags about=art: news 4
        ada < {"push":{"channel":"news","pub":{"data":4,"offset":4,"tags":{"about":"art"}}}}
    "#,
    );
}

#[test]
fn a_cache_gives_the_newest_match() {
    let options = recoverable(|open| {
        open.force_recovery_mode = RecoveryMode::Cache;
        open.auto_cache_recover = true;
    });
    play_in_both(
        &options,
        r#"ada opens
           ada > {"id":1,"connect":{}}
           ada < {"id":1,"connect":{"client":"ada","version":"test","ping":25,"pong":true}}
           api tags about=war: news 1
           api tags about=art: news 2
           api tags about=war: news 3
           ada > {"id":2,"subscribe":{"channel":"news","tf":{"key":"about","cmp":"eq","val":"art"}}}
           ada < {"id":2,"subscribe":{"recoverable":true,"epoch":"E1","publications":[{"data":2,"offset":2,"tags":{"about":"art"}}],"recovered":true,"positioned":true,"was_recovering":true}}
           ada > {"id":3,"unsubscribe":{"channel":"news"}}
           ada < {"id":3,"unsubscribe":{}}
           ada > {"id":4,"subscribe":{"channel":"news","recover":true,"epoch":"E1","offset":2,"tf":{"key":"about","cmp":"eq","val":"art"}}}
           ada < {"id":4,"subscribe":{"recoverable":true,"epoch":"E1","recovered":true,"offset":2,"positioned":true,"was_recovering":true}}"#,
    );
}

#[test]
fn data_that_is_not_json_disconnects_only_who_would_have_got_it() {
    let mut world = World::new(filtering());
    world.connected("ada", hello("json"));
    world.connected("bob", hello("json"));
    world.play(&format!(
        r#"ada > {{"id":2,"subscribe":{{"channel":"news","tf":{ABOUT_ART}}}}}
           ada < {{"id":2,"subscribe":{{}}}}
           bob > {{"id":2,"subscribe":{{"channel":"news"}}}}
           bob < {{"id":2,"subscribe":{{}}}}
           api tags about=war: news no-json
           bob x 3506 inappropriate protocol
           api tags about=art: news no-json
           ada x 3506 inappropriate protocol"#
    ));
}

#[test]
fn a_filter_outlives_a_refresh_of_its_subscription() {
    let options = guarded(|options| options.channel.without_namespace.allow_tags_filter = true);
    let claims = format!(r#"{{"sub":"42","channel":"a","exp":{}}}"#, UNIX + 60);
    let subscribe = subscribe("a", &claims)
        .replace(r#""channel":"a","#, &format!(r#""channel":"a","tf":{ABOUT_ART},"#));
    let refresh = token(r#"{"sub":"42","channel":"a"}"#);
    play_in_both(
        &options,
        &format!(
            r#"ada opens
               ada > {}
               ada < {{"id":1,"connect":{{"client":"ada","version":"test","ping":25,"pong":true}}}}
               ada > {subscribe}
               ada < {{"id":2,"subscribe":{{"expires":true,"ttl":60}}}}
               ada > {{"id":3,"sub_refresh":{{"channel":"a","token":"{refresh}"}}}}
               ada < {{"id":3,"sub_refresh":{{}}}}
               api tags about=war: a 1
               ada receives nothing
               api tags about=art: a 2
               ada < {{"push":{{"channel":"a","pub":{{"data":2,"tags":{{"about":"art"}}}}}}}}"#,
            connect(r#"{"sub":"42"}"#),
        ),
    );
}

#[test]
fn filters_are_only_for_subscriptions_of_clients() {
    let mut world = World::new(filtering());
    world.play(&format!(
        r#"ada opens
           ada > {{"id":1,"connect":{{"subs":{{"news":{{"tf":{ABOUT_ART}}}}}}}}}
           ada < {{"id":1,"connect":{{"client":"ada","version":"test","subs":{{"news":{{}}}},"ping":25,"pong":true}}}}
           api > news 1
           ada < {{"push":{{"channel":"news","pub":{{"data":1}}}}}}"#
    ));
}

/// A subscribe command whose filter has this number of levels, in the length-prefixed frame of Protobuf.
fn nested_protobuf(levels: usize) -> Vec<u8> {
    let field = |number: u8, inner: &[u8]| {
        let mut outer = vec![number << 3 | 2];
        prost::encode_length_delimiter(inner.len(), &mut outer).expect("a Vec grows");
        outer.extend_from_slice(inner);
        outer
    };
    let leaf = [field(2, b"about"), field(3, b"ex")].concat();
    let not = |inner: Vec<u8>| [field(1, b"not"), field(6, &inner)].concat();
    let filter = (1..levels).fold(leaf, |inner, _| not(inner));
    let subscribe = [field(1, b"news"), field(13, &filter)].concat();
    let command = [vec![1 << 3, 2], field(5, &subscribe)].concat();
    let mut frame = Vec::new();
    prost::encode_length_delimiter(command.len(), &mut frame).expect("a Vec grows");
    frame.extend(command);
    frame
}

fn nested_json(levels: usize) -> Vec<u8> {
    let open = r#"{"op":"not","nodes":["#;
    let close = "]}";
    let filter = format!(
        r#"{}{{"key":"about","cmp":"ex"}}{}"#,
        open.repeat(levels - 1),
        close.repeat(levels - 1)
    );
    format!(r#"{{"id":2,"subscribe":{{"channel":"news","tf":{filter}}}}}"#).into_bytes()
}

#[test]
fn nesting_is_refused_with_107_beyond_the_limit_and_with_3501_where_it_is_no_longer_read() {
    for encoding in ["json", "protobuf"] {
        let nested = if encoding == "json" { nested_json } else { nested_protobuf };
        for (levels, answer) in [
            (16, r#"ada < {"id":2,"subscribe":{}}"#),
            (17, r#"ada < {"id":2,"error":{"code":107,"message":"bad request"}}"#),
            (40, r#"ada < {"id":2,"error":{"code":107,"message":"bad request"}}"#),
            (200, "ada x 3501 bad request"),
            (2_000, "ada x 3501 bad request"),
        ] {
            let mut world = World::new(filtering());
            world.connected("ada", hello(encoding));
            world.say_bytes("ada", &nested(levels));
            world.play(answer);
        }
    }
}

#[test]
fn filtered_publications_are_counted() {
    let mut world = World::with_shards(filtering(), 1);
    world.connected("ada", hello("json"));
    world.play(&format!(
        r#"ada > {{"id":2,"subscribe":{{"channel":"news","tf":{ABOUT_ART}}}}}
           ada < {{"id":2,"subscribe":{{}}}}
           api tags about=war: news 1
           api > news 2"#
    ));
    world.wait(Duration::from_secs(1));
    let counters = world.shards[0].hub.counters();
    assert_eq!((counters.filtered_publications.value(), counters.deliveries.value()), (2, 0));
}
