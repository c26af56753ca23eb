//! Tests of `tables` against the tables printed in RFC 1951 §3.2.5.
//! Every length and every distance → symbol, extra bits and value.
//! Uses only `tables`.
//! Changed here: nothing, unless RFC 1951 is found misread.

use super::*;

#[test]
fn every_length_is_in_the_row_of_rfc_1951_section_3_2_5() {
    for length in LENGTH_MIN..=LENGTH_MAX {
        let entry = LENGTHS[length - LENGTH_MIN];
        let (symbol, extra, value) = (entry as usize & 0xffff, entry >> 16 & 0xff, entry >> 24);
        let (base, expect) = LENGTH_ROWS[symbol - 257];
        assert_eq!((base + value as usize, extra), (length, expect), "length {length}");
        assert!(value < 1 << extra);
        assert_eq!(length_extra(symbol - 257), extra);
    }
}

#[test]
fn every_distance_is_in_the_row_of_rfc_1951_section_3_2_5() {
    for distance in 1..=32_768 {
        let (symbol, extra, value) = distance_symbol(distance);
        let base = DISTANCE_BASES[symbol];
        assert_eq!(u64::from(base) + value, u64::from(distance), "distance {distance}");
        assert!(value < 1 << extra);
        assert_eq!(distance_extra(symbol), extra);
    }
}

#[test]
fn static_codes_are_those_of_rfc_1951_section_3_2_6() {
    check(&STATIC.literals, 0, 0b0011_0000, 8);
    check(&STATIC.literals, 143, 0b1011_1111, 8);
    check(&STATIC.literals, 144, 0b1_1001_0000, 9);
    check(&STATIC.literals, 255, 0b1_1111_1111, 9);
    check(&STATIC.literals, 256, 0, 7);
    check(&STATIC.literals, 279, 0b001_0111, 7);
    check(&STATIC.literals, 280, 0b1100_0000, 8);
    check(&STATIC.distances, 29, 29, 5);
}

fn check(codes: &[Code], symbol: usize, code: u16, count: u32) {
    let reversed = u64::from(code.reverse_bits() >> (16 - count));
    assert_eq!((codes[symbol].bits(), codes[symbol].count()), (reversed, count), "{symbol}");
}

#[rustfmt::skip]
const LENGTH_ROWS: [(usize, u32); 29] = [
    (3, 0), (4, 0), (5, 0), (6, 0), (7, 0), (8, 0), (9, 0), (10, 0), (11, 1), (13, 1),
    (15, 1), (17, 1), (19, 2), (23, 2), (27, 2), (31, 2), (35, 3), (43, 3), (51, 3), (59, 3),
    (67, 4), (83, 4), (99, 4), (115, 4), (131, 5), (163, 5), (195, 5), (227, 5), (258, 0),
];

#[rustfmt::skip]
const DISTANCE_BASES: [u32; 30] = [
    1, 2, 3, 4, 5, 7, 9, 13, 17, 25, 33, 49, 65, 97, 129, 193, 257, 385, 513, 769, 1025, 1537,
    2049, 3073, 4097, 6145, 8193, 12289, 16385, 24577,
];
