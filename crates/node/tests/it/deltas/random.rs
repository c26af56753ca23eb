//! Random life of channels with deltas: every client reads exactly what was published, whatever happened in between.
//! In: random joins, leaves, recoveries, skips, exclusions, removals, slow shards → out: the same payloads with and without.
//! Uses: the room, whose clients apply deltas; twins without deltas say what is to be heard. Never: real time.
//! Changed here: what may happen. Whether something is owed in full is tested in `deltas.rs`.

use std::time::Duration;

use fanwire_broker::PublishOptions;
use fanwire_node::Options;
use fanwire_protocol::Encoding;
use proptest::collection::vec;
use proptest::prelude::*;

use super::harness::{Harness, state, with_deltas};
use crate::history::with_history;
use crate::world::options;

#[derive(Clone, Debug)]
enum Step {
    Publish {
        state: usize,
        delta: bool,
        skip_history: bool,
        exclude: Option<usize>,
    },
    /// A pair of twins.
    Subscribe {
        pair: usize,
        recover: bool,
    },
    Unsubscribe {
        pair: usize,
    },
    Drain {
        shard: usize,
    },
    Remove,
    Wait {
        seconds: u64,
    },
}

/// Kinds of channels: with recovery, with positions, with neither, with and without history.
fn kinds() -> Vec<Options> {
    let deltas = |open: &mut _| {
        with_deltas(open);
        open.delta_publish = false;
    };
    let history = |recovery: bool, positioning: bool, latest: bool| {
        with_history(|open| {
            deltas(open);
            open.force_recovery = recovery;
            open.force_positioning = positioning;
            open.keep_latest_publication = latest;
        })
    };
    let none = options(|options| {
        deltas(&mut options.channel.without_namespace);
        options.channel.without_namespace.keep_latest_publication = true;
    });
    vec![
        history(true, true, false),
        history(true, true, true),
        history(false, true, false),
        history(false, false, true),
        history(false, false, false),
        none,
    ]
}

/// The first four want deltas; each has a twin, on the same shard and with the same encoding, that does not.
const PAIRS: usize = 4;

fn harness(options: Options) -> Harness {
    let encodings = [Encoding::Json, Encoding::Json, Encoding::Protobuf, Encoding::Protobuf];
    let with = encodings.map(|encoding| (encoding, true));
    Harness::new(options, &[with, encodings.map(|encoding| (encoding, false))].concat())
}

fn take(harness: &mut Harness, step: &Step) {
    match *step {
        Step::Publish { state: number, delta, skip_history, exclude } => {
            let exclude_client = exclude.map(|who| harness.id(who));
            let options =
                PublishOptions { delta, skip_history, exclude_client, ..Default::default() };
            harness.publish(state(number).as_bytes(), options);
        }
        Step::Subscribe { pair, recover } => {
            for who in [pair, pair + PAIRS] {
                if !harness.clients[who].subscribed {
                    harness.subscribe(who, recover);
                }
            }
        }
        Step::Unsubscribe { pair } => {
            for who in [pair, pair + PAIRS] {
                if harness.clients[who].subscribed {
                    harness.unsubscribe(who);
                }
            }
        }
        Step::Drain { shard } => harness.drain(shard),
        Step::Remove => {
            let _ = harness.node.channels().remove_history("news", harness.now).wait(); // 108 where there is none
        }
        Step::Wait { seconds } => harness.wait(Duration::from_secs(seconds)),
    }
}

/// Returns the payloads of messages, without their delta mode.
fn payloads(heard: &str) -> Vec<String> {
    let words = heard.split_whitespace().filter(|word| *word != "agreed");
    words.map(|word| word.replace('D', "F")).collect()
}

fn step(with_exclusions: bool) -> impl Strategy<Value = Step> {
    let excluded = prop_oneof![3 => Just(None), 1 => (0..2 * PAIRS).prop_map(Some)];
    let publish = (0..20usize, prop::bool::weighted(0.8), prop::bool::weighted(0.1), excluded);
    prop_oneof![
        8 => publish.prop_map(move |(state, delta, skip_history, exclude)| {
            let exclude = exclude.filter(|_| with_exclusions);
            Step::Publish { state, delta, skip_history, exclude }
        }),
        5 => (0..PAIRS, prop::bool::weighted(0.7))
            .prop_map(|(pair, recover)| Step::Subscribe { pair, recover }),
        2 => (0..PAIRS).prop_map(|pair| Step::Unsubscribe { pair }),
        5 => (0..2usize).prop_map(|shard| Step::Drain { shard }),
        1 => prop_oneof![
            Just(Step::Remove),
            (0..70u64).prop_map(|seconds| Step::Wait { seconds }),
        ],
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    /// The room's clients refuse any delta without its base; a twin without deltas must have heard the same.
    #[test]
    fn a_client_with_deltas_hears_what_its_twin_without_hears(
        kind in 0..6usize,
        steps in vec(step(false), 1..80),
    ) {
        let mut harness = harness(kinds().swap_remove(kind));
        steps.iter().for_each(|step| take(&mut harness, step));
        harness.drain_all();
        for pair in 0..PAIRS {
            let [with, without] = [pair, pair + PAIRS].map(|who| harness.heard(who));
            prop_assert!(!without.contains('D'));
            prop_assert_eq!(payloads(&with), payloads(&without), "{}", with);
        }
    }

    #[test]
    fn exclusions_never_leave_a_client_with_a_delta_of_what_it_did_not_get(
        kind in 0..6usize,
        steps in vec(step(true), 1..80),
    ) {
        let mut harness = harness(kinds().swap_remove(kind));
        steps.iter().for_each(|step| take(&mut harness, step));
        harness.drain_all();
    }
}
