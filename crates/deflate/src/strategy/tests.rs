//! Tests of `strategy`: which tokens and which blocks a strategy makes.
//! Messages → tokens and the form of the first block.
//! Uses `dedicated` for whole payloads; round trips are in `tests/it`.
//! Change here: cases of a strategy.

use super::*;
use crate::{Dedicated, Scratch};

#[test]
fn huffman_only_makes_no_copies() {
    assert_eq!(tokens(Strategy::HuffmanOnly, b"aaaaaaaaaa"), [Token::literal(b'a'); 10]);
}

#[test]
fn rle_makes_copies_of_the_byte_before_only() {
    let a = Token::literal(b'a');
    assert_eq!(tokens(Strategy::Rle, b"aaaaaaaaaa"), [a, Token::copy(9, 1)]);
    assert_eq!(tokens(Strategy::Rle, b"abcdabcdabcd").len(), 12);
    assert_eq!(tokens(Strategy::Rle, &[b'a'; 260]), [a, Token::copy(258, 1), a]);
}

#[test]
fn filtered_makes_no_copies_of_less_than_six_bytes() {
    assert_eq!(tokens(Strategy::Filtered, b"abcde-abcde").len(), 11);
    assert_eq!(tokens(Strategy::Default, b"abcde-abcde").len(), 7);
    assert_eq!(tokens(Strategy::Filtered, b"abcdef-abcdef").len(), 8);
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

fn tokens(strategy: Strategy, message: &[u8]) -> Vec<Token> {
    let mut window = Window::new(10);
    window.append(message);
    let mut tokens = Vec::new();
    strategy.parse(&window, 0, 15, Effort::of(6), &mut tokens);
    tokens
}

fn block_type(strategy: Strategy, message: &[u8]) -> u8 {
    let mut payload = Vec::new();
    let mut dedicated = Dedicated::new(15, 8, 6).with_strategy(strategy);
    dedicated.compress(message, &mut Scratch::default(), &mut payload);
    payload[0] >> 1 & 3
}
