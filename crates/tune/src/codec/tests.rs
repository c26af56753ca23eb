//! Tests of the codecs.
//! In: small streams → out: deliveries that a zlib decoder took for the messages.
//! Uses a clock that only counts. Never: asserts a time.
//! What a mode must do to a message is a test here.

use std::time::Duration;

use fanwire_deflate::gap::{History, SubscriptionWindow, WindowCounter};
use fanwire_protocol::Encoding;

use super::{Delivery, Memory, ReceivingClient, of};
use crate::input::Sample;
use crate::mode::{self, ContextDepth, Mode};
use crate::stream::{Clock, Settings, Stream};

fn sample(encoding: Encoding, payloads: Vec<Vec<u8>>) -> Sample {
    let (file, channel) = ("score.jsonl".to_owned(), "score".to_owned());
    Sample { file, channel, encoding, payloads, has_more: false }
}

fn states(count: usize) -> Sample {
    let state = |minute: usize| {
        let text = r#"{"match":5117,"home":{"name":"Harbour Town"},"away":{"name":"Upper Valley"},"minute":"#;
        format!("{text}{minute}}}").into_bytes()
    };
    sample(Encoding::Json, (0..count).map(state).collect())
}

const SETTINGS: Settings = Settings { level: 6, channels: 3 };

/// All messages of a sample in one mode, and the memory afterwards.
fn delivered(mode: Mode, sample: &Sample) -> (Vec<Delivery>, Memory) {
    let stream = Stream::new(sample);
    let mut codec = of(mode, &stream, SETTINGS);
    let now = || Duration::ZERO;
    let all = 0..sample.payloads.len();
    let deliveries = all.map(|at| codec.deliver(at, Clock(&now)).expect("it comes back"));
    (deliveries.collect(), codec.memory())
}

fn context(depth: usize, channels: usize) -> Mode {
    Mode::Context { depth: ContextDepth::Publications(depth), channels }
}

#[test]
fn every_mode_brings_every_message_back() {
    let binary: Vec<Vec<u8>> = (0..60u8).map(|at| vec![at, 0, 255, at / 3, 7, 7, 7, at]).collect();
    for sample in [states(60), sample(Encoding::Protobuf, binary)] {
        for mode in mode::all(3).into_iter().filter(|mode| *mode != Mode::Raw) {
            assert_eq!(delivered(mode, &sample).0.len(), 60, "{}", mode.title());
        }
    }
}

#[test]
fn messages_too_long_for_a_history_go_out_standalone_and_the_rest_in_context() {
    let mut sample = states(12);
    let long = serde_json::to_vec(&"ab".repeat(History::MESSAGE_BYTES_MAX / 2)).expect("JSON");
    sample.payloads[5] = long;
    for mode in mode::all(3).into_iter().filter(|mode| matches!(mode, Mode::Context { .. })) {
        let (deliveries, _) = delivered(mode, &sample);
        assert_eq!(deliveries[5].depth, 0, "{}", mode.title());
    }
    let (deliveries, _) = delivered(context(1, 1), &sample);
    assert_eq!((deliveries[4].depth, deliveries[11].depth), (1, 1));
}

#[test]
fn no_frame_refers_to_more_publications_than_the_mode_says() {
    let sample = states(40);
    for depth in [0, 1, 2, 4, 16] {
        let (deliveries, _) = delivered(context(depth, 1), &sample);
        let deepest = deliveries.iter().map(|delivery| delivery.depth).max();
        assert_eq!(deepest, Some(depth));
    }
    let whole = Mode::Context { depth: ContextDepth::Window, channels: 1 };
    assert_eq!(delivered(whole, &sample).0[39].depth, 39);
}

#[test]
fn memory_is_what_the_engine_says() {
    let sample = states(40);
    assert_eq!(delivered(Mode::Standalone { level: 6 }, &sample).1, Memory::default());
    assert_eq!(delivered(context(0, 1), &sample).1, Memory::default());
    let one = size_of::<WindowCounter>() + size_of::<SubscriptionWindow>();
    let three = size_of::<WindowCounter>() + 3 * size_of::<SubscriptionWindow>();
    assert_eq!(delivered(context(1, 1), &sample).1.connection, one);
    assert_eq!(delivered(context(1, 3), &sample).1.connection, three);
    let own = Mode::Dedicated { window_bits: 12, memory_level: 5 };
    let Memory { connection, channel } = delivered(own, &sample).1;
    assert!(connection > 0 && connection <= (1 << 14) + (1 << 14) && channel == 0);
    let longest = sample.payloads[39].len();
    let delta = delivered(Mode::Delta { is_compressed: false }, &sample).1;
    assert_eq!(delta, Memory { connection: 0, channel: longest });
}

#[test]
fn a_delta_that_would_be_longer_goes_out_in_full() {
    // The first change is inside a character, which no delta of a text cuts in two.
    let ends = ["é", "è"].map(|one| format!("\"{}{one}{}\"", "a".repeat(40), "b".repeat(40)));
    let other = format!("\"{}\"", "0123456789".repeat(8) + "cd");
    let texts = [ends[0].clone(), ends[1].clone(), other];
    let sample = sample(Encoding::Json, texts.map(String::into_bytes).to_vec());
    let (deliveries, _) = delivered(Mode::Delta { is_compressed: false }, &sample);
    let [first, second, third] = deliveries[..] else { panic!("three") };
    assert!(second.bytes < first.bytes, "a delta");
    assert_eq!(third.bytes, first.bytes, "in full");
}

#[test]
fn a_changed_message_is_noticed() {
    let now = || Duration::ZERO;
    let mut payload = Vec::new();
    fanwire_deflate::Compressor::new(6).standalone(b"message", &mut payload);
    assert_eq!(
        ReceivingClient::new().receive(&payload, b"message", Clock(&now)),
        Some(Duration::ZERO)
    );
    assert_eq!(ReceivingClient::new().receive(&payload, b"massage", Clock(&now)), None);
    assert_eq!(ReceivingClient::new().receive(&payload, b"mess", Clock(&now)), None);
    assert_eq!(ReceivingClient::new().receive(&payload[1..], b"message", Clock(&now)), None);
}
