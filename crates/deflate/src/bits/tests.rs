//! Tests of `bits` on a few patterns.
//! Patterns and counts → bytes.
//! Uses only `bits`.
//! Changed here: cases of the order of bits.

use super::*;

#[test]
fn bits_fill_a_byte_from_the_lowest_one() {
    check(&[(0b1, 1), (0b01, 2), (0b11111, 5)], &[0b1111_1011]);
    check(&[(0x1_2345_6789, 40), (0xab, 8)], &[0x89, 0x67, 0x45, 0x23, 0x01, 0xab]);
}

#[test]
fn a_byte_is_filled_up_with_zeros() {
    check(&[(0b111, 3)], &[0b111]);
    check(&[], &[]);
}

#[test]
fn any_counts_in_a_row_keep_their_order() {
    let puts: Vec<_> = (0..200u64).map(|at| ((1 << (at % 57)) - 1, (at % 57) as u32)).collect();
    let mut expect = Vec::new();
    let bits: Vec<bool> = puts.iter().flat_map(|(_, count)| vec![true; *count as usize]).collect();
    for byte in bits.chunks(8) {
        expect.push(byte.iter().enumerate().map(|(place, bit)| u8::from(*bit) << place).sum());
    }
    check(&puts, &expect);
}

fn check(puts: &[(u64, u32)], expect: &[u8]) {
    let mut bytes = vec![0; 2000];
    let mut writer = BitWriter::new(&mut bytes);
    for (bits, count) in puts {
        writer.put(*bits, *count);
    }
    writer.align();
    let len = writer.finish();
    assert_eq!(&bytes[..len], expect);
}
