//! Tests of `token`: what goes in comes out.
//! Copies → lengths and distances; sequences → the bytes that they stand for.
//! Uses only `token`.
//! Changed here: cases at the edges of the fields.

use super::*;

#[test]
fn the_end_is_a_symbol_of_no_bytes() {
    assert!(!Token::END.is_copy() && !Token::END.names_source());
    assert_eq!((Token::END.bytes(), Token::END.source()), (0, None));
    assert_eq!(Token::END.entry(), END_OF_BLOCK as u32);
}

#[test]
fn literals_add_up_until_a_copy_or_the_end() {
    let mut sequences = Sequences::with_capacity(1);
    let copy = Token::copy(3, 2);
    for _ in 0..2 {
        sequences.clear();
        sequences.literals(2);
        sequences.literals(1);
        sequences.copy(copy);
        sequences.copy(copy);
        sequences.literals(1);
        let list = sequences.end();
        let parts: Vec<_> = runs(list, b"abcbcbcbcd").collect();
        let expected = [(&b"abc"[..], copy), (b"", copy), (b"d", Token::END)];
        assert_eq!(parts, expected);
    }
}

#[test]
fn a_copy_keeps_length_and_distance() {
    for length in [3, 4, 257, 258] {
        for distance in [1, 2, 32_767, 32_768] {
            let token = Token::copy(length, distance);
            assert!(token.is_copy());
            assert_eq!(token.bytes(), length);
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
