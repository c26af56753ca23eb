//! The `history` command (protocol §18): pages of stored publications, permissions, exact codes.
//! In: dialogues → out: each row of the table, seen by a peer.
//! Uses: `world`, `script`. Never: recovery (see `recovery.rs`), expiry (see the tests of the memory broker).
//! Changed here: tests of the history command.

use std::time::Duration;

use fanwire_node::Options;
use fanwire_node::options::Namespace;

use crate::script::{hello, play_in_both};
use crate::world::{World, options};

/// Channels that keep five publications for a minute, for everybody to read.
pub(crate) fn with_history(change: impl FnOnce(&mut Namespace)) -> Options {
    options(|options| {
        let open = &mut options.channel.without_namespace;
        open.history_size = 5;
        open.history_ttl = Duration::from_secs(60);
        open.allow_history_for_client = true;
        open.allow_history_for_anonymous = true;
        change(open);
    })
}

/// Plays the messages of a connected peer after six publications, of which the first is not kept any more.
fn check(options: &Options, rest: &str) {
    let before = r#"
        ada opens
        ada > {"id":1,"connect":{}}
        ada < {"id":1,"connect":{"client":"ada","version":"test","ping":25,"pong":true}}
        api > news 1
        api > news 2
        api > news 3
        api > news 4
        api > news 5
        api > news 6
    "#;
    play_in_both(options, &format!("{before}{rest}"));
}

#[test]
fn without_a_limit_only_the_position_is_told() {
    check(
        &with_history(|_| {}),
        r#"
        ada > {"id":2,"history":{"channel":"news"}}
        ada < {"id":2,"history":{"publications":[],"epoch":"E1","offset":6}}
        ada > {"id":3,"history":{"channel":"never","since":{"offset":4}}}
        ada < {"id":3,"history":{"publications":[],"epoch":"E2","offset":0}}
    "#,
    );
}

#[test]
fn a_page_has_the_oldest_publications_or_backwards_the_newest() {
    check(
        &with_history(|_| {}),
        r#"
        ada > {"id":2,"history":{"channel":"news","limit":2}}
        ada < {"id":2,"history":{"publications":[{"data":2,"offset":2},{"data":3,"offset":3}],"epoch":"E1","offset":6}}
        ada > {"id":3,"history":{"channel":"news","limit":2,"reverse":true}}
        ada < {"id":3,"history":{"publications":[{"data":6,"offset":6},{"data":5,"offset":5}],"epoch":"E1","offset":6}}
        ada > {"id":4,"history":{"channel":"news","limit":2,"since":{"offset":4,"epoch":"E1"}}}
        ada < {"id":4,"history":{"publications":[{"data":5,"offset":5},{"data":6,"offset":6}],"epoch":"E1","offset":6}}
        ada > {"id":5,"history":{"channel":"news","limit":1,"since":{"offset":4},"reverse":true}}
        ada < {"id":5,"history":{"publications":[{"data":3,"offset":3}],"epoch":"E1","offset":6}}
        ada > {"id":6,"history":{"channel":"news","limit":1,"since":{"offset":99}}}
        ada < {"id":6,"history":{"publications":[],"epoch":"E1","offset":6}}
    "#,
    );
}

#[test]
fn a_page_backwards_from_beyond_the_top_is_empty() {
    check(
        &with_history(|_| {}),
        r#"
        ada > {"id":2,"history":{"channel":"news","limit":1,"since":{"offset":7},"reverse":true}}
        ada < {"id":2,"history":{"publications":[{"data":6,"offset":6}],"epoch":"E1","offset":6}}
        ada > {"id":3,"history":{"channel":"news","limit":1,"since":{"offset":8,"epoch":"E1"},"reverse":true}}
        ada < {"id":3,"history":{"publications":[],"epoch":"E1","offset":6}}
        ada > {"id":4,"history":{"channel":"news","limit":1,"since":{"offset":18446744073709551615},"reverse":true}}
        ada < {"id":4,"history":{"publications":[],"epoch":"E1","offset":6}}
    "#,
    );
}

#[test]
fn a_limit_below_zero_or_above_the_maximum_is_the_maximum() {
    let mut options = with_history(|_| {});
    options.client.history_max_publication_limit = 3;
    for limit in [-1, i32::MIN, 4, i32::MAX] {
        check(
            &options,
            &format!(
                r#"
                ada > {{"id":2,"history":{{"channel":"news","limit":{limit}}}}}
                ada < {{"id":2,"history":{{"publications":[{{"data":2,"offset":2}},{{"data":3,"offset":3}},{{"data":4,"offset":4}}],"epoch":"E1","offset":6}}}}
            "#
            ),
        );
    }
}

#[test]
fn a_maximum_of_zero_is_none() {
    let mut options = with_history(|_| {});
    options.client.history_max_publication_limit = 0;
    check(
        &options,
        r#"
        ada > {"id":2,"history":{"channel":"news","limit":-1,"since":{"offset":4}}}
        ada < {"id":2,"history":{"publications":[{"data":5,"offset":5},{"data":6,"offset":6}],"epoch":"E1","offset":6}}
    "#,
    );
}

#[test]
fn a_foreign_epoch_is_112_and_backwards_from_zero_is_107() {
    check(
        &with_history(|_| {}),
        r#"
        ada > {"id":2,"history":{"channel":"news","limit":1,"since":{"offset":4,"epoch":"foreign"}}}
        ada < {"id":2,"error":{"code":112,"message":"unrecoverable position"}}
        ada > {"id":3,"history":{"channel":"news","since":{"offset":4,"epoch":"_"}}}
        ada < {"id":3,"error":{"code":112,"message":"unrecoverable position"}}
        ada > {"id":4,"history":{"channel":"news","limit":1,"since":{"offset":0,"epoch":"foreign"},"reverse":true}}
        ada < {"id":4,"error":{"code":107,"message":"bad request"}}
    "#,
    );
}

#[test]
fn publications_of_clients_carry_who_published() {
    check(
        &with_history(|_| {}),
        r#"
        ada > {"id":2,"publish":{"channel":"own","data":{"a":1}}}
        ada < {"id":2,"publish":{}}
        ada > {"id":3,"history":{"channel":"own","limit":1}}
        ada < {"id":3,"history":{"publications":[{"data":{"a":1},"info":{"user":"","client":"ada"},"offset":1}],"epoch":"E1","offset":1}}
    "#,
    );
}

#[test]
fn publications_arrive_with_offsets_and_the_first_one_with_its_epoch() {
    check(
        &with_history(|_| {}),
        r#"
        ada > {"id":2,"subscribe":{"channel":"fresh"}}
        ada < {"id":2,"subscribe":{}}
        api > fresh 1
        ada < {"push":{"channel":"fresh","pub":{"data":1,"offset":1,"epoch":"E1"}}}
        api skips history: fresh 2
        ada < {"push":{"channel":"fresh","pub":{"data":2}}}
        api > fresh 3
        ada < {"push":{"channel":"fresh","pub":{"data":3,"offset":2}}}
        ada > {"id":3,"history":{"channel":"fresh","limit":-1}}
        ada < {"id":3,"history":{"publications":[{"data":1,"offset":1},{"data":3,"offset":2}],"epoch":"E1","offset":2}}
    "#,
    );
}

#[test]
fn removed_history_is_gone_and_its_position_stays() {
    check(
        &with_history(|_| {}),
        r#"
        ada > {"id":2,"history":{"channel":"news"}}
        ada < {"id":2,"history":{"publications":[],"epoch":"E1","offset":6}}
        api removes history: news
        ada > {"id":3,"history":{"channel":"news","limit":9}}
        ada < {"id":3,"history":{"publications":[],"epoch":"E1","offset":6}}
        api > news 7
        ada > {"id":4,"history":{"channel":"news","limit":9}}
        ada < {"id":4,"history":{"publications":[{"data":7,"offset":7}],"epoch":"E1","offset":7}}
    "#,
    );
}

fn refused(options: &Options, channel: &str, code: u32, message: &str) {
    check(
        options,
        &format!(
            r#"ada > {{"id":2,"history":{{"channel":"{channel}","limit":1}}}}
               ada < {{"id":2,"error":{{"code":{code},"message":"{message}"}}}}"#
        ),
    );
}

#[test]
fn checks_come_in_the_order_of_the_reference() {
    let closed = with_history(|open| open.allow_history_for_client = false);
    refused(&closed, "news", 103, "permission denied");
    refused(
        &with_history(|open| open.allow_history_for_anonymous = false),
        "news",
        103,
        "permission denied",
    );
    refused(&options(|_| {}), "news", 108, "not available");
    refused(&closed, "x:news", 102, "unknown channel");
    refused(&closed, "nä", 107, "bad request");
    check(&closed, "ada > {\"id\":2,\"history\":{\"limit\":1}}\n ada x 3501 bad request");
}

#[test]
fn insecure_mode_permits_but_makes_no_history() {
    let mut insecure = with_history(|open| open.allow_history_for_client = false);
    insecure.client.insecure = true;
    check(
        &insecure,
        r#"
        ada > {"id":2,"history":{"channel":"news"}}
        ada < {"id":2,"history":{"publications":[],"epoch":"E1","offset":6}}
    "#,
    );
    refused(&options(|options| options.client.insecure = true), "news", 108, "not available");
}

#[test]
fn history_for_subscribers_is_for_those_who_are_subscribed() {
    let mut world = World::new(with_history(|open| {
        open.allow_history_for_client = false;
        open.allow_history_for_subscriber = true;
    }));
    world.connected("ada", hello("as 42"));
    world.play(
        r#"
        ada > {"id":2,"history":{"channel":"news"}}
        ada < {"id":2,"error":{"code":103,"message":"permission denied"}}
        ada > {"id":3,"subscribe":{"channel":"news"}}
        ada < {"id":3,"subscribe":{}}
        ada > {"id":4,"history":{"channel":"news"}}
        ada < {"id":4,"history":{"publications":[],"epoch":"E1","offset":0}}
    "#,
    );
}

#[test]
fn a_payload_nested_as_deep_as_it_may_be_is_told_like_any_other() {
    let deep = "[".repeat(512) + &"]".repeat(512);
    check(
        &with_history(|_| {}),
        &format!(
            r#"api > deep {deep}
               ada > {{"id":2,"history":{{"channel":"deep","limit":1}}}}
               ada < {{"id":2,"history":{{"publications":[{{"data":{deep},"offset":1}}],"epoch":"E1","offset":1}}}}"#
        ),
    );
}

#[test]
fn a_payload_that_is_not_json_ends_a_json_session_that_reads_it() {
    let mut world = World::new(with_history(|_| {}));
    world.connected("ada", hello(""));
    world.play(
        r#"
        api > news boom
        ada > {"id":2,"history":{"channel":"news","limit":1}}
        ada x 3506 inappropriate protocol
    "#,
    );
}
