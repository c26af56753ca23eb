//! Publications of a channel that are delivered together (`batch_max_size`, `batch_max_delay`, `batch_flush_latest`).
//! In: dialogues → out: when publications arrive, and that positions and recovery do not notice the wait.
//! Uses: `world`, `script`, the options of `history.rs`. Never: sockets.
//! When a batch is due is tested next to `hub/batches.rs`.

use std::time::Duration;

use fanwire_node::options::{BatchOptions, Namespace};

use crate::history::with_history;
use crate::script::play_in_both_without_moves;
use crate::world::options;

fn batch(max_size: usize, flush_latest: bool) -> impl Fn(&mut Namespace) {
    let max_delay = Duration::from_millis(50);
    move |open| open.delivery.batch = BatchOptions { max_size, max_delay, flush_latest }
}

#[test]
fn publications_arrive_together_in_order_by_time_and_by_size() {
    let options = options(|options| batch(3, false)(&mut options.channel.without_namespace));
    play_in_both_without_moves(
        &options,
        r#"
        ada opens
        ada > {"id":1,"connect":{}}\n{"id":2,"subscribe":{"channel":"a"}}
        ada < {"id":1,"connect":{"client":"ada","version":"test","ping":25,"pong":true}}
        ada < {"id":2,"subscribe":{}}
        api > a 1
        api > a 2
        wait 49ms
        ada receives nothing
        wait 1ms
        ada < {"push":{"channel":"a","pub":{"data":1}}}
        ada < {"push":{"channel":"a","pub":{"data":2}}}
        api > a 3
        api > a 4
        ada receives nothing
        api > a 5
        wait 1ms
        ada < {"push":{"channel":"a","pub":{"data":3}}}
        ada < {"push":{"channel":"a","pub":{"data":4}}}
        ada < {"push":{"channel":"a","pub":{"data":5}}}
        wait 100ms
        ada receives nothing
    "#,
    );
}

#[test]
fn only_the_newest_arrives_where_that_is_asked_for() {
    let options = options(|options| batch(0, true)(&mut options.channel.without_namespace));
    play_in_both_without_moves(
        &options,
        r#"
        ada opens
        ada > {"id":1,"connect":{}}\n{"id":2,"subscribe":{"channel":"a"}}
        ada < {"id":1,"connect":{"client":"ada","version":"test","ping":25,"pong":true}}
        ada < {"id":2,"subscribe":{}}
        api > a 1
        wait 20ms
        api > a 2
        api > a 3
        wait 30ms
        ada < {"push":{"channel":"a","pub":{"data":3}}}
        ada receives nothing
    "#,
    );
}

/// A client that subscribes while a batch waits has its publications from the history, and gets them once.
#[test]
fn a_position_beyond_the_batch_is_no_gap_and_nothing_comes_twice() {
    let options = with_history(|open| {
        batch(0, false)(open);
        open.force_recovery = true;
    });
    play_in_both_without_moves(
        &options,
        r#"
        ada opens
        ada > {"id":1,"connect":{}}\n{"id":2,"subscribe":{"channel":"a"}}
        ada < {"id":1,"connect":{"client":"ada","version":"test","ping":25,"pong":true}}
        ada < {"id":2,"subscribe":{"recoverable":true,"epoch":"E1","positioned":true}}
        api > a 1
        api > a 2
        bob opens
        bob > {"id":1,"connect":{}}\n{"id":2,"subscribe":{"channel":"a","recover":true,"epoch":"E1"}}
        bob < {"id":1,"connect":{"client":"bob","version":"test","ping":25,"pong":true}}
        bob < {"id":2,"subscribe":{"recoverable":true,"epoch":"E1","publications":[{"data":1,"offset":1},{"data":2,"offset":2}],"recovered":true,"positioned":true,"was_recovering":true}}
        ada receives nothing
        wait 50ms
        ada < {"push":{"channel":"a","pub":{"data":1,"offset":1,"epoch":"E1"}}}
        ada < {"push":{"channel":"a","pub":{"data":2,"offset":2}}}
        bob receives nothing
        api > a 3
        wait 50ms
        ada < {"push":{"channel":"a","pub":{"data":3,"offset":3}}}
        bob < {"push":{"channel":"a","pub":{"data":3,"offset":3}}}
    "#,
    );
}
