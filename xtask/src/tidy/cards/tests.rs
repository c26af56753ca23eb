//! Tests of the room-card check.
//! In: short files → out: whether they have a card.
//! Uses nothing but the check; never reads a file.
//! The lines a card must have are counted in `cards.rs`.

use super::*;

fn check_one(path: &str, text: &str, findings: usize) {
    assert_eq!(check(&[Source::new(path, text)]).len(), findings, "{text:?}");
}

#[test]
fn four_lines_of_text_are_a_card() {
    check_one("crates/ws/src/mask.rs", "//! a\n//! b\n//! c\n//! d\n\nfn f() {}\n", 0);
}

#[test]
fn three_lines_are_not_a_card() {
    check_one("crates/ws/src/mask.rs", "//! a\n//! b\n//! c\n\nfn f() {}\n", 1);
}

#[test]
fn empty_card_lines_do_not_count() {
    check_one("crates/ws/src/mask.rs", "//! a\n//!\n//! c\n//! d\n", 1);
}

#[test]
fn a_card_below_code_does_not_count() {
    check_one("crates/ws/src/mask.rs", "#![forbid(unsafe_code)]\n//! a\n//! b\n//! c\n//! d\n", 1);
}
