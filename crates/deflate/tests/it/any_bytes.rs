//! The fuzz targets of this crate as property tests on stable.
//! Random bytes, some of them after a plausible beginning → no panic.
//! Uses `fanwire_deflate::fuzzing`.
//! Changed here: a line per fuzz target; their properties are written there.

use fanwire_deflate::fuzzing;
use proptest::collection::vec;
use proptest::prelude::*;

proptest! {
    #[test]
    fn any_payload_inflates_or_fails_in_bounds(data in vec(any::<u8>(), 0..300)) {
        fuzzing::inflate(&data);
    }

    #[test]
    fn any_dynamic_block_inflates_or_fails_in_bounds(data in vec(any::<u8>(), 0..300), head: [u8; 2]) {
        // BFINAL and BTYPE 10, then a few codes, so that the code lengths are often accepted.
        fuzzing::inflate(&[&head[..], &[0x05, 0xc0, 0x01], &data].concat());
    }

    #[test]
    fn any_payload_after_a_message_is_decoded_like_one_payload_with_both(
        head: [u8; 2],
        data in vec(any::<u8>(), 0..300),
        copies in vec(any::<[u8; 2]>(), 0..40),
    ) {
        fuzzing::takeover(&[&head[..], &data].concat());
        // Blocks of the fixed code that copy three bytes, often from the message before.
        let copies: Vec<u8> = copies.into_iter().flat_map(|[first, second]| [2, first | 2, second, 0]).collect();
        fuzzing::takeover(&[&head[..], &[b'a'; 255], &copies].concat());
    }

    #[test]
    fn any_publications_come_back_in_context(
        data in vec(any::<u8>(), 0..2_000),
        word in vec(any::<u8>(), 1..64),
    ) {
        fuzzing::gap(&data);
        fuzzing::gap(&[&data[..], &word.repeat(30)].concat());
    }

    #[test]
    fn any_messages_of_a_connection_come_back_in_context(
        settings: [u8; 4],
        data in vec(any::<u8>(), 0..2_000),
        word in vec(any::<u8>(), 1..64),
    ) {
        fuzzing::dedicated(&[&settings[..], &data].concat());
        fuzzing::dedicated(&[&settings[..], &word.repeat(30)].concat());
    }

    #[test]
    fn any_message_comes_back(data in vec(any::<u8>(), 0..2_000)) {
        fuzzing::standalone(&data);
    }
}
