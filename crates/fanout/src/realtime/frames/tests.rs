//! Simulated clients of a whole shard: their inflaters decode every message, once and in order.
//! In: random subscriptions, publications, replies and departures → out: the streams of many sockets, decoded and compared.
//! Uses real sockets, and zlib-rs and stock zlib as clients, each with the window it agreed to; never a server thread.
//! Changed here: the steps of a client. Which frame it gets is decided in `frames`.

mod body;
mod inputs;
mod reader;
mod world;

use proptest::{collection::vec, prelude::*};

use self::inputs::{Plan, Step};
use self::world::World;
use crate::compression::{DeliveryKind, GAPS_MAX, NamespaceCounters};
use fanwire_shard::{Coding, Compression, Transport};

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]
    #[test]
    fn every_client_reads_every_message_of_its_channels_in_order(
        clients in vec(plan(), 1..8),
        bodies in vec((plan(), body()), 0..5),
        memory in prop_oneof![Just(0usize), Just(20_000), Just(1 << 20)],
        gaps_max in prop_oneof![Just(1usize), Just(2), Just(GAPS_MAX)],
        verify in any::<bool>(),
        steps in vec(step(), 1..150),
    ) {
        let mut world = World::verifying(memory, gaps_max, verify);
        clients.iter().for_each(|plan| world.open(plan));
        for (plan, (transport, coding)) in &bodies {
            world.open_body(plan, *transport, *coding);
        }
        steps.iter().for_each(|step| world.take(step));
        world.check();
    }
}

#[test]
fn one_channel_of_slowly_changing_state_goes_out_in_context() {
    let mut world = World::new(1 << 20, GAPS_MAX);
    for is_binary in [false, true] {
        world.open(&Plan {
            with_deltas: false,
            is_binary,
            compression: CONTEXT,
            channels: vec![true],
        });
    }
    for seed in 0..100 {
        world.take(&Step::Publish { channel: 0, seed, rows: 30 });
    }
    world.check();
    let counters = &world.contexts.counters()[0];
    // The first publication requests the history, the second is the first in it.
    assert_eq!(counters.deliveries(DeliveryKind::Standalone), 2 * 2);
    assert_eq!(counters.deliveries(DeliveryKind::Run(0)), 98 * 2);
    assert!(counters.frame_bytes() * 10 < counters.message_bytes());
}

#[test]
fn compressed_bodies_take_part_in_context() {
    let mut world = World::new(1 << 20, GAPS_MAX);
    let plan = |is_binary| Plan {
        with_deltas: false,
        is_binary,
        compression: Compression::Raw,
        channels: vec![true],
    };
    for coding in [Coding::Gzip, Coding::Deflate, Coding::Gzip] {
        world.open_body(&plan(false), Transport::EventStream, Some(coding));
        world.open_body(&plan(false), Transport::HttpStream, Some(coding));
        world.open_body(&plan(true), Transport::HttpStream, Some(coding));
    }
    for seed in 0..100 {
        world.take(&Step::Publish { channel: 0, seed, rows: 30 });
    }
    let counters = &world.contexts.counters()[0];
    assert_eq!(counters.deliveries(DeliveryKind::Standalone), 2 * 9);
    // With bytes around messages no run is unbroken; Protobuf has none.
    let several = sent(counters, "several") + counters.deliveries(DeliveryKind::Newest);
    assert_eq!(several, 98 * 6);
    assert_eq!(counters.deliveries(DeliveryKind::Run(0)), 98 * 3);
    assert!(counters.frame_bytes() * 10 < counters.message_bytes());
    let emits = counters.emits();
    assert!(emits <= 99 * 3, "gzip and zlib share frames: {emits}");
    world.check();
}

#[test]
fn clients_without_commands_take_part_in_context() {
    let mut world = World::new(1 << 22, GAPS_MAX);
    let plan = Plan {
        with_deltas: false,
        is_binary: false,
        compression: CONTEXT,
        channels: vec![true, false, false, true],
    };
    let open = |world: &mut World| {
        world.open(&plan);
        world.open_body(&plan, Transport::UniWebSocket, None);
        for coding in [Coding::Gzip, Coding::Deflate] {
            world.open_body(&plan, Transport::UniEventStream, Some(coding));
            world.open_body(&plan, Transport::UniHttpStream, Some(coding));
        }
    };
    open(&mut world);
    for seed in 0..50 {
        world.take(&Step::Publish { channel: 0, seed, rows: 30 });
    }
    let counters = &world.contexts.counters()[0];
    assert_eq!(counters.deliveries(DeliveryKind::Standalone), 2 * 6);
    // Lines have a byte between two pushes; an event is a text as a whole.
    assert_eq!(counters.deliveries(DeliveryKind::Run(0)), 48 * 4);
    assert_eq!(sent(counters, "several") + counters.deliveries(DeliveryKind::Newest), 48 * 2);
    assert!(counters.frame_bytes() * 10 < counters.message_bytes());
    for seed in 0..10 {
        world.publish("stream:c3", seed, 30);
    }
    open(&mut world);
    let alone = |world: &World| {
        let counters = world.contexts.counters().iter();
        counters.map(|it| it.deliveries(DeliveryKind::Standalone)).sum::<u64>()
    };
    let before = alone(&world);
    world.publish("stream:c3", 10, 30);
    assert_eq!(
        alone(&world),
        before + 1,
        "also the first one refers to what the connect push contained"
    );
    world.check();
}

#[test]
fn with_five_channels_and_replies_in_between_nearly_all_goes_out_in_context() {
    let mut world = World::new(1 << 22, GAPS_MAX);
    for number in 0..6 {
        let channels = (0..5).map(|channel| channel != number).collect();
        world.open(&Plan {
            with_deltas: false,
            is_binary: number == 5,
            compression: CONTEXT,
            channels,
        });
    }
    for seed in 0..600u32 {
        let channel = (seed.wrapping_mul(2_654_435_761) >> 13) as usize % 5;
        world.take(&Step::Publish { channel, seed, rows: 8 });
        if seed % 7 == 0 {
            world.take(&Step::Reply { client: seed as usize, bytes: 300 });
        }
    }
    world.check();
    let counters = &world.contexts.counters()[0];
    let [newest, several, run] = ["newest", "several", "run"].map(|name| sent(counters, name));
    let all: u64 = DeliveryKind::all().map(|kind| counters.deliveries(kind)).sum();
    assert!((newest + several + run) * 100 >= all * 95, "{newest} + {several} + {run} of {all}");
    // Five channels at random: most clients have the last four in their window; only clients that began recently have
    // fewer.
    let deepest = counters.deliveries(DeliveryKind::Several(4))
        + counters.deliveries(DeliveryKind::Several(8));
    assert!(deepest * 2 > several, "{deepest} of {several}");
}

/// Deliveries of all kinds with this name.
fn sent(counters: &NamespaceCounters, name: &str) -> u64 {
    let kinds = DeliveryKind::all().filter(|kind| kind.name() == name);
    kinds.map(|kind| counters.deliveries(kind)).sum()
}

#[test]
fn beyond_the_limit_of_distinct_gaps_frames_stand_alone_and_nobody_is_the_worse_for_it() {
    let mut world = World::new(1 << 22, 2);
    for number in 0..8 {
        world.open(&Plan {
            with_deltas: false,
            is_binary: false,
            compression: CONTEXT,
            channels: vec![true],
        });
        // Each client gets a reply of a size of its own in between.
        world.take(&Step::Reply { client: number, bytes: 100 + 30 * number });
    }
    for seed in 0..20 {
        world.take(&Step::Publish { channel: 0, seed, rows: 30 });
        (0..8).for_each(|client| world.take(&Step::Reply { client, bytes: 100 + 30 * client }));
    }
    world.check();
    let counters = &world.contexts.counters()[0];
    assert!(counters.gaps_refused() >= 18 * 6, "{}", counters.gaps_refused());
    assert_eq!(counters.deliveries(DeliveryKind::Standalone), 2 * 8 + 18 * 6);
    assert_eq!(sent(counters, "several") + counters.deliveries(DeliveryKind::Newest), 18 * 2);
}

#[test]
fn the_first_publication_after_a_recovered_subscribe_refers_to_the_reply() {
    for (channel, namespace) in [("stream:c3", 3), ("cache:c4", 4)] {
        let mut world = World::new(1 << 20, GAPS_MAX);
        for is_binary in [false, true] {
            for window_bits in [15, 15, 11] {
                let compression = Compression::Context { window_bits };
                world.open(&Plan { with_deltas: false, is_binary, compression, channels: vec![] });
            }
        }
        for keeper in [0, 3] {
            world.subscribe(keeper, channel);
        }
        (0..5).for_each(|seed| world.publish(channel, seed, 30));
        let newest =
            |world: &World| world.contexts.counters()[namespace].deliveries(DeliveryKind::Newest);
        assert_eq!(newest(&world), 0);
        let mut alone = 4; // to the keepers, before there was anything to refer to
        for (round, behind) in (0..).zip([0, 1, 2, 5, 1]) {
            let before = newest(&world);
            for client in [1, 2, 4, 5] {
                world.subscribe_all(client, &["c0", channel, "c1"], behind);
                world.take(&Step::Reply { client, bytes: 200 });
            }
            world.publish(channel, 10 * round, 30);
            world.publish(channel, 10 * round + 1, 30);
            // A reply without missed publications gives nothing to refer to; one that is larger than its peer's window
            // is sent raw.
            let in_context = match behind {
                0 => 0,
                5 if namespace == 3 => 2,
                _ => 4,
            };
            assert_eq!(newest(&world) - before, in_context, "{channel}, {behind} missed");
            alone += 4 - in_context;
            let counted = world.contexts.counters()[namespace].deliveries(DeliveryKind::Standalone);
            assert_eq!(counted, alone, "{channel}, {behind} missed");
            for client in [1, 2, 4, 5] {
                world.leave(client, &["c0", channel, "c1"]);
            }
            // When they return, the publication that they got last is not the newest any more.
            world.publish(channel, 10 * round + 2, 30);
        }
        world.check();
    }
}

#[test]
fn frames_of_deltas_stand_alone_while_others_go_on_in_context() {
    let mut world = World::new(1 << 20, GAPS_MAX);
    for with_deltas in [false, true] {
        for is_binary in [false, true] {
            world.open(&Plan {
                with_deltas,
                is_binary,
                compression: CONTEXT,
                channels: vec![true],
            });
        }
    }
    for seed in 0..100 {
        world.take(&Step::Publish { channel: 0, seed, rows: 30 });
    }
    assert_eq!(world.check(), 2 * 99);
    let counters = &world.contexts.counters()[0];
    assert_eq!(counters.deliveries(DeliveryKind::Run(0)), 98 * 2, "as without the others");
    let alone = [DeliveryKind::Standalone, DeliveryKind::Raw].map(|kind| counters.deliveries(kind));
    assert_eq!(alone.iter().sum::<u64>(), 2 * 2 + 100 * 2);
    assert!(alone[1] > 0, "short patches are not compressed");
}

#[test]
fn where_all_have_agreed_to_deltas_there_is_no_history() {
    let mut world = World::new(1 << 20, GAPS_MAX);
    for is_binary in [false, true] {
        let with_deltas = true;
        world.open(&Plan { with_deltas, is_binary, compression: CONTEXT, channels: vec![true] });
    }
    (0..10).for_each(|seed| world.publish("c0", seed, 30));
    assert_eq!(world.check(), 2 * 9);
    assert_eq!((world.contexts.channels(), world.contexts.counters()[0].parses()), ((0, 0), 0));
}

#[test]
fn a_channel_that_is_not_to_be_compressed_goes_out_raw() {
    let mut world = World::new(1 << 20, GAPS_MAX);
    world.open(&Plan {
        with_deltas: false,
        is_binary: false,
        compression: CONTEXT,
        channels: vec![false; 5],
    });
    let (with_deltas, is_binary, compression) = (false, false, Compression::Raw);
    let plan = Plan { with_deltas, is_binary, compression, channels: vec![] };
    world.open_body(&plan, Transport::EventStream, Some(Coding::Gzip));
    for client in 0..2 {
        world.subscribe(client, "off:news");
        world.subscribe(client, "standalone:news");
    }
    for seed in 0..10 {
        world.publish("off:news", seed, 30);
        world.publish("standalone:news", seed, 30);
    }
    world.check();
    let [_, off, standalone, ..] = world.contexts.counters() else { panic!("five namespaces") };
    assert_eq!((off.publications(), standalone.publications()), (10, 10));
    assert_eq!(
        (off.deliveries(DeliveryKind::Raw), off.deliveries(DeliveryKind::Standalone)),
        (2 * 10, 0)
    );
    assert_eq!(
        (
            standalone.deliveries(DeliveryKind::Standalone),
            standalone.deliveries(DeliveryKind::Run(0))
        ),
        (2 * 10, 0)
    );
}

#[test]
fn a_compressor_of_a_single_connection_never_sees_publications_that_are_to_stand_alone() {
    let mut world = World::new(1 << 20, GAPS_MAX);
    let channels = vec![true, false, false, false, false];
    for is_binary in [false, false, true] {
        let (with_deltas, channels) = (false, channels.clone());
        let compression = Compression::Dedicated { window_bits: 15 };
        world.open(&Plan { with_deltas, is_binary, compression, channels });
    }
    for client in 0..3 {
        world.subscribe(client, "standalone:news");
    }
    for seed in 0..10 {
        world.publish("standalone:news", 7, 30); // the same each time
        world.publish("c0", seed, 30);
    }
    world.check();
    let [open, _, standalone, ..] = world.contexts.counters() else { panic!("five namespaces") };
    let sent = |counters: &NamespaceCounters| {
        [DeliveryKind::Raw, DeliveryKind::Standalone, DeliveryKind::Dedicated]
            .map(|kind| counters.deliveries(kind))
    };
    assert_eq!(sent(standalone), [3 * 10, 0, 0], "their sizes tell of nothing else");
    assert_eq!(sent(open), [0, 0, 3 * 10]);
}

#[test]
fn publications_that_are_delivered_in_one_turn_are_told_apart() {
    for verify in [true, false] {
        let mut world = World::verifying(1 << 20, GAPS_MAX, verify);
        let standalone = Compression::Standalone { window_bits: 15 };
        for compression in [Compression::Raw, standalone, CONTEXT] {
            // Each has the format of the one before it, or another one.
            for is_binary in [false, false, true, true] {
                let channels = vec![true];
                world.open(&Plan { with_deltas: false, is_binary, compression, channels });
            }
        }
        world.publish("c0", 0, 30);
        world.publish_late("c0", 3);
        world.publish_at_once("c0", 3);
        world.publish("c0", 1, 30);
        world.check();
    }
}

#[test]
fn a_connection_that_is_listed_twice_gets_the_second_frame_for_the_window_behind_the_first() {
    let mut world = World::new(1 << 20, GAPS_MAX);
    for at in 0..100 {
        let (is_binary, channels) = (at % 3 == 0, vec![true]);
        let compression = CONTEXT;
        world.open(&Plan { with_deltas: false, is_binary, compression, channels });
    }
    for seed in 0..4 {
        world.publish("c0", seed, 30);
        world.publish_twice("c0");
    }
    world.check();
}

fn plan() -> impl Strategy<Value = Plan> {
    let compression = (0..5, 9..=15u8).prop_map(|(kind, window_bits)| match kind {
        0 => Compression::Raw,
        1 => Compression::Standalone { window_bits },
        2 => Compression::Dedicated { window_bits },
        _ => Compression::Context { window_bits },
    });
    (any::<bool>(), prop::bool::weighted(0.3), compression, vec(any::<bool>(), CHANNELS)).prop_map(
        |(is_binary, with_deltas, compression, channels)| Plan {
            with_deltas,
            is_binary,
            compression,
            channels,
        },
    )
}

/// A response, or a WebSocket without commands, whose coding does not count; those in JSON only are.
fn body() -> impl Strategy<Value = (Transport, Option<Coding>)> {
    let coding = [None, Some(Coding::Gzip), Some(Coding::Gzip), Some(Coding::Deflate)];
    let transports = [
        Transport::HttpStream,
        Transport::EventStream,
        Transport::UniHttpStream,
        Transport::UniEventStream,
        Transport::UniWebSocket,
    ];
    (prop::sample::select(transports.to_vec()), prop::sample::select(coding.to_vec()))
}

fn step() -> impl Strategy<Value = Step> {
    let rows = prop_oneof![8 => 1..60usize, 1 => 300..2_000usize];
    prop_oneof![
        12 => (0..CHANNELS, 0..1_000u32, rows).prop_map(|(channel, seed, rows)| {
            Step::Publish { channel, seed, rows }
        }),
        4 => (0..CHANNELS, json()).prop_map(|(channel, text)| Step::Json { channel, text }),
        2 => (0..CHANNELS, 0..3_000usize).prop_map(|(channel, bytes)| Step::Noise { channel, bytes }),
        2 => (0..8usize, 1..2_000usize).prop_map(|(client, bytes)| Step::Reply { client, bytes }),
        1 => (0..8usize, 0..CHANNELS).prop_map(|(client, channel)| Step::Toggle { client, channel }),
        3 => (0..8usize, 0..8u64).prop_map(|(client, behind)| Step::Return { client, behind }),
        1 => plan().prop_map(Step::Open),
        1 => (plan(), body()).prop_map(|(plan, body)| Step::OpenBody(plan, body)),
        1 => Just(Step::Sweep),
    ]
}

/// Any JSON with any white space between its tokens (RFC 8259 §2).
fn json() -> impl Strategy<Value = String> {
    let space = || prop::sample::select(&["", "", " ", "\t", "\n", "\r", "\r\n", "\n\r\r"][..]);
    let leaf =
        prop::sample::select(&["null", "true", "-1.5e3", r#""\r\n""#, "\"é: \"", "\"\""][..]);
    let value = leaf.prop_map(str::to_owned).prop_recursive(4, 40, 6, move |inner| {
        (any::<bool>(), vec((space(), inner, space()), 0..6)).prop_map(|(is_object, items)| {
            let item = |(at, (before, value, after)): (usize, (&str, String, &str))| match is_object
            {
                true => format!("{before}\"{at}\"{after}:{before}{value}{after}"),
                false => format!("{before}{value}{after}"),
            };
            let items: Vec<String> = items.into_iter().enumerate().map(item).collect();
            let [open, close] = if is_object { ["{", "}"] } else { ["[", "]"] };
            format!("{open}{}{close}", items.join(","))
        })
    });
    (space(), value, space()).prop_map(|(before, value, after)| format!("{before}{value}{after}"))
}

const CONTEXT: Compression = Compression::Context { window_bits: 15 };
pub(super) const CHANNELS: usize = 5;
