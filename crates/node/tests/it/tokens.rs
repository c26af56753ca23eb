//! Connecting and subscribing with tokens (protocol §7, §8; `client.token` in docs/configuration.md): what they grant and what a bad one leads to.
//! In: dialogues with signed tokens → out: each cell of the failure mapping for connect and subscribe, and the claims.
//! Uses: `world`, `script`, HMAC tokens. Never: other algorithms (unit tests of `fanwire_auth`).
//! Changed here: tests of token claims at work. Refresh and expiry live in `expiry.rs`.

use fanwire_node::Options;
use fanwire_node::options::{Namespace, SubscriptionType};
use jsonwebtoken::{EncodingKey, Header, encode};
use serde_json::Value;

use crate::script::play_in_both;
use crate::world::{UNIX, World, options};

pub(crate) const SECRET: &str = "secret";

/// A node that demands a token.
pub(crate) fn guarded(change: impl FnOnce(&mut Options)) -> Options {
    options(|options| {
        options.client.allow_anonymous_connect_without_token = false;
        options.client.token.hmac_secret_key = SECRET.into();
        options.channel.without_namespace = Namespace::default();
        change(options);
    })
}

/// A token with these claims, given as JSON.
pub(crate) fn token(claims: &str) -> String {
    signed(claims, SECRET)
}

fn signed(claims: &str, secret: &str) -> String {
    let claims: Value = serde_json::from_str(claims).expect("tests write good JSON");
    let key = EncodingKey::from_secret(secret.as_bytes());
    encode(&Header::default(), &claims, &key).expect("claims can be signed")
}

/// A connect command with a token of these claims.
pub(crate) fn connect(claims: &str) -> String {
    format!(r#"{{"id":1,"connect":{{"token":"{}"}}}}"#, token(claims))
}

/// A subscribe command with id 2 and a token of these claims.
pub(crate) fn subscribe(channel: &str, claims: &str) -> String {
    format!(r#"{{"id":2,"subscribe":{{"channel":"{channel}","token":"{}"}}}}"#, token(claims))
}

fn check_connect(options: &Options, command: &str, answer: &str) {
    play_in_both(options, &format!("ada opens\n ada > {command}\n {answer}"));
}

/// Ada is user 42 and subscribes with a token of these claims.
fn check_subscribe(channel: &str, claims: &str, answer: &str) {
    let script = format!(
        r#"ada opens
           ada > {}
           ada < {{"id":1,"connect":{{"client":"ada","version":"test","ping":25,"pong":true}}}}
           ada > {}
           {answer}"#,
        connect(r#"{"sub":"42"}"#),
        subscribe(channel, claims),
    );
    play_in_both(&guarded(|_| {}), &script);
}

#[test]
fn a_token_makes_the_user_and_its_info() {
    let options = guarded(|options| {
        options.channel.without_namespace.allow_subscribe_for_client = true;
        options.channel.without_namespace.allow_publish_for_client = true;
    });
    let command = connect(r#"{"sub":"42","info":{"name":"Ada"}}"#);
    check_connect(
        &options,
        &command,
        r#"
        ada < {"id":1,"connect":{"client":"ada","version":"test","ping":25,"pong":true}}
        ada > {"id":2,"subscribe":{"channel":"a"}}\n{"id":3,"publish":{"channel":"a","data":1}}
        ada < {"id":2,"subscribe":{}}
        ada < {"push":{"channel":"a","pub":{"data":1,"info":{"user":"42","client":"ada","conn_info":{"name":"Ada"}}}}}
        ada < {"id":3,"publish":{}}
    "#,
    );
}

#[test]
fn a_token_counts_more_than_a_header_and_that_more_than_being_anonymous() {
    let options = options(|options| options.client.token.hmac_secret_key = SECRET.into());
    for (command, user) in [
        (connect(r#"{"sub":"token"}"#), "token"),
        (r#"{"id":1,"connect":{}}"#.to_owned(), "header"),
    ] {
        let mut world = World::new(options.clone());
        world.open("ada", crate::script::hello("as header"));
        world.say("ada", &command);
        world.heard("ada");
        let target = fanwire_node::ConnectionSelector { user: user.into(), ..Default::default() };
        let done = world
            .node
            .connections()
            .disconnect(target, fanwire_protocol::Disconnect::FORCE_RECONNECT);
        assert_eq!(done.wait(), Ok(()));
        world.settle();
        world.play("ada x 3011 force reconnect");
    }
}

#[test]
fn an_expired_token_is_109_and_the_connection_is_of_no_more_use() {
    let expired = connect(&format!(r#"{{"sub":"42","exp":{}}}"#, UNIX - 10));
    let together = format!(r#"{expired}\n{{"id":2,"subscribe":{{"channel":"a"}}}}"#);
    let mut world = World::new(guarded(|_| {}));
    world.play(&format!(
        "ada opens\n ada > {together}\n ada < {{\"id\":1,\"error\":{{\"code\":109,\"message\":\"token expired\"}}}}"
    ));
    world.play("ada > {\"id\":3,\"connect\":{}}\n ada x 3501 bad request");
    check_connect(
        &guarded(|_| {}),
        &expired,
        r#"
        ada < {"id":1,"error":{"code":109,"message":"token expired"}}
        wait 9900ms
        ada receives nothing
        ada awaits 200ms
        ada x 3502 stale
    "#,
    );
}

#[test]
fn bad_tokens_are_3500() {
    let forged = signed(r#"{"sub":"42"}"#, "other");
    for token in [forged.as_str(), "nonsense", "a.b.c"] {
        let command = format!(r#"{{"id":1,"connect":{{"token":"{token}"}}}}"#);
        check_connect(&guarded(|_| {}), &command, "ada x 3500 invalid token");
        check_connect(
            &guarded(|options| options.client.insecure = true),
            &command,
            "ada x 3500 invalid token",
        );
        check_connect(&options(|_| {}), &command, "ada x 3500 invalid token");
    }
}

#[test]
fn refused_tokens_are_counted_by_their_cause() {
    let mut world = World::with_shards(guarded(|_| {}), 1);
    world.play(&format!(
        r#"ada opens
           ada > {{"id":1,"connect":{{"token":"{}"}}}}
           ada x 3500 invalid token
           ben opens
           ben > {}
           ben < {{"id":1,"error":{{"code":109,"message":"token expired"}}}}
           eve opens
           eve > {}
           eve < {{"id":1,"connect":{{"client":"eve","version":"test","ping":25,"pong":true}}}}
           eve > {}
           eve x 3500 invalid token"#,
        signed(r#"{"sub":"42"}"#, "other"),
        connect(r#"{"sub":"42","exp":1}"#),
        connect(r#"{"sub":"42"}"#),
        subscribe("a", r#"{"sub":"43","channel":"a"}"#),
    ));
    let refusals = world.shards[0].hub.counters().token_refusals();
    let counted: Vec<_> =
        refusals.filter(|(_, n)| *n > 0).map(|(one, n)| (one.name(), n)).collect();
    assert_eq!(counted, [("expired", 1), ("foreign", 1), ("signature", 1)]);
}

#[test]
fn an_anonymous_token_is_3507_where_it_is_not_allowed() {
    let command = connect(r#"{"sub":""}"#);
    let answer =
        r#"ada < {"id":1,"connect":{"client":"ada","version":"test","ping":25,"pong":true}}"#;
    check_connect(&guarded(|_| {}), &command, answer);
    check_connect(
        &guarded(|options| options.client.disallow_anonymous_connection_tokens = true),
        &command,
        "ada x 3507 permission denied",
    );
}

#[test]
fn credentials_that_are_over_already_are_110() {
    let command = connect(&format!(r#"{{"sub":"42","expire_at":{}}}"#, UNIX - 1));
    let answer = r#"ada < {"id":1,"error":{"code":110,"message":"expired"}}"#;
    check_connect(&guarded(|_| {}), &command, answer);
}

#[test]
fn channels_of_a_token_become_subscriptions_with_or_without_permission() {
    let command = connect(r#"{"sub":"42","channels":["a","$b"]}"#);
    check_connect(
        &guarded(|_| {}),
        &command,
        r#"
        ada < {"id":1,"connect":{"client":"ada","version":"test","subs":{"$b":{},"a":{}},"ping":25,"pong":true}}
        api > $b 1
        ada < {"push":{"channel":"$b","pub":{"data":1}}}
    "#,
    );
}

#[test]
fn a_channel_of_a_token_without_a_name_is_passed_over() {
    for claim in [r#""channels":["","a"]"#, r#""subs":{"":{},"a":{}}"#] {
        check_connect(
            &guarded(|options| options.client.channel_limit = 1),
            &connect(&format!(r#"{{"sub":"42",{claim}}}"#)),
            r#"ada < {"id":1,"connect":{"client":"ada","version":"test","subs":{"a":{}},"ping":25,"pong":true}}"#,
        );
    }
}

#[test]
fn a_channel_of_a_token_that_holds_no_publications_is_108() {
    check_connect(
        &guarded(|options| {
            options.channel.without_namespace.subscription_type = SubscriptionType::SharedPoll;
            options.shared_poll.hmac_secret_key = "a secret of tests".into();
        }),
        &connect(r#"{"sub":"42","channels":["a"]}"#),
        r#"ada < {"id":1,"error":{"code":108,"message":"not available"}}"#,
    );
}

#[test]
fn a_channel_of_a_token_brings_its_data_and_info() {
    let command = connect(
        r#"{"sub":"42","subs":{"a":{"data":{"welcome":true},"info":{"role":"owner"}}},"channels":["ignored"]}"#,
    );
    check_connect(
        &guarded(|options| options.channel.without_namespace.allow_publish_for_subscriber = true),
        &command,
        r#"
        ada < {"id":1,"connect":{"client":"ada","version":"test","subs":{"a":{"data":{"welcome":true}}},"ping":25,"pong":true}}
        ada > {"id":2,"publish":{"channel":"a","data":1}}
        ada < {"push":{"channel":"a","pub":{"data":1,"info":{"user":"42","client":"ada","chan_info":{"role":"owner"}}}}}
        ada < {"id":2,"publish":{}}
    "#,
    );
}

#[test]
fn an_impossible_channel_of_a_token_refuses_the_whole_connect() {
    let unknown = connect(r#"{"sub":"42","channels":["a","x:a"]}"#);
    check_connect(
        &guarded(|_| {}),
        &unknown,
        r#"ada < {"id":1,"error":{"code":102,"message":"unknown channel"}}"#,
    );
    let mut world = World::new(guarded(|_| {}));
    world.play(&format!(
        "ada opens\n ada > {unknown}\n ada < {{\"id\":1,\"error\":{{\"code\":102,\"message\":\"unknown channel\"}}}}"
    ));
    assert_eq!(world.node.counts(), fanwire_node::Counts::default());
    let many = connect(r#"{"sub":"42","channels":["a","b"]}"#);
    check_connect(
        &guarded(|options| options.client.channel_limit = 1),
        &many,
        "ada x 3505 channel limit",
    );
}

#[test]
fn data_that_json_cannot_carry_is_3506() {
    let command = connect(r#"{"sub":"42","subs":{"a":{"b64data":"/w=="}}}"#);
    World::new(guarded(|_| {})).play(&format!(
        "ada opens\n ada > {command}\n ada x 3506 inappropriate protocol\n api > a 1"
    ));
}

#[test]
fn a_subscription_token_opens_a_private_channel_and_brings_info() {
    check_subscribe(
        "$a",
        r#"{"sub":"42","channel":"$a","info":{"x":1},"data":{"y":2}}"#,
        r#"
        ada < {"id":2,"subscribe":{"data":{"y":2}}}
        api > $a 1
        ada < {"push":{"channel":"$a","pub":{"data":1}}}
    "#,
    );
}

#[test]
fn a_subscription_token_for_another_user_channel_or_client_is_3500() {
    for claims in [
        r#"{"sub":"43","channel":"a"}"#,
        r#"{"sub":"","channel":"a"}"#,
        r#"{"sub":"42","channel":"b"}"#,
        r#"{"sub":"42","channel":"a","client":"other"}"#,
    ] {
        check_subscribe("a", claims, "ada x 3500 invalid token");
    }
}

#[test]
fn an_expired_subscription_token_is_109_and_a_bad_one_103() {
    check_subscribe(
        "a",
        &format!(r#"{{"sub":"42","channel":"a","exp":{}}}"#, UNIX - 1),
        r#"ada < {"id":2,"error":{"code":109,"message":"token expired"}}"#,
    );
    check_subscribe(
        "a",
        r#"{"sub":"42"}"#,
        r#"ada < {"id":2,"error":{"code":103,"message":"permission denied"}}"#,
    );
    check_subscribe(
        "a",
        &format!(r#"{{"sub":"42","channel":"a","expire_at":{}}}"#, UNIX - 1),
        r#"ada < {"id":2,"error":{"code":110,"message":"expired"}}"#,
    );
}

#[test]
fn subscription_tokens_may_have_keys_of_their_own() {
    let options = guarded(|options| {
        let token =
            fanwire_auth::TokenOptions { hmac_secret_key: "other".into(), ..Default::default() };
        options.client.subscription_token = Some(token);
    });
    let claims = r#"{"sub":"42","channel":"a"}"#;
    let good = format!(
        r#"{{"id":3,"subscribe":{{"channel":"a","token":"{}"}}}}"#,
        signed(claims, "other")
    );
    let script = format!(
        r#"ada opens
           ada > {}
           ada < {{"id":1,"connect":{{"client":"ada","version":"test","ping":25,"pong":true}}}}
           ada > {}
           ada < {{"id":2,"error":{{"code":103,"message":"permission denied"}}}}
           ada > {good}
           ada < {{"id":3,"subscribe":{{}}}}"#,
        connect(r#"{"sub":"42"}"#),
        subscribe("a", claims),
    );
    play_in_both(&options, &script);
}
