//! Tests of `text`: UTF-8 in pieces fails where the whole must fail, and no later (RFC 6455 §8.1).
//! Pieces in hex → text, or the piece at which it fails.
//! Uses `str::from_utf8` as the oracle.
//! Changed here: cases and properties of incremental UTF-8.

use proptest::collection::vec;
use proptest::prelude::*;

use super::*;

#[test]
fn a_character_may_be_cut_anywhere() {
    check(&["ce ba", "e1", "bd b9"], Ok("κ\u{1f79}"));
    check(&["f0", "9f", "98", "80"], Ok("😀"));
    check(&["41 f0 9f", "98 80 42"], Ok("A😀B"));
    check(&["", "41", "", "42", ""], Ok("AB"));
}

#[test]
fn text_fails_at_the_byte_that_cannot_continue_a_character() {
    // Autobahn 6.4.3 and 6.4.4: f4 90 can never become a character.
    check(&["ce ba", "f4", "90", "80 80"], Err(2));
    check(&["f4 90", "80 80"], Err(0));
    check(&["e0", "80"], Err(1)); // overlong
    check(&["ed", "a0"], Err(1)); // surrogate
    check(&["c0"], Err(0));
    check(&["f5"], Err(0));
    check(&["80"], Err(0));
    check(&["e1 bd", "41"], Err(1));
}

#[test]
fn text_that_ends_inside_a_character_fails_at_the_end() {
    check(&["ce"], Err(1));
    check(&["41", "f0 9f 98"], Err(2));
}

#[test]
fn the_boundaries_of_utf_8_are_kept() {
    // RFC 3629 §4
    for valid in ["00", "7f", "c2 80", "df bf", "e0 a0 80", "ed 9f bf", "ee 80 80", "ef bf bf"] {
        check_bytewise(valid, true);
    }
    check_bytewise("f0 90 80 80", true);
    check_bytewise("f4 8f bf bf", true);
    for invalid in ["c1 bf", "e0 9f bf", "f0 8f bf bf", "f4 90 80 80", "f8 88 80 80 80", "ff"] {
        check_bytewise(invalid, false);
    }
}

proptest! {
    #[test]
    fn any_pieces_of_any_bytes_agree_with_the_whole(pieces in vec(nasty_piece(), 0..8)) {
        let pieces: Vec<_> = pieces.iter().map(Vec::as_slice).collect();
        let result = collect(&pieces);
        let whole = pieces.concat();
        prop_assert_eq!(result.as_deref().ok(), str::from_utf8(&whole).ok());
        if let Err(at) = result
            && at < pieces.len()
        {
            // It failed at the first piece after which nothing could have made it valid.
            let dead = |end: usize| matches!(
                str::from_utf8(&pieces[..end].concat()), Err(error) if error.error_len().is_some()
            );
            prop_assert!(dead(at + 1) && !dead(at));
        }
    }
}

/// Whole text, single bytes of long characters, and now and then something invalid.
fn nasty_piece() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        ".{0,6}".prop_map(String::into_bytes),
        (any::<char>(), 0..4usize).prop_map(|(character, end)| {
            let mut bytes = [0; 4];
            let bytes = character.encode_utf8(&mut bytes).as_bytes();
            bytes[..end.min(bytes.len())].to_vec()
        }),
        vec(0x80..0xc0u8, 0..3),
        vec(any::<u8>(), 0..2),
    ]
}

/// `Err(n)`: piece n failed, or the end did when n is the number of pieces.
fn check(pieces: &[&str], expect: Result<&str, usize>) {
    let pieces: Vec<_> = pieces.iter().map(|piece| hex(piece)).collect();
    let pieces: Vec<_> = pieces.iter().map(Vec::as_slice).collect();
    assert_eq!(collect(&pieces).as_deref(), expect.as_ref().map(|text| *text), "{pieces:02x?}");
}

fn check_bytewise(bytes: &str, valid: bool) {
    let bytes = hex(bytes);
    let pieces: Vec<_> = bytes.chunks(1).collect();
    assert_eq!(collect(&pieces).is_ok(), valid, "{bytes:02x?}");
}

fn collect(pieces: &[&[u8]]) -> Result<String, usize> {
    let mut text = Text::default();
    for (at, piece) in pieces.iter().enumerate() {
        text.push(piece).map_err(|_| at)?;
    }
    text.finish().map_err(|_| pieces.len())
}

fn hex(text: &str) -> Vec<u8> {
    text.split_whitespace().map(|byte| u8::from_str_radix(byte, 16).expect("hex")).collect()
}
