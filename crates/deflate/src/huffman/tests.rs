//! Tests of `huffman`: codes are complete, within the limit, and as short as they can be.
//! Frequencies → lengths, compared with a plain Huffman tree.
//! Uses proptest and `huffman`.
//! Changed here: what a code must fulfil.

use proptest::collection::vec;
use proptest::prelude::*;

use super::*;

proptest! {
    #[test]
    fn a_code_is_complete_and_within_its_limit(
        frequencies in vec(prop_oneof![Just(0), 1..20u32, 1..8_000u32], 2..286),
        limit in 9..=15usize,
    ) {
        check(&frequencies, limit);
    }

    #[test]
    fn code_lengths_of_code_lengths_keep_seven_bits(frequencies in vec(0..400u32, 19)) {
        check(&frequencies, 7);
    }

    #[test]
    fn a_code_that_keeps_the_limit_by_itself_is_optimal(frequencies in vec(0..24u32, 2..100)) {
        // A code word of 16 bits needs frequencies of 2584, a Fibonacci number, or more in all.
        let mut found = vec![0; frequencies.len()];
        lengths(&frequencies, 15, &mut found);
        let cost: u64 =
            frequencies.iter().zip(&found).map(|(f, length)| u64::from(f * u32::from(*length))).sum();
        if frequencies.iter().filter(|frequency| **frequency > 0).count() >= 2 {
            prop_assert_eq!(cost, optimal_cost(&frequencies));
        }
    }
}

#[test]
fn fibonacci_frequencies_are_cut_to_the_limit() {
    let mut frequencies = vec![1, 1];
    for at in 2..28 {
        frequencies.push(frequencies[at - 1] + frequencies[at - 2]);
    }
    check(&frequencies, 15);
    check(&frequencies[..19], 7);
}

#[test]
fn one_symbol_or_none_still_gives_two_codes() {
    for frequencies in [[0, 0, 0], [5, 0, 0], [0, 5, 0], [0, 0, 5]] {
        check(&frequencies, 15);
    }
}

#[test]
fn codes_are_those_of_the_example_in_rfc_1951_section_3_2_2() {
    // Frequencies that lead to the lengths of the example: 3, 3, 3, 3, 3, 2, 4, 4.
    let mut found = [Code::default(); 8];
    build(&[12, 12, 12, 12, 12, 24, 6, 6], 15, &mut [0; 8], &mut found);
    let expect = [0b010, 0b011, 0b100, 0b101, 0b110, 0b00, 0b1110, 0b1111_u16];
    for (code, expect) in found.iter().zip(expect) {
        assert_eq!(code.bits(), u64::from(expect.reverse_bits() >> (16 - code.count())));
    }
}

/// The lengths, after a look at the codes: no code is the beginning of another.
fn lengths(frequencies: &[u32], limit: usize, found: &mut [u8]) {
    let mut codes = vec![Code::default(); frequencies.len()];
    build(frequencies, limit, found, &mut codes);
    let mut ranges: Vec<_> = codes
        .iter()
        .filter(|code| code.count() > 0)
        .map(|code| ((code.bits() as u16).reverse_bits(), 1u32 << (16 - code.count())))
        .collect();
    ranges.sort_unstable();
    let mut end = 0;
    for (start, size) in ranges {
        assert_eq!(u32::from(start), end);
        end += size;
    }
    for (code, length) in codes.iter().zip(found) {
        assert_eq!(code.count(), u32::from(*length));
    }
}

fn check(frequencies: &[u32], limit: usize) {
    let mut found = vec![0; frequencies.len()];
    lengths(frequencies, limit, &mut found);
    let space: u32 =
        found.iter().filter(|length| **length > 0).map(|length| 1 << (15 - length)).sum();
    assert_eq!(space, 1 << 15, "complete: {found:?}");
    assert!(found.iter().all(|length| usize::from(*length) <= limit));
    assert!(frequencies.iter().zip(&found).all(|(f, length)| *f == 0 || *length > 0));
}

fn optimal_cost(frequencies: &[u32]) -> u64 {
    let mut nodes: Vec<u64> =
        frequencies.iter().filter(|f| **f > 0).map(|f| u64::from(*f)).collect();
    let mut cost = 0;
    while nodes.len() > 1 {
        nodes.sort_unstable_by(|a, b| b.cmp(a));
        let joined = nodes.pop().expect("two nodes") + nodes.pop().expect("two nodes");
        cost += joined;
        nodes.push(joined);
    }
    cost
}
