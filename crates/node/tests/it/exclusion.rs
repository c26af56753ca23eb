//! Publications that leave one connection out (`exclude_publisher` of a namespace, `exclude_client` of the server API), and
//! publications for one connection.
//! In: dialogues → out: who receives a publication, and that positions and recovery do not notice an exclusion.
//! Uses: `world`, `script`, the options of `history.rs`. Never: the API's own parsing (tested in its crate).
//! Changed here: tests of exclusion. That it allocates nothing per subscriber is tested in `memory.rs`.

use std::time::Duration;

use fanwire_broker::ClientId;
use fanwire_node::Options;
use fanwire_protocol::{ErrorCode, Publication};

use crate::history::with_history;
use crate::script::play_in_both;
use crate::world::{World, options};

fn excluding() -> Options {
    options(|options| options.channel.without_namespace.exclude_publisher = true)
}

/// Like `excluding`, and every subscription can recover.
fn recoverable() -> Options {
    with_history(|open| {
        open.exclude_publisher = true;
        open.force_recovery = true;
        open.allow_history_for_client = false;
    })
}

fn check(options: &Options, rest: &str) {
    let connected = |name: &str| {
        format!(
            r#"
            {name} opens
            {name} > {{"id":1,"connect":{{}}}}
            {name} < {{"id":1,"connect":{{"client":"{name}","version":"test","ping":25,"pong":true}}}}
        "#
        )
    };
    play_in_both(options, &format!("{}{}{rest}", connected("ada"), connected("bob")));
}

#[test]
fn everybody_but_the_publishing_connection_hears_a_publication() {
    check(
        &excluding(),
        r#"
        ada > {"id":2,"subscribe":{"channel":"a"}}
        ada < {"id":2,"subscribe":{}}
        bob > {"id":2,"subscribe":{"channel":"a"}}
        bob < {"id":2,"subscribe":{}}
        ada > {"id":3,"publish":{"channel":"a","data":1}}
        ada < {"id":3,"publish":{}}
        ada receives nothing
        bob < {"push":{"channel":"a","pub":{"data":1,"info":{"user":"","client":"ada"}}}}
        bob > {"id":3,"publish":{"channel":"a","data":2}}
        bob < {"id":3,"publish":{}}
        ada < {"push":{"channel":"a","pub":{"data":2,"info":{"user":"","client":"bob"}}}}
        api > a 3
        ada < {"push":{"channel":"a","pub":{"data":3}}}
        bob < {"push":{"channel":"a","pub":{"data":3}}}
    "#,
    );
}

#[test]
fn the_other_connections_of_the_publishing_user_hear_it() {
    play_in_both(
        &excluding(),
        r#"
        one opens as 42
        two opens as 42
        one > {"id":1,"connect":{}}\n{"id":2,"subscribe":{"channel":"a"}}
        two > {"id":1,"connect":{}}\n{"id":2,"subscribe":{"channel":"a"}}
        one < {"id":1,"connect":{"client":"one","version":"test","ping":25,"pong":true}}
        one < {"id":2,"subscribe":{}}
        two < {"id":1,"connect":{"client":"two","version":"test","ping":25,"pong":true}}
        two < {"id":2,"subscribe":{}}
        one > {"id":3,"publish":{"channel":"a","data":1}}
        one < {"id":3,"publish":{}}
        two < {"push":{"channel":"a","pub":{"data":1,"info":{"user":"42","client":"one"}}}}
    "#,
    );
}

#[test]
fn a_recoverable_publisher_misses_nothing_and_has_its_own_in_history() {
    check(
        &recoverable(),
        r#"
        ada > {"id":2,"subscribe":{"channel":"a"}}
        ada < {"id":2,"subscribe":{"recoverable":true,"epoch":"E1","positioned":true}}
        ada > {"id":3,"publish":{"channel":"a","data":1}}
        ada < {"id":3,"publish":{}}
        ada > {"id":4,"publish":{"channel":"a","data":2}}
        ada < {"id":4,"publish":{}}
        api > a 3
        ada < {"push":{"channel":"a","pub":{"data":3,"offset":3}}}
        ada > {"id":5,"publish":{"channel":"a","data":4}}
        ada < {"id":5,"publish":{}}
        wait 50s
        ada receives nothing
        api > a 5
        ada < {"push":{"channel":"a","pub":{"data":5,"offset":5}}}
        bob > {"id":2,"subscribe":{"channel":"a","recover":true,"offset":2,"epoch":"E1"}}
        bob < {"id":2,"subscribe":{"recoverable":true,"epoch":"E1","publications":[{"data":3,"offset":3},{"data":4,"info":{"user":"","client":"ada"},"offset":4},{"data":5,"offset":5}],"recovered":true,"offset":2,"positioned":true,"was_recovering":true}}
    "#,
    );
}

#[test]
fn the_api_spares_the_connection_it_names() {
    for options in [options(|_| {}), excluding()] {
        check(
            &options,
            r#"
            ada > {"id":2,"subscribe":{"channel":"a"}}
            ada < {"id":2,"subscribe":{}}
            bob > {"id":2,"subscribe":{"channel":"a"}}
            bob < {"id":2,"subscribe":{}}
            api spares bob: a 1
            ada < {"push":{"channel":"a","pub":{"data":1}}}
            bob receives nothing
            api > a 2
            ada < {"push":{"channel":"a","pub":{"data":2}}}
            bob < {"push":{"channel":"a","pub":{"data":2}}}
        "#,
        );
    }
}

#[test]
fn who_is_spared_is_not_disconnected_for_data_it_could_not_have_read() {
    let script = r#"
        ada opens json
        ada > {"id":1,"connect":{}}\n{"id":2,"subscribe":{"channel":"a"}}
        ada < {"id":1,"connect":{"client":"ada","version":"test","ping":25,"pong":true}}
        ada < {"id":2,"subscribe":{}}
        api spares ada: a boom
        ada receives nothing
        api > a boom
        ada x 3506 inappropriate protocol
    "#;
    World::new(options(|_| {})).play(script);
}

#[test]
fn only_what_a_client_is_told_as_its_id_is_one() {
    let id = "5f1b0f4c-3a8e-4b52-9d1c-0c1f7d1f4a11";
    assert!(ClientId::parse(id).is_some());
    for wrong in ["", "42", "5f1b0f4c3a8e4b529d1c0c1f7d1f4a11", &id[1..], &id.replace('5', "g")] {
        assert_eq!(ClientId::parse(wrong), None, "{wrong}");
    }
}

#[test]
fn a_publication_for_one_client_reaches_that_client_alone() {
    let mut world = World::new(options(|options| {
        options.channel.without_namespace.allowed_delta_types = vec!["fossil".into()];
        options.channel.without_namespace.delivery.batch.max_delay = Duration::from_secs(9); // ended by the next publication for one client
    }));
    world.play(
        r#"ada opens
           ada > {"id":1,"connect":{}}\n{"id":2,"subscribe":{"channel":"a","delta":"fossil"}}
           ada < {"id":1,"connect":{"client":"ada","version":"test","ping":25,"pong":true}}
           ada < {"id":2,"subscribe":{"delta":true}}
           bob opens
           bob > {"id":1,"connect":{}}\n{"id":2,"subscribe":{"channel":"a"}}
           bob < {"id":1,"connect":{"client":"bob","version":"test","ping":25,"pong":true}}
           bob < {"id":2,"subscribe":{}}
           api > a 1"#,
    );
    let now = world.now;
    let publish = |world: &World, client, channel, data: &'static str| {
        let publication = Publication { data: data.into(), ..Publication::default() };
        world.node.channels().publish_to(client, channel, publication, None, now)
    };
    let ada = ClientId::parse(world.id("ada")).expect("an id");
    assert_eq!(publish(&world, ada, "a", "2"), Ok(()));
    assert_eq!(publish(&world, ada, "b", "3"), Ok(()), "no subscriber, no effect");
    assert_eq!(publish(&world, ClientId::from_bytes([0; 16]), "a", "4"), Ok(()));
    assert_eq!(publish(&world, ada, "unknown:a", "5"), Err(ErrorCode::UNKNOWN_CHANNEL));
    assert_eq!(publish(&world, ada, "a", ""), Err(ErrorCode::BAD_REQUEST));
    world.settle();
    world.play(
        r#"ada < {"push":{"channel":"a","pub":{"data":"1"}}}
           ada < {"push":{"channel":"a","pub":{"data":"2"}}}
           bob < {"push":{"channel":"a","pub":{"data":1}}}"#,
    );
}
