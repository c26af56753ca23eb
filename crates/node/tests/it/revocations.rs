//! Blocked users and revoked tokens: what a connection, a refresh and a subscription get, and what ends.
//! In: calls of `Node`, dialogues with signed tokens → out: codes on the wire, connections that stay.
//! Uses: `world`, `script`, tokens of `tokens.rs`. Never: HTTP; the table itself has unit tests.
//! Changed here: tests of blocks and revocations at work. Several nodes are in `cluster.rs`.

use std::sync::{Arc, Mutex};

use fanwire_broker::{Answer, Promise};
use fanwire_node::hooks::{ConnectGrant, Hook, Hooks, Rejection};
use fanwire_node::{RevocationChange, RevocationError, RevocationKind};

use crate::script::{hello, play_in_both};
use crate::tokens::{connect, guarded, subscribe, token};
use crate::world::{UNIX, World, options};

const CONNECTED: &str =
    r#"ada < {"id":1,"connect":{"client":"ada","version":"test","ping":25,"pong":true}}"#;
const EXPIRED: &str = r#"{"code":109,"message":"token expired"}"#;

pub(crate) fn change(subject: &str) -> RevocationChange {
    RevocationChange { subject: subject.into(), ..RevocationChange::default() }
}

pub(crate) fn revoke(world: &mut World, kind: RevocationKind, change: RevocationChange) {
    let done = world
        .node
        .revocations()
        .revoke(kind, change, world.now, world.node.unix(world.now))
        .expect("it is possible");
    done.wait().expect("there is one node");
    world.settle();
    world.settle();
}

/// A world in which Ada opened and connected with a token of these claims.
fn connected(claims: &str) -> World {
    let mut world = World::new(guarded(|_| {}));
    world.play(&format!("ada opens\n ada > {}\n {CONNECTED}", connect(claims)));
    world
}

#[test]
fn a_blocked_user_is_disconnected_and_refused_until_the_end_of_the_block() {
    for (words, command) in
        [("", connect(r#"{"sub":"42"}"#)), ("as 42", r#"{"id":1,"connect":{}}"#.to_owned())]
    {
        let mut world = World::new(guarded(|_| {}));
        world.play(&format!("ada opens {words}\n ada > {command}\n {CONNECTED}"));
        let until = RevocationChange { expire_at: UNIX + 60, ..change("42") };
        revoke(&mut world, RevocationKind::BlockUser, until);
        world.play("ada x 3507 permission denied");
        world.play(&format!(
            "bob opens {words}\n bob > {command}\n bob x 3507 permission denied: the server API blocked the user"
        ));
        assert_eq!(world.node.counts().connections, 0);
        let bob = CONNECTED.replace("ada", "eve");
        let now = "clock +60";
        world.play(&format!("{now}\n eve opens {words}\n eve > {command}\n {bob}"));
    }
}

#[test]
fn an_unblocked_user_connects_again() {
    let mut world = connected(r#"{"sub":"42"}"#);
    revoke(&mut world, RevocationKind::BlockUser, change("43"));
    revoke(&mut world, RevocationKind::BlockUser, change("42"));
    world.play("ada x 3507 permission denied");
    revoke(&mut world, RevocationKind::UnblockUser, change("42"));
    let eve = CONNECTED.replace("ada", "eve");
    world.play(&format!("eve opens\n eve > {}\n {eve}", connect(r#"{"sub":"42"}"#)));
}

#[test]
fn a_unidirectional_client_of_a_blocked_user_is_refused() {
    let mut world = World::new(options(|_| {}));
    revoke(&mut world, RevocationKind::BlockUser, change("42"));
    world.open("ada", hello("uni as 42"));
    world.say("ada", "{}");
    world.play("ada x 3507 permission denied");
}

#[test]
fn a_block_during_the_wait_for_a_hook_refuses_its_user() {
    type Grants = Arc<Mutex<Vec<Promise<Option<ConnectGrant>, Rejection>>>>;
    let promises = Grants::default();
    let kept = Arc::clone(&promises);
    let connect = Hook::new(move |_| {
        let (promise, answer) = Answer::later();
        kept.lock().expect("one thread").push(promise);
        answer
    });
    let hooks = Hooks { connect: Some(connect), ..Hooks::default() };
    let mut world = World::with_hooks(guarded(|_| {}), hooks);
    world.play("ada opens\n ada > {\"id\":1,\"connect\":{}}\n ada receives nothing");
    revoke(&mut world, RevocationKind::BlockUser, change("42"));
    let promise = promises.lock().expect("one thread").pop().expect("the hook was called");
    promise.keep(Ok(Some(ConnectGrant { user: "42".to_owned(), ..ConnectGrant::default() })));
    world.settle();
    world.play("ada x 3507 permission denied");
}

#[test]
fn a_revoked_token_ends_its_connections_only_and_is_109_afterwards() {
    let claims = r#"{"sub":"42","jti":"7"}"#;
    let mut world = connected(claims);
    let bob = CONNECTED.replace("ada", "bob");
    world.play(&format!("bob opens\n bob > {}\n {bob}", connect(r#"{"sub":"42","jti":"8"}"#)));
    revoke(&mut world, RevocationKind::RevokeToken, change("7"));
    world.play(&format!(
        "ada x 3005 connection expired\n eve opens\n eve > {}\n eve < {{\"id\":1,\"error\":{EXPIRED}}}",
        connect(claims)
    ));
    assert_eq!(world.node.counts().connections, 1);
}

#[test]
fn a_connection_that_has_refreshed_has_another_token() {
    let mut world = connected(r#"{"sub":"42","jti":"7"}"#);
    let refresh = |jti: &str| {
        let token = token(&format!(r#"{{"sub":"42","jti":"{jti}"}}"#));
        format!(r#"ada > {{"id":5,"refresh":{{"token":"{token}"}}}}"#)
    };
    world.play(&format!("{}\n ada < {{\"id\":5,\"refresh\":{{}}}}", refresh("8")));
    revoke(&mut world, RevocationKind::RevokeToken, change("7"));
    world.play("ada receives nothing");
    world.play(&format!(
        "{}\n ada x 3005 connection expired: the server API revoked the token",
        refresh("7")
    ));
}

#[test]
fn older_tokens_of_a_user_are_invalid() {
    let issued = |iat: u64| format!(r#"{{"sub":"42","iat":{iat}}}"#);
    for (claims, is_invalid) in [
        (issued(UNIX - 1), true),
        (issued(UNIX), false),
        (issued(UNIX + 1), false),
        (r#"{"sub":"42"}"#.to_owned(), true),
        (r#"{"sub":"43"}"#.to_owned(), false),
    ] {
        let mut world = connected(&claims);
        let before = RevocationChange { issued_before: UNIX, ..change("42") };
        revoke(&mut world, RevocationKind::InvalidateTokens, before);
        let (end, reply) = match is_invalid {
            true => {
                ("ada x 3005 connection expired", format!(r#"eve < {{"id":1,"error":{EXPIRED}}}"#))
            }
            false => ("ada receives nothing", CONNECTED.replace("ada", "eve")),
        };
        world.play(&format!("{end}\n eve opens\n eve > {}\n {reply}", connect(&claims)));
    }
}

#[test]
fn a_subscription_ends_with_its_token_and_others_stay() {
    let claims =
        |channel: &str| format!(r#"{{"sub":"42","channel":"{channel}","jti":"{channel}"}}"#);
    let ended = |reason: &str| {
        format!(
            r#"ada < {{"push":{{"channel":"a","unsubscribe":{{"code":2501,"reason":"{reason}"}}}}}}"#
        )
    };
    for by_channel in [false, true] {
        let mut world = connected(r#"{"sub":"42"}"#);
        for channel in ["a", "b"] {
            world.play(&format!(
                "ada > {}\n ada < {{\"id\":2,\"subscribe\":{{}}}}",
                subscribe(channel, &claims(channel))
            ));
        }
        if by_channel {
            let channel = Some("a".to_owned());
            let before = RevocationChange { issued_before: UNIX, channel, ..change("42") };
            revoke(&mut world, RevocationKind::InvalidateTokens, before);
        } else {
            revoke(&mut world, RevocationKind::RevokeToken, change("a"));
        }
        world.play(&format!(
            "{}\n ada > {}\n ada < {{\"id\":2,\"error\":{EXPIRED}}}",
            ended("subscription expired"),
            subscribe("a", &claims("a"))
        ));
        let token = token(r#"{"sub":"42","channel":"b","jti":"a"}"#);
        if !by_channel {
            world.play(&format!(
                "ada > {{\"id\":3,\"sub_refresh\":{{\"channel\":\"b\",\"token\":\"{token}\"}}}}\n ada < {{\"id\":3,\"error\":{EXPIRED}}}"
            ));
        }
        assert_eq!(world.node.counts().subscriptions, 1);
    }
}

#[test]
fn a_change_that_has_ended_is_refused() {
    let world = World::new(options(|_| {}));
    for (expire_at, expect) in [
        (1, Err(RevocationError::HasEnded)),
        (UNIX, Err(RevocationError::HasEnded)),
        (UNIX + 1, Ok(())),
    ] {
        let change = RevocationChange { expire_at, ..change("42") };
        let done = world.node.revocations().revoke(
            RevocationKind::BlockUser,
            change,
            world.now,
            world.node.unix(world.now),
        );
        assert_eq!(done.map(|answer| answer.wait().expect("one node")), expect, "{expire_at}");
    }
}

#[test]
fn without_an_entry_tokens_work_in_both_encodings() {
    play_in_both(
        &guarded(|_| {}),
        &format!(
            "ada opens\n ada > {}\n {CONNECTED}",
            connect(r#"{"sub":"42","jti":"7","iat":1}"#)
        ),
    );
}
