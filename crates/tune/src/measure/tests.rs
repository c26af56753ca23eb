//! Tests of the measuring itself.
//! In: samples and a clock made of numbers → out: reports.
//! Uses a clock that goes one microsecond a look. Never: a real one.
//! What a row must say is a test here.

use std::cell::Cell;
use std::time::Duration;

use fanwire_protocol::Encoding;

use super::{Clock, Measurement, Settings, curves, measure};
use crate::input::Sample;
use crate::mode::{ContextDepth, Group, Mode};

fn report(payloads: Vec<Vec<u8>>, encoding: Encoding, channels: usize) -> Measurement {
    let (file, channel) = ("a.jsonl".to_owned(), "a".to_owned());
    let sample = Sample { file, channel, encoding, payloads, has_more: false };
    let looks = Cell::new(0);
    let now = || {
        looks.set(looks.get() + 1);
        Duration::from_micros(looks.get())
    };
    let settings = Settings { level: 6, channels };
    measure(&sample, settings, Clock(&now), &mut |_| ()).expect("all come back")
}

fn lines(count: usize) -> Vec<Vec<u8>> {
    let line =
        |at: usize| format!(r#"{{"kind":"trade","symbol":"NORDA","price":{}}}"#, 10_000 + at * 37);
    (0..count).map(line).map(String::into_bytes).collect()
}

fn names(report: &Measurement, group: Group) -> Vec<String> {
    let rows = report.rows.iter().filter(|row| row.mode.group() == group);
    rows.map(|row| row.mode.to_string()).collect()
}

#[test]
fn raw_messages_have_envelope_and_header() {
    let report = report(vec![b"1".to_vec(), b"22".to_vec()], Encoding::Json, 1);
    assert_eq!(report.rows[0].mode, Mode::Raw);
    let envelope = r#"{"push":{"channel":"a","pub":{"data":,"offset":1}}}"#.len();
    assert_eq!(report.rows[0].sizes, [envelope + 1 + 2, envelope + 2 + 2].map(|size| size as u32));
    assert_eq!(report.payloads.mean, 1.5);
    assert!(report.rows[0].micros.is_none());
}

#[test]
fn times_are_of_the_clock_and_per_message() {
    let report = report(lines(20), Encoding::Json, 2);
    let standalone = report.rows[1].micros.expect("measured");
    assert_eq!((standalone.compress, standalone.decompress, standalone.again), (1.0, 1.0, None));
    let last = report.rows.last().expect("rows").micros.expect("measured");
    // Hash, parse and emit are timed one by one.
    assert_eq!((last.compress, last.again), (3.0, Some(0.125)));
}

#[test]
fn context_is_smaller_than_standalone_on_messages_that_are_alike() {
    let report = report(lines(60), Encoding::Json, 2);
    let bytes = |group| {
        let row = report.rows.iter().rev().find(|row| row.mode.group() == group);
        row.expect("a row").bytes()
    };
    assert!(bytes(Group::OneChannel) < bytes(Group::Standalone) / 2.0);
    assert!(bytes(Group::Interleaved) < bytes(Group::Standalone) / 2.0);
    assert!(bytes(Group::Dedicated) < bytes(Group::Standalone) / 2.0);
}

#[test]
fn depths_that_reach_no_further_are_left_out() {
    let long =
        |at: u8| format!("\"{}\"", char::from(b'a' + at).to_string().repeat(9_000)).into_bytes();
    let report = report((0..9).map(long).collect(), Encoding::Json, 1);
    assert_eq!(names(&report, Group::OneChannel), ["K = 0", "K = 1", "K = 2", "whole window"]);
    assert!(names(&report, Group::Interleaved).is_empty());
}

#[test]
fn every_mode_is_announced_before_it_is_measured() {
    let payloads = vec![b"1".to_vec(), b"2".to_vec()];
    let (file, channel) = ("a.jsonl".to_owned(), "a".to_owned());
    let sample = Sample { file, channel, encoding: Encoding::Json, payloads, has_more: true };
    let mut begun = Vec::new();
    let now = || Duration::ZERO;
    let settings = Settings { level: 1, channels: 5 };
    let report = measure(&sample, settings, Clock(&now), &mut |mode| begun.push(mode));
    assert_eq!(begun, crate::mode::all(5));
    assert!(report.expect("all come back").has_more);
}

#[test]
fn a_curve_has_every_depth_and_the_bytes_of_the_table() {
    let report = report(lines(60), Encoding::Json, 2);
    let (file, channel) = ("a.jsonl".to_owned(), "a".to_owned());
    let payloads = lines(60);
    let sample = Sample { file, channel, encoding: Encoding::Json, payloads, has_more: false };
    let settings = Settings { level: 6, channels: 2 };
    let now = || Duration::ZERO;
    let mut begun = 0;
    let curves =
        curves(&sample, settings, Clock(&now), &mut |_| begun += 1).expect("all come back");
    let lengths: Vec<(usize, usize)> =
        curves.iter().map(|curve| (curve.channels, curve.bytes.len())).collect();
    assert_eq!((lengths, begun), (vec![(1, 17), (2, 9)], 26));
    for row in &report.rows {
        if let Mode::Context { depth: ContextDepth::Publications(depth), channels } = row.mode {
            let curve = curves.iter().find(|curve| curve.channels == channels).expect("a curve");
            assert_eq!(curve.bytes[depth], row.bytes(), "{}", row.mode.title());
        }
    }
}
