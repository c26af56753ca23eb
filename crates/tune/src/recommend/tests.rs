//! Tests of the advice.
//! In: reports made by hand → out: what is recommended, why, and what it saves.
//! Uses the room's functions. Never: measures.
//! A rule of the advice is a test here.

use fanwire_protocol::Encoding;

use super::{Advice, Compression, Scale};
use crate::codec::Memory;
use crate::measure::{Measurement, Micros, Row};
use crate::mode::{ContextDepth, Mode};
use crate::stats::Sizes;
use crate::stream::Settings;

const SCALE: Scale = Scale { dollars_per_gb: 0.1, publications_per_second: 10.0, receivers: 1_000 };

const ONE: Mode = Mode::Context { depth: ContextDepth::Window, channels: 1 };
const MANY: Mode = Mode::Context { depth: ContextDepth::Publications(4), channels: 5 };

fn row(mode: Mode, sizes: Vec<u32>) -> Row {
    let micros = Micros { compress: 10.0, decompress: 1.0, again: Some(0.5) };
    let memory = Memory { connection: 1 << 10, channel: 1 << 20 };
    Row { mode, sizes, micros: Some(micros), memory, depth: 0 }
}

/// A report whose frames all have the same size in a mode: raw, standalone at two levels, a
/// compressor per connection, one channel, several channels.
pub(crate) fn report(raw: u32, standalone: [u32; 2], own: u32, one: u32, many: u32) -> Measurement {
    let sizes = |size| vec![size; 300];
    let [low, high] = standalone;
    let rows = vec![
        Row { micros: None, memory: Memory::default(), ..row(Mode::Raw, sizes(raw)) },
        row(Mode::Standalone { level: 1 }, sizes(low)),
        row(Mode::Standalone { level: 6 }, sizes(high)),
        row(Mode::Dedicated { window_bits: 15, memory_level: 8 }, sizes(own)),
        row(ONE, sizes(one)),
        row(MANY, sizes(many)),
    ];
    Measurement {
        file: "score <live>.jsonl".to_owned(),
        channel: "score".to_owned(),
        encoding: Encoding::Json,
        has_more: false,
        settings: Settings { level: 6, channels: 5 },
        payloads: Sizes::of(&sizes(raw - 50)),
        rows,
        curves: Vec::new(),
    }
}

fn check(report: &Measurement, expect: Compression, mode: Mode) -> Advice {
    let advice = Advice::new(report, SCALE);
    assert_eq!((advice.compression, advice.mode), (expect, mode));
    let value = format!("compression: {}\n", expect.name());
    assert!(advice.lines.ends_with(&value), "{}", advice.lines);
    advice
}

#[test]
fn messages_that_are_alike_get_context() {
    let advice = check(&report(2_000, [800, 780], 60, 60, 90), Compression::Context, MANY);
    assert_eq!((advice.raw, advice.chosen), (2_000.0, 90.0));
    assert!(advice.reasons[0].contains("60.0 B"), "{:?}", advice.reasons);
    assert!(advice.reasons[1].contains("5 channels") && advice.reasons[1].contains("90.0 B"));
    assert_eq!(
        advice.lines,
        "websocket:\n  compression: true\n  compression_level: 6\n  compression_min_size: 128\n  \
         compression_memory_max: 268435456\nchannel:\n  namespaces:\n    - name: score\n      \
         compression: context\n"
    );
}

#[test]
fn a_compressor_per_connection_is_compared_with() {
    let advice = check(&report(2_000, [800, 780], 60, 61, 90), Compression::Context, MANY);
    let reason = advice.reasons.iter().find(|reason| reason.contains("each connection"));
    // 1,000 receivers of 1 KiB; 10 µs for each of 10,000 deliveries a second; and 10 µs for each
    // of 10 publications with half a microsecond for each delivery.
    let reason = reason.expect("it is");
    assert!(reason.contains("1,000 KiB and 10 % of a core for 1,000 receivers"), "{reason}");
    assert!(reason.contains("Context takes 2.0 MiB, and 0.5 % of a core even"), "{reason}");
}

#[test]
fn a_depth_that_saves_less_than_a_hundredth_is_not_worth_its_memory() {
    let mut report = report(2_000, [800, 780], 60, 60, 1_000);
    let depth = |depth| Mode::Context { depth: ContextDepth::Publications(depth), channels: 5 };
    report.rows.pop();
    let rows = [(1, 900), (2, 806), (4, 800), (8, 803)];
    report.rows.extend(rows.map(|(at, size)| row(depth(at), vec![size; 300])));
    check(&report, Compression::Context, depth(2));
}

#[test]
fn messages_with_little_in_common_go_out_standalone() {
    let report = report(1_000, [500, 497], 480, 470, 490);
    let advice = check(&report, Compression::Standalone, Mode::Standalone { level: 1 });
    assert!(advice.reasons.iter().any(|reason| reason.contains("4.0 %")), "{:?}", advice.reasons);
    assert!(advice.lines.contains("compression_level: 1\n"), "{}", advice.lines);
    assert!(!advice.lines.contains("compression_memory_max"), "{}", advice.lines);
}

#[test]
fn a_level_that_saves_more_than_a_hundredth_is_worth_it() {
    let report = report(1_000, [510, 500], 490, 495, 496);
    check(&report, Compression::Standalone, Mode::Standalone { level: 6 });
}

#[test]
fn incompressible_messages_are_sent_as_they_are() {
    let advice =
        check(&report(1_000, [1_003, 1_002], 1_002, 1_001, 1_002), Compression::Off, Mode::Raw);
    assert!(advice.reasons[0].contains("incompressible"), "{:?}", advice.reasons);
    assert_eq!(advice.chosen, advice.raw);
    check(&report(1_000, [970, 960], 960, 955, 960), Compression::Off, Mode::Raw);
    check(&report(1_000, [970, 960], 960, 700, 960), Compression::Context, MANY);
    // Only the envelope is alike, and only for clients with this channel alone.
    check(&report(100, [107, 107], 91, 91, 100), Compression::Off, Mode::Raw);
}

#[test]
fn a_month_has_thirty_days_and_a_gigabyte_is_decimal() {
    let advice = Advice::new(&report(1_000, [500, 500], 90, 90, 100), SCALE);
    let raw = advice.month(advice.raw);
    assert_eq!(raw.bytes, 10.0 * 1_000.0 * 2_592_000.0 * 1_000.0);
    assert_eq!(raw.dollars, 2_592.0);
    assert_eq!(advice.month(advice.raw - advice.chosen).dollars, 2_592.0 * 0.9);
}

#[test]
fn the_shortest_compressed_message_is_as_long_as_it_may_be_without_loss() {
    let min_size = |raw: [u32; 2], context: [u32; 2]| {
        let mut report = report(1_000, [900, 900], 100, 100, 100);
        report.rows[0].sizes = raw.repeat(150);
        report.rows[4].sizes = context.repeat(150);
        report.rows[5].sizes = context.repeat(150);
        let lines = Advice::new(&report, SCALE).lines;
        let line =
            lines.lines().find_map(|line| line.trim().strip_prefix("compression_min_size: "));
        line.expect("a line").parse::<u32>().expect("a number")
    };
    assert_eq!(min_size([1_000, 60], [100, 58]), 128);
    assert_eq!(min_size([1_000, 100], [100, 30]), 64);
    assert_eq!(min_size([300, 50], [100, 20]), 32);
    assert_eq!(min_size([60, 30], [20, 10]), 24);
}

#[test]
fn long_and_few_messages_are_spoken_of() {
    let mut report = report(20_000, [800, 780], 60, 60, 90);
    report.rows[0].sizes.truncate(150);
    let reasons = Advice::new(&report, SCALE).reasons.join("\n");
    assert!(reasons.contains("150 of 150 messages are longer than 16,384 B"), "{reasons}");
    assert!(reasons.contains("150 messages are few"), "{reasons}");
}

#[test]
fn a_channel_that_is_no_namespace_gets_another_name() {
    for name in ["x", "two words", "a: b", ""] {
        let mut report = report(2_000, [800, 780], 60, 60, 90);
        report.channel = name.to_owned();
        let lines = Advice::new(&report, SCALE).lines;
        assert!(lines.contains("- name: messages\n"), "{lines}");
    }
}
