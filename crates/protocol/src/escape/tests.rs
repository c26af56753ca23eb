//! Tests of `escape`: serde_json reads back every character, and nothing dangerous stays raw.
//! In: texts. Out: escaped texts.
//! Uses serde_json as the oracle.
//! Tests of whole messages are next to `reply` and `publication`.

use super::*;

#[test]
fn every_suspect_character_reads_back_and_is_not_raw() {
    let suspects = (0..0x300u32).chain(0x2000..0x2100).chain([0xd7ff, 0xe000, 0x1f600, 0x10ffff]);
    for character in suspects.filter_map(char::from_u32) {
        for text in [format!("{character}"), format!("a{character}{character}b")] {
            let escaped = escaped(&text);
            let read: String = serde_json::from_str(&escaped).expect("a JSON string");
            assert_eq!(read, text);
            let inside = &escaped[1..escaped.len() - 1];
            let is_raw = |c: char| matches!(c, '<' | '>' | '&' | '\u{2028}' | '\u{2029}' | ..' ');
            assert!(!inside.contains(is_raw), "{inside}");
        }
    }
}

#[test]
fn other_characters_are_written_as_serde_json_writes_them() {
    let text: String = (0..0x10ffff)
        .filter_map(char::from_u32)
        .filter(|c| !matches!(c, '<' | '>' | '&' | '\u{2028}' | '\u{2029}'))
        .collect();
    assert!(escaped(&text) == serde_json::to_string(&text).expect("a string"));
}

#[test]
fn an_empty_text_has_no_pieces() {
    assert_eq!(Escaped::new("").count(), 0);
    assert_eq!(Escaped::new("plain é").collect::<Vec<_>>(), ["plain é".as_bytes()]);
}

fn escaped(text: &str) -> String {
    let string = json_string(text);
    assert_eq!(string.len(), 2 + Escaped::new(text).map(<[u8]>::len).sum::<usize>());
    String::from_utf8(string.into()).expect("whole characters")
}
