//! Tests of deltas in Fossil's format.
//! Sources, targets and deltas → deltas, targets and errors; the deltas are those of the npm package.
//! Uses the module and proptest, which prints what failed.
//! Tests for any bytes at all are in `tests/it/any_bytes.rs`.

use proptest::collection::vec;
use proptest::prelude::*;

use super::{DeltaError, Differ, apply, checksum, put_number};

fn create(source: &[u8], target: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    Differ::default().create(source, target, &mut out);
    out
}

fn check(source: &str, target: &str, delta: &str) {
    let made = create(source.as_bytes(), target.as_bytes());
    assert_eq!(String::from_utf8_lossy(&made), delta);
    let mut out = Vec::new();
    assert_eq!(apply(source.as_bytes(), &made, target.len(), &mut out), Ok(()));
    assert_eq!(out, target.as_bytes());
}

/// Checks the error of a delta for a source of 17 bytes, with a limit of 100.
fn refused(delta: &str, expect: DeltaError) {
    let mut out = b"as it was".to_vec();
    assert_eq!(apply(b"0123456789abcdefg", delta.as_bytes(), 100, &mut out), Err(expect));
    assert_eq!(out, b"as it was");
}

#[test]
fn deltas_are_those_of_the_npm_package() {
    check("", "", "0\n0:0;");
    check("", "abc", "3\n3:abc1XObC0;");
    check("0123456789abcdef", "0123456789abcdef", "G\nG:0123456789abcdef12xn;");
    check("0123456789abcdefg", "", "0\n0;");
    check("0123456789abcdefg", "0123456789abcdefg", "H\nH@0,1c12xn;");
    check(
        "The quick brown fox jumps over the lazy dog.",
        "The quick brown cat jumps over the lazy dog!",
        "h\nG@0,S:cat jumps over the lazy dog!1qBX4x;",
    );
    check(&"a".repeat(100), &"a".repeat(70), "16\n16@G,3Or7Tm;");
    check(
        "Zoë schreibt: grüße aus Köln und Zürich",
        "Zoè schreibt: grüße aus Köln und Zurich",
        "g\n4:ZoèY@4,5:urich1N26QC;",
    );
    let state = |minute: u8, goals: u8| {
        format!(
            r#"{{"match":5117,"minute":{minute},"status":"first half","home":{{"name":"Harbour Town","goals":{goals}}},"away":{{"name":"Upper Valley","goals":0}}}}"#
        )
    };
    check(&state(3, 0), &state(4, 1), "21\nN@0,1:4y@O,1:1g@1M,20WDwk;");
}

#[test]
fn a_differ_makes_the_same_delta_whatever_it_made_before() {
    let (long, short) = ("0123456789abcdefghijklmnopqrstuvwxyz".repeat(20), "x".repeat(40));
    let mut differ = Differ::default();
    for (source, target) in [(&long, &short), (&short, &long), (&long, &long), (&short, &short)] {
        let mut out = b"kept".to_vec();
        differ.create(source.as_bytes(), target.as_bytes(), &mut out);
        let alone = create(source.as_bytes(), target.as_bytes());
        assert_eq!(out, [b"kept", &*alone].concat());
    }
}

#[test]
fn a_delta_of_another_source_fails_on_its_checksum() {
    let target = b"The quick brown cat jumps over the lazy dog!";
    let delta = create(b"The quick brown fox jumps over the lazy dog.", target);
    let mut out = Vec::new();
    let other = b"The quick brawn fox jumps over the lazy dog.";
    assert_eq!(apply(other, &delta, 100, &mut out), Err(DeltaError::Checksum));
    assert!(out.is_empty());
}

#[test]
fn a_broken_delta_is_refused_with_the_place() {
    refused("", DeltaError::Unterminated);
    refused("3", DeltaError::Unterminated);
    refused("3\n", DeltaError::Unterminated);
    refused("3\n3:ab", DeltaError::Unterminated);
    refused("3\n3:abc", DeltaError::Unterminated);
    refused("3\n3:abc1XObC0", DeltaError::Unterminated);
    refused("\n3:abc1XObC0;", DeltaError::Number { at: 0 });
    refused("3\n:abc1XObC0;", DeltaError::Number { at: 2 });
    refused("3\n3@,1XObC0;", DeltaError::Number { at: 4 });
    refused("~~~~~~\n0;", DeltaError::Number { at: 0 });
    refused("3 3:abc1XObC0;", DeltaError::Command { at: 1 });
    refused("3\n3!abc1XObC0;", DeltaError::Command { at: 3 });
    refused("3\n3@0;0;", DeltaError::Command { at: 5 });
    refused("3\n3@F,0;", DeltaError::CopyOutside { at: 2 });
    refused("3\n3@3~~~~~,0;", DeltaError::CopyOutside { at: 2 });
    refused("3\n4:abcd0;", DeltaError::Length { announced: 3 });
    refused("3\n2:ab0;", DeltaError::Length { announced: 3 });
    refused("3\n3:abd1XObC0;", DeltaError::Checksum);
    refused("3\n3:abc1XObC0;\n", DeltaError::Trailing { at: 14 });
}

#[test]
fn a_delta_may_not_announce_more_than_the_caller_takes() {
    refused("1a\n", DeltaError::TooLarge { announced: 101, bytes_max: 100 });
    refused("3~~~~~\n", DeltaError::TooLarge { announced: u32::MAX as usize, bytes_max: 100 });
    let mut out = Vec::new();
    assert_eq!(apply(b"", b"3\n3:abc1XObC0;", 3, &mut out), Ok(()));
}

#[test]
fn copies_that_repeat_the_source_stop_at_the_announced_length() {
    let delta = format!("1_\n{}0;", "H@0,".repeat(1000));
    refused(&delta, DeltaError::Length { announced: 100 });
}

#[test]
fn a_delta_of_text_cuts_between_characters() {
    // \u{e9} is c3 a9, \u{e8} is c3 a8, \u{29} is a9 behind another byte: the plain copy ends, or begins, inside of one.
    let check = |source: &str, target: &str, delta: &str| {
        let mut out = Vec::new();
        Differ::default().create_text(source.as_bytes(), target, &mut out);
        assert_eq!(String::from_utf8_lossy(&out), delta);
        assert!(std::str::from_utf8(&create(source.as_bytes(), target.as_bytes())).is_err());
    };
    let same = "0123456789abcdef".repeat(2);
    check(&format!("{same}\u{e9}"), &format!("{same}\u{e8}"), "Y\nW@0,2:\u{e8}33h5u_;");
    let (source, target) = (format!("--\u{e9}{same}"), format!("\u{429}{same}"));
    check(&source, &target, "Y\n2:\u{429}W@4,k3l06;");
    // ASCII is not touched.
    let mut out = Vec::new();
    Differ::default().create_text(same.as_bytes(), &same, &mut out);
    assert_eq!(out, create(same.as_bytes(), same.as_bytes()));
}

#[test]
fn a_search_without_effort_left_inserts_the_rest() {
    let text = "abcdefghij".repeat(400);
    let mut differ = Differ::within(30_000);
    let lengths = [(); 3].map(|()| {
        let (mut delta, mut out) = (Vec::new(), Vec::new());
        differ.create(text.as_bytes(), format!("x{text}").as_bytes(), &mut delta);
        assert_eq!(apply(text.as_bytes(), &delta, 5000, &mut out), Ok(()));
        assert_eq!(out, format!("x{text}").as_bytes());
        delta.len()
    });
    assert_eq!(lengths, [18, 4014, 4014]);
}

#[test]
fn numbers_are_in_base_64_with_the_digits_of_the_format() {
    let text = |number| {
        let mut out = Vec::new();
        put_number(&mut out, number);
        String::from_utf8(out).expect("ASCII")
    };
    let numbers = [0, 9, 10, 35, 36, 37, 62, 63, 64, 4095, 4096, u32::MAX as usize];
    let expect = ["0", "9", "A", "Z", "_", "a", "z", "~", "10", "~~", "100", "3~~~~~"];
    assert_eq!(numbers.map(text), expect);
}

#[test]
fn the_checksum_takes_a_short_last_word_for_its_high_bytes() {
    assert_eq!(checksum(b""), 0);
    assert_eq!(checksum(&[1]), 0x0100_0000);
    assert_eq!(checksum(&[0, 0, 0, 2, 1, 2, 3]), 0x0102_0302);
    assert_eq!(checksum(&[0xff; 8]), 0xffff_fffe);
}

#[test]
fn payloads_that_are_a_little_alike_everywhere_come_back() {
    // Blocks in few buckets, and hardly a copy that is worth its bytes.
    let source: Vec<u8> = (0..=255).flat_map(|byte| [[0; 8], [byte; 8]].concat()).collect();
    let target = [&[0; 7][..], &[1; 9]].concat().repeat(256);
    let delta = create(&source, &target);
    let mut out = Vec::new();
    assert_eq!(apply(&source, &delta, target.len(), &mut out), Ok(()));
    assert_eq!(out, target);
}

proptest! {
    #[test]
    fn a_delta_makes_its_target(source in payload(), target in payload()) {
        let delta = create(&source, &target);
        prop_assert!(delta.len() <= target.len() + 24);
        let mut out = Vec::new();
        prop_assert_eq!(apply(&source, &delta, target.len(), &mut out), Ok(()));
        prop_assert_eq!(out, target);
    }

    #[test]
    fn a_delta_of_text_is_text(source in text(), target in text()) {
        let (mut delta, mut out) = (Vec::new(), Vec::new());
        Differ::default().create_text(source.as_bytes(), &target, &mut delta);
        prop_assert!(std::str::from_utf8(&delta).is_ok(), "{}", delta.escape_ascii());
        prop_assert!(delta.len() <= target.len() + 24);
        prop_assert_eq!(apply(source.as_bytes(), &delta, target.len(), &mut out), Ok(()));
        prop_assert_eq!(out, target.as_bytes());
    }

    #[test]
    fn a_changed_delta_makes_the_target_or_an_error(
        source in payload(),
        target in payload(),
        at in any::<prop::sample::Index>(),
        byte in any::<u8>(),
    ) {
        let mut delta = create(&source, &target);
        let at = at.index(delta.len());
        delta[at] = byte;
        let mut out = Vec::new();
        match apply(&source, &delta, 4096, &mut out) {
            Ok(()) => prop_assert!(out.len() <= 4096),
            Err(_) => prop_assert!(out.is_empty()),
        }
    }
}

/// Texts that have much in common, also parts of characters.
fn text() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        Just("{\"name\":\"Harbour Town\",\"goals\":".to_owned()),
        Just("\u{436}\u{437}\u{438}\u{439}\u{43a}\u{43b}\u{43c}\u{43d}".to_owned()),
        vec(
            prop_oneof![
                Just('\u{e9}'),
                Just('\u{e8}'),
                Just('\u{20ac}'),
                Just('\u{1f600}'),
                Just('\u{1f601}')
            ],
            0..20
        )
        .prop_map(String::from_iter),
        vec(any::<char>(), 0..4).prop_map(String::from_iter),
    ];
    vec(piece, 0..20).prop_map(|pieces| pieces.concat())
}

/// Payloads that have much in common.
fn payload() -> impl Strategy<Value = Vec<u8>> {
    let piece = prop_oneof![
        Just(b"{\"name\":\"Harbour Town\",\"goals\":".to_vec()),
        Just(b"{\"n\":7,\"passes\":12,\"rating\":6.1},".to_vec()),
        Just(vec![0; 40]),
        vec(any::<u8>(), 0..6),
    ];
    vec(piece, 0..30).prop_map(|pieces| pieces.concat())
}
