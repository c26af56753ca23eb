//! Tests of histories: when one begins, grows, skips publications and ends, and how memory is distributed.
//! In: broadcasts, requests and sweeps → out: publications or none, bytes of memory.
//! Uses `Contexts` as a node does, without node, shards and clocks.
//! Changed here: expectations of the life of a history. The frames made from it are tested in `realtime::frames`.

use std::time::Instant;

use bytes::Bytes;
use fanwire_broker::Epoch;
use fanwire_deflate::gap::{Depth, History, SubscriptionWindow, WindowCounter};
use fanwire_node::{NamespaceId, Options};
use fanwire_protocol::Publication;

use super::*;

fn contexts(memory: usize) -> Contexts {
    Contexts::new(ContextSettings {
        policies: Policies::new(&Options::default().channel),
        level: 6,
        min_bytes: 64,
        gaps_max: GAPS_MAX,
        memory: Budget::new(memory),
    })
}

/// Accepts a publication as the node's broadcast router does.
fn publish(contexts: &Contexts, channel: &str, data: impl Into<Bytes>) -> Broadcast {
    let publication = Publication { data: data.into(), ..Publication::default() };
    let (namespace, now) = (NamespaceId::default(), Instant::now());
    let mut broadcast = Broadcast::new(channel.into(), namespace, publication, Epoch::NONE, now);
    broadcast.prepare(contexts);
    broadcast
}

/// Delivers as a shard with one subscriber in context. Returns whether the publication was in a history.
fn deliver(contexts: &Contexts, broadcast: &Broadcast) -> bool {
    deliver_in(TextKind::Json, contexts, broadcast)
}

fn deliver_in(kind: TextKind, contexts: &Contexts, broadcast: &Broadcast) -> bool {
    let prepared = broadcast.prepared::<PreparedBroadcast>().expect("prepared");
    match prepared.publication(kind) {
        Some((_, history)) => {
            history.want();
            history.delivered(Depth::Run(0), 1);
            true
        }
        None => {
            match prepared.history(kind) {
                Some(history) => {
                    history.want();
                    history.missed(1);
                }
                None => contexts.want(broadcast, kind),
            }
            false
        }
    }
}

fn state(seed: usize) -> String {
    let rows = (0..12).map(|row| format!(r#"{{"row":{row},"score":{}}}"#, (seed + row) / 3 % 7));
    format!("[{}]", rows.collect::<Vec<_>>().join(","))
}

/// Publishes once and delivers. Returns whether the publication was in a history.
fn round(contexts: &Contexts, channel: &str, seed: usize) -> bool {
    deliver(contexts, &publish(contexts, channel, state(seed)))
}

#[test]
fn a_history_begins_when_somebody_wants_it_and_only_in_that_encoding() {
    let contexts = contexts(1 << 20);
    let first = publish(&contexts, "news", state(0));
    assert_eq!(contexts.memory().bytes(), 0, "no shard used a depth");
    assert!(!deliver(&contexts, &first));
    let second = publish(&contexts, "news", state(1));
    assert!(deliver(&contexts, &second));
    let prepared = second.prepared::<PreparedBroadcast>().expect("prepared");
    assert!(prepared.publication(TextKind::Protobuf).is_none());
    assert!(contexts.memory().bytes() > 0);
}

#[test]
fn small_and_huge_messages_are_in_no_history_and_do_not_disturb_it() {
    let contexts = contexts(1 << 20);
    round(&contexts, "news", 0);
    assert!(round(&contexts, "news", 1));
    assert!(!deliver(&contexts, &publish(&contexts, "news", "1")));
    assert!(!deliver(
        &contexts,
        &publish(&contexts, "news", format!("\"{}\"", "x".repeat(40_000)))
    ));
    assert!(round(&contexts, "news", 2));
}

#[test]
fn channels_that_have_a_history_and_those_that_wait_for_one_are_counted_apart() {
    // Memory for one history, which is long while memory is plentiful.
    let contexts = contexts(History::memory_for(32 << 10));
    assert_eq!(contexts.channels(), (0, 0));
    let first = publish(&contexts, "news", state(0));
    assert_eq!(contexts.channels(), (0, 0), "nobody listens in context");
    deliver(&contexts, &first);
    assert_eq!(contexts.channels(), (0, 1), "it begins with the next publication");
    round(&contexts, "news", 1);
    assert_eq!(contexts.channels(), (1, 0));
    (0..3).for_each(|seed| assert!(!round(&contexts, "sport", seed)));
    assert_eq!(contexts.channels(), (1, 1), "the memory is used up");
    deliver_in(TextKind::Protobuf, &contexts, &publish(&contexts, "news", state(2)));
    assert_eq!(contexts.channels(), (1, 2), "news has one encoding and waits for the other");
}

#[test]
fn a_history_becomes_as_long_as_pays_and_no_longer() {
    let memory = |messages: &dyn Fn(usize) -> String| {
        let contexts = contexts(1 << 20);
        for n in 0..3_000 {
            deliver(&contexts, &publish(&contexts, "news", messages(n)));
        }
        contexts.memory().bytes()
    };
    // Each text comes again after 40 others: 16 KB apart.
    let far = memory(&|n| format!("\"{}\"", noise(n % 40 + 1, 400)));
    let near = memory(&|n| format!("{{\"n\":{n},\"same\":\"{}\"}}", noise(7, 400)));
    assert!(far > 3 * near, "{far} against {near} bytes");
}

#[test]
fn messages_that_do_not_compress_are_left_out_for_a_while() {
    let contexts = contexts(1 << 20);
    let mut taken = [0; 2];
    for n in 0..600 {
        let broadcast = publish(&contexts, "news", wild(n));
        taken[n / 300] += usize::from(deliver_in(TextKind::Protobuf, &contexts, &broadcast));
    }
    assert!((10..50).contains(&taken[0]), "{taken:?} of 300 each in a history");
    assert!((1..10).contains(&taken[1]), "{taken:?}: tried again");
}

#[test]
fn depths_that_the_last_two_publications_were_asked_for_are_parsed_ahead() {
    let contexts = contexts(1 << 20);
    round(&contexts, "news", 0);
    let ahead = |seed, used_depths: &[Depth]| {
        let before = contexts.counters()[0].parses();
        let broadcast = publish(&contexts, "news", state(seed));
        let prepared = broadcast.prepared::<PreparedBroadcast>().expect("prepared");
        let (_, history) = prepared.publication(TextKind::Json).expect("in the history");
        used_depths.iter().for_each(|depth| history.delivered(*depth, 1));
        contexts.counters()[0].parses() - before
    };
    let (run, newest) = (Depth::Run(0), Depth::Newest);
    assert_eq!(ahead(1, &[run]), 0, "the first one");
    assert_eq!(ahead(2, &[run, newest]), 0, "used once");
    assert_eq!(ahead(3, &[run, newest]), 1, "the run");
    assert_eq!(ahead(4, &[newest]), 2);
    assert_eq!(ahead(5, &[]), 1, "the run was not used any more");
    assert_eq!(ahead(6, &[run]), 1, "no shard got to the one before");
    assert_eq!(ahead(7, &[run]), 0);
    assert_eq!(ahead(8, &[run]), 1);
}

#[test]
fn unwanted_histories_end_and_their_memory_is_given_back() {
    let contexts = contexts(1 << 20);
    for channel in ["left", "silent", "busy"] {
        for seed in 0..3 {
            round(&contexts, channel, seed);
        }
    }
    let used = contexts.memory().bytes();
    contexts.sweep(|channel| channel != "left");
    assert_eq!(contexts.memory().bytes(), used / 3 * 2, "nobody listens to one");
    // Two more sweeps without a subscriber in context.
    for seed in 3..5 {
        drop(publish(&contexts, "busy", state(seed)));
        contexts.sweep(|_| true);
    }
    assert_eq!(contexts.memory().bytes(), used / 3, "silence is forgiven for longer");
    (0..60).for_each(|_| contexts.sweep(|_| true));
    assert_eq!((contexts.memory().bytes(), contexts.channels()), (0, (0, 0)));
}

#[test]
fn memory_is_never_exceeded_and_goes_to_those_who_save_most() {
    let contexts = contexts(200_000);
    let names: Vec<String> = (0..200).map(|number| format!("channel {number}")).collect();
    let mut in_context = vec![0; names.len()];
    for seed in 0..60 {
        for (number, name) in names.iter().enumerate() {
            // The first twenty have a hundred times the audience.
            let broadcast = publish(&contexts, name, state(seed));
            for _ in 0..if number < 20 { 100 } else { 1 } {
                in_context[number] += usize::from(deliver(&contexts, &broadcast));
            }
            assert!(contexts.memory().bytes() <= 200_000);
        }
        if seed % 5 == 4 {
            contexts.sweep(|_| true);
        }
    }
    let shares: usize = in_context[..20].iter().sum();
    assert!(shares >= 20 * 50 * 100, "{shares} of {} deliveries", 20 * 60 * 100);
    let bytes = contexts.memory().bytes();
    assert!(bytes >= 180_000, "what they leave is of use to others: {bytes}");
}

#[test]
fn of_a_hundred_thousand_busy_channels_most_have_a_history_in_the_default_memory() {
    // A hundredth of the memory and of the channels.
    let contexts = contexts((256 << 20) / 100);
    let names: Vec<String> = (0..1_000).map(|number| format!("quote {number}")).collect();
    let tick = |seed: usize| {
        format!(
            r#"{{"e":"trade","s":"XSVUSD","id":{},"p":"{}.25","q":"1.{}","side":"buy","ts":17000{},"venue":"XC3"}}"#,
            seed * 3,
            seed % 40,
            seed % 9,
            seed * 7,
        )
    };
    let mut in_context = Vec::new();
    for seed in 0..12 {
        let round = names.iter().filter(|name| {
            let broadcast = publish(&contexts, name, tick(seed));
            deliver(&contexts, &broadcast)
        });
        in_context.push(round.count());
        contexts.sweep(|_| true);
    }
    let bytes = contexts.memory().bytes();
    assert!(in_context[4] >= 850, "{in_context:?} of 1,000, with {bytes} bytes");
    assert!(in_context[4..].is_sorted(), "{in_context:?}: a history is kept");
}

#[test]
fn who_comes_late_and_saves_much_more_gets_memory_from_others() {
    let contexts = contexts(100_000);
    let names: Vec<String> = (0..100).map(|number| format!("channel {number}")).collect();
    let mut last = Vec::new();
    for seed in 0..40 {
        last.clear();
        for (number, name) in names.iter().enumerate() {
            // The last ten come later, five of them to an audience a hundred times as large.
            if number >= 90 && seed < 10 {
                continue;
            }
            let broadcast = publish(&contexts, name, state(seed));
            let audience = if number >= 95 { 100 } else { 1 };
            last.push((0..audience).filter(|_| deliver(&contexts, &broadcast)).count());
        }
        contexts.sweep(|_| true);
        assert!(contexts.memory().bytes() <= 100_000);
    }
    assert!(last[95..].iter().all(|count| *count == 100), "{last:?}");
    assert_eq!(last[90..95], [0; 5], "they are worth no more than those that were there");
    let others = last[..90].iter().filter(|count| **count == 1).count();
    assert!((5..90).contains(&others), "{others} keep theirs");
}

#[test]
fn frames_of_a_history_that_was_resized_are_still_right() {
    let contexts = contexts(1 << 20);
    let (mut reach, mut counter) = (SubscriptionWindow::default(), WindowCounter::default());
    let mut shadow = fanwire_deflate::Shadow::new(15);
    let mut depths = 0;
    for seed in 0..400 {
        let broadcast = publish(&contexts, "news", state(seed * seed % 91));
        deliver(&contexts, &broadcast);
        let prepared = broadcast.prepared::<PreparedBroadcast>().expect("prepared");
        let Some((publication, history)) = prepared.publication(TextKind::Json) else { continue };
        let reference = reach.reference(publication, counter, 15);
        let counters = contexts.counters_of(&broadcast);
        let parse = history.parse(publication, reference.depth(), counters).expect("still there");
        let mut payload = Vec::new();
        parse.emit(reference.gaps(), &mut payload);
        let message = broadcast.message(fanwire_protocol::Encoding::Json).expect("JSON");
        shadow.check(&payload, message).expect("a peer reads it");
        reach.queued(publication, &mut counter);
        depths += usize::from(reference.depth() != Depth::Alone);
    }
    assert_eq!(depths, 398, "all but the very first in context");
}

/// Letters of a reproducible text of its own for each seed.
fn noise(seed: usize, bytes: usize) -> String {
    let mut state = seed as u64;
    let mut step = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963);
        char::from(b'a' + (state >> 33) as u8 % 26)
    };
    (0..bytes).map(|_| step()).collect()
}

/// Bytes that neither context nor codes make smaller.
fn wild(seed: usize) -> Bytes {
    let mut state = seed as u64 + 1;
    let mut step = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963);
        (state >> 33) as u8
    };
    (0..900).map(|_| step()).collect()
}

/// A reply with the publication of a broadcast in it, at 9.
fn reply(broadcast: &Broadcast, kind: TextKind) -> Vec<u8> {
    let event = OnceLock::new();
    let text = kind.text(broadcast, DeltaMode::Plain, &event).expect("JSON");
    let part = kind.publication_in(text).expect("a push");
    assert!(text[part.clone()].ends_with(b"}") || kind == TextKind::Protobuf);
    [b"a reply: ", &text[part], b", and so on"].concat()
}

#[test]
fn a_publication_that_a_reply_quotes_is_there_for_the_next_one_and_parsed_once() {
    for kind in TextKind::ALL {
        let contexts = contexts(1 << 20);
        let publish = |seed| {
            let broadcast = publish(&contexts, "news", state(seed));
            deliver_in(kind, &contexts, &broadcast);
            broadcast
        };
        let newest = (0..3).map(publish).last().expect("three of them");
        let before = contexts.counters()[0].parses();
        for _ in 0..5 {
            let found = contexts.embedded_part("news", kind, &reply(&newest, kind));
            assert_eq!(found.map(|(at, _)| at), Some(9));
        }
        let [next, after] = [3, 4].map(publish);
        let embedded = |broadcast: &Broadcast| {
            let prepared = broadcast.prepared::<PreparedBroadcast>().expect("prepared");
            let (publication, history) = prepared.publication(kind).expect("in the history");
            let parse = history.parse(publication, Depth::Embedded, &contexts.counters()[0]);
            publication.offers(Depth::Embedded).then(|| parse.expect("the newest one"));
            publication.offers(Depth::Embedded)
        };
        // A run for each of the two, and one for subscribers that have the embedded part.
        assert_eq!(contexts.counters()[0].parses() - before, 3);
        assert!(embedded(&next));
        assert_eq!(contexts.counters()[0].parses() - before, 3, "by the publisher");
        assert!(!embedded(&after));
    }
}

#[test]
fn a_reply_without_the_newest_publication_of_a_history_quotes_nothing() {
    let contexts = contexts(1 << 20);
    let early = publish(&contexts, "news", state(0));
    let embedded_part = |broadcast, channel: &str| {
        contexts.embedded_part(channel, TextKind::Json, &reply(broadcast, TextKind::Json))
    };
    assert!(embedded_part(&early, "news").is_none(), "no history yet");
    let rounds = [1, 2].map(|seed| {
        assert_eq!(round(&contexts, "news", seed), seed > 1);
        publish(&contexts, "news", state(seed + 10))
    });
    let [older, newest] = &rounds;
    assert!(embedded_part(newest, "news").is_some());
    assert!(embedded_part(older, "news").is_none(), "the history has gone on");
    assert!(embedded_part(newest, "else").is_none());
    assert!(contexts.embedded_part("news", TextKind::Protobuf, b"a reply in Protobuf").is_none());
}

#[test]
fn a_policy_changes_with_the_next_publication() {
    let contexts = contexts(1 << 20);
    let is_in_context = |seed| round(&contexts, "news", seed);
    assert_eq!([0, 1, 2].map(is_in_context), [false, true, true]);
    let mut namespace = Options::default().channel.without_namespace;
    namespace.compression = CompressionPolicy::Standalone;
    contexts.policies().set(NamespaceId::default(), &namespace);
    assert!(!is_in_context(3));
    namespace.compression = CompressionPolicy::Context;
    contexts.policies().set(NamespaceId::default(), &namespace);
    assert!(is_in_context(4));
}
