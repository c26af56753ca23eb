//! Tests of `token`: what goes in comes out.
//! Literals and copies → bytes, lengths and distances.
//! Uses only `token`.
//! Change here: cases at the edges of the fields.

use super::*;

#[test]
fn a_literal_keeps_its_byte() {
    for byte in [0, 1, 0x7f, 0x80, 0xff] {
        let token = Token::literal(byte);
        assert!(token.is_literal());
        assert_eq!(token.entry(), u32::from(byte));
    }
}

#[test]
fn a_copy_keeps_length_and_distance() {
    for length in [3, 4, 257, 258] {
        for distance in [1, 2, 32_767, 32_768] {
            let token = Token::copy(length, distance);
            assert!(!token.is_literal());
            assert_eq!(token.entry(), LENGTHS[length - 3]);
            assert_eq!(token.distance(&Gaps::new(&[9; SOURCES_MAX - 1])), distance as u32);
        }
    }
}

#[test]
fn a_copy_out_of_a_publication_has_the_distance_that_the_gap_gives() {
    for source in 0..SOURCES_MAX - 1 {
        for (position, offset) in [(0, 0), (0, 32_767), (32_767, 0), (5, 9)] {
            let mut gaps = [0; SOURCES_MAX - 1];
            gaps[source] = 40_000;
            let token = Token::copy_from(20, source, position, offset);
            let distance = 40_000 + position as u32 - offset as u32;
            assert_eq!(token.distance(&Gaps::new(&gaps)), distance);
            assert_eq!(token.entry(), LENGTHS[17]);
        }
    }
}
