//! Expiry and refresh of connections and subscriptions (protocol §7, §21).
//! In: dialogues over hours of virtual time → out: grace periods, new lifetimes, each failure of a refresh.
//! Uses: `world`, `script`, tokens of `tokens.rs`.
//! Changed here: tests of the refresh and sub_refresh commands and of expiry.

use std::time::Duration;

use fanwire_node::Options;

use crate::script::play_in_both;
use crate::tokens::{connect, guarded, subscribe, token};
use crate::world::{UNIX, World};

fn in_seconds(seconds: u64) -> u64 {
    UNIX + seconds
}

/// A refresh command with id 5 and a token of these claims.
fn refresh(claims: &str) -> String {
    format!(r#"{{"id":5,"refresh":{{"token":"{}"}}}}"#, token(claims))
}

/// A sub_refresh command of channel `a` with id 5 and a token of these claims.
fn sub_refresh(claims: &str) -> String {
    format!(r#"{{"id":5,"sub_refresh":{{"channel":"a","token":"{}"}}}}"#, token(claims))
}

/// Ada is user 42 for 60 seconds.
fn check(rest: &str) {
    let script = format!(
        r#"ada opens
           ada > {}
           ada < {{"id":1,"connect":{{"client":"ada","version":"test","expires":true,"ttl":60,"ping":25,"pong":true}}}}
           {rest}"#,
        connect(&format!(r#"{{"sub":"42","exp":{}}}"#, in_seconds(60))),
    );
    play_in_both(&guarded(|_| {}), &script);
}

/// Ada is user 42 for ever, and subscribed to `a` for 60 seconds.
fn check_subscription(rest: &str) {
    let claims = format!(r#"{{"sub":"42","channel":"a","exp":{}}}"#, in_seconds(60));
    let script = format!(
        r#"ada opens
           ada > {}
           ada < {{"id":1,"connect":{{"client":"ada","version":"test","ping":25,"pong":true}}}}
           ada > {}
           ada < {{"id":2,"subscribe":{{"expires":true,"ttl":60}}}}
           {rest}"#,
        connect(r#"{"sub":"42"}"#),
        subscribe("a", &claims),
    );
    play_in_both(&guarded(|_| {}), &script);
}

#[test]
fn a_connection_that_is_not_refreshed_ends_after_its_grace() {
    check("wait 84900ms\n ada receives nothing\n ada awaits 200ms\n ada x 3005 connection expired");
}

#[test]
fn a_refresh_gives_a_new_lifetime() {
    let longer = refresh(&format!(r#"{{"sub":"42","exp":{}}}"#, in_seconds(150)));
    check(&format!(
        r#"wait 50s
           ada > {longer}
           ada < {{"id":5,"refresh":{{"expires":true,"ttl":100}}}}
           wait 124900ms
           ada receives nothing
           ada awaits 200ms
           ada x 3005 connection expired"#
    ));
    check(&format!(
        "wait 80s\n ada > {}\n ada < {{\"id\":5,\"refresh\":{{}}}}\n wait 999s",
        refresh(r#"{"sub":"42"}"#)
    ));
}

#[test]
fn a_refresh_may_shorten_a_lifetime() {
    let shorter = refresh(&format!(r#"{{"sub":"42","exp":{}}}"#, in_seconds(2)));
    check(&format!(
        r#"ada > {shorter}
           ada < {{"id":5,"refresh":{{"expires":true,"ttl":2}}}}
           wait 26900ms
           ada receives nothing
           ada awaits 200ms
           ada x 3005 connection expired"#
    ));
}

#[test]
fn the_end_of_a_connection_follows_a_step_of_the_clock() {
    check("clock +3600\n ada awaits 100ms\n ada x 3005 connection expired");
    check(
        r#"clock -3600
           wait 3684900ms
           ada receives nothing
           ada awaits 200ms
           ada x 3005 connection expired"#,
    );
}

#[test]
fn the_end_of_a_subscription_follows_a_step_of_the_clock() {
    check_subscription(
        r#"clock +3600
           ada awaits 100ms
           ada < {"push":{"channel":"a","unsubscribe":{"code":2501,"reason":"subscription expired"}}}"#,
    );
}

#[test]
fn a_token_is_judged_by_the_time_behind_a_step_of_the_clock() {
    let expired = "{\"id\":1,\"error\":{\"code\":109,\"message\":\"token expired\"}}";
    let script = format!(
        "ada opens\n clock +61\n ada > {}\n ada < {expired}",
        connect(&format!(r#"{{"sub":"42","exp":{}}}"#, in_seconds(60))),
    );
    play_in_both(&guarded(|_| {}), &script);
}

/// A node without patience: a second of grace, so that expiry comes before any ping.
fn impatient() -> Options {
    guarded(|options| {
        options.client.expired_close_delay = Duration::from_secs(1);
        options.client.expired_sub_close_delay = Duration::from_secs(1);
    })
}

const CONNECTED: &str =
    r#"ada < {"id":1,"connect":{"client":"ada","version":"test","ping":25,"pong":true}}"#;

#[test]
fn expiry_waits_for_no_ping() {
    let end =
        "wait 2900ms\n ada receives nothing\n ada awaits 200ms\n ada x 3005 connection expired";
    let short = format!(r#"{{"sub":"42","exp":{}}}"#, in_seconds(2));
    let connected = r#"{"id":1,"connect":{"client":"ada","version":"test","expires":true,"ttl":2,"ping":25,"pong":true}}"#;
    play_in_both(
        &impatient(),
        &format!("ada opens\n ada > {}\n ada < {connected}\n {end}", connect(&short)),
    );
    let refreshed = r#"{"id":5,"refresh":{"expires":true,"ttl":2}}"#;
    play_in_both(
        &impatient(),
        &format!(
            "ada opens\n ada > {}\n {CONNECTED}\n ada > {}\n ada < {refreshed}\n {end}",
            connect(r#"{"sub":"42"}"#),
            refresh(&short),
        ),
    );
}

#[test]
fn expiry_of_a_subscription_waits_for_no_ping() {
    let end = r#"
        wait 2900ms
        ada receives nothing
        ada awaits 200ms
        ada < {"push":{"channel":"a","unsubscribe":{"code":2501,"reason":"subscription expired"}}}
    "#;
    let connect = connect(r#"{"sub":"42"}"#);
    let short = format!(r#"{{"sub":"42","channel":"a","exp":{}}}"#, in_seconds(2));
    let subscribed = r#"{"id":2,"subscribe":{"expires":true,"ttl":2}}"#;
    play_in_both(
        &impatient(),
        &format!(
            "ada opens\n ada > {connect}\n {CONNECTED}\n ada > {}\n ada < {subscribed}\n {end}",
            subscribe("a", &short),
        ),
    );
    let refreshed = r#"{"id":5,"sub_refresh":{"expires":true,"ttl":2}}"#;
    play_in_both(
        &impatient(),
        &format!(
            "ada opens\n ada > {connect}\n {CONNECTED}\n ada > {}\n ada < {{\"id\":2,\"subscribe\":{{}}}}\n ada > {}\n ada < {refreshed}\n {end}",
            subscribe("a", r#"{"sub":"42","channel":"a"}"#),
            sub_refresh(&short),
        ),
    );
}

#[test]
fn a_refreshed_info_is_what_others_see() {
    let options = guarded(|options| {
        options.channel.without_namespace.allow_publish_for_client = true;
    });
    let claims = |name| format!(r#"{{"sub":"42","info":"{name}","channels":["a"]}}"#);
    play_in_both(
        &options,
        &format!(
            r#"ada opens
               ada > {}
               ada < {{"id":1,"connect":{{"client":"ada","version":"test","subs":{{"a":{{}}}},"ping":25,"pong":true}}}}
               ada > {}
               ada < {{"id":5,"refresh":{{}}}}
               ada > {{"id":6,"publish":{{"channel":"a","data":1}}}}
               ada < {{"push":{{"channel":"a","pub":{{"data":1,"info":{{"user":"42","client":"ada","conn_info":"new"}}}}}}}}
               ada < {{"id":6,"publish":{{}}}}"#,
            connect(&claims("old")),
            refresh(&claims("new")),
        ),
    );
}

#[test]
fn a_refresh_without_info_leaves_what_there_is() {
    let options = guarded(|options| {
        options.channel.without_namespace.allow_publish_for_client = true;
    });
    play_in_both(
        &options,
        &format!(
            r#"ada opens
               ada > {}
               ada < {{"id":1,"connect":{{"client":"ada","version":"test","subs":{{"a":{{}}}},"ping":25,"pong":true}}}}
               ada > {}
               ada < {{"id":5,"refresh":{{}}}}
               ada > {{"id":6,"publish":{{"channel":"a","data":1}}}}
               ada < {{"push":{{"channel":"a","pub":{{"data":1,"info":{{"user":"42","client":"ada","conn_info":"old"}}}}}}}}
               ada < {{"id":6,"publish":{{}}}}"#,
            connect(r#"{"sub":"42","info":"old","channels":["a"]}"#),
            refresh(r#"{"sub":"42","channels":["a"]}"#),
        ),
    );
}

#[test]
fn failed_refreshes_have_their_codes() {
    check("ada > {\"id\":5,\"refresh\":{}}\n ada x 3501 bad request");
    check("ada > {\"id\":5,\"refresh\":{\"token\":\"x\"}}\n ada x 3500 invalid token");
    check(&format!("ada > {}\n ada x 3500 invalid token", refresh(r#"{"sub":"43"}"#)));
    let expired = refresh(&format!(r#"{{"sub":"42","exp":{}}}"#, UNIX - 1));
    check(&format!("ada > {expired}\n ada x 3005 connection expired"));
    let other_channels = refresh(r#"{"sub":"42","channels":["a"]}"#);
    check(&format!("ada > {other_channels}\n ada x 3010 insufficient state"));
    let over = refresh(&format!(r#"{{"sub":"42","expire_at":{}}}"#, UNIX - 1));
    check(&format!(
        "ada > {over}\n ada < {{\"id\":5,\"error\":{{\"code\":110,\"message\":\"expired\"}}}}"
    ));
}

#[test]
fn a_ttl_is_at_most_a_year() {
    let script = format!(
        r#"ada opens
           ada > {}
           ada < {{"id":1,"connect":{{"client":"ada","version":"test","expires":true,"ttl":31536000,"ping":25,"pong":true}}}}"#,
        connect(&format!(r#"{{"sub":"42","exp":{}}}"#, in_seconds(10 * 31_536_000))),
    );
    play_in_both(&guarded(|_| {}), &script);
}

#[test]
fn insecure_mode_does_not_enforce_expiry() {
    let options = guarded(|options| options.client.insecure = true);
    let script = format!(
        r#"ada opens
           ada > {}
           ada < {{"id":1,"connect":{{"client":"ada","version":"test","ping":25,"pong":true}}}}
           wait 500s"#,
        connect(&format!(r#"{{"sub":"42","exp":{}}}"#, in_seconds(60))),
    );
    play_in_both(&options, &script);
}

#[test]
fn a_subscription_that_is_not_refreshed_ends_with_2501() {
    check_subscription(
        r#"
        wait 84900ms
        api > a 1
        ada < {"push":{"channel":"a","pub":{"data":1}}}
        ada awaits 200ms
        ada < {"push":{"channel":"a","unsubscribe":{"code":2501,"reason":"subscription expired"}}}
        api > a 2
    "#,
    );
}

#[test]
fn a_sub_refresh_gives_a_new_lifetime() {
    let longer = sub_refresh(&format!(r#"{{"sub":"42","channel":"a","exp":{}}}"#, in_seconds(150)));
    check_subscription(&format!(
        r#"wait 50s
           ada > {longer}
           ada < {{"id":5,"sub_refresh":{{"expires":true,"ttl":100}}}}
           wait 124900ms
           ada receives nothing
           ada awaits 200ms
           ada < {{"push":{{"channel":"a","unsubscribe":{{"code":2501,"reason":"subscription expired"}}}}}}"#
    ));
    check_subscription(&format!(
        "ada > {}\n ada < {{\"id\":5,\"sub_refresh\":{{}}}}\n wait 999s",
        sub_refresh(r#"{"sub":"42","channel":"a"}"#)
    ));
}

#[test]
fn failed_sub_refreshes_have_their_codes() {
    let error = |code, message| {
        format!("ada < {{\"id\":5,\"error\":{{\"code\":{code},\"message\":\"{message}\"}}}}")
    };
    let not_subscribed = r#"ada > {"id":5,"sub_refresh":{"channel":"b","token":"x"}}"#;
    check_subscription(&format!("{not_subscribed}\n {}", error(103, "permission denied")));
    let no_token = r#"ada > {"id":5,"sub_refresh":{"channel":"a"}}"#;
    check_subscription(&format!("{no_token}\n {}", error(107, "bad request")));
    let broken = r#"ada > {"id":5,"sub_refresh":{"channel":"a","token":"x"}}"#;
    check_subscription(&format!("{broken}\n ada x 3500 invalid token"));
    for claims in [r#"{"sub":"43","channel":"a"}"#, r#"{"sub":"42","channel":"b"}"#] {
        check_subscription(&format!("ada > {}\n ada x 3500 invalid token", sub_refresh(claims)));
    }
}

#[test]
fn a_sub_refresh_with_an_expired_token_renews_nothing_and_ends_nothing_else() {
    let expired = sub_refresh(&format!(r#"{{"sub":"42","channel":"a","exp":{}}}"#, UNIX - 1));
    let in_b = subscribe("b", r#"{"sub":"42","channel":"b"}"#);
    check_subscription(&format!(
        r#"ada > {in_b}
           ada < {{"id":2,"subscribe":{{}}}}
           wait 50s
           ada > {expired}
           ada < {{"id":5,"sub_refresh":{{}}}}
           wait 34900ms
           api > a 1
           ada < {{"push":{{"channel":"a","pub":{{"data":1}}}}}}
           ada awaits 200ms
           ada < {{"push":{{"channel":"a","unsubscribe":{{"code":2501,"reason":"subscription expired"}}}}}}
           api > a 2
           api > b 3
           ada < {{"push":{{"channel":"b","pub":{{"data":3}}}}}}"#
    ));
}

#[test]
fn a_subscription_of_the_server_cannot_be_refreshed_by_the_client() {
    let without_token = r#"{"id":5,"sub_refresh":{"channel":"a"}}"#.to_owned();
    for refresh in [sub_refresh(r#"{"sub":"42","channel":"a"}"#), without_token] {
        World::new(guarded(|_| {})).play(&format!(
            r#"ada opens
               ada > {}
               ada < {{"id":1,"connect":{{"client":"ada","version":"test","subs":{{"a":{{}}}},"ping":25,"pong":true}}}}
               ada > {refresh}
               ada x 3501 bad request"#,
            connect(r#"{"sub":"42","channels":["a"]}"#),
        ));
    }
}
