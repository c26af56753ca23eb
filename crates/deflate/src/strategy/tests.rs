//! Tests of `strategy`: which sequences and which blocks a strategy makes.
//! Messages → sequences and the form of the first block.
//! Uses `dedicated` for whole payloads; round trips are in `tests/it`.
//! Changed here: cases of a strategy.

use super::*;
use crate::token::Sequence;
use crate::{Dedicated, Scratch};

#[test]
fn huffman_only_makes_no_copies() {
    assert_eq!(parsed(Strategy::HuffmanOnly, b"aaaaaaaaaa"), [end(10)]);
}

#[test]
fn rle_makes_copies_of_the_byte_before_only() {
    let run = |length| Sequence { literals: 1, token: Token::copy(length, 1) };
    assert_eq!(parsed(Strategy::Rle, b"aaaaaaaaaa"), [run(9), end(0)]);
    assert_eq!(parsed(Strategy::Rle, b"abcdabcdabcd"), [end(12)]);
    assert_eq!(parsed(Strategy::Rle, &[b'a'; 260]), [run(258), end(1)]);
}

#[test]
fn filtered_makes_no_copies_of_less_than_six_bytes() {
    let copy = |length| Token::copy(length, length + 1);
    let after = |literals, length| [Sequence { literals, token: copy(length) }, end(0)];
    assert_eq!(parsed(Strategy::Filtered, b"abcde-abcde"), [end(11)]);
    assert_eq!(parsed(Strategy::Default, b"abcde-abcde"), after(6, 5));
    assert_eq!(parsed(Strategy::Filtered, b"abcdef-abcdef"), after(7, 6));
}

#[test]
fn fixed_uses_no_codes_of_its_own() {
    let message = b"eeeeeeeeeetttttttaaaoin".iter().cycle().step_by(7).take(3_000);
    let message: Vec<u8> = message.copied().collect();
    assert_eq!(block_type(Strategy::HuffmanOnly, &message), 2);
    assert_eq!(block_type(Strategy::Fixed, &message), 1);
    assert_eq!(block_type(Strategy::Fixed, &[0xff; 1]), 1);
    let noise: Vec<u8> = (0..100u8).map(|at| 156 + at).collect();
    assert_eq!(block_type(Strategy::Fixed, &noise), 0, "stored is shorter");
}

fn end(literals: u32) -> Sequence {
    Sequence { literals, token: Token::END }
}

fn parsed(strategy: Strategy, message: &[u8]) -> Vec<Sequence> {
    let mut window = Window::new(10);
    window.append(message);
    let mut sequences = Sequences::default();
    strategy.parse(&window, 0, 15, Effort::of(6), &mut sequences);
    sequences.into_list()
}

fn block_type(strategy: Strategy, message: &[u8]) -> u8 {
    let mut payload = Vec::new();
    let mut dedicated = Dedicated::new(15, 8, 6).with_strategy(strategy);
    dedicated.compress(message, &mut Scratch::default(), &mut payload);
    payload[0] >> 1 & 3
}
