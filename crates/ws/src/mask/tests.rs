//! Tests of `mask` against RFC 6455 §5.3 done byte by byte.
//! Bytes and key → the same result in place, onto a buffer, and in any two pieces.
//! Uses only `mask`.
//! Changed here: properties of masking.

use proptest::collection::vec;
use proptest::prelude::*;

use super::*;

#[test]
fn the_example_of_rfc_6455_section_5_7_is_unmasked() {
    // RFC 6455 §6.2e
    let mut bytes = [0x7f, 0x9f, 0x4d, 0x51, 0x58];
    unmask(&mut bytes, [0x37, 0xfa, 0x21, 0x3d]);
    assert_eq!(&bytes, b"Hello");
}

proptest! {
    #[test]
    fn words_and_blocks_agree_with_single_bytes(
        bytes in vec(any::<u8>(), 0..400),
        key: [u8; 4],
        before in vec(any::<u8>(), 0..9),
        cut: prop::sample::Index,
    ) {
        let expect: Vec<u8> = bytes.iter().zip(key.iter().cycle()).map(|(b, k)| b ^ k).collect();

        let mut in_place = bytes.clone();
        unmask(&mut in_place, key);
        prop_assert_eq!(&in_place, &expect);

        let mut onto = before.clone();
        unmask_onto(&bytes, key, &mut onto);
        prop_assert_eq!(&onto[before.len()..], &expect);
        prop_assert_eq!(&onto[..before.len()], &before);

        let (first, second) = bytes.split_at(cut.index(bytes.len() + 1));
        let mut pieces = Vec::new();
        unmask_onto(first, key, &mut pieces);
        unmask_onto(second, advance(key, first.len()), &mut pieces);
        prop_assert_eq!(&pieces, &expect);
    }
}
