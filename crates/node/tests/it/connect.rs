//! Connecting without tokens (protocol §7): who gets in, and what the result says.
//! In: dialogues → out: each outcome of the tables, seen by a peer.
//! Uses: `world`, `script`. Never: tokens (see `tokens.rs`), server-side channels (see `server_side.rs`).
//! Changed here: tests of the connect command itself.

use fanwire_node::{Counts, Options};

use crate::script::play_in_both;
use crate::world::{World, options};

const ACCEPTED: &str = r#"
    ada opens
    ada > {"id":1,"connect":{"name":"js"}}
    ada < {"id":1,"connect":{"client":"ada","version":"test","ping":25,"pong":true}}
"#;

fn closed() -> Options {
    options(|options| options.client.allow_anonymous_connect_without_token = false)
}

#[test]
fn an_anonymous_connect_is_accepted_where_it_is_allowed() {
    play_in_both(&options(|_| {}), ACCEPTED);
}

#[test]
fn a_connect_without_credentials_is_3501() {
    play_in_both(&closed(), "ada opens\n ada > {\"id\":1,\"connect\":{}}\n ada x 3501 bad request");
}

#[test]
fn insecure_mode_accepts_everybody() {
    let mut options = closed();
    options.client.insecure = true;
    play_in_both(&options, ACCEPTED);
}

#[test]
fn the_user_of_a_trusted_header_counts_as_credentials() {
    let mut world = World::new(closed());
    world.play(&ACCEPTED.replace("opens", "opens as 42"));
    world.play(
        r#"
        ada > {"id":2,"subscribe":{"channel":"a"}}\n{"id":3,"publish":{"channel":"a","data":1}}
        ada < {"id":2,"subscribe":{}}
        ada < {"push":{"channel":"a","pub":{"data":1,"info":{"user":"42","client":"ada"}}}}
        ada < {"id":3,"publish":{}}
    "#,
    );
}

#[test]
fn two_connections_never_share_a_client_id() {
    let mut world = World::new(options(|_| {}));
    world.play(ACCEPTED);
    world.play(&ACCEPTED.replace("ada", "bob"));
    assert_ne!(world.id("ada"), world.id("bob"));
    assert_eq!(world.id("ada").len(), 36, "the text of a UUID");
}

#[test]
fn the_result_carries_the_time_when_configured() {
    let mut options = options(|options| options.client.connect_include_server_time = true);
    options.client.ping_interval = std::time::Duration::from_millis(10_500);
    play_in_both(
        &options,
        r#"
        wait 1500ms
        ada opens
        ada > {"id":1,"connect":{}}
        ada < {"id":1,"connect":{"client":"ada","version":"test","ping":11,"pong":true,"time":1800000001500}}
    "#,
    );
}

#[test]
fn a_user_over_the_connection_limit_is_3504_until_one_has_gone() {
    let mut options = closed();
    options.client.user_connection_limit = 2;
    let mut world = World::new(options);
    for name in ["a1", "a2"] {
        world.play(&ACCEPTED.replace("opens", "opens as 42").replace("ada", name));
    }
    world.play(
        r#"
        a3 opens as 42
        a3 > {"id":1,"connect":{}}
        a3 x 3504 connection limit
    "#,
    );
    world.play(&ACCEPTED.replace("opens", "opens as 43"));
    world.play("a1 closes");
    world.play(&ACCEPTED.replace("opens", "opens as 42").replace("ada", "a4"));
    let counts = Counts { connections: 3, users: 2, ..Counts::default() };
    assert_eq!(world.node.counts(), counts);
}

#[test]
fn anonymous_connections_have_no_user_limit() {
    let mut world = World::new(options(|options| options.client.user_connection_limit = 1));
    world.play(ACCEPTED);
    world.play(&ACCEPTED.replace("ada", "bob"));
}
