//! Nothing a peer can send breaks a promise: the fuzz targets of `src/fuzzing.rs` as property tests.
//! In: random bytes, and random text made of the pieces the formats are made of. Out: no panic.
//! Uses `fuzzing` and proptest, which prints what failed.
//! A promise is written in `src/fuzzing.rs`; here is only where its input comes from.

use std::collections::BTreeMap;

use bytes::Bytes;
use fanwire_protocol::{ClientInfo, Publication, fuzzing};
use proptest::collection::{btree_map, vec};
use proptest::prelude::*;

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn any_bytes_decode_or_fail(frame in vec(any::<u8>(), 0..200)) {
        fuzzing::commands(&frame);
    }

    #[test]
    fn almost_json_commands_decode_or_fail(frame in vec(piece(), 0..30)) {
        fuzzing::commands(&frame.concat());
    }

    #[test]
    fn any_bytes_are_replies_or_not(message in vec(any::<u8>(), 0..200)) {
        fuzzing::replies(&message);
    }

    #[test]
    fn almost_json_replies_decode_or_fail(message in vec(piece(), 0..30)) {
        fuzzing::replies(&message.concat());
    }

    #[test]
    fn any_bytes_are_judged_like_serde_json_judges_them(data in vec(any::<u8>(), 0..40)) {
        fuzzing::payload(&data);
    }

    #[test]
    fn almost_json_is_judged_like_serde_json_judges_it(data in vec(piece(), 0..30)) {
        fuzzing::payload(&data.concat());
    }

    #[test]
    fn any_publication_is_pushed_as_the_generated_code_pushes_it(
        publication in publication(),
        channel in ".{0,20}",
    ) {
        fuzzing::publication_push(&channel, &publication);
    }

    #[test]
    fn any_bytes_are_a_publication_or_not(bytes in vec(any::<u8>(), 0..60)) {
        fuzzing::publication(&bytes);
    }

    #[test]
    fn any_bytes_are_a_delta_or_not(bytes in vec(any::<u8>(), 0..200)) {
        fuzzing::fossil(&bytes);
    }

    #[test]
    fn anything_almost_a_delta_is_one_or_not(cut in any::<u8>(), pieces in vec(delta_piece(), 0..40)) {
        fuzzing::fossil(&[&[cut][..], pieces.concat().as_bytes()].concat());
    }
}

/// Found by the fuzzer: a publish in Protobuf whose payload begins with a carriage return.
#[test]
fn space_around_a_payload_is_no_part_of_it() {
    fuzzing::commands(b"\x0b\x08\x02\x3a\x07\x0a\x01a\x12\x02\r3");
}

/// Pieces of deltas, long enough to be worth a copy.
fn delta_piece() -> impl Strategy<Value = &'static str> {
    const PIECES: [&str; 14] = [
        "\n",
        "@",
        ",",
        ":",
        ";",
        "0",
        "1",
        "A",
        "_",
        "~~~~~~",
        "é",
        "3:abc",
        "4@0,",
        "a block of more than sixteen bytes",
    ];
    prop::sample::select(&PIECES[..])
}

/// Pieces of JSON commands, so that random ones are often nearly right.
fn piece() -> impl Strategy<Value = &'static [u8]> {
    const PIECES: [&str; 44] = [
        "{",
        "}",
        "[",
        "]",
        ",",
        ":",
        "\"",
        "\n",
        " ",
        "\r",
        "\t",
        "\\",
        "\\n",
        "\\u00",
        "0",
        "1",
        "-",
        ".",
        "e",
        "+",
        "true",
        "false",
        "null",
        "é",
        "\"a\"",
        "{}",
        "[]",
        "{\"id\":1}\n",
        "\"id\":",
        "\"connect\":{",
        "\"subscribe\":{",
        "\"channel\":\"c\"",
        "\"data\":",
        "\"subs\":{",
        "\"tf\":{",
        "\"nodes\":[",
        "\"publish\":{",
        "\"rpc\":{}",
        "\"send\":",
        "\"headers\":{\"h\":\"v\"}",
        "\"flag\":1",
        "\"offset\":2",
        "\"x\":",
        "\u{2028}",
    ];
    prop::sample::select(&PIECES[..]).prop_map(str::as_bytes)
}

fn payload() -> impl Strategy<Value = Bytes> {
    prop_oneof![
        Just(Bytes::new()),
        Just(Bytes::from_static(b"{\n\"a\": [1, \"\\n\"]\n}")),
        vec(piece(), 0..6).prop_map(|pieces| pieces.concat().into()),
        ".{0,10}".prop_map(|text| serde_json::to_string(&text).expect("a string").into()),
        vec(any::<u8>(), 0..10).prop_map(Bytes::from),
    ]
}

fn info() -> impl Strategy<Value = ClientInfo> {
    (".{0,5}", ".{0,5}", payload(), payload()).prop_map(|(user, client, conn_info, chan_info)| {
        ClientInfo { user, client, conn_info, chan_info }
    })
}

fn publication() -> impl Strategy<Value = Publication> {
    let texts: BoxedStrategy<BTreeMap<String, String>> =
        btree_map(".{0,5}", ".{0,5}", 0..3).boxed();
    let first = (payload(), prop::option::of(info()), any::<u64>(), texts, any::<bool>());
    let second = (any::<i64>(), ".{0,5}", ".{0,5}", any::<bool>(), any::<i64>(), ".{0,5}");
    (first, second, payload(), any::<u64>()).prop_map(|(first, second, prev_data, version)| {
        let (data, info, offset, tags, delta) = first;
        let (time, channel, key, removed, score, epoch) = second;
        let version = version % 2;
        Publication {
            data,
            info,
            offset,
            tags,
            delta,
            time,
            channel,
            key,
            removed,
            score,
            epoch,
            prev_data,
            version,
        }
    })
}
