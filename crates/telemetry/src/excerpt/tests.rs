//! Tests of `excerpt`: hostile texts stay short, printable and in one line.
//! In: texts. Out: nothing.
//! Uses the function only.
//! Which values are logged is tested where they are logged.

use super::{EXCERPT_CHARS_MAX, excerpt};

#[test]
fn control_characters_are_escaped() {
    assert_eq!(
        excerpt("a\nb\u{1b}[2J\u{9b}\u{202e}\0ä🦀"),
        "a\\u{a}b\\u{1b}[2J\\u{9b}\\u{202e}\\u{0}ä🦀"
    );
}

#[test]
fn a_text_of_a_megabyte_is_cut() {
    let long = "\n".repeat(1 << 20);
    assert_eq!(excerpt(&long), "\\u{a}".repeat(EXCERPT_CHARS_MAX) + "…");
    let short = "ä".repeat(EXCERPT_CHARS_MAX);
    assert_eq!(excerpt(&short), short);
}
