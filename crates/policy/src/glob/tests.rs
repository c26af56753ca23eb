//! Tests of glob patterns for channel names.
//! In: patterns and names → out: whether they match, or that the pattern is refused.
//! Uses: nothing but the matcher.
//! How the API lists channels is tested in `tests/it/api.rs`.

use super::*;

fn check(pattern: &str, matching: &[&str], other: &[&str]) {
    let glob = Glob::new(pattern).expect(pattern);
    for channel in matching {
        assert!(glob.matches(channel), "{pattern} should match {channel}");
    }
    for channel in other {
        assert!(!glob.matches(channel), "{pattern} should not match {channel}");
    }
}

#[test]
fn an_empty_pattern_matches_every_channel() {
    check("", &["", "news", "chat:1"], &[]);
}

#[test]
fn stars_and_question_marks_stand_for_text() {
    check("chat:*", &["chat:", "chat:1", "chat:a:b"], &["chat", "xchat:1"]);
    check("n?ws", &["news", "näws"], &["nws", "neews"]);
    check("*", &["", "a\nb"], &[]);
}

#[test]
fn classes_and_alternatives_choose() {
    check("[a-c]1", &["a1", "c1"], &["d1", "-1"]);
    check("[!a-c]1", &["d1"], &["a1"]);
    check("{news,chat:*}", &["news", "chat:1"], &["new", "x"]);
    check("{a,{b,c}d}", &["a", "bd", "cd"], &["b"]);
}

#[test]
fn everything_else_means_itself() {
    check("a.b+c(d)|$#", &["a.b+c(d)|$#"], &["axb+c(d)|$#"]);
    check("\\*", &["*"], &["x"]);
    check("[&&]", &["&"], &["a"]);
    check("a,b}", &["a,b}"], &[]);
}

#[test]
fn broken_and_oversized_patterns_are_refused() {
    for pattern in ["{a", "[a", "\\", "[]", "[z-a]", &"*".repeat(PATTERN_BYTES_MAX + 1)] {
        assert!(Glob::new(pattern).is_none(), "{pattern}");
    }
}
