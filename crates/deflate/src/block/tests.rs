//! Tests of `block`: the form that is chosen, by hand-made sequences.
//! Sequences → form, and bits of its beginning.
//! Uses `block` and its neighbours; round trips are in `tests/it`.
//! Changed here: cases of the choice.

use super::*;
use crate::token::{Sequences, Token};

#[test]
fn a_short_text_takes_the_static_codes() {
    assert!(matches!(plan(b"Hello"), Plan::Fixed));
}

#[test]
fn bytes_without_pattern_are_stored() {
    let message: Vec<u8> = (0..=255).collect();
    assert!(matches!(plan(&message), Plan::Stored));
}

#[test]
fn few_different_bytes_get_codes_of_their_own() {
    let message = b"0123".repeat(100);
    let Plan::Dynamic(dynamic) = plan(&message) else { panic!("a dynamic block is shorter") };
    let cost = literals(&message).cost(&dynamic.codes);
    assert_eq!(cost, 400 * 2 + 100 + 3, "three of four symbols and the end share the last bit");
}

#[test]
fn the_estimate_is_no_more_than_a_few_bytes_above_a_dynamic_block() {
    for symbols in 1..=64u32 {
        let message: Vec<u8> = (0..1_000u32)
            .map(|at| ((at.wrapping_mul(2_654_435_761) >> 24) % symbols) as u8)
            .collect();
        let histogram = literals(&message);
        let dynamic = Dynamic::new(&histogram);
        let cost = histogram.cost(&dynamic.codes) + dynamic.header.cost();
        assert!(histogram.is_dynamic_likely(cost + 25 * 8 + 1), "{symbols} symbols");
        let is_one = symbols == 1; // which has no entropy
        assert!(is_one || !histogram.is_dynamic_likely(cost / 2), "{symbols} symbols");
    }
}

#[test]
fn a_step_is_between_counts_of_different_magnitude() {
    assert_eq!(steps(&[0, 0, 3, 2, 1, 4, 7, 0]), 4);
    let mut counts = [0; 32];
    assert_eq!(steps(&counts), 0);
    counts[6..9].fill(5);
    counts[15] = 1;
    assert_eq!(steps(&counts), 4, "up and down, across rows of eight too");
}

#[test]
fn counts_of_neighbours_that_hardly_differ_become_equal() {
    let mut counts = [3, 1, 4, 1, 5, 0, 2, 60, 61, 3, 2, 1, 0, 0, 0, 0, 0, 0, 7, 0, 6, 0];
    smooth(&mut counts);
    let expected = [2, 2, 2, 2, 2, 2, 2, 60, 61, 3, 2, 1, 0, 0, 0, 0, 0, 0, 7, 0, 6, 0];
    assert_eq!(counts, expected, "others, rows of zeros and what is behind the last one stay");
    let mut none = [0; 30];
    smooth(&mut none);
    assert_eq!(none, [0; 30]);
}

#[test]
fn every_symbol_keeps_its_code_when_counts_become_equal() {
    let mut random = 7u32;
    for _ in 0..1_000 {
        let counts: [u32; 286] = std::array::from_fn(|_| {
            random = random.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (random >> 29).saturating_sub(3) * (random >> 20 & 15)
        });
        let mut smoothed = counts;
        smooth(&mut smoothed);
        assert!(counts.iter().zip(&smoothed).all(|(count, smooth)| *count == 0 || *smooth > 0));
        let last = |counts: &[u32]| counts.iter().rposition(|count| *count > 0);
        assert_eq!(last(&counts), last(&smoothed));
    }
}

#[test]
fn noise_with_a_few_frequent_bytes_gets_codes_that_take_few_bits_to_describe() {
    let noise = (0..700u32).map(|at| (at.wrapping_mul(2_654_435_761) >> 24) as u8);
    let message: Vec<u8> = noise.flat_map(|byte| [byte, 0x1a]).collect();
    let Plan::Dynamic(dynamic) = plan(&message) else { panic!("made to measure") };
    assert!(dynamic.header.cost() < 300, "{} bits for 257 symbols", dynamic.header.cost());
}

#[test]
fn codes_do_for_another_parse_only_if_everything_in_it_has_one() {
    let copy = |length, source, offset| Token::copy_from(length, source, 2_000, offset);
    let (sequences, message) =
        block(&[copy(9, 0, 1_000), copy(20, 1, 590), Token::copy(4, 300)], b"");
    let least = [1_000, 2_100];
    let plan = Plan::for_gaps_from(&least, &sequences, &message);
    let fits = |copy: &[Token], literals: &[u8]| {
        let (sequences, message) = block(copy, literals);
        plan.has_codes_for(&sequences, &message, &least[..1])
    };
    assert!(plan.has_codes_for(&sequences, &message, &least));
    assert!(fits(&[], &[4]) && !fits(&[], &[200]), "literals");
    assert!(fits(&[copy(20, 0, 1_000)], b"") && !fits(&[copy(200, 0, 1_000)], b""), "lengths");
    assert!(
        fits(&[copy(9, 0, 0)], b"") && !fits(&[copy(9, 0, 2_900)], b""),
        "gaps, and wider ones"
    );
    assert!(fits(&[Token::copy(9, 290)], b"") && !fits(&[Token::copy(9, 3)], b""), "distances");
    let does = Plan::Fixed.has_codes_for(&sequences, &message, &least);
    assert!(!does, "nothing was made to measure");
}

#[test]
fn codes_for_gaps_cover_every_distance_that_a_wider_gap_leads_to() {
    let copies = [(5, 0, 300, 900), (9, 1, 310, 0), (20, 1, 600, 590)];
    let [a, b, c] = copies.map(|(length, source, position, offset)| {
        Token::copy_from(length, source, position, offset)
    });
    let copies = [a, b, c, Token::copy(4, 3)];
    let (sequences, message) = block(&copies, b"");
    let least = [1_000, 2_100];
    let plan = Plan::for_gaps_from(&least, &sequences, &message);
    let Plan::Dynamic(dynamic) = plan else { panic!("made to measure") };
    for wider in 0..30_000 {
        let gaps = Gaps::new(&least.map(|gap| gap + wider));
        for copy in copies {
            let (symbol, _, _) = distance_symbol(copy.distance(&gaps));
            assert!(dynamic.codes.distances[symbol].count() > 0, "{copy:?} and {wider} bytes");
        }
    }
    let needless = dynamic.codes.distances[5..17].iter().all(|code| code.count() == 0);
    assert!(needless, "no code for distances that are too short to occur");
}

#[test]
fn distances_between_long_messages_are_counted_for_fewer_gaps() {
    let (sequences, message) = block(&[Token::copy_from(10, 0, 0, 0), Token::copy(10, 1)], b"");
    let counted = |gap| {
        let histogram = Histogram::for_gaps_from(&sequences, &message, &[gap]);
        let of_source = histogram.distances[1..].iter().filter(|count| **count > 0).count();
        (of_source, histogram.distances[0], histogram.gap_count)
    };
    assert_eq!(counted(LONG - 1), (5, 5, 5));
    assert_eq!(counted(LONG), (4, 4, 4));
}

/// Four hundred literals below 23 and more of them, then copies; the message has other bytes there.
fn block(copies: &[Token], more: &[u8]) -> (Vec<Sequence>, Vec<u8>) {
    let mut message: Vec<u8> = (0..400u32).map(|at| (at * at % 23) as u8).collect();
    message.extend(more);
    let mut sequences = Sequences::default();
    sequences.literals(message.len());
    for copy in copies {
        sequences.copy(*copy);
        message.extend(vec![0xff; copy.bytes()]);
    }
    message.resize(message.len().max(10_000), 0);
    (sequences.into_list(), message)
}

fn literals(message: &[u8]) -> Histogram {
    let mut sequences = Sequences::default();
    sequences.literals(message.len());
    Histogram::new(sequences.end(), message)
}

fn plan(message: &[u8]) -> Plan {
    Plan::new(&literals(message), message.len())
}
