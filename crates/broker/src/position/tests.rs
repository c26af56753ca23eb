//! Tests of epochs: their text and their size.
//! In: random and given texts → out: the same texts, or `None`.
//! Uses only the types.
//! How streams count positions is tested in `broker/memory/tests.rs` and `broker/conformance.rs`.

use super::*;

#[test]
fn an_epoch_is_read_as_it_was_written() {
    for epoch in [Epoch::NONE, Epoch::random(), Epoch::random()] {
        assert_eq!(Epoch::parse(epoch.as_str()), Some(epoch));
    }
    assert_eq!(Epoch::random().as_str().len(), 8);
    assert_ne!(Epoch::random(), Epoch::random());
}

#[test]
fn a_text_that_is_not_eight_letters_is_no_epoch() {
    for text in ["_", "abcdefg", "abcdefghi", "abcdefg1", "\0\0\0\0\0\0\0\0", "äöüß"] {
        assert_eq!(Epoch::parse(text), None, "{text:?}");
    }
}

#[test]
fn a_position_takes_sixteen_bytes() {
    assert_eq!(size_of::<Position>(), 16);
}
