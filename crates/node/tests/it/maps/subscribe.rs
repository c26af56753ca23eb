//! Subscribes to map channels: pages, the switch to live, recovery, limits, filters (protocol §27).
//! In: scripts of clients and of the server API → out: replies and pushes, word for word.
//! Uses `world` and `script`. Never: engines of a test's own.
//! Changed here: dialogues of map subscriptions. The state machine behind them is tested in `map/paging.rs`.

use std::time::Duration;

use fanwire_node::options::{MapMode, MapOptions, Options, SubscriptionType};

use crate::publish::check;
use crate::world::options;

/// Maps whose pages have one or two entries.
pub(crate) fn maps(mode: MapMode, change: impl FnOnce(&mut Options)) -> Options {
    let key_ttl = match mode {
        MapMode::Persistent => Duration::ZERO,
        _ => Duration::from_secs(60),
    };
    options(|options| {
        let namespace = &mut options.channel.without_namespace;
        namespace.subscription_type = SubscriptionType::Map;
        namespace.map = MapOptions {
            mode,
            key_ttl,
            default_page_size: 2,
            min_page_size: 1,
            max_page_size: 2,
            ..MapOptions::default()
        };
        change(options);
    })
}

fn persistent() -> Options {
    maps(MapMode::Persistent, |_| {})
}

/// Maps with streams of this many changes.
fn with_stream(stream_size: usize) -> Options {
    maps(MapMode::Persistent, |options| {
        options.channel.without_namespace.map.stream_size = stream_size;
    })
}

#[test]
fn an_empty_map_is_live_at_once() {
    check(
        &persistent(),
        r#"
        ada > {"id":2,"subscribe":{"channel":"m","type":1,"phase":2}}
        ada < {"id":2,"subscribe":{"recoverable":true,"epoch":"E1","type":1}}
        api sets m k {"x":1}
        ada < {"push":{"channel":"m","pub":{"data":{"x":1},"offset":1,"key":"k","epoch":"E1"}}}
        api unsets m k
        ada < {"push":{"channel":"m","pub":{"offset":2,"key":"k","removed":true}}}
        ada > {"id":3,"subscribe":{"channel":"m","type":1,"phase":2}}
        ada < {"id":3,"error":{"code":105,"message":"already subscribed"}}
        ada > {"id":4,"unsubscribe":{"channel":"m"}}
        ada < {"id":4,"unsubscribe":{}}
        api sets m k 2
        ada receives nothing
    "#,
    );
}

#[test]
fn an_empty_ephemeral_map_has_no_positions() {
    check(
        &maps(MapMode::Ephemeral, |_| {}),
        r#"
        ada > {"id":2,"subscribe":{"channel":"m","type":1,"phase":2}}
        ada < {"id":2,"subscribe":{"type":1}}
        api sets m k 1
        ada < {"push":{"channel":"m","pub":{"data":1,"key":"k"}}}
        wait 60s
        node ticks
        ada < {"push":{"channel":"m","pub":{"key":"k","removed":true}}}
    "#,
    );
}

#[test]
fn entries_come_in_pages_and_what_changed_meanwhile_comes_with_the_last_one() {
    check(
        &persistent(),
        r#"
        api sets m a 1
        api sets m b 1
        api sets m c 1
        ada > {"id":2,"subscribe":{"channel":"m","type":1,"phase":2}}
        ada < {"id":2,"subscribe":{"epoch":"E1","offset":3,"type":1,"phase":2,"cursor":"b","state":[{"data":1,"offset":1,"key":"a"},{"data":1,"offset":2,"key":"b"}]}}
        api sets m a 2
        api unsets m c
        ada > {"id":3,"subscribe":{"channel":"m","type":1,"phase":2,"cursor":"b","offset":3,"epoch":"E1"}}
        ada < {"id":3,"subscribe":{"recoverable":true,"epoch":"E1","publications":[{"data":2,"offset":4,"key":"a"},{"offset":5,"key":"c","removed":true}],"offset":5,"type":1}}
        api sets m d 1
        ada < {"push":{"channel":"m","pub":{"data":1,"offset":6,"key":"d"}}}
    "#,
    );
}

#[test]
fn many_changes_come_in_pages_too() {
    check(
        &persistent(),
        r#"
        api sets m a 1
        api sets m b 1
        api sets m c 1
        ada > {"id":2,"subscribe":{"channel":"m","type":1,"phase":2}}
        ada < {"id":2,"subscribe":{"epoch":"E1","offset":3,"type":1,"phase":2,"cursor":"b","state":[{"data":1,"offset":1,"key":"a"},{"data":1,"offset":2,"key":"b"}]}}
        api sets m a 2
        api sets m a 3
        api sets m a 4
        api sets m c 4
        ada > {"id":3,"subscribe":{"channel":"m","type":1,"phase":2,"cursor":"b","offset":3,"epoch":"E1"}}
        ada < {"id":3,"subscribe":{"epoch":"E1","offset":3,"type":1,"phase":2}}
        ada > {"id":4,"subscribe":{"channel":"m","type":1,"phase":1,"offset":3,"epoch":"E1"}}
        ada < {"id":4,"subscribe":{"epoch":"E1","publications":[{"data":2,"offset":4,"key":"a"},{"data":3,"offset":5,"key":"a"}],"offset":5,"type":1,"phase":1}}
        ada > {"id":5,"subscribe":{"channel":"m","type":1,"phase":1,"offset":5,"epoch":"E1"}}
        ada < {"id":5,"subscribe":{"recoverable":true,"epoch":"E1","publications":[{"data":4,"offset":6,"key":"a"},{"data":4,"offset":7,"key":"c"}],"offset":7,"type":1}}
        api sets m d 1
        ada < {"push":{"channel":"m","pub":{"data":1,"offset":8,"key":"d"}}}
    "#,
    );
}

/// A recovery returns changes; a client that asks for entries gets none.
#[test]
fn a_client_that_reads_entries_recovers_nothing() {
    check(
        &persistent(),
        r#"
        api sets m a 1
        ada > {"id":2,"subscribe":{"channel":"m","type":1,"phase":2,"recover":true}}
        ada < {"id":2,"subscribe":{"recoverable":true,"epoch":"E1","offset":1,"type":1,"state":[{"data":1,"offset":1,"key":"a"}]}}
    "#,
    );
}

#[test]
fn a_client_that_returns_gets_what_it_missed() {
    check(
        &persistent(),
        r#"
        api sets m a 1
        api sets m a 2
        ada > {"id":2,"subscribe":{"channel":"m","type":1,"phase":2}}
        ada < {"id":2,"subscribe":{"recoverable":true,"epoch":"E1","offset":2,"type":1,"state":[{"data":2,"offset":2,"key":"a"}]}}
        ada > {"id":3,"unsubscribe":{"channel":"m"}}
        ada < {"id":3,"unsubscribe":{}}
        api sets m b 3
        ada > {"id":4,"subscribe":{"channel":"m","type":1,"phase":1,"recover":true,"offset":2,"epoch":"E1"}}
        ada < {"id":4,"subscribe":{"recoverable":true,"epoch":"E1","publications":[{"data":3,"offset":3,"key":"b"}],"recovered":true,"offset":3,"was_recovering":true,"type":1}}
        ada > {"id":5,"unsubscribe":{"channel":"m"}}
        ada < {"id":5,"unsubscribe":{}}
        ada > {"id":6,"subscribe":{"channel":"m","type":1,"recover":true,"offset":3,"epoch":"E1"}}
        ada < {"id":6,"subscribe":{"recoverable":true,"epoch":"E1","recovered":true,"offset":3,"was_recovering":true,"type":1}}
    "#,
    );
}

/// Centrifugo answers `recovered: true` with the last five of twenty changes.
#[test]
fn a_position_before_a_trimmed_stream_is_112_also_at_offset_0() {
    for phase in ["", r#""phase":1,"#] {
        check(
            &with_stream(2),
            &format!(
                r#"
                ada > {{"id":2,"subscribe":{{"channel":"m","type":1,"phase":2}}}}
                ada < {{"id":2,"subscribe":{{"recoverable":true,"epoch":"E1","type":1}}}}
                ada > {{"id":3,"unsubscribe":{{"channel":"m"}}}}
                ada < {{"id":3,"unsubscribe":{{}}}}
                api sets m a 1
                api sets m b 2
                api sets m c 3
                ada > {{"id":4,"subscribe":{{"channel":"m","type":1,{phase}"recover":true,"epoch":"E1"}}}}
                ada < {{"id":4,"error":{{"code":112,"message":"unrecoverable position"}}}}
                ada > {{"id":5,"subscribe":{{"channel":"m","type":1,{phase}"recover":true,"offset":1,"epoch":"E1"}}}}
                ada < {{"id":5,"subscribe":{{"recoverable":true,"epoch":"E1","publications":[{{"data":2,"offset":2,"key":"b"}},{{"data":3,"offset":3,"key":"c"}}],"recovered":true,"offset":3,"was_recovering":true,"type":1}}}}
            "#
            ),
        );
    }
}

/// Centrifugo answers `recovered: true` without any change.
#[test]
fn a_position_before_an_expired_stream_is_112() {
    for phase in ["", r#""phase":1,"#] {
        check(
            &persistent(),
            &format!(
                r#"
                api sets m a 1
                ada > {{"id":2,"subscribe":{{"channel":"m","type":1,"phase":2}}}}
                ada < {{"id":2,"subscribe":{{"recoverable":true,"epoch":"E1","offset":1,"type":1,"state":[{{"data":1,"offset":1,"key":"a"}}]}}}}
                ada > {{"id":3,"unsubscribe":{{"channel":"m"}}}}
                ada < {{"id":3,"unsubscribe":{{}}}}
                api sets m b 2
                wait 60s
                ada > {{"id":4,"subscribe":{{"channel":"m","type":1,{phase}"recover":true,"offset":1,"epoch":"E1"}}}}
                ada < {{"id":4,"error":{{"code":112,"message":"unrecoverable position"}}}}
                ada > {{"id":5,"subscribe":{{"channel":"m","type":1,{phase}"recover":true,"offset":2,"epoch":"E1"}}}}
                ada < {{"id":5,"subscribe":{{"recoverable":true,"epoch":"E1","recovered":true,"offset":2,"was_recovering":true,"type":1}}}}
            "#
            ),
        );
    }
}

#[test]
fn a_map_that_was_cleared_is_112_for_positions_and_2500_for_subscribers() {
    check(
        &persistent(),
        r#"
        api sets m a 1
        ada > {"id":2,"subscribe":{"channel":"m","type":1,"phase":2}}
        ada < {"id":2,"subscribe":{"recoverable":true,"epoch":"E1","offset":1,"type":1,"state":[{"data":1,"offset":1,"key":"a"}]}}
        api clears m
        ada awaits 3s
        ada < {"push":{"channel":"m","unsubscribe":{"code":2500,"reason":"insufficient state"}}}
        ada > {"id":3,"subscribe":{"channel":"m","type":1,"phase":1,"recover":true,"offset":1,"epoch":"E1"}}
        ada < {"id":3,"error":{"code":112,"message":"unrecoverable position"}}
        ada > {"id":4,"subscribe":{"channel":"m","type":1,"phase":2}}
        ada < {"id":4,"subscribe":{"recoverable":true,"epoch":"E2","type":1}}
    "#,
    );
    check(
        &maps(MapMode::Ephemeral, |_| {}),
        r#"
        ada > {"id":2,"subscribe":{"channel":"m","type":1,"phase":2}}
        ada < {"id":2,"subscribe":{"type":1}}
        api clears m
        ada < {"push":{"channel":"m","unsubscribe":{"code":2500,"reason":"insufficient state"}}}
    "#,
    );
}

#[test]
fn a_map_that_was_cleared_between_two_pages_is_112() {
    check(
        &persistent(),
        r#"
        api sets m a 1
        api sets m b 1
        api sets m c 1
        ada > {"id":2,"subscribe":{"channel":"m","type":1,"phase":2}}
        ada < {"id":2,"subscribe":{"epoch":"E1","offset":3,"type":1,"phase":2,"cursor":"b","state":[{"data":1,"offset":1,"key":"a"},{"data":1,"offset":2,"key":"b"}]}}
        api clears m
        ada > {"id":3,"subscribe":{"channel":"m","type":1,"phase":2,"cursor":"b","offset":3,"epoch":"E1"}}
        ada < {"id":3,"error":{"code":112,"message":"unrecoverable position"}}
        ada > {"id":4,"subscribe":{"channel":"m","type":1,"phase":2}}
        ada < {"id":4,"subscribe":{"recoverable":true,"epoch":"E2","type":1}}
    "#,
    );
}

/// The second page was read after the change of `a`, which is behind it, and has no place in a stream.
#[test]
fn an_ephemeral_map_buffers_changes_from_its_first_page_on() {
    check(
        &maps(MapMode::Ephemeral, |_| {}),
        r#"
        api sets m a 1
        api sets m b 1
        api sets m c 1
        ada > {"id":2,"subscribe":{"channel":"m","type":1,"phase":2}}
        ada < {"id":2,"subscribe":{"type":1,"phase":2,"cursor":"b","state":[{"data":1,"key":"a"},{"data":1,"key":"b"}]}}
        api sets m a 2
        api unsets m b
        ada > {"id":3,"subscribe":{"channel":"m","type":1,"phase":2,"cursor":"b"}}
        ada < {"id":3,"subscribe":{"publications":[{"data":2,"key":"a"},{"key":"b","removed":true}],"type":1,"state":[{"data":1,"key":"c"}]}}
        api sets m d 1
        ada < {"push":{"channel":"m","pub":{"data":1,"key":"d"}}}
    "#,
    );
}

#[test]
fn more_changes_than_the_buffer_of_an_ephemeral_map_holds_are_112() {
    let mut script = String::from(
        r#"
        api sets m a 1
        api sets m b 1
        api sets m c 1
        ada > {"id":2,"subscribe":{"channel":"m","type":1,"phase":2}}
        ada < {"id":2,"subscribe":{"type":1,"phase":2,"cursor":"b","state":[{"data":1,"key":"a"},{"data":1,"key":"b"}]}}
    "#,
    );
    script.push_str(&"api sets m a 2\n".repeat(4097));
    script.push_str(
        r#"
        ada > {"id":3,"subscribe":{"channel":"m","type":1,"phase":2,"cursor":"b"}}
        ada < {"id":3,"error":{"code":112,"message":"unrecoverable position"}}
    "#,
    );
    check(&maps(MapMode::Ephemeral, |_| {}), &script);
}

#[test]
fn a_client_that_is_too_slow_is_disconnected() {
    let pages = [
        (MapMode::Ephemeral, r#"{"type":1,"phase":2,"cursor":"a","state":[{"data":1,"key":"a"}]}"#),
        (
            MapMode::Recoverable,
            r#"{"epoch":"E1","offset":2,"type":1,"phase":2,"cursor":"a","state":[{"data":1,"offset":1,"key":"a"}]}"#,
        ),
    ];
    for (mode, page) in pages {
        check(
            &maps(mode, |_| {}),
            &format!(
                r#"
                api sets m a 1
                api sets m b 1
                ada > {{"id":2,"subscribe":{{"channel":"m","type":1,"phase":2,"limit":1}}}}
                ada < {{"id":2,"subscribe":{page}}}
                wait 4s
                ada > {{"id":3,"subscribe":{{"channel":"m","type":1,"phase":2}}}}
                ada < {{"id":3,"error":{{"code":105,"message":"already subscribed"}}}}
                wait 1s
                ada > {{"id":4,"subscribe":{{"channel":"m","type":1,"phase":2,"limit":1}}}}
                ada < {{"id":4,"subscribe":{page}}}
                wait 5s
                ada > {{"id":5,"subscribe":{{"channel":"m","type":1,"phase":2,"cursor":"a"}}}}
                ada x 3008 slow
            "#
            ),
        );
    }
}

#[test]
fn a_subscribe_that_was_given_up_makes_room_for_others() {
    check(
        &maps(MapMode::Ephemeral, |options| options.client.channel_limit = 1),
        r#"
        api sets m a 1
        api sets m b 1
        api sets m c 1
        ada > {"id":2,"subscribe":{"channel":"m","type":1,"phase":2}}
        ada < {"id":2,"subscribe":{"type":1,"phase":2,"cursor":"b","state":[{"data":1,"key":"a"},{"data":1,"key":"b"}]}}
        ada > {"id":3,"subscribe":{"channel":"n","type":1,"phase":2}}
        ada < {"id":3,"error":{"code":106,"message":"limit exceeded"}}
        ada > {"id":4,"unsubscribe":{"channel":"m"}}
        ada < {"id":4,"unsubscribe":{}}
        ada > {"id":5,"subscribe":{"channel":"m","type":1,"phase":2,"cursor":"b"}}
        ada < {"id":5,"error":{"code":103,"message":"permission denied"}}
        ada > {"id":6,"subscribe":{"channel":"n","type":1,"phase":2}}
        ada < {"id":6,"subscribe":{"type":1}}
    "#,
    );
}

#[test]
fn requests_for_another_kind_of_channel_or_phase_are_refused() {
    check(
        &persistent(),
        r#"
        ada > {"id":2,"subscribe":{"channel":"m"}}
        ada < {"id":2,"error":{"code":103,"message":"permission denied"}}
        ada > {"id":3,"subscribe":{"channel":"m","type":2,"phase":2}}
        ada < {"id":3,"error":{"code":103,"message":"permission denied"}}
        ada > {"id":4,"subscribe":{"channel":"m","type":4}}
        ada < {"id":4,"error":{"code":103,"message":"permission denied"}}
        ada > {"id":5,"subscribe":{"channel":"m","type":1,"phase":3}}
        ada < {"id":5,"error":{"code":107,"message":"bad request"}}
        ada > {"id":6,"subscribe":{"channel":"m","type":1,"phase":1}}
        ada < {"id":6,"error":{"code":103,"message":"permission denied"}}
        ada > {"id":7,"subscribe":{"channel":"m","type":1,"phase":2,"cursor":"made up"}}
        ada < {"id":7,"error":{"code":103,"message":"permission denied"}}
        ada > {"id":8,"history":{"channel":"m"}}
        ada < {"id":8,"error":{"code":108,"message":"not available"}}
    "#,
    );
    check(
        &options(|_| {}),
        r#"
        ada > {"id":2,"subscribe":{"channel":"a","type":1,"phase":2}}
        ada < {"id":2,"error":{"code":103,"message":"permission denied"}}
    "#,
    );
}

#[test]
fn a_filter_applies_to_entries_changes_and_pushes_and_offsets_advance() {
    let filtered = maps(MapMode::Persistent, |options| {
        options.channel.without_namespace.allow_tags_filter = true;
    });
    check(
        &filtered,
        r#"
        api sets m a#t=1 1
        api sets m b 1
        api sets m c#t=1 1
        ada > {"id":2,"subscribe":{"channel":"m","type":1,"phase":2,"tf":{"key":"t","cmp":"eq","val":"1"}}}
        ada < {"id":2,"subscribe":{"epoch":"E1","offset":3,"type":1,"phase":2,"cursor":"b","state":[{"data":1,"offset":1,"tags":{"t":"1"},"key":"a"}]}}
        api sets m b 2
        api unsets m a
        ada > {"id":3,"subscribe":{"channel":"m","type":1,"phase":2,"cursor":"b","offset":3,"epoch":"E1"}}
        ada < {"id":3,"subscribe":{"recoverable":true,"epoch":"E1","publications":[{"offset":5,"tags":{"t":"1"},"key":"a","removed":true}],"offset":5,"type":1,"state":[{"data":1,"offset":3,"tags":{"t":"1"},"key":"c"}]}}
        api sets m b 3
        api sets m c#t=1 4
        ada < {"push":{"channel":"m","pub":{"data":4,"offset":7,"tags":{"t":"1"},"key":"c"}}}
        ada > {"id":4,"unsubscribe":{"channel":"m"}}
        ada < {"id":4,"unsubscribe":{}}
        api sets m b 5
        ada > {"id":5,"subscribe":{"channel":"m","type":1,"phase":1,"recover":true,"offset":6,"epoch":"E1","tf":{"key":"t","cmp":"eq","val":"1"}}}
        ada < {"id":5,"subscribe":{"recoverable":true,"epoch":"E1","publications":[{"data":4,"offset":7,"tags":{"t":"1"},"key":"c"}],"recovered":true,"offset":8,"was_recovering":true,"type":1}}
    "#,
    );
    check(
        &persistent(),
        r#"
        ada > {"id":2,"subscribe":{"channel":"m","type":1,"phase":2,"tf":{"key":"t","cmp":"eq","val":"1"}}}
        ada < {"id":2,"error":{"code":107,"message":"bad request"}}
    "#,
    );
}

#[test]
fn a_position_that_the_engine_confirms_is_kept() {
    check(
        &persistent(),
        r#"
        api sets m a 1
        ada > {"id":2,"subscribe":{"channel":"m","type":1,"phase":2}}
        ada < {"id":2,"subscribe":{"recoverable":true,"epoch":"E1","offset":1,"type":1,"state":[{"data":1,"offset":1,"key":"a"}]}}
        wait 200s
        api sets m a 2
        ada < {"push":{"channel":"m","pub":{"data":2,"offset":2,"key":"a"}}}
    "#,
    );
}
