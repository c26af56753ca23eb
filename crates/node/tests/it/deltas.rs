//! Deltas in channels (protocol §11): who agrees, who gets a patch, and when everybody is owed the whole again.
//! In: publications of all kinds to clients that apply deltas as SDKs do → out: F or D for each, in both encodings.
//! Uses: the room of `deltas/harness.rs`, `history`, `world`. Never: bytes of patches (tested in the protocol's crate).
//! Changed here: tests of the tables of protocol §11. Random life of such a channel is in `deltas/random.rs`.

mod filtered;
mod harness;
mod random;

use std::time::Duration;

use fanwire_broker::PublishOptions;
use fanwire_node::Options;
use fanwire_node::options::{DataFormat, RecoveryMode};
use fanwire_protocol::Encoding;

use crate::history::with_history;
use crate::script::play_in_both;
use crate::world::options;
use harness::{Harness, state, with_deltas};

/// Channels whose subscribers can recover, for an hour.
fn recoverable() -> Options {
    with_history(|open| {
        open.force_recovery = true;
        open.history_ttl = Duration::from_secs(3600);
        with_deltas(open);
    })
}

/// Channels without history.
fn latest() -> Options {
    options(|options| {
        let open = &mut options.channel.without_namespace;
        open.keep_latest_publication = true;
        with_deltas(open);
    })
}

fn plain() -> PublishOptions {
    PublishOptions::default()
}

/// A room per encoding with `count` clients that want deltas.
fn in_both(options: &Options, count: usize, play: impl Fn(&mut Harness)) {
    for encoding in Encoding::ALL {
        play(&mut Harness::new(options.clone(), &vec![(encoding, true); count]));
    }
}

impl Harness {
    fn publish_state(&mut self, number: usize, options: PublishOptions) {
        self.publish(state(number).as_bytes(), options);
        self.drain_all();
    }

    fn publish_states(&mut self, numbers: std::ops::Range<usize>) {
        numbers.for_each(|number| self.publish_state(number, plain()));
    }
}

#[test]
fn a_client_agrees_to_deltas_where_they_are_allowed() {
    let script = |answer: &str| {
        format!(
            r#"
            ada opens
            ada > {{"id":1,"connect":{{"subs":{{"b":{{"delta":"fossil"}}}}}}}}
            ada < {{"id":1,"connect":{{"client":"ada","version":"test","subs":{{"b":{{}}}},"ping":25,"pong":true}}}}
            ada > {{"id":2,"subscribe":{{"channel":"a","delta":"fossil"}}}}
            ada < {{"id":2,"subscribe":{answer}}}
            ada > {{"id":3,"subscribe":{{"channel":"c"}}}}
            ada < {{"id":3,"subscribe":{{}}}}
        "#
        )
    };
    play_in_both(&options(|_| {}), &script("{}"));
    let allowed = options(|options| with_deltas(&mut options.channel.without_namespace));
    play_in_both(&allowed, &script(r#"{"delta":true}"#));
}

#[test]
fn in_json_the_data_is_a_string_for_those_who_agreed_only() {
    let mut world = crate::world::World::new(recoverable());
    world.play(
        r#"
        ada opens
        ada > {"id":1,"connect":{}}
        ada < {"id":1,"connect":{"client":"ada","version":"test","ping":25,"pong":true}}
        bob opens
        bob > {"id":1,"connect":{}}
        bob < {"id":1,"connect":{"client":"bob","version":"test","ping":25,"pong":true}}
        ada > {"id":2,"subscribe":{"channel":"a","delta":"fossil"}}
        ada < {"id":2,"subscribe":{"recoverable":true,"epoch":"E1","positioned":true,"delta":true}}
        bob > {"id":2,"subscribe":{"channel":"a"}}
        bob < {"id":2,"subscribe":{"recoverable":true,"epoch":"E1","positioned":true}}
        api > a {"n":1,"text":"quite the same as before"}
        ada < {"push":{"channel":"a","pub":{"data":"{\"n\":1,\"text\":\"quite the same as before\"}","offset":1,"epoch":"E1"}}}
        bob < {"push":{"channel":"a","pub":{"data":{"n":1,"text":"quite the same as before"},"offset":1,"epoch":"E1"}}}
        api > a {"n":2,"text":"quite the same as before"}
        ada < {"push":{"channel":"a","pub":{"data":"e\n6:{\"n\":2Z@6,1pEeyR;","offset":2,"delta":true}}}
        bob < {"push":{"channel":"a","pub":{"data":{"n":2,"text":"quite the same as before"},"offset":2}}}
    "#,
    );
}

#[test]
fn the_first_publication_is_full_and_those_after_it_are_deltas() {
    in_both(&recoverable(), 2, |harness| {
        harness.subscribe(0, false);
        harness.publish_states(0..2);
        harness.subscribe(1, false);
        harness.publish_states(2..4);
        assert_eq!(harness.heard(0), "agreed F1 D2 D3 D4");
        assert_eq!(harness.heard(1), "agreed F3 D4");
        let (deltas, saved) = harness.counted();
        assert_eq!(deltas, 4);
        assert!(saved > 4 * 20, "{saved}");
    });
}

#[test]
fn only_what_was_published_for_it_is_a_delta_and_anything_may_be_its_base() {
    let mut options = recoverable();
    options.channel.without_namespace.delta_publish = false;
    in_both(&options, 1, |harness| {
        harness.subscribe(0, false);
        for (number, delta) in [true, true, false, true, false, false, true].iter().enumerate() {
            harness.publish_state(number, PublishOptions { delta: *delta, ..plain() });
        }
        assert_eq!(harness.heard(0), "agreed F1 D2 F3 D4 F5 F6 D7");
    });
}

#[test]
fn a_client_may_publish_deltas_by_the_namespace() {
    in_both(&recoverable(), 1, |harness| {
        harness.subscribe(0, false);
        harness.publish_state(0, plain());
        harness.publish_state(1, plain());
        harness
            .say(0, &format!(r#"{{"id":4,"publish":{{"channel":"news","data":{}}}}}"#, state(1)));
        harness.drain_all();
        assert_eq!(harness.heard(0), "agreed F1 D2 D2");
    });
}

#[test]
fn after_a_publication_outside_of_the_stream_the_next_one_is_full() {
    in_both(&recoverable(), 1, |harness| {
        harness.subscribe(0, false);
        harness.publish_states(0..2);
        harness.publish_state(2, PublishOptions { skip_history: true, ..plain() });
        harness.publish_states(3..5);
        assert_eq!(harness.heard(0), "agreed F1 D2 F3 F4 D5");
    });
}

#[test]
fn after_an_exclusion_the_next_one_is_full_for_the_excluded_alone() {
    for options in [recoverable(), latest()] {
        in_both(&options, 2, |harness| {
            harness.subscribe(0, false);
            harness.subscribe(1, false);
            harness.publish_states(0..2);
            harness.publish_state(
                2,
                PublishOptions { exclude_client: Some(harness.id(0)), ..plain() },
            );
            harness.publish_states(3..5);
            assert_eq!(harness.heard(0), "agreed F1 D2 F4 D5");
            assert_eq!(harness.heard(1), "agreed F1 D2 D3 D4 D5");
        });
    }
}

#[test]
fn what_is_recovered_is_one_full_publication_and_deltas_and_the_live_ones_go_on() {
    in_both(&recoverable(), 1, |harness| {
        harness.subscribe(0, false);
        harness.publish_states(0..1);
        harness.unsubscribe(0);
        harness.publish_states(1..4);
        harness.subscribe(0, true);
        harness.publish_states(4..6);
        assert_eq!(harness.heard(0), "agreed F1 agreed recovered F2 D3 D4 D5 D6");
        assert_eq!(harness.counted().0, 4);
    });
}

#[test]
fn after_a_recovery_of_nothing_the_first_publication_is_full() {
    in_both(&recoverable(), 1, |harness| {
        harness.subscribe(0, false);
        harness.publish_states(0..2);
        harness.unsubscribe(0);
        harness.subscribe(0, true);
        harness.publish_states(2..4);
        assert_eq!(harness.heard(0), "agreed F1 D2 agreed recovered F3 D4");
    });
}

#[test]
fn a_cache_brings_one_full_publication_and_the_next_is_a_delta() {
    let mut options = recoverable();
    options.channel.without_namespace.force_recovery_mode = RecoveryMode::Cache;
    options.channel.without_namespace.auto_cache_recover = true;
    in_both(&options, 1, |harness| {
        harness.publish_states(0..3);
        harness.subscribe(0, false);
        harness.publish_states(3..5);
        assert_eq!(harness.heard(0), "agreed recovered F3 D4 D5");
    });
}

#[test]
fn what_was_recovered_and_comes_again_through_the_inbox_is_not_sent_twice() {
    in_both(&recoverable(), 3, |harness| {
        harness.subscribe(2, false); // the shard listens already
        harness.subscribe(0, false);
        harness.unsubscribe(0);
        for number in 0..2 {
            harness.publish(state(number).as_bytes(), plain());
        }
        let skipped = PublishOptions { skip_history: true, ..plain() };
        harness.subscribe(0, true);
        harness.drain_all();
        harness.unsubscribe(0);
        harness.publish(state(2).as_bytes(), plain());
        harness.publish(state(3).as_bytes(), skipped);
        harness.publish(state(4).as_bytes(), plain());
        harness.subscribe(0, true);
        harness.drain_all();
        harness.publish_states(5..7);
        // 4 is outside of the stream and comes after 5 was recovered: it is what the client has last.
        assert_eq!(
            harness.heard(0),
            "agreed agreed recovered F1 D2 agreed recovered F3 D5 F4 F6 D7"
        );
        assert_eq!(harness.heard(2), "agreed F1 D2 D3 F4 F5 D6 D7");
    });
}

#[test]
fn where_the_history_is_gone_there_is_no_base() {
    in_both(&recoverable(), 1, |harness| {
        harness.subscribe(0, false);
        harness.publish_states(0..2);
        harness
            .node
            .channels()
            .remove_history("news", harness.now)
            .wait()
            .expect("there is history");
        harness.publish_states(2..4);
        harness.wait(Duration::from_secs(3600));
        harness.publish_states(4..6);
        assert_eq!(harness.heard(0), "agreed F1 D2 F3 D4 F5 D6");
    });
}

#[test]
fn without_a_position_everything_is_full() {
    let with = with_history(with_deltas);
    let without = options(|options| with_deltas(&mut options.channel.without_namespace));
    for options in [with, without] {
        in_both(&options, 1, |harness| {
            harness.subscribe(0, false);
            harness.publish_states(0..3);
            assert_eq!(harness.heard(0), "agreed F1 F2 F3");
        });
    }
}

#[test]
fn a_positioned_subscription_gets_deltas_without_recovery() {
    let options = with_history(|open| {
        open.force_positioning = true;
        with_deltas(open);
    });
    in_both(&options, 1, |harness| {
        harness.subscribe(0, false);
        harness.publish_states(0..3);
        assert_eq!(harness.heard(0), "agreed F1 D2 D3");
    });
}

#[test]
fn the_latest_publication_is_a_base_without_history_and_without_a_position() {
    let with = with_history(|open| {
        open.keep_latest_publication = true;
        with_deltas(open);
    });
    for options in [latest(), with] {
        in_both(&options, 3, |harness| {
            harness.subscribe(0, false);
            harness.publish_states(0..2);
            harness.subscribe(1, false);
            harness.subscribe(2, false);
            harness.publish_states(2..4);
            harness.publish_state(4, PublishOptions { skip_history: true, ..plain() });
            harness.publish_state(4, PublishOptions { skip_history: true, ..plain() });
            assert_eq!(harness.heard(0), "agreed F1 D2 D3 D4 D5 D5");
            assert_eq!(harness.heard(1), "agreed F3 D4 D5 D5");
            assert_eq!(harness.heard(2), "agreed F3 D4 D5 D5");
        });
    }
}

#[test]
fn where_a_shard_did_not_listen_in_between_its_latest_publication_is_no_base_for_others() {
    in_both(&latest(), 2, |harness| {
        harness.subscribe(0, false);
        harness.subscribe(1, false);
        harness.publish(state(0).as_bytes(), plain());
        // Shard 0 has the first in its inbox, does not listen to the second, and is there for the third.
        harness.unsubscribe(0);
        harness.publish(state(1).as_bytes(), plain());
        harness.subscribe(0, false);
        harness.publish(state(2).as_bytes(), plain());
        harness.drain(1);
        harness.drain(0);
        harness.publish_states(3..4);
        assert_eq!(harness.heard(0), "agreed agreed F1 F3 D4");
        assert_eq!(harness.heard(1), "agreed F1 D2 D3 D4");
    });
}

#[test]
fn a_delta_that_would_not_be_shorter_goes_out_in_full() {
    let texts = ["\"a\"", "\"b\"", &state(1), "\"c\"", &state(2), &state(2), "[]"];
    in_both(&recoverable(), 1, |harness| {
        harness.subscribe(0, false);
        for text in texts {
            harness.publish(text.as_bytes(), plain());
        }
        harness.drain_all();
        assert_eq!(harness.heard(0), "agreed F1 F2 F3 F4 F5 D5 F7", "5 is the first of two alike");
    });
}

#[test]
fn a_huge_payload_is_not_searched_for_what_has_not_changed() {
    let text = |notice: char| format!("\"{notice}{}\"", "x".repeat(1 << 20));
    in_both(&recoverable(), 1, |harness| {
        harness.subscribe(0, false);
        for notice in ['a', 'b'] {
            harness.publish(text(notice).as_bytes(), plain());
        }
        harness.publish_states(0..2);
        assert_eq!(harness.heard(0), "agreed F1 F2 F3 D4");
    });
}

#[test]
fn what_is_recovered_is_searched_up_to_a_limit() {
    let numbers: String = (100_000..166_000).map(|number| number.to_string()).collect();
    let text = |number: usize| format!("\"{number}{numbers}\"");
    in_both(&recoverable(), 1, |harness| {
        harness.subscribe(0, false);
        harness.unsubscribe(0);
        for number in 0..3 {
            harness.publish(text(number).as_bytes(), plain());
        }
        harness.subscribe(0, true);
        harness.publish(text(3).as_bytes(), plain());
        harness.drain_all();
        assert_eq!(harness.heard(0), "agreed agreed recovered F1 D2 F3 D4");
    });
}

#[test]
fn data_that_is_no_json_ends_json_subscribers_live_and_when_recovering() {
    let mut options = recoverable();
    options.channel.without_namespace.publication_data_format = DataFormat::Binary;
    for data in [&b"\xff\x00 binary"[..], b""] {
        let clients = [Encoding::Json, Encoding::Protobuf].map(|encoding| (encoding, true));
        let mut harness = Harness::new(options.clone(), &[clients, clients].concat());
        (0..2).for_each(|who| harness.subscribe(who, false));
        (2..4).for_each(|who| harness.subscribe(who, false));
        (2..4).for_each(|who| harness.unsubscribe(who));
        let long = [data, &[0xfe; 40]].concat();
        let long = if data.is_empty() { data } else { &long };
        harness.publish(data, plain());
        harness.publish(long, plain());
        harness.publish(&[long, b"!"].concat(), plain());
        harness.drain_all();
        assert_eq!(harness.heard(0), "agreed x3506");
        harness.subscribe(2, true);
        assert_eq!(harness.heard(2), "agreed x3506");
        harness.subscribe(3, true);
        let expected = if data.is_empty() { "F1 F1 F3" } else { "F1 F2 D3" };
        assert_eq!(harness.heard(1), format!("agreed {expected}"));
        assert_eq!(harness.heard(3), format!("agreed agreed recovered {expected}"));
    }
}
